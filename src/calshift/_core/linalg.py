"""Linear algebra for singular matrices and for bounds."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from typing import Any

import numpy as np

from calshift.compiled import fastest

RELATIVE_ZERO = 1e-13  # of a singular value beside the largest
RELATIVE_SINGULAR = 1e-11  # of the diagonal of R in a QR decomposition
MOST_EXCHANGES = 20
FEW_COLUMNS = 16
NARROW = 0.9  # of the events
TWO_GROUPS, FEW_SUMS = 2, 4


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
    found = _exchange_signs(system, wanted)
    if found is not None:
        return found
    from scipy.optimize import nnls  # late: importing it takes as long as a small sample

    return np.asarray(nnls(system, wanted, maxiter=100 * system.shape[1] + 1000)[0])


def _exchange_signs(system: np.ndarray, wanted: np.ndarray) -> np.ndarray | None:
    """That x by block principal pivoting; None if it is not unique, or signs go on changing.

    Coordinates of a wrong sign are left out, and included again where that is better.
    """
    free = np.ones(system.shape[1], dtype=bool)
    scale = np.abs(system).sum(axis=0).max(initial=0) * max(1.0, np.abs(wanted).max(initial=0))
    least = -10 * max(system.shape) * np.spacing(1.0) * scale
    for _ in range(MOST_EXCHANGES):
        count = np.count_nonzero(free)
        if len(system) < count:
            return None
        both = np.asarray(np.linalg.qr(np.column_stack([system[:, free], wanted]), "r"))[:count]
        r, right = both[:, :-1], both[:, -1]
        sizes = np.abs(np.diag(r))
        if sizes.min(initial=np.inf) <= RELATIVE_SINGULAR * sizes.max(initial=0):
            return None
        x = np.zeros(len(free))
        x[free] = np.linalg.solve(r, right)
        wrong = np.where(free, x < 0, system.T @ (system @ x - wanted) < least)
        if not wrong.any():
            return x
        free ^= wrong
    return None


@fastest
def row_max(matrix: np.ndarray) -> np.ndarray:
    """(n,) the largest of each row."""
    if matrix.shape[1] > FEW_COLUMNS:
        return np.asarray(matrix.max(axis=1))
    return np.asarray(reduce(np.maximum, matrix.T))  # column by column is faster


def row_sum(matrix: np.ndarray) -> np.ndarray:
    """(n,) the sum of each row, as a product: many times as fast as summing short rows."""
    return np.asarray(matrix @ np.ones(matrix.shape[1], dtype=matrix.dtype))


# Symmetric tridiagonal matrices of many events: diagonals (E, R) and the ones above them.


def near_diagonal(matrices: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The diagonal of matrices (E, R, R) and the one above, (E, R) each; or of diagonals (E, R)."""
    if matrices.ndim == 2:
        return matrices, np.zeros_like(matrices)
    above = np.zeros(matrices.shape[:2])
    above[:, :-1] = np.diagonal(matrices, 1, axis1=1, axis2=2)
    return np.diagonal(matrices, axis1=1, axis2=2), above


def multiply_band(diagonal: np.ndarray, above: np.ndarray, others: np.ndarray) -> np.ndarray:
    """Tridiagonal matrices times vectors (E, R), or times matrices (E, R, S)."""
    if others.ndim == 2:
        return multiply_band(diagonal, above, others[..., None])[..., 0]
    out = diagonal[..., None] * others
    out[:, :-1] += above[:, :-1, None] * others[:, 1:]
    out[:, 1:] += above[:, :-1, None] * others[:, :-1]
    return np.asarray(out)


def solve_band(main: np.ndarray, below: np.ndarray, right: np.ndarray) -> np.ndarray:
    """x of L L' x = right, all (E, R), from what `factor_band` returns; 0 where L is singular."""
    R, x = main.shape[1], np.array(right)
    safe = np.where(main > 0, main, np.inf)
    for k in range(R):
        if k:
            x[:, k] -= below[:, k - 1] * x[:, k - 1]
        x[:, k] /= safe[:, k]
    for k in range(R - 1, -1, -1):
        if k + 1 < R:
            x[:, k] -= below[:, k] * x[:, k + 1]
        x[:, k] /= safe[:, k]
    return x


def group_by_width(count: np.ndarray) -> list[tuple[np.ndarray, int]]:
    """Events with few coordinates and with many, by number, and the most of each group.

    A few events may have many times as many as the others, which are padded to their number.
    """
    ordered = np.sort(count)
    most, narrow = int(ordered[-1]), int(ordered[int(NARROW * (len(count) - 1))])
    if 2 * narrow > most:
        return [(np.arange(len(count)), most)]
    wide = count > narrow
    return [(np.flatnonzero(~wide), narrow), (np.flatnonzero(wide), most)]


def apply_by_width(
    groups: list[tuple[np.ndarray, int]], function: Callable[..., np.ndarray], *stacks: np.ndarray
) -> np.ndarray:
    """function(*stacks), for each group of events (numbers, R) without what lies beyond R.

    Stacks are bands (E, R) and matrices (E, R, R); what the function returns is padded with 0.
    """
    if len(groups) == 1:
        return function(*stacks)
    parts = [
        function(*(one[events][(slice(None), *[slice(R)] * (one.ndim - 1))] for one in stacks))
        for events, R in groups
    ]
    shape = np.max([part.shape[1:] for part in parts], axis=0, initial=0).astype(int)
    found = np.zeros((sum(map(len, parts)), *shape))
    for (events, _), part in zip(groups, parts, strict=True):
        at: Any = (events, *map(slice, part.shape[1:]))
        found[at] = part
    return found


def dense_band(diagonal: np.ndarray, above: np.ndarray) -> np.ndarray:
    """(E, R, R) the matrices in full."""
    E, R = diagonal.shape
    full, at = np.zeros((E, R, R)), np.arange(R)
    full[:, at, at] = diagonal
    full[:, at[:-1], at[1:]] = full[:, at[1:], at[:-1]] = above[:, :-1]
    return full


@fastest
def factor_band(
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


def sum_groups(
    code: np.ndarray, values: np.ndarray, size: int, weight: np.ndarray | None = None
) -> np.ndarray:
    """(size, L) sums of rows of values (n, L), times their weights, by group (n,)."""
    if size <= TWO_GROUPS:
        each = np.ones(len(values)) if weight is None else weight
        total, second = each @ values, (each * code) @ values
        return np.stack([total - second, second]) if size == TWO_GROUPS else total[None]
    if values.shape[1] <= FEW_SUMS:
        columns = values.T if weight is None else values.T * weight
        return np.stack([np.bincount(code, column, size) for column in columns], axis=1)
    each = np.ones(len(code)) if weight is None else weight
    return np.asarray(sparse_columns(each, code, np.arange(len(code) + 1), size) @ values)


def sparse_columns(values: np.ndarray, row: np.ndarray, start: np.ndarray, rows: int) -> Any:
    """(rows, columns) sparse, from the values of each column, where it starts, and their rows.

    A few values take less time than the checks of scipy's constructor, which are left out.
    """
    from scipy.sparse import csc_matrix  # late: importing calshift must be fast

    kind = np.int32 if max(len(values), rows, len(start)) < 2**31 else np.int64
    found = csc_matrix((rows, len(start) - 1))
    found.indptr = start.astype(kind, copy=False)
    found.indices, found.data = row.astype(kind, copy=False), np.asarray(values, dtype=float)
    return found


def sparse_rows(values: np.ndarray, place: np.ndarray, width: int) -> Any:
    """(n, width) sparse: each row has one value an event, of (E, n)."""
    E, n = values.shape
    return sparse_columns(values.T.ravel(), place.T.ravel(), np.arange(0, n * E + 1, E), width).T
