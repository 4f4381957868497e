"""The solver of rlls: min |C t - b| + penalty |t| over t >= -1.

docs/mathematics.md section 7, rlls.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from calshift._core.linalg import nonnegative_least_squares

MOST_ROUNDS = 30  # in which classes change between free and bound
LEAST_RIDGE = 1e-12  # of the trace of C'C: below it rounding dominates


def minimize_penalised_distance(
    C: np.ndarray, b: np.ndarray, penalty: float
) -> tuple[np.ndarray, int]:
    """The minimiser of |C t - b| + penalty |t| over t >= -1, and the number of rounds.

    In each round all classes on the wrong side of their bound change sides. This mostly ends after
    a few rounds; otherwise each ridge regression is solved by non-negative least squares.
    """
    free, square = np.ones(C.shape[1], dtype=bool), C.T @ C
    for rounds in range(1, MOST_ROUNDS + 1):
        t, ridge = _solve_free(square, C, b, penalty, free)
        wrong = np.where(free, t < -1, C.T @ (C @ t - b) + ridge * t < 0)
        if not wrong.any():
            return t, rounds
        free = free ^ wrong
    return _solve_bounded(C, b, penalty), rounds


def _solve_free(
    square: np.ndarray, C: np.ndarray, b: np.ndarray, penalty: float, free: np.ndarray
) -> tuple[np.ndarray, float]:
    """The minimiser of |C t - b| + penalty |t| over the free t, the others at -1, and its ridge.

    It is that of |C t - b|^2 + ridge |t|^2 for the ridge with  ridge |t| / |C t - b| = penalty. The
    left side grows with the ridge; Newton's method finds it on logarithms.
    """
    from scipy.linalg import cho_factor, cho_solve

    left = b + C[:, ~free].sum(axis=1)
    inner, pull = square[np.ix_(free, free)], C[:, free].T @ left
    at_bound, t = np.count_nonzero(~free), np.full(len(free), -1.0)

    def excess(log_ridge: float) -> tuple[float, float]:
        ridge, H = np.exp(log_ridge), inner.copy()
        H[np.diag_indices(len(H))] += ridge
        factor = cho_factor(H, overwrite_a=True, check_finite=False)
        t[free] = cho_solve(factor, pull, check_finite=False)
        size = t[free] @ t[free] + at_bound
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


def _solve_bounded(C: np.ndarray, b: np.ndarray, penalty: float) -> np.ndarray:
    """The same minimiser, by non-negative least squares for each ridge."""
    S, top = C.shape[1], np.log(np.sum(C**2))

    def bounded(log_ridge: float) -> np.ndarray:
        root = np.exp(log_ridge / 2)
        wanted = np.append(b + C.sum(axis=1), np.full(S, root))
        return nonnegative_least_squares(np.vstack([C, root * np.eye(S)]), wanted) - 1

    def excess(log_ridge: float) -> tuple[float, float]:
        t = bounded(log_ridge)
        rest = max(float(np.linalg.norm(C @ t - b)), np.finfo(float).tiny)
        return float(log_ridge + np.log(np.linalg.norm(t) / rest / penalty)), 0.0  # bisect

    return bounded(_root(excess, top + np.log(LEAST_RIDGE), top + 30))
