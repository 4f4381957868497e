"""Tridiagonal matrices, compiled with numba: pivots, inverses, a few eigenvalues.

Imported by `calshift.compiled.regression`. A matrix is a band (2, R): its diagonal and the one above; events
that have fewer knots than others leave the end of theirs empty.
"""

from __future__ import annotations

import numpy as np

from calshift.compiled.support import compiled

MOST_RAISED = 6  # eigenvalues that are sought one by one
LEAST_VALUE = 1e-3  # of the floor: of smaller ones A^-1 loses digits
MOST_HALVES = 52  # of the bracket of an eigenvalue: all of a double's digits
ORTHOGONAL = 1e-10  # product of two eigenvectors


@compiled
def least_pivot(band: np.ndarray, less: np.ndarray, part: float, knots: int) -> float:
    """The least pivot in eliminating band - part less, tridiagonal both."""
    pivot: float = band[0, 0] - part * less[0, 0]
    least = pivot
    for r in range(1, knots):
        beside = band[1, r - 1] - part * less[1, r - 1]
        pivot = band[0, r] - part * less[0, r] - (beside * beside / pivot if pivot > 0 else 0.0)
        least = min(least, pivot)
    return least


@compiled
def invert_band(band: np.ndarray, knots: int, inverse: np.ndarray) -> None:
    """The inverse of a definite tridiagonal matrix: elimination, column by column."""
    pivot, ratio = np.empty(knots), np.empty(knots)
    pivot[0] = band[0, 0]
    for r in range(1, knots):
        ratio[r] = band[1, r - 1] / pivot[r - 1]
        pivot[r] = band[0, r] - ratio[r] * band[1, r - 1]
    for c in range(knots):
        inverse[c, c] = 1.0
        for r in range(c + 1, knots):
            inverse[r, c] = -ratio[r] * inverse[r - 1, c]
        inverse[knots - 1, c] /= pivot[knots - 1]
        for r in range(knots - 2, -1, -1):
            here = inverse[r, c] / pivot[r] if r >= c else 0.0
            inverse[r, c] = here - ratio[r + 1] * inverse[r + 1, c]


@compiled
def values_below(A: np.ndarray, M: np.ndarray, shift: float, knots: int) -> int:
    """How many eigenvalues of A relative to M lie below ``shift``: pivots of A - shift M do."""
    found, pivot = 0, 1.0
    for r in range(knots):
        beside = A[1, r - 1] - shift * M[1, r - 1] if r else 0.0
        pivot = A[0, r] - shift * M[0, r] - beside * beside / pivot
        found += pivot < 0
        if pivot == 0:
            pivot = 1e-300
    return found


@compiled
def _eigenvalue(A: np.ndarray, M: np.ndarray, j: int, low: float, high: float, knots: int) -> float:
    """The j-th least eigenvalue of A relative to M, which lies between low and high."""
    for _ in range(MOST_HALVES):
        middle = (low + high) / 2
        if values_below(A, M, middle, knots) > j:
            high = middle
        else:
            low = middle
    return (low + high) / 2


@compiled
def _eigenvector(A: np.ndarray, M: np.ndarray, value: float, y: np.ndarray) -> None:
    """y with (A - value M) y = 0 and y' M y = 1, by elimination from both ends.

    They meet where what is left over is least: from there y grows outwards without cancellation.
    """
    knots, meet = len(y), 0
    main, beside = np.empty(knots), np.empty(knots)
    down, up = np.empty(knots), np.empty(knots)
    for r in range(knots):  # as expressions of arrays these would take seconds to compile
        main[r] = down[r] = up[r] = A[0, r] - value * M[0, r]
        beside[r] = A[1, r] - value * M[1, r]
    for r in range(1, knots):
        down[r] -= beside[r - 1] ** 2 / (down[r - 1] if down[r - 1] != 0 else 1e-300)
    for r in range(knots - 2, -1, -1):
        up[r] -= beside[r] ** 2 / (up[r + 1] if up[r + 1] != 0 else 1e-300)
    for r in range(knots):
        if abs(down[r] + up[r] - main[r]) < abs(down[meet] + up[meet] - main[meet]):
            meet = r
    y[meet] = 1.0
    for r in range(meet - 1, -1, -1):
        y[r] = -beside[r] * y[r + 1] / (down[r] if down[r] != 0 else 1e-300)
    for r in range(meet + 1, knots):
        y[r] = -beside[r - 1] * y[r - 1] / (up[r] if up[r] != 0 else 1e-300)
    length = np.sqrt(_product(M, y, y))
    for r in range(knots):
        y[r] /= length


@compiled
def _product(band: np.ndarray, x: np.ndarray, y: np.ndarray) -> float:
    """x' band y."""
    total = 0.0
    for r in range(len(x)):
        total += band[0, r] * x[r] * y[r]
        if r + 1 < len(x):
            total += band[1, r] * (x[r] * y[r + 1] + x[r + 1] * y[r])
    return total


@compiled
def floored_inverse(
    A: np.ndarray, M: np.ndarray, floor: float, knots: int, room: np.ndarray, inverse: np.ndarray
) -> bool:
    """A^-1 with eigenvalues relative to M raised to ``floor``, if those below it are few.

    A^-1 + sum (1 / floor - 1 / value) y y' over them. Nothing is said where they are many, near 0,
    or so near each other that their vectors y are not told apart.
    """
    few, least = values_below(A, M, floor, knots), LEAST_VALUE * floor
    if few > len(room) or values_below(A, M, least, knots) > 0:
        return False
    for j in range(few):
        value, y = _eigenvalue(A, M, j, least, floor, knots), room[j, :knots]
        _eigenvector(A, M, value, y)
        for i in range(j):
            if not abs(_product(M, room[i, :knots], y)) < ORTHOGONAL:
                return False
        room[j, knots] = 1.0 / floor - 1.0 / value
    invert_band(A, knots, inverse)
    for j in range(few):
        for r in range(knots):
            for c in range(knots):
                inverse[r, c] += room[j, knots] * room[j, r] * room[j, c]
    return True


@compiled
def whiten_band(
    band: np.ndarray, other: np.ndarray, knots: int, whiten: np.ndarray, turned: np.ndarray
) -> None:
    """W = L^-1 with band = L L', and W other W'; 0 elsewhere."""
    before = 0.0
    whiten[:] = 0.0
    for r in range(knots):
        below = band[1, r - 1] / before if r else 0.0
        main = np.sqrt(band[0, r] - below * below)
        for c in range(r):
            whiten[r, c] = -below * whiten[r - 1, c] / main
        whiten[r, r] = 1.0 / main
        before = main
    half = np.zeros((knots, knots))
    for r in range(knots):
        for c in range(knots):
            if c <= r:
                half[r, c] += whiten[r, c] * other[0, c]
                if c + 1 < knots:
                    half[r, c + 1] += whiten[r, c] * other[1, c]
                if c > 0:
                    half[r, c - 1] += whiten[r, c] * other[1, c - 1]
    for r in range(knots):
        for c in range(r + 1):
            total = 0.0
            for s in range(c + 1):
                total += half[r, s] * whiten[c, s]
            turned[r, c] = turned[c, r] = total


@compiled
def times_band(matrix: np.ndarray, band: np.ndarray, knots: int, out: np.ndarray) -> None:
    """A matrix (R, R) times a tridiagonal one."""
    for r in range(knots):
        for s in range(knots):
            out[r, s] = matrix[r, s] * band[0, s]
            if s > 0:
                out[r, s] += matrix[r, s - 1] * band[1, s - 1]
            if s + 1 < knots:
                out[r, s] += matrix[r, s + 1] * band[1, s]


@compiled
def root_band(band: np.ndarray, singular: float, knots: int, root: np.ndarray) -> None:
    """L with band = L L': its diagonal and the one below it; the band may be singular."""
    rest, least = band[0, 0], singular * band[0, :knots].max()
    for r in range(knots):
        root[0, r] = np.sqrt(rest) if rest > least else 0.0
        root[1, r] = band[1, r] / root[0, r] if root[0, r] > 0 else 0.0
        if r + 1 < knots:
            rest = band[0, r + 1] - root[1, r] ** 2
