"""Hats laid on bins and fitted, one event after the other, compiled with numba.

Imported by `calshift.loops`. The numbers are those of `calshift.basis` and `calshift.fits`, to
rounding; arrays are as there, and what is asked for is written into arrays that are given.
"""

from __future__ import annotations

import numpy as np
from numba import njit

compiled = njit(cache=True, nogil=True, error_model="numpy", fastmath={"contract"})
MOST_RAISED = 6  # eigenvalues that are sought one by one
LEAST_VALUE = 1e-3  # of the floor: of smaller ones A^-1 loses digits
MOST_HALVES = 52  # of the bracket of an eigenvalue: all of a double's digits
ORTHOGONAL = 1e-10  # product of two eigenvectors


@compiled
def _positions(
    count: np.ndarray, score: np.ndarray, lower: np.ndarray, mean: np.ndarray, t: np.ndarray
) -> None:
    """Mean scores of bins, and `calshift.basis.positions` of them."""
    most, upto, total = 0.0, 0.0, count.sum()
    for b in range(len(t)):
        mean[b] = score[b] / count[b] if count[b] > 0 else lower[b]
        now = min(max(most, mean[b]), 1.0)
        t[b] = np.arcsin(np.sqrt(now)) if now > most or b == 0 else t[b - 1]
        most = now
    first, span = t[0], t[-1] - t[0]
    scale = span if span > 0 else 1.0
    for b in range(len(t)):
        upto += count[b]
        t[b] = ((upto - count[b] / 2) / total + (t[b] - first) / scale) / 2


@compiled
def _outwards(
    t: np.ndarray, source: np.ndarray, target: np.ndarray, start: int, way: int, end: int,
    step: float, least_source: float, least_target: float, chosen: np.ndarray,
) -> int:  # fmt: skip
    """Knots from the bin ``start`` to ``end``; rows are counted from the middle outwards."""
    count, a, b = 1, start, start
    chosen[0] = start
    more_source = more_target = 0.0
    while b != end:
        b += way
        more_source += source[b]
        more_target += target[b]
        enough = more_source >= least_source and more_target >= least_target
        apart = abs(t[b] - t[a])
        if enough and apart >= step and apart > 0:
            chosen[count] = b
            count, a = count + 1, b
            more_source = more_target = 0.0
    apart = abs(t[end] - t[a])
    enough = more_source >= least_source and more_target >= least_target
    if enough and apart > 0 and apart >= step / 2:
        chosen[count] = end
        return count + 1
    if count > 1:
        chosen[count - 1] = end
    return count


@compiled
def _knots(
    t: np.ndarray, source: np.ndarray, target: np.ndarray, end: int, hats: int,
    least: tuple[float, float, float], left: np.ndarray, right: np.ndarray, chosen: np.ndarray,
) -> int:  # fmt: skip
    """`calshift.basis.knots` of the bins up to ``end``: into ``chosen``, and how many."""
    few = end < hats
    step = 0.0 if few else (t[end] - t[0]) / (hats - 1) * (1 - 1e-9)
    rows = least[0] if few else least[1]
    centre, middle = (t[0] + t[end]) / 2, 0
    for b in range(1, end + 1):
        if abs(t[b] - centre) < abs(t[middle] - centre):
            middle = b
    ups = _outwards(t, source, target, middle, 1, end, step, rows, least[2], right)
    downs = _outwards(t, source, target, middle, -1, 0, step, rows, least[2], left)
    for b in range(downs - 1):
        chosen[b] = left[downs - 1 - b]
    for b in range(ups):
        chosen[downs - 1 + b] = right[b]
    if downs == 1:
        chosen[0] = 0
    if ups == 1 and downs > 1:
        chosen[downs - 1] = end
    return downs - 1 + ups


@compiled
def lay_hats(
    count: np.ndarray, score: np.ndarray, lower: np.ndarray, rows: np.ndarray, bins: np.ndarray,
    hats: int, least: tuple[float, float, float],
    mean: np.ndarray, left: np.ndarray, share: np.ndarray, number: np.ndarray,
) -> None:  # fmt: skip
    """Mean scores (E, B), and the hats of `calshift.basis.Layout.of_hats` at their knots."""
    B = count.shape[1]
    t, room = np.empty(B), np.empty((3, B), np.int64)
    for k in range(len(count)):
        _positions(count[k], score[k], lower[k], mean[k], t)
        chosen = room[2]
        knots = _knots(t, rows[k], count[k], bins[k] - 1, hats, least, room[0], room[1], chosen)
        number[k], at = knots, 0
        for b in range(B):
            while at + 2 < knots and b >= chosen[at + 1]:
                at += 1
            left[k, b], share[k, b] = at, 0.0
            low, high = t[chosen[at]], t[chosen[min(at + 1, knots - 1)]]
            if high > low:
                share[k, b] = min(max((t[b] - low) / (high - low), 0.0), 1.0)


@compiled
def _band(left: np.ndarray, share: np.ndarray, mass: np.ndarray, band: np.ndarray) -> None:
    """X' diag(mass) X: its diagonal and the one above, (2, R)."""
    band[:] = 0.0
    for b in range(len(left)):
        at, far = left[b], share[b]
        near = 1.0 - far
        band[0, at] += near * near * mass[b]
        if far > 0:
            band[0, at + 1] += far * far * mass[b]
            band[1, at] += near * far * mass[b]


@compiled
def _least_pivot(band: np.ndarray, less: np.ndarray, part: float, knots: int) -> float:
    """The least pivot in eliminating band - part less, tridiagonal both."""
    pivot: float = band[0, 0] - part * less[0, 0]
    least = pivot
    for r in range(1, knots):
        beside = band[1, r - 1] - part * less[1, r - 1]
        pivot = band[0, r] - part * less[0, r] - (beside * beside / pivot if pivot > 0 else 0.0)
        least = min(least, pivot)
    return least


@compiled
def _invert(band: np.ndarray, knots: int, inverse: np.ndarray) -> None:
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
def _below(A: np.ndarray, M: np.ndarray, shift: float, knots: int) -> int:
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
        if _below(A, M, middle, knots) > j:
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
def _floored(
    A: np.ndarray, M: np.ndarray, floor: float, knots: int, room: np.ndarray, inverse: np.ndarray
) -> bool:
    """A^-1 with eigenvalues relative to M raised to ``floor``, if those below it are few.

    A^-1 + sum (1 / floor - 1 / value) y y' over them. Nothing is said where they are many, near 0,
    or so near each other that their vectors y are not told apart.
    """
    few, least = _below(A, M, floor, knots), LEAST_VALUE * floor
    if few > len(room) or _below(A, M, least, knots) > 0:
        return False
    for j in range(few):
        value, y = _eigenvalue(A, M, j, least, floor, knots), room[j, :knots]
        _eigenvector(A, M, value, y)
        for i in range(j):
            if not abs(_product(M, room[i, :knots], y)) < ORTHOGONAL:
                return False
        room[j, knots] = 1.0 / floor - 1.0 / value
    _invert(A, knots, inverse)
    for j in range(few):
        for r in range(knots):
            for c in range(knots):
                inverse[r, c] += room[j, knots] * room[j, r] * room[j, c]
    return True


@compiled
def _whiten(
    band: np.ndarray, other: np.ndarray, knots: int, whiten: np.ndarray, turned: np.ndarray
) -> None:
    """W = L^-1 with band = L L', and W other W'."""
    before = 0.0
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
def invert_hats(
    left: np.ndarray, share: np.ndarray, number: np.ndarray, mass: np.ndarray, target: np.ndarray,
    floor: float, singular: float, inverse: np.ndarray, whiten: np.ndarray, state: np.ndarray,
) -> None:  # fmt: skip
    """A^-1 (E, R, R) of events whose A / sum w lies above floor M: their state is 0.

    So is that of events of which few eigenvalues must be raised. Of the others with a definite M
    (1) it has W (A / sum w) W', and ``whiten`` has W; what is left (2) stays 0.
    """
    R = inverse.shape[1]
    A, M, room = np.empty((2, R)), np.empty((2, R)), np.empty((MOST_RAISED, R + 1))
    for k in range(len(left)):
        knots = number[k]
        _band(left[k], share[k], mass[k], A)
        _band(left[k], share[k], target[k], M)
        total = mass[k].sum()
        definite = _least_pivot(M, A, 0.0, knots) > singular * M[0].max()
        if definite and _least_pivot(A, M, floor * total, knots) > 0:
            _invert(A, knots, inverse[k])
        elif definite:
            A /= total
            if _floored(A, M, floor, knots, room, inverse[k]):
                for r in range(knots):
                    for c in range(knots):
                        inverse[k, r, c] /= total
                continue
            state[k] = 1
            _whiten(M, A, knots, whiten[k], inverse[k])
            for r in range(knots, R):
                inverse[k, r, r] = 1.0  # knots that it lacks: any direction will do
        else:
            state[k] = 2


@compiled
def _times(left: np.ndarray, share: np.ndarray, values: np.ndarray, out: np.ndarray) -> None:
    """X' values: (B,) -> (R,)."""
    out[:] = 0.0
    for b in range(len(left)):
        at, far = left[b], share[b]
        out[at] += (1.0 - far) * values[b]
        if far > 0:
            out[at + 1] += far * values[b]


@compiled
def _banded(matrix: np.ndarray, band: np.ndarray, knots: int, out: np.ndarray) -> None:
    """A matrix (R, R) times a tridiagonal one."""
    for r in range(knots):
        for s in range(knots):
            out[r, s] = matrix[r, s] * band[0, s]
            if s > 0:
                out[r, s] += matrix[r, s - 1] * band[1, s - 1]
            if s + 1 < knots:
                out[r, s] += matrix[r, s + 1] * band[1, s]


@compiled
def _tabled(
    V: np.ndarray, slope: np.ndarray, energy: np.ndarray, alpha: np.ndarray,
    left: np.ndarray, share: np.ndarray, knots: int, table: np.ndarray,
) -> None:  # fmt: skip
    """(B, 4) g, leverage, slope and energy of each bin, from their values at the knots."""
    for b in range(len(left)):
        at, far = left[b], share[b]
        near, after = 1.0 - far, min(at + 1, knots - 1)
        main, beside, last = near * near, 2.0 * near * far, far * far
        table[b, 0] = near * alpha[at] + far * alpha[after]
        table[b, 1] = main * V[at, at] + beside * V[at, after] + last * V[after, after]
        table[b, 2] = near * slope[at] + far * slope[after]
        table[b, 3] = main * energy[0, at] + beside * energy[1, at] + last * energy[0, after]


@compiled
def fit_hats(
    inverse: np.ndarray, left: np.ndarray, share: np.ndarray, number: np.ndarray,
    pull: np.ndarray, target: np.ndarray, moments: np.ndarray, coefficients: np.ndarray,
    tables: np.ndarray, plug: np.ndarray,
) -> None:  # fmt: skip
    """What `calshift.fits.Fits` tells of its events: M (2, E, R), alpha, tables, |a|^2."""
    R = inverse.shape[1]
    sums, slope, M = np.empty(R), np.empty(R), np.empty((2, R))
    product, energy = np.empty((R, R)), np.empty((2, R))
    for k in range(len(left)):
        V, knots, alpha = inverse[k], number[k], coefficients[k]
        _band(left[k], share[k], target[k], M)
        for r in range(R):  # assigned as slices it would take seconds to compile
            moments[0, k, r], moments[1, k, r] = M[0, r], M[1, r]
        _times(left[k], share[k], pull[k], sums)
        for r in range(knots):
            alpha[r] = 0.0
            for s in range(knots):
                alpha[r] += V[r, s] * sums[s]
        _banded(V, M, knots, product)
        for r in range(knots):
            slope[r] = energy[0, r] = energy[1, r] = 0.0
            after = min(r + 1, knots - 1)
            for s in range(knots):
                slope[r] += 2.0 * product[r, s] * alpha[s]
                energy[0, r] += product[r, s] * V[s, r]
                energy[1, r] += product[r, s] * V[s, after]
        _tabled(V, slope, energy, alpha, left[k], share[k], knots, tables[k])
        plug[k] = 0.0
        for b in range(left.shape[1]):
            plug[k] += target[k, b] * tables[k, b, 0] ** 2


@compiled
def covary_hats(
    inverse: np.ndarray, left: np.ndarray, share: np.ndarray, number: np.ndarray,
    mass: np.ndarray, covariance: np.ndarray,
) -> None:  # fmt: skip
    """V X' diag(mass) X V of each event, (E, R, R); 0 for knots that it lacks."""
    R = inverse.shape[1]
    band, product = np.empty((2, R)), np.empty((R, R))
    for k in range(len(left)):
        V, S, knots = inverse[k], covariance[k], number[k]
        _band(left[k], share[k], mass[k], band)
        _banded(V, band, knots, product)
        for r in range(knots):
            for s in range(knots):
                pull = product[r, s]
                for c in range(r + 1):
                    S[r, c] += pull * V[s, c]
            for c in range(r):
                S[c, r] = S[r, c]


@compiled
def square_hats(
    diagonal: np.ndarray, above: np.ndarray, covariance: np.ndarray, out: np.ndarray
) -> None:
    """(E,) tr(M S M S), M tridiagonal."""
    R = covariance.shape[1]
    band, product = np.empty((2, R)), np.empty((R, R))
    for k in range(len(covariance)):
        for r in range(R):
            band[0, r], band[1, r] = diagonal[k, r], above[k, r]
        _banded(covariance[k], band, R, product)
        total = 0.0
        for r in range(R):
            for s in range(R):
                total += product[r, s] * product[s, r]
        out[k] = total


@compiled
def root_hats(
    diagonal: np.ndarray, above: np.ndarray, singular: float, main: np.ndarray, below: np.ndarray
) -> None:
    """L with M = L L', all (E, R): its diagonal, and the one below it."""
    for k in range(len(diagonal)):
        rest, least = diagonal[k, 0], singular * diagonal[k].max()
        for r in range(diagonal.shape[1]):
            main[k, r] = np.sqrt(rest) if rest > least else 0.0
            below[k, r] = above[k, r] / main[k, r] if main[k, r] > 0 else 0.0
            if r + 1 < diagonal.shape[1]:
                rest = diagonal[k, r + 1] - below[k, r] ** 2


@compiled
def thin_part(
    part: np.ndarray, mass: np.ndarray, square: np.ndarray, parts: int, few: float
) -> tuple[float, float]:
    """What of the bins' parts (E, B) lies in places with few source rows, and all of it."""
    sums = np.empty((3, parts))
    thin = whole = 0.0
    for k in range(len(part)):
        total, upto = max(part[k].sum(), 1e-300), 0.0
        sums[:] = 0.0
        for b in range(part.shape[1]):
            upto += part[k, b]
            group = max(0, int(min((upto - part[k, b] / 2) / total * parts, parts - 1)))
            sums[0, group] += mass[k, b]
            sums[1, group] += square[k, b]
            sums[2, group] += part[k, b]
        for group in range(parts):
            whole += sums[2, group]
            if sums[0, group] ** 2 < few * sums[1, group] + (sums[1, group] == 0):
                thin += sums[2, group]
    return thin, whole
