"""Symmetric tridiagonal matrices of many events: (E, R) diagonals and the ones above them."""

from __future__ import annotations

import numpy as np

from calshift.compiled import fastest


def near_diagonal(matrices: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The diagonal of matrices (E, R, R) and the one above, (E, R) each; or of diagonals (E, R)."""
    if matrices.ndim == 2:
        return matrices, np.zeros_like(matrices)
    above = np.zeros(matrices.shape[:2])
    above[:, :-1] = np.diagonal(matrices, 1, axis1=1, axis2=2)
    return np.diagonal(matrices, axis1=1, axis2=2), above


def multiply(diagonal: np.ndarray, above: np.ndarray, others: np.ndarray) -> np.ndarray:
    """Tridiagonal matrices times vectors (E, R), or times matrices (E, R, S)."""
    if others.ndim == 2:
        return multiply(diagonal, above, others[..., None])[..., 0]
    out = diagonal[..., None] * others
    out[:, :-1] += above[:, :-1, None] * others[:, 1:]
    out[:, 1:] += above[:, :-1, None] * others[:, :-1]
    return np.asarray(out)


def dense(diagonal: np.ndarray, above: np.ndarray) -> np.ndarray:
    """(E, R, R) the matrices in full."""
    E, R = diagonal.shape
    full, at = np.zeros((E, R, R)), np.arange(R)
    full[:, at, at] = diagonal
    full[:, at[:-1], at[1:]] = full[:, at[1:], at[:-1]] = above[:, :-1]
    return full


@fastest
def factor(
    diagonal: np.ndarray, above: np.ndarray, singular: float
) -> tuple[np.ndarray, np.ndarray]:
    """The diagonal of L and the one below it, (E, R) each; pivots below ``singular`` count as 0."""
    main, below = np.zeros_like(diagonal), np.zeros_like(diagonal)
    rest, least = diagonal[:, 0], singular * diagonal.max(axis=1)
    for k in range(diagonal.shape[1]):
        main[:, k] = np.sqrt(np.where(rest > least, rest, 0.0))
        safe = np.where(main[:, k] > 0, main[:, k], np.inf)
        below[:, k] = above[:, k] / safe
        if k + 1 < diagonal.shape[1]:
            rest = diagonal[:, k + 1] - below[:, k] ** 2
    return main, below


@fastest
def smallest_pivot(diagonal: np.ndarray, above: np.ndarray, missing: np.ndarray) -> np.ndarray:
    """(E,) the smallest pivot of Gaussian elimination: positive if a matrix is definite.

    ``missing`` (E, R) are rows that an event does not have.
    """
    pivot = least = diagonal[:, 0]
    for k in range(1, diagonal.shape[1]):
        safe = np.where(pivot > 0, pivot, np.inf)
        pivot = diagonal[:, k] - above[:, k - 1] ** 2 / safe
        least = np.where(missing[:, k], least, np.minimum(least, pivot))
    return np.asarray(least)
