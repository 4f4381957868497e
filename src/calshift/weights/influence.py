"""How each row moved the estimated class weights, and what a method of weights answers.

An influence function phi has  w_hat - w  ~  mean_i phi_i (source) + mean_j phi_j (target); products
of it, summed over rows, are covariances. docs/mathematics.md section 7.

Class weights as the fits use them, and by how much each row moved them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from calshift._core.addable import Tally
from calshift._core.frozen import Frozen
from calshift._core.predictions import Predictions
from calshift.engines.base import Engine


class Influence(Protocol):
    """phi of the weights of the S classes seen, and of the source prior that they multiply."""

    def source(self, batch: Predictions) -> np.ndarray:
        """(rows, S) phi_i."""

    def target(self, batch: Predictions) -> np.ndarray:
        """(rows, S) phi_j."""

    def base(self, batch: Predictions) -> np.ndarray:
        """(rows, S) how each source row moved the source prior."""


class WeightInfluence(Influence, Protocol):
    """That of weights as they are used, which observations of neither sample may have moved."""

    @property
    def outside(self) -> np.ndarray:
        """(rows, S) by how much those moved the weights; mostly none, (0, S)."""

    @property
    def target_square(self) -> np.ndarray:
        """(S, S) mean of phi_j phi_j' over the target, without a pass over it."""


@dataclass(frozen=True)
class WeightFit:
    """What a method finds, over the S classes that the source shows.

    Attributes
    ----------
    weights : (S,)
    base : (S,) the source prior of the method; base * weights is the target prior
    influence : how each row moved the weights
    target_covariance : (S, S) of phi_j
    matrix : C of linear moments, or its like, which the method inverts
    held : (S,) bool, classes at the bound w = 0
    beyond : (S,) how far below the bound the weight of such a class would lie if it were free
    converged, iterations : of its search
    notes : what to know, worst first
    source : fewer rows that stand for all of the source's, if the method has made them
    """

    weights: np.ndarray
    base: np.ndarray
    influence: Influence
    target_covariance: np.ndarray
    matrix: np.ndarray
    held: np.ndarray
    beyond: np.ndarray
    converged: bool = True
    iterations: int = 1
    notes: tuple[str, ...] = ()
    source: Engine | None = None


Method = Callable[[Engine, Engine, np.ndarray], WeightFit]  # source, target, class counts


def label_influence(batch: Predictions, seen: np.ndarray, prior: np.ndarray) -> np.ndarray:
    """1_{y_i} - pi: how each row moved the class shares."""
    moved = np.tile(-prior, (len(batch), 1))
    moved[np.arange(len(batch)), batch.codes(seen)] += 1
    return moved


@dataclass(frozen=True, eq=False)
class ShrunkInfluence(Frozen):
    """An influence function, less of it where the estimate is surer than first order says."""

    inner: Influence
    factor: np.ndarray  # (S,)
    covariance: np.ndarray  # (S, S) of phi_j before that

    def source(self, batch: Predictions) -> np.ndarray:
        """(rows, S) phi_i."""
        return self._damped(self.inner.source(batch))

    def target(self, batch: Predictions) -> np.ndarray:
        """(rows, S) phi_j."""
        return self._damped(self.inner.target(batch))

    def _damped(self, phi: np.ndarray) -> np.ndarray:
        return phi if (self.factor == 1).all() else np.asarray(phi * self.factor)

    @property
    def target_square(self) -> np.ndarray:
        """(S, S) mean of phi_j phi_j'."""
        return np.asarray(self.covariance * np.outer(self.factor, self.factor))

    def base(self, batch: Predictions) -> np.ndarray:
        """(rows, S) how each source row moved the source prior."""
        return self.inner.base(batch)

    @property
    def outside(self) -> np.ndarray:
        """(0, S): all that moved the weights is in the two samples."""
        return np.zeros((0, len(self.factor)))


@dataclass(frozen=True, eq=False)
class LabelCountInfluence(Frozen):
    """Of weights w = q / pi from labels on both sides; those of the target are a third sample.

    phi_i = -w (1_{y_i} - pi) / pi on the source; `outside` has the target's labels, class by class.
    """

    weights: np.ndarray  # (K,), NaN for classes that the source lacks, as everything below
    prior: np.ndarray
    shares: np.ndarray
    labels: float  # how many of the target

    @property
    def seen(self) -> np.ndarray:
        """(K,) bool, the S classes of the source."""
        return np.asarray(self.prior > 0)

    def source(self, batch: Predictions) -> np.ndarray:
        """(rows, S) phi_i."""
        seen = self.seen
        return np.asarray(self.base(batch) * (-self.weights[seen] / self.prior[seen]))

    def target(self, batch: Predictions) -> np.ndarray:
        """(rows, S) nothing: predictions took no part."""
        return np.zeros((len(batch), int(self.seen.sum())))

    @property
    def target_square(self) -> np.ndarray:
        """(S, S) nothing too."""
        return np.zeros((int(self.seen.sum()),) * 2)

    def base(self, batch: Predictions) -> np.ndarray:
        """(rows, S) how each source row moved the source prior."""
        return label_influence(batch, self.seen, self.prior[self.seen])

    @property
    def outside(self) -> np.ndarray:
        """(K, S) moves whose squares sum to the covariance that the target's labels give w."""
        moved = np.eye(len(self.shares)) - self.shares
        moved *= np.sqrt(self.shares / self.labels)[:, None]
        return np.asarray(moved[:, self.seen] / self.prior[self.seen])


def covariances(
    solution: WeightFit, source: Engine, sizes: tuple[float, float]
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Covariance of q = base * weights / sum, standard errors of the weights, and certainty.

    sum_i psi_i psi_i' / n^2 + the target's share / m, with psi_i = base phi_i + w phi_i(base). A
    row of weight below 1 counts by its square; ``sizes``: n, and what the target is worth in rows.
    """
    base, w, influence = solution.base, solution.weights, solution.influence

    def kernel(batch: Predictions) -> Tally:  # it travels, and the solution's engine cannot
        phi = influence.source(batch)
        psi = base * phi + w * influence.base(batch)
        root = np.sqrt(batch.squared_frequency)[:, None]
        psi *= root
        phi *= root
        return Tally(prior=psi.T @ psi, values=np.einsum("ic,ic->c", phi, phi))

    prior, values = (solution.source or source).total(kernel).values()
    n, m = sizes
    prior = prior / n**2 + solution.target_covariance * np.outer(base, base) / m
    values = values / n**2 + np.diag(solution.target_covariance) / m
    q = base * w
    turn = (np.eye(len(q)) - np.outer(q / q.sum(), ~solution.held)) / q.sum()
    prior, values = turn @ prior @ turn.T, np.sqrt(np.maximum(values, 0.0))
    certain = _certainty(np.sqrt(np.maximum(np.diag(prior), 0.0)), base * solution.beyond)
    return prior * np.outer(certain, certain), values * certain, certain


def _certainty(error: np.ndarray, beyond: np.ndarray) -> np.ndarray:
    """Factor of the standard error of a share that is held at 0.

    A normal variable with this error, centred so far below 0 and cut off there, has a mean of about
    error^2 / distance.
    """
    ratio = np.divide(error, beyond, out=np.ones(len(error)), where=beyond > 0)
    return np.asarray(np.minimum(1.0, ratio))


@dataclass(frozen=True)
class ScaledWeights:
    """Class weights as the fits use them (largest 1), and how each row moved them."""

    values: np.ndarray  # (K,), 0 for classes that are left out
    seen: np.ndarray  # (K,) bool
    scale: float  # what the weights were divided by
    influence: WeightInfluence | None
    sizes: tuple[float, float]  # n, m

    @staticmethod
    def of(
        class_weights: np.ndarray, influence: WeightInfluence | None, sizes: tuple[float, float]
    ) -> ScaledWeights:
        """From weights with NaN for classes that are left out."""
        seen = ~np.isnan(class_weights)
        values = np.where(seen, class_weights, 0.0)
        scale = float(values.max())
        return ScaledWeights(values / scale, seen, scale, influence, sizes)

    def source_influence(self, batch: Predictions) -> np.ndarray:
        """(rows, S) by how much each source row moved the weights; (rows, 0) if they are given."""
        if self.influence is None:
            return np.zeros((len(batch), 0))
        return np.asarray(self.influence.source(batch) / (self.scale * self.sizes[0]))

    @property
    def outside_influence(self) -> np.ndarray:
        """(rows, S) by how much observations of neither sample moved them; (0, 0) if given."""
        if self.influence is None:
            return np.zeros((0, 0))
        return np.asarray(self.influence.outside / self.scale)

    def target_influence(self, batch: Predictions) -> np.ndarray:
        """(rows, S) by how much each target row moved the weights; (rows, 0) if they are given."""
        if self.influence is None:
            return np.zeros((len(batch), 0))
        return np.asarray(self.influence.target(batch) / (self.scale * self.sizes[1]))
