"""How each row moved the estimated class weights, and what a method of weights answers.

An influence function phi has  w_hat - w  ~  mean_i phi_i (source) + mean_j phi_j (target); products
of it, summed over rows, are covariances. docs/mathematics.md section 7.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from calshift.engines import Arrays, Sums
from calshift.predictions import Predictions

RELATIVE_ZERO = 1e-13  # of a singular value beside the largest


class Influence(Protocol):
    """phi of the weights of the S classes seen, and of the source prior that they multiply."""

    def source(self, batch: Predictions) -> np.ndarray:
        """(rows, S) phi_i."""

    def target(self, batch: Predictions) -> np.ndarray:
        """(rows, S) phi_j."""

    def base(self, batch: Predictions) -> np.ndarray:
        """(rows, S) how each source row moved the source prior."""


@dataclass(frozen=True)
class Solution:
    """What a method finds, over the S classes that the source shows.

    Attributes
    ----------
    weights : (S,)
    base : (S,) the source prior of the method; base * weights is the target prior
    influence : how each row moved the weights
    target_covariance : (S, S) of phi_j
    matrix : C of linear moments, or its like, which the method inverts
    held : (S,) bool, classes at the bound w = 0
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
    converged: bool = True
    iterations: int = 1
    notes: tuple[str, ...] = ()
    source: Arrays | None = None


Method = Callable[[Arrays, Arrays, np.ndarray], Solution]  # source, target, class counts


def label_influence(batch: Predictions, seen: np.ndarray, prior: np.ndarray) -> np.ndarray:
    """1_{y_i} - pi: how each row moved the class shares."""
    moved = np.tile(-prior, (len(batch), 1))
    moved[np.arange(len(batch)), batch.codes(seen)] += 1
    return moved


def freed_inverse(matrix: np.ndarray, free: np.ndarray) -> np.ndarray:
    """The inverse of a symmetric matrix on the free coordinates.

    The row of a coordinate held at its bound is the one it would have if it alone were set free,
    so that an estimate at the bound has a standard error too.
    """
    inverse = np.zeros_like(matrix)
    inner = _inverse(matrix[np.ix_(free, free)])
    inverse[np.ix_(free, free)] = inner
    held = np.flatnonzero(~free)
    rows = -matrix[np.ix_(held, free)] @ inner
    left = matrix[held, held] + np.sum(rows * matrix[np.ix_(held, free)], axis=1)
    known = np.abs(left) > RELATIVE_ZERO * np.abs(matrix).max()
    left = np.where(known, left, np.inf)[:, None]
    inverse[np.ix_(held, free)] = rows / left
    inverse[held, held] = 1 / left[:, 0]
    return inverse


def covariances(
    solution: Solution, source: Arrays, sizes: tuple[float, float]
) -> tuple[np.ndarray, np.ndarray]:
    """Covariance of q = base * weights / sum, and standard errors of the weights.

    sum_i psi_i psi_i' / n^2 + the target's share / m, with psi_i = base phi_i + w phi_i(base)
    """
    base, w = solution.base, solution.weights

    def kernel(batch: Predictions) -> Sums:
        phi = solution.influence.source(batch)
        psi = base * phi + w * solution.influence.base(batch)
        root = np.sqrt(batch.frequency)[:, None]
        psi *= root
        phi *= root
        return Sums((psi.T @ psi, np.einsum("ic,ic->c", phi, phi)))

    (prior, values), (n, m) = (solution.source or source).total(kernel), sizes
    prior = prior / n**2 + solution.target_covariance * np.outer(base, base) / m
    values = values / n**2 + np.diag(solution.target_covariance) / m
    q = base * w
    turn = (np.eye(len(q)) - np.outer(q / q.sum(), ~solution.held)) / q.sum()
    return turn @ prior @ turn.T, np.sqrt(np.maximum(values, 0.0))


def _inverse(matrix: np.ndarray) -> np.ndarray:
    """Of a symmetric matrix; where it is singular to rounding, without the directions it lacks."""
    try:
        inverse = np.linalg.inv(matrix)
    except np.linalg.LinAlgError:
        inverse = np.full_like(matrix, np.inf)
    if np.abs(inverse).max() * np.abs(matrix).max() < 1e-2 / RELATIVE_ZERO:
        return np.asarray(inverse)
    return np.asarray(np.linalg.pinv(matrix, RELATIVE_ZERO, hermitian=True))
