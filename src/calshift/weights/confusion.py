"""Weights from the confusion of predicted and true classes: bbse and rlls.

docs/mathematics.md section 7; paper, section on importance weights.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from calshift.engines import Arrays
from calshift.frozen import Frozen
from calshift.influence import RELATIVE_ZERO, Solution, freed_inverse
from calshift.matching import (
    LinearInfluence,
    Moments,
    matched,
    matched_prior,
    moments_of,
    scatter_of,
)
from calshift.predictions import Predictions

FAILURE = 0.05  # delta: how often the bound behind rlls's penalty may fail
SHARE = 0.01  # alpha: of that bound that is used


@dataclass(frozen=True, eq=False)
class Predicted(Frozen):
    """The features of a confusion: predicted classes, one-hot or as probabilities."""

    soft: bool

    def __call__(self, batch: Predictions) -> np.ndarray:
        p = batch.matrix
        if self.soft:
            return p.astype(float, copy=False)
        hits = np.zeros(p.shape)
        hits[np.arange(len(p)), p.argmax(axis=1)] = 1
        return hits


def bbse(source: Arrays, target: Arrays, class_counts: np.ndarray, *, soft: bool) -> Solution:
    """Black-box shift estimation: C w = mu in the least squares, w >= 0, sum pi w = 1."""
    features = Predicted(soft)
    moments = moments_of(features, source, target, class_counts)
    return matched(features, moments, target, class_counts > 0)


def rlls(source: Arrays, target: Arrays, class_counts: np.ndarray, *, soft: bool) -> Solution:
    """Regularised learning under label shift: min |C t - b| + penalty |t|, t >= -1, w = 1 + t.

    b = mu - C 1; norms are not squared, so the penalty is exact: it leaves w = 1, the solution of
    bbse, or something between.
    """
    features, seen = Predicted(soft), class_counts > 0
    moments = moments_of(features, source, target, class_counts)
    C, b = moments.confusion, moments.target - moments.confusion.sum(axis=1)
    penalty = SHARE * _bound(len(moments.target), class_counts.sum())
    size = np.linalg.norm(b)
    if size <= RELATIVE_ZERO or penalty * size >= np.linalg.norm(C.T @ b):
        return _unmoved(features, moments, seen)
    exact = matched_prior(moments) / moments.prior
    if exact.all() and _is_exact(C, exact - 1, penalty):
        return matched(features, moments, target, seen)
    t, steps = _penalised(C, b, penalty)
    scatter = scatter_of(features, target, moments.target)
    return _shrunken(features, moments, scatter, seen, t, penalty, steps)


def _bound(K: int, n: float) -> float:
    log = np.log(2 * K / FAILURE)
    return float(3 * (2 * log / (3 * n) + np.sqrt(2 * log / n)))


def _is_exact(C: np.ndarray, t: np.ndarray, penalty: float) -> bool:
    """Whether t = C^-1 b is optimal: C't0 lies within the penalty's reach of the origin."""
    if C.shape[0] != C.shape[1] or np.linalg.cond(C) > 1 / RELATIVE_ZERO:
        return False
    return bool(penalty * np.linalg.norm(np.linalg.solve(C.T, t)) <= np.linalg.norm(t))


def _penalised(C: np.ndarray, b: np.ndarray, penalty: float) -> tuple[np.ndarray, int]:
    """The minimiser of |C t - b| + penalty |t| over t >= -1.

    It is that of |C t - b|^2 + ridge |t|^2 for the ridge with  ridge |t| / |C t - b| = penalty;
    the left side grows with the ridge.
    """
    from scipy.optimize import brentq

    square, pull = C.T @ C, C.T @ b
    top = float(np.linalg.norm(C, 2)) ** 2
    free = np.ones(len(pull), dtype=bool)

    def excess(log_ridge: float) -> float:
        nonlocal free
        t, free = _bounded_ridge(square, pull, np.exp(log_ridge), free)
        ratio = np.linalg.norm(t) / max(np.linalg.norm(C @ t - b), np.finfo(float).tiny)
        return float(log_ridge + np.log(max(ratio, np.finfo(float).tiny)) - np.log(penalty))

    low, high = np.log(top * RELATIVE_ZERO), np.log(top) + 1
    while excess(high) < 0 and high < 100:
        high += 5
    if excess(low) >= 0:  # the penalty is too small to be told from none
        return _bounded_ridge(square, pull, np.exp(low), free)[0], 1
    root, report = brentq(excess, low, high, xtol=1e-13, full_output=True)
    return _bounded_ridge(square, pull, np.exp(root), free)[0], report.iterations


def _bounded_ridge(
    square: np.ndarray, pull: np.ndarray, ridge: float, free: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """min |C t - b|^2 + ridge |t|^2 over t >= -1, from a guess of the classes not at the bound."""
    from scipy.optimize import nnls

    H = square + ridge * np.eye(len(pull))
    for _ in range(20):  # exchange all that are on the wrong side; mostly a few rounds
        t = np.full(len(pull), -1.0)
        inner = H[np.ix_(free, free)]
        t[free] = np.linalg.solve(inner, pull[free] + H[np.ix_(free, ~free)].sum(axis=1))
        wrong = np.where(free, t < -1, H @ t - pull < 0)
        if not wrong.any():
            return t, free
        free = free ^ wrong
    R = np.linalg.cholesky(H).T  # the exchange went round in circles: one class at a time
    w = nnls(R, np.linalg.solve(R.T, pull + H.sum(axis=1)), maxiter=100 * len(pull))[0]
    return w - 1, w > 0


def _unmoved(features: Predicted, moments: Moments, seen: np.ndarray) -> Solution:
    S, L = len(moments.prior), len(moments.target)
    influence = LinearInfluence(
        features, seen, np.ones(S), moments.prior, moments.confusion, moments.target,
        np.zeros((S, L)), np.zeros(S),
    )  # fmt: skip
    note = (
        "rlls: its penalty outweighs all evidence of a shift and leaves every weight at 1; "
        "the standard errors do not cover this"
    )
    held, nothing = np.zeros(S, dtype=bool), np.zeros((S, S))
    return Solution(
        np.ones(S), moments.prior, influence, nothing, moments.confusion, held, notes=(note,)
    )


def _shrunken(
    features: Predicted,
    moments: Moments,
    scatter: np.ndarray,
    seen: np.ndarray,
    t: np.ndarray,
    penalty: float,
    steps: int,
) -> Solution:
    """The penalised solution and its linearisation.

    With r = C t - b, B = I - r r' / |r|^2 and J = C'BC / |r| + penalty (I - t t' / |t|^2) / |t| on
    the classes not at the bound, Q = J^-1 C'B / |r|.
    """
    C, w = moments.confusion, 1 + t
    r = C @ w - moments.target
    length, size = np.linalg.norm(r), np.linalg.norm(t)
    r, t = r / length, t / size
    across = C - np.outer(r, r @ C)
    J = C.T @ across / length + penalty / size * (np.eye(len(t)) - np.outer(t, t))
    held = w <= 0
    by_label = freed_inverse(J, ~held)
    inverse = by_label @ across.T / length
    influence = LinearInfluence(
        features, seen, w, moments.prior, C, moments.target, inverse, np.zeros(len(t)), r, by_label
    )
    note = (
        "rlls: its penalty draws the weights towards 1; the standard errors do not cover this bias"
    )
    return Solution(
        w,
        moments.prior,
        influence,
        inverse @ scatter @ inverse.T,
        C,
        held,
        iterations=steps,
        notes=(note,),
    )
