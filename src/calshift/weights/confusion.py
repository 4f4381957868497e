"""Weights from the confusion of predicted and true classes: bbse and rlls.

docs/mathematics.md section 7; paper, section on importance weights.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from calshift.engines import Arrays
from calshift.frozen import Frozen
from calshift.influence import RELATIVE_ZERO, Solution, freed_inverse
from calshift.matching import (
    LinearInfluence,
    Moments,
    matched,
    moments_of,
    scatter_of,
)
from calshift.predictions import Predictions

FAILURE = 0.05  # delta: how often the bound behind rlls's penalty may fail
SHARE = 0.01  # alpha: of that bound that is used
MOST_ROUNDS = 30  # of classes that change between free and bound
LEAST_RIDGE = 1e-12  # of the trace of C'C: below it rounding rules


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
    source, target = (source, target) if soft else (_counted(source), _counted(target))
    moments = moments_of(features, source, target, class_counts)
    return replace(matched(features, moments, target, class_counts > 0), source=source)


def _counted(engine: Arrays) -> Arrays:
    """One row for each predicted class and label, with their number as its weight."""
    sample = engine.predictions
    K = sample.n_classes

    def kernel(batch: Predictions) -> np.ndarray:
        cell = batch.matrix.argmax(axis=1) * K + (0 if batch.y is None else batch.y)
        return np.bincount(cell, batch.sample_weight, K * K).astype(float)

    counts = engine.total(kernel)
    cells = np.flatnonzero(counts)
    labels = None if sample.y is None else cells % K
    rows = Predictions(np.eye(K)[cells // K], labels, sample_weight=counts[cells])
    return Arrays.in_blocks(rows)


def rlls(source: Arrays, target: Arrays, class_counts: np.ndarray, *, soft: bool) -> Solution:
    """Regularised learning under label shift: min |C t - b| + penalty |t|, t >= -1, w = 1 + t.

    b = mu - C 1; norms are not squared, so the penalty is exact: it leaves w = 1, the solution of
    bbse, or something between.
    """
    features, seen = Predicted(soft), class_counts > 0
    source, target = (source, target) if soft else (_counted(source), _counted(target))
    moments = moments_of(features, source, target, class_counts)
    C, b = moments.confusion, moments.target - moments.confusion.sum(axis=1)
    penalty = SHARE * _bound(len(moments.target), class_counts.sum())
    size = np.linalg.norm(b)
    if size <= RELATIVE_ZERO or penalty * size >= np.linalg.norm(C.T @ b):
        found = _unmoved(features, moments, seen)
    elif _is_exact(C, b, penalty):
        found = matched(features, moments, target, seen)
    else:
        t, steps = _penalised(C, b, penalty)
        scatter = scatter_of(features, target, moments.target)
        found = _shrunken(features, moments, scatter, seen, t, penalty, steps)
    return replace(found, source=source)


def _bound(K: int, n: float) -> float:
    log = np.log(2 * K / FAILURE)
    return float(3 * (2 * log / (3 * n) + np.sqrt(2 * log / n)))


def _is_exact(C: np.ndarray, b: np.ndarray, penalty: float) -> bool:
    """Whether t = C^-1 b is optimal: within the bound, and C^-T t of no more than the penalty."""
    if C.shape[0] != C.shape[1]:
        return False
    try:
        t = np.linalg.solve(C, b)
        reach = penalty * np.linalg.norm(np.linalg.solve(C.T, t))
    except np.linalg.LinAlgError:
        return False
    solves = np.linalg.norm(C @ t - b) <= 1e-10 * np.linalg.norm(b)
    return bool(solves and t.min() > -1 and reach <= np.linalg.norm(t))


def _penalised(C: np.ndarray, b: np.ndarray, penalty: float) -> tuple[np.ndarray, int]:
    """The minimiser of |C t - b| + penalty |t| over t >= -1, and how many sets of bounds it took.

    All classes that are on the wrong side of their bound change sides at once, which mostly ends
    after a few rounds; if it does not, the bounded ridge regression is solved one class at a time.
    """
    free, square = np.ones(C.shape[1], dtype=bool), C.T @ C
    for rounds in range(1, MOST_ROUNDS + 1):
        t, ridge = _with_bounds(square, C, b, penalty, free)
        wrong = np.where(free, t < -1, C.T @ (C @ t - b) + ridge * t < 0)
        if not wrong.any():
            return t, rounds
        free = free ^ wrong
    return _one_by_one(C, b, penalty), rounds


def _with_bounds(
    square: np.ndarray, C: np.ndarray, b: np.ndarray, penalty: float, free: np.ndarray
) -> tuple[np.ndarray, float]:
    """The minimiser of |C t - b| + penalty |t| over the free t, the others at -1, and its ridge.

    It is that of |C t - b|^2 + ridge |t|^2 for the ridge with  ridge |t| / |C t - b| = penalty. The
    left side grows with the ridge; Newton's method finds it on logarithms.
    """
    from scipy.linalg import cho_factor, cho_solve

    left = b + C[:, ~free].sum(axis=1)
    inner, pull = square[np.ix_(free, free)], C[:, free].T @ left
    held, t = np.count_nonzero(~free), np.full(len(free), -1.0)

    def excess(log_ridge: float) -> tuple[float, float]:
        ridge, H = np.exp(log_ridge), inner.copy()
        H[np.diag_indices(len(H))] += ridge
        factor = cho_factor(H, overwrite_a=True, check_finite=False)
        t[free] = cho_solve(factor, pull, check_finite=False)
        size = t[free] @ t[free] + held
        rest = max(float(np.sum((C[:, free] @ t[free] - left) ** 2)), np.finfo(float).tiny)
        bend = ridge * (t[free] @ cho_solve(factor, t[free], check_finite=False))
        value = log_ridge + np.log(size / rest) / 2 - np.log(penalty)
        return float(value), float(1 - bend / size - ridge * bend / rest)

    top = np.log(np.trace(inner))
    return t, float(np.exp(_root(excess, top + np.log(LEAST_RIDGE), top + 30)))


def _root(function: Callable[[float], tuple[float, float]], low: float, high: float) -> float:
    """Where an increasing function with this slope crosses 0, by Newton's method within bounds."""
    x = (2 * low + high) / 3
    for _ in range(100):
        value, slope = function(x)
        low, high = (low, x) if value > 0 else (x, high)
        new = x - value / slope if slope > 0 else low
        new = new if low < new < high else (low + high) / 2
        if abs(new - x) < 1e-10:  # of a logarithm: the objective is off by the square
            break
        x = new
    return x


def _one_by_one(C: np.ndarray, b: np.ndarray, penalty: float) -> np.ndarray:
    """As `_penalised`, by non-negative least squares for each ridge."""
    from scipy.optimize import nnls

    S, top = C.shape[1], np.log(np.sum(C**2))

    def bounded(log_ridge: float) -> np.ndarray:
        root = np.exp(log_ridge / 2)
        wanted = np.append(b + C.sum(axis=1), np.full(S, root))
        w, _ = nnls(np.vstack([C, root * np.eye(S)]), wanted, maxiter=100 * S + 1000)
        return np.asarray(w - 1)

    def excess(log_ridge: float) -> tuple[float, float]:
        t = bounded(log_ridge)
        rest = max(float(np.linalg.norm(C @ t - b)), np.finfo(float).tiny)
        return float(log_ridge + np.log(np.linalg.norm(t) / rest / penalty)), 0.0  # bisect

    return bounded(_root(excess, top + np.log(LEAST_RIDGE), top + 30))


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
