"""Linear algebra for singular matrices and for bounds."""

from __future__ import annotations

from functools import reduce

import numpy as np

RELATIVE_ZERO = 1e-13  # of a singular value beside the largest
FEW_COLUMNS = 16


def inverse(matrix: np.ndarray) -> np.ndarray:
    """The inverse of a symmetric matrix; its pseudo-inverse where it is singular to rounding."""
    try:
        found = np.linalg.inv(matrix)
    except np.linalg.LinAlgError:
        found = np.full_like(matrix, np.inf)
    if np.abs(found).max() * np.abs(matrix).max() < 1e-2 / RELATIVE_ZERO:
        return np.asarray(found)
    return np.asarray(np.linalg.pinv(matrix, RELATIVE_ZERO, hermitian=True))


def constrained_inverse(matrix: np.ndarray, free: np.ndarray) -> np.ndarray:
    """The inverse of a symmetric matrix on the free coordinates.

    The row of a coordinate at its bound is the one that it would have if it alone were free,
    so that an estimate at the bound has a standard error too.
    """
    answer = np.zeros_like(matrix)
    inner = inverse(matrix[np.ix_(free, free)])
    answer[np.ix_(free, free)] = inner
    bound = np.flatnonzero(~free)
    rows = -matrix[np.ix_(bound, free)] @ inner
    left = matrix[bound, bound] + np.sum(rows * matrix[np.ix_(bound, free)], axis=1)
    known = np.abs(left) > RELATIVE_ZERO * np.abs(matrix).max()
    left = np.where(known, left, np.inf)[:, None]
    answer[np.ix_(bound, free)] = rows / left
    answer[bound, bound] = 1 / left[:, 0]
    return answer


def nonnegative_least_squares(system: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    """The x >= 0 that minimises |system x - wanted|."""
    from scipy.optimize import nnls

    return np.asarray(nnls(system, wanted, maxiter=100 * system.shape[1] + 1000)[0])


def row_max(matrix: np.ndarray) -> np.ndarray:
    """(n,) the largest of each row; column by column where they are few, which is faster."""
    if matrix.shape[1] > FEW_COLUMNS:
        return np.asarray(matrix.max(axis=1))
    return np.asarray(reduce(np.maximum, matrix.T))


def row_sum(matrix: np.ndarray) -> np.ndarray:
    """(n,) the sum of each row, as a product: many times as fast as summing short rows."""
    return np.asarray(matrix @ np.ones(matrix.shape[1], dtype=matrix.dtype))
