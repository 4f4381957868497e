"""Vector scaling and the class weights of the target, fitted jointly.

Source: P(y | x) ~ exp(a log p + b); target: the same times exp(s), s_y the log weight of class y.
The labels of the source determine a and b; the sample that a row belongs to determines all three.
docs/mathematics.md section 11.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from calshift._core.frozen import Frozen
from calshift._core.predictions import Predictions
from calshift.recalibration.joint.likelihood import JointLikelihood
from calshift.recalibration.joint.prior import JointPrior
from calshift.recalibration.joint.search import Search
from calshift.scaling.calibrator import LEAST_PROBABILITY

MOST_SLOPES = 200  # classes up to which each has a slope of its own


@dataclass(frozen=True, eq=False)
class JointFit(Frozen):
    """Slopes, biases and log class weights of largest penalised likelihood.

    Attributes
    ----------
    parameters : (N,) slopes (K, or one of all classes), biases and shifts (K each)
    log_strength : of the forms of the prior
    converged : whether the search came to its end
    """

    parameters: np.ndarray
    log_strength: np.ndarray
    n_classes: int
    converged: bool

    @property
    def slopes(self) -> np.ndarray:
        """(K,) or (1,)."""
        return self.parameters[: -2 * self.n_classes]

    @property
    def biases(self) -> np.ndarray:
        """(K,)."""
        return self.parameters[-2 * self.n_classes : -self.n_classes]

    @property
    def shifts(self) -> np.ndarray:
        """(K,) log class weights of the target."""
        return self.parameters[-self.n_classes :]


def choose_kind(K: int) -> str:
    """The kind of calibrator for K classes."""
    return "vs" if K <= MOST_SLOPES else "bcts"


def fit_jointly(
    source: Predictions,
    target: Predictions,
    class_counts: np.ndarray,
    floor: float = LEAST_PROBABILITY,
    near: JointFit | None = None,
) -> JointFit:
    """The parameters of largest penalised likelihood, searched from those of a fit ``near`` them.

    Every class count must be positive, also of a class that is not in the source. Probabilities
    below the floor are replaced by it.
    """
    K = len(class_counts)
    prior = JointPrior(class_counts, K if choose_kind(K) == "vs" else 1)
    likelihood = JointLikelihood.of(source, target, prior.slopes, floor)
    start = prior.centre, np.zeros(len(prior.forms))
    if near is not None:
        start = near.parameters, near.log_strength
    found = Search(likelihood, prior, source.size + target.size).maximize(*start)
    return JointFit(found.parameters, found.log_strength, K, found.converged)
