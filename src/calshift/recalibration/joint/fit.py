"""Vector scaling and the class weights of the target, fitted jointly.

Source: P(y | x) ~ exp(a log p + b); target: the same times exp(s), s_y the log weight of class y.
The labels of the source determine a and b; the sample that a row belongs to determines all three.
docs/mathematics.md section 11.
"""

from __future__ import annotations

import numpy as np

from calshift._core.predictions import Predictions
from calshift.recalibration.joint.likelihood import JointLikelihood
from calshift.recalibration.joint.prior import JointPrior
from calshift.recalibration.joint.search import Maximum, Search
from calshift.scaling.calibrator import LEAST_PROBABILITY

MOST_SLOPES = 200  # classes up to which each has a slope of its own


def choose_kind(K: int) -> str:
    """The kind of calibrator for K classes."""
    return "vs" if K <= MOST_SLOPES else "bcts"


def fit_jointly(
    source: Predictions,
    target: Predictions,
    class_counts: np.ndarray,
    floor: float = LEAST_PROBABILITY,
    near: Maximum | None = None,
) -> Maximum:
    """Slopes (one each or one for all classes), biases, shifts of largest penalised likelihood.

    Every class count must be positive, also of a class that is not in the source. Probabilities
    below the floor are replaced by it. A fit ``near`` is one to similar rows.
    """
    K = len(class_counts)
    prior = JointPrior(class_counts, K if choose_kind(K) == "vs" else 1)
    likelihood = JointLikelihood.of(source, target, prior.slopes, floor)
    return Search(likelihood, prior, source.size + target.size).maximize(near)
