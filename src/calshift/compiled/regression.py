"""Hats laid on bins and fitted, one event after the other, compiled with numba.

Imported by `calshift.compiled.rows`. The numbers are those of `calshift.binning.hat_basis` and `calshift.estimators.regression`, to
rounding; arrays are as there, and what is asked for is written into arrays that are given.
"""

from __future__ import annotations

import numpy as np

from calshift.compiled.support import compiled
from calshift.compiled.tridiagonal import (
    MOST_RAISED,
    floored_inverse,
    invert_band,
    least_pivot,
    root_band,
    times_band,
    whiten_band,
)


@compiled
def _positions(
    count: np.ndarray, score: np.ndarray, lower: np.ndarray, mean: np.ndarray, t: np.ndarray
) -> None:
    """Mean scores of bins, and `calshift.binning.hat_basis.positions` of them."""
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
    """`calshift.binning.hat_basis.knots` of the bins up to ``end``: into ``chosen``, and how many."""
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
    """Mean scores (E, B), and the hats of `calshift.binning.hat_basis.Layout.of_hats` at their knots."""
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
        definite = least_pivot(M, A, 0.0, knots) > singular * M[0].max()
        if definite and least_pivot(A, M, floor * total, knots) > 0:
            invert_band(A, knots, inverse[k])
        elif definite:
            A /= total
            if floored_inverse(A, M, floor, knots, room, inverse[k]):
                for r in range(knots):
                    for c in range(knots):
                        inverse[k, r, c] /= total
                continue
            state[k] = 1
            whiten_band(M, A, knots, whiten[k], inverse[k])
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
    pull: np.ndarray, target: np.ndarray, square: np.ndarray, count: np.ndarray,
    score: np.ndarray, moments: np.ndarray, coefficients: np.ndarray, tables: np.ndarray,
    plug: np.ndarray,
) -> float:  # fmt: skip
    """What `calshift.estimators.regression.Fits` tells of its events: M (2, E, R), alpha, tables, |a|^2.

    The answer is the trace of S, as it would be if the scores were true.
    """
    planned = 0.0
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
        times_band(V, M, knots, product)
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
            mean = min(score[k, b] / max(count[k, b], 1e-300), 1.0)
            planned += square[k, b] * mean * (1.0 - mean) * tables[k, b, 3]
    return planned


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
        times_band(V, band, knots, product)
        for r in range(knots):
            for s in range(knots):
                pull = product[r, s]
                for c in range(r + 1):
                    S[r, c] += pull * V[s, c]
            for c in range(r):
                S[c, r] = S[r, c]


@compiled
def direct_hats(
    inverse: np.ndarray, diagonal: np.ndarray, above: np.ndarray, number: np.ndarray,
    singular: float, vectors: np.ndarray, out: np.ndarray, turned: np.ndarray,
) -> None:  # fmt: skip
    """L vectors with M = L L', and V L vectors, (E, R, D) all; 0 for knots that an event lacks."""
    R, D = vectors.shape[1:]
    band, root = np.empty((2, R)), np.empty((2, R))
    for k in range(len(vectors)):
        knots, V = number[k], inverse[k]
        for r in range(R):
            band[0, r], band[1, r] = diagonal[k, r], above[k, r]
        root_band(band, singular, knots, root)
        for r in range(knots):
            for d in range(D):
                out[k, r, d] = root[0, r] * vectors[k, r, d]
                if r > 0:
                    out[k, r, d] += root[1, r - 1] * vectors[k, r - 1, d]
        for r in range(knots):
            for s in range(knots):
                for d in range(D):
                    turned[k, r, d] += V[r, s] * out[k, s, d]


@compiled
def judge_hats(
    diagonal: np.ndarray, above: np.ndarray, covariance: np.ndarray, number: np.ndarray,
    slope: np.ndarray, tilt: np.ndarray, trace: np.ndarray, lean: np.ndarray, squares: np.ndarray,
) -> None:  # fmt: skip
    """(E,) tr M S, sum of slope times tilt, and tr(M S M S), M tridiagonal."""
    R = covariance.shape[1]
    band, product = np.empty((2, R)), np.empty((R, R))
    for k in range(len(covariance)):
        knots = number[k]
        for r in range(knots):
            band[0, r], band[1, r] = diagonal[k, r], above[k, r]
        times_band(covariance[k], band, knots, product)
        trace[k] = lean[k] = squares[k] = 0.0
        for r in range(knots):
            trace[k] += product[r, r]
            for s in range(knots):
                squares[k] += product[r, s] * product[s, r]
        for b in range(slope.shape[1]):
            lean[k] += slope[k, b] * tilt[k, b]


@compiled
def share_hats(
    covariance: np.ndarray, number: np.ndarray, turn: np.ndarray, own: np.ndarray
) -> None:
    """Adds turn' S turn (D, D) of all events, turn (E, R, D)."""
    D = turn.shape[2]
    product = np.empty(D)
    for k in range(len(covariance)):
        for r in range(number[k]):
            product[:] = 0.0
            for s in range(number[k]):
                for d in range(D):
                    product[d] += covariance[k, r, s] * turn[k, s, d]
            for c in range(D):
                for d in range(D):
                    own[c, d] += turn[k, r, c] * product[d]


@compiled
def _few(mass: float, square: float, few: float) -> bool:
    """Whether weights of this sum, and of squares, are worth few rows."""
    return mass * mass < few * square + (square == 0)


@compiled
def thin_part(
    share: np.ndarray, value: np.ndarray, squared: bool, mass: np.ndarray, square: np.ndarray,
    parts: int, few: float, tie: float,
) -> tuple[float, float]:  # fmt: skip
    """What of the target (E, B) lies in places with few source rows, and all of it.

    ``squared``: what of the squared values instead.
    """
    part, thin, whole = np.empty(share.shape[1]), 0.0, 0.0
    for k in range(len(share)):
        total = 0.0
        for b in range(len(part)):
            part[b] = share[k, b] * value[k, b] ** 2 if squared else share[k, b]
            total += part[b]
        whole += total
        upto = group = rows = squares = held = 0.0
        scale = parts / max(total, 1e-300)
        for b in range(len(part)):
            upto += part[b]
            into = np.floor(min((upto - part[b] / 2) * scale + tie, parts - 1.0))
            if into != group:  # the next one: they come in their order
                thin += held if _few(rows, squares, few - tie) else 0.0
                group, rows, squares, held = into, 0.0, 0.0, 0.0
            rows += mass[k, b]
            squares += square[k, b]
            held += part[b]
        thin += held if _few(rows, squares, few - tie) else 0.0
    return thin, whole
