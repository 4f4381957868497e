"""Functions compiled with numba: same names, signatures and results as their numpy versions.

All of them are in this one file, and it imports nothing of calshift: numba's cache of machine code
is invalidated when this file changes, and depends on no other. The constants of the score grid and
of distinct scores are repeated here for that reason; tests compare them.
"""

from __future__ import annotations

import numpy as np
from numba import njit

CELLS, CENTRE = 9985, 4992  # of calshift._core.score_grid
SHIFT, HALF = 45, 126 * 128 + (1023 - 127) * 128  # in double precision
DISTINCT, ROWS_A_SCORE = 100, 10.0 * (1 - 1e-9)  # of calshift.binning.hat_basis

MANTISSA, FIRST, SIZES = 48, (1023 + 16 - 64) * 16, 16 * 64  # of calshift.results.drift
TILE = 512  # rows at a time, which stay in the cache

reordered = njit(
    cache=True, nogil=True, error_model="numpy", fastmath={"contract", "reassoc"}
)  # sums in any order
compiled = njit(cache=True, nogil=True, error_model="numpy", fastmath={"contract"})


@compiled
def find_largest(p: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(n,) the first of the largest columns of each row, and its value."""
    place, most = np.empty(len(p), np.int64), np.empty(len(p), p.dtype)
    for i in range(len(p)):
        at, value = 0, p[i, 0]
        for k in range(1, p.shape[1]):
            if p[i, k] > value:
                at, value = k, p[i, k]
        place[i], most[i] = at, value
    return place, most


@compiled
def row_max(matrix: np.ndarray) -> np.ndarray:
    """(n,) the largest of each row."""
    n, K = matrix.shape
    most = np.empty(n, matrix.dtype)
    for i in range(n):
        value = matrix[i, 0]
        for k in range(1, K):
            value = max(value, matrix[i, k])
        most[i] = value
    return most


@reordered
def sum_residuals(p: np.ndarray, y: np.ndarray, frequency: np.ndarray | None) -> np.ndarray:
    """(2, K) sums of |1_y - p|^2 and of its square over the rows of each label."""
    sums = np.zeros((2, p.shape[1]))
    for i in range(len(p)):
        r = 1.0 - 2.0 * np.float64(p[i, y[i]])
        for k in range(p.shape[1]):
            r += np.float64(p[i, k]) * np.float64(p[i, k])
        f = 1.0 if frequency is None else frequency[i]
        sums[0, y[i]] += f * r
        sums[1, y[i]] += f * (r * r)
    return sums


@compiled
def _find_cells(score: np.ndarray, cells: np.ndarray) -> None:
    """Cells of the grid, from the leading bits of min(p, 1 - p); loops that can be vectorised."""
    nearer = np.empty(len(score))
    for i in range(len(score)):
        nearer[i] = min(np.float64(score[i]), 1.0 - np.float64(score[i]))
    bits = nearer.view(np.int64)
    for i in range(len(score)):
        steps = min(HALF - (bits[i] >> SHIFT), CENTRE)
        cells[i] = CENTRE - steps if score[i] < 0.5 else CENTRE + steps


@compiled
def count_cells(score: np.ndarray, frequency: np.ndarray | None) -> np.ndarray:
    """(2, E, CELLS) rows and sums of scores (E, n) in each cell of the grid."""
    E, n = score.shape
    out, cells = np.zeros((2, E, CELLS)), np.empty(n, np.uint16)
    for k in range(E):
        _find_cells(score[k], cells)
        rows, sums = out[0, k], out[1, k]
        for i in range(n):
            f = 1.0 if frequency is None else frequency[i]
            rows[cells[i]] += f
            sums[cells[i]] += f * np.float64(score[k, i])
    return out


@compiled
def _find_steps(
    rows: np.ndarray, angle: np.ndarray, most: int, cells: np.ndarray, position: np.ndarray,
    step: np.ndarray, low: int, high: int,
) -> int:  # fmt: skip
    """How many cells from low to high have rows; which, and the fine bin of their position.

    Loop by loop, so that divisions are vectorised.
    """
    number, upto = 0, 0.0
    for cell in range(low, high + 1):
        cells[number] = cell
        number += rows[cell] != 0
    for j in range(number):
        here = rows[cells[j]]
        upto += here
        position[j] = upto - here / 2
    first, last = angle[cells[0]], angle[cells[number - 1]]
    span = last - first if last > first else 1.0
    for j in range(number):
        away = (position[j] / upto + (angle[cells[j]] - first) / span) / 2 - 0.5
        steps = min(np.int32(np.abs(away) * (most - 1) + 0.5), np.int32((most - 1) // 2))
        step[j] = -steps if away < 0 else steps
    return int(number)


@compiled
def _cut(
    rows: np.ndarray, middle: np.ndarray, angle: np.ndarray, most: int, low: int, high: int,
    buffers: tuple[np.ndarray, np.ndarray, np.ndarray], cuts: np.ndarray, table: np.ndarray,
    count: np.ndarray,
) -> int:  # fmt: skip
    """The number of cuts of one event whose rows are in the cells from low to high.

    ``count`` are the rows of each bin.
    """
    occupied, position, step = buffers
    b, begin = 0, 0
    number = _find_steps(rows, angle, most, occupied, position, step, low, high)
    held = rows[occupied[0]]
    for j in range(1, number):
        if step[j] != step[j - 1]:
            before, end = occupied[j - 1], occupied[j]
            halfway = (middle[before] + middle[end]) / 2
            while before + 1 < end:  # the first cell that is nearer to the one above
                cell = (before + end) // 2
                if middle[cell] > halfway or (middle[cell] == halfway and cell < CENTRE):
                    end = cell
                else:
                    before = cell
            for cell in range(begin, end):
                table[cell] = b
            cuts[b], count[b] = end, held
            b, begin, held = b + 1, end, 0.0
        held += rows[occupied[j]]
    for cell in range(begin, CELLS):
        table[cell] = b
    count[b] = held
    return b


@compiled
def _allocate() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    return np.empty(CELLS + 1, np.int64), np.empty(CELLS), np.empty(CELLS, np.int32)


@compiled
def cut_cells(
    cells: np.ndarray, middle: np.ndarray, angle: np.ndarray, most: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Fine bins from rows and scores (2, E, CELLS) on the grid.

    Returns the first cells (E, most) of all bins but one and their number (E,), the sums
    (2, E, most) in each bin, and the bin (E, CELLS) of each cell.
    """
    E, buffers = cells.shape[1], _allocate()
    cuts, number = np.zeros((E, most), np.int64), np.zeros(E, np.int64)
    sums, table = np.zeros((2, E, most)), np.empty((E, CELLS), np.uint8)
    for k in range(E):
        into = buffers, cuts[k], table[k], sums[0, k]
        number[k] = _cut(cells[0, k], middle, angle, most, 0, CELLS - 1, *into)
        for cell in range(CELLS):
            sums[1, k, table[k, cell]] += cells[1, k, cell]
    return cuts, number, sums, table


@compiled
def cut_scores(
    score: np.ndarray, frequency: np.ndarray | None, middle: np.ndarray, angle: np.ndarray,
    most: int,
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray]:  # fmt: skip
    """What `cut_cells` returns, from scores (E, n), and the bin (E, n) of each score."""
    (E, n), buffers = score.shape, _allocate()
    cuts, number = np.zeros((E, most), np.int64), np.zeros(E, np.int64)
    sums, table = np.zeros((2, E, most)), np.empty((E, CELLS), np.uint8)
    bins, cells, rows = np.empty((E, n), np.uint8), np.empty(n, np.uint16), np.zeros(CELLS)
    for k in range(E):
        _find_cells(score[k], cells)
        low, high = cells[0], cells[0]
        for i in range(n):
            low, high = min(low, cells[i]), max(high, cells[i])
        for i in range(n):
            rows[cells[i]] += 1.0 if frequency is None else frequency[i]
        into = buffers, cuts[k], table[k], sums[0, k]
        number[k] = _cut(rows, middle, angle, most, int(low), int(high), *into)
        for cell in range(low, high + 1):
            rows[cell] = 0.0
        scores, of_cell = sums[1, k], table[k]
        for i in range(n):
            b = of_cell[cells[i]]
            bins[k, i] = b
            scores[b] += np.float64(score[k, i]) * (1.0 if frequency is None else frequency[i])
    return cuts, number, sums, table, bins


@compiled
def _step_outwards(
    t: np.ndarray, source: np.ndarray, target: np.ndarray, start: int, end: int, step: float,
    least: tuple[float, float], chosen: np.ndarray,
) -> int:  # fmt: skip
    """Knots from the bin ``start`` to ``end``, and how many."""
    count, a, b, way = 1, start, start, 1 if end > start else -1
    chosen[0] = start
    more_source = more_target = 0.0
    while b != end:
        b += way
        more_source += source[b]
        more_target += target[b]
        apart = abs(t[b] - t[a])
        if more_source >= least[0] and more_target >= least[1] and apart >= step and apart > 0:
            chosen[count] = b
            count, a = count + 1, b
            more_source = more_target = 0.0
    apart = abs(t[end] - t[a])
    enough = more_source >= least[0] and more_target >= least[1]
    if enough and apart > 0 and apart >= step / 2:
        chosen[count] = end
        return count + 1
    if count > 1:
        chosen[count - 1] = end
    return count


@compiled
def choose_knots(
    t: np.ndarray, source: np.ndarray, target: np.ndarray, bins: np.ndarray, hats: int,
    least: tuple[float, float, float],
) -> np.ndarray:  # fmt: skip
    """(E, B) bool, the bins with a knot, from positions and rows (E, B) of their first ``bins``.

    Events with few distinct scores have a knot at each: those of trees, neighbours or tables are no
    smooth function of anything, and the frequency of the event may jump from one to the next.
    ``least`` : source rows of a knot of these, of a knot of other events, and target rows.
    """
    found = np.zeros(t.shape, np.bool_)
    left, right = np.empty(t.shape[1] + 1, np.int64), np.empty(t.shape[1] + 1, np.int64)
    for k in range(len(t)):
        end, at, middle = bins[k] - 1, t[k], 0
        rest, most = 0.0, 0.0
        for b in range(end + 1):
            rest, most = rest + source[k, b], max(most, source[k, b])
        few = end < hats or (end < DISTINCT and rest - most >= ROWS_A_SCORE * end)
        step = 0.0 if few else (at[end] - at[0]) / (hats - 1) * (1 - 1e-9)
        rows = least[0] if few else least[1], least[2]
        centre = (at[0] + at[end]) / 2
        for b in range(1, end + 1):
            if abs(at[b] - centre) < abs(at[middle] - centre):
                middle = b
        ups = downs = 1
        for side in range(2):  # one call, which is compiled once
            chosen, to = (left, 0) if side else (right, end)
            count = _step_outwards(at, source[k], target[k], middle, to, step, rows, chosen)
            ups, downs = (ups, count) if side else (count, downs)
        for b in range(1, downs):
            found[k, left[b]] = True
        for b in range(1, ups):
            found[k, right[b]] = True
        if downs == 1:
            found[k, 0] = True
        elif ups == 1:
            found[k, end] = True
        else:
            found[k, middle] = True
    return found


@compiled
def locate(score: np.ndarray, table: np.ndarray) -> np.ndarray:
    """(E, n) the bin of each score, from the bins (E, CELLS) of the cells of the grid."""
    E, n = score.shape
    bins, cells = np.empty((E, n), table.dtype), np.empty(n, np.uint16)
    for k in range(E):
        _find_cells(score[k], cells)
        for i in range(n):
            bins[k, i] = table[k, cells[i]]
    return bins


@compiled
def sum_deviations(
    score: np.ndarray, bins: np.ndarray, centres: np.ndarray, frequency: np.ndarray | None
) -> np.ndarray:
    """(C, B, 3) sums of f, f d and f d^2 over the scores (C, n) in each of the bins (C, n).

    d is the difference to ``centres`` (C, B).
    """
    C, n = score.shape
    sums = np.zeros((*centres.shape, 3))
    for k in range(C):
        here, centre, place = sums[k], centres[k], bins[k]
        for i in range(n):
            b = place[i]
            f = 1.0 if frequency is None else frequency[i]
            d = np.float64(score[k, i]) - centre[b]
            here[b, 0] += f
            here[b, 1] += f * d
            here[b, 2] += f * d * d
    return sums


@compiled
def _find_residuals(score: np.ndarray, true: np.ndarray, event: int, out: np.ndarray) -> None:
    """u = 1[the event came true] - score."""
    for i in range(len(score)):
        out[i] = (1.0 if true[i] == event else 0.0) - np.float64(score[i])


@compiled
def sum_source(
    score: np.ndarray, bins: np.ndarray, width: int, true: np.ndarray,
    weight: np.ndarray, frequency: np.ndarray | None,
) -> np.ndarray:  # fmt: skip
    """(4, E, B) sums of f, f w, f w^2 and f w u over the rows of each bin.

    ``true`` (n,) is the event that came true, counted from the first of these events.
    """
    E, n = score.shape
    out, u, sums = np.empty((4, E, width)), np.empty(n), np.empty((width, 4))
    for k in range(E):
        _find_residuals(score[k], true, k, u)
        sums[:] = 0.0
        for i in range(n):
            f = 1.0 if frequency is None else frequency[i]
            b, mass = bins[k, i], f * weight[i]
            sums[b, 0] += f
            sums[b, 1] += mass
            sums[b, 2] += mass * weight[i]
            sums[b, 3] += mass * u[i]
        for b in range(width):
            for s in range(4):
                out[s, k, b] = sums[b, s]
    return out


@compiled
def sum_groups(
    score: np.ndarray, bins: np.ndarray, width: int, true: np.ndarray, group: np.ndarray,
    groups: int, frequency: np.ndarray | None,
) -> np.ndarray:  # fmt: skip
    """(3, E, B, G) sums of f, f u and f u^2 over the rows of each bin and group.

    ``true`` as in `sum_source`; ``group`` (n,) is ignored if there is only one.
    """
    E, n = score.shape
    out, u = np.empty((3, E, width, groups)), np.empty(n)
    sums = np.empty((width * groups, 3))
    for k in range(E):
        _find_residuals(score[k], true, k, u)
        sums[:] = 0.0
        for i in range(n):
            f = 1.0 if frequency is None else frequency[i]
            c = np.uint64(bins[k, i])
            if groups > 1:
                c = c * np.uint64(groups) + np.uint64(group[i])
            sums[c, 0] += f
            sums[c, 1] += f * u[i]
            sums[c, 2] += f * u[i] * u[i]
        for b in range(width):
            for g in range(groups):
                for s in range(3):
                    out[s, k, b, g] = sums[b * groups + g, s]
    return out


@reordered
def add_source_influence(
    score: np.ndarray, bins: np.ndarray, true: np.ndarray, weight: np.ndarray,
    frequency: np.ndarray | None, fit: np.ndarray, plugin: np.ndarray, through: np.ndarray,
    own: float, sketch: np.ndarray, threshold: float, least: float,
    total: np.ndarray, x: np.ndarray,
) -> tuple[np.ndarray, np.ndarray]:  # fmt: skip
    """Sums over labelled rows of some events: noise (4, E, B), and squared influence (E,).

    Adds to ``total`` (n,) the influence of each row on |a|^2, and to ``x`` (n, D) its influence on
    the coefficients in the directions of ``sketch`` (E, B, D). ``fit`` (4, E, B) has g, leverage,
    gradient and trace weight of the bins; ``through`` (E, n) the influence by way of the class
    weights, or has no columns; ``own`` is 1 / m where the source is the target too, else 0.
    """
    (E, n), width, D, estimated = score.shape, fit.shape[2], x.shape[1], through.shape[1] > 0
    noise, square, sums = np.zeros((4, E, width)), np.zeros(E), np.empty((width, 4))
    u, value, size = np.empty(TILE), np.empty(TILE), np.empty(TILE)
    for k in range(E):
        g_of, leverage_of, gradient_of, trace_of = fit[0, k], fit[1, k], fit[2, k], fit[3, k]
        sums[:] = 0.0
        for start in range(0, n, TILE):
            rows = slice(start, min(start + TILE, n))
            place, w, summed, at = bins[k, rows], weight[rows], total[rows], x[rows]
            _find_residuals(score[k, rows], true[rows], k, u)
            for i in range(len(place)):
                b = place[i]
                f = 1.0 if frequency is None else frequency[start + i]
                once, g = min(f, 1.0), g_of[b]
                leverage = leverage_of[b] * (w[i] * once)
                pulled = (u[i] - g) * w[i]
                left_out = pulled / max(1.0 - leverage, least)
                squared = pulled * left_out
                size[i] = squared
                squared *= f * once
                sums[b, 0] += squared
                sums[b, 1] += left_out * leverage * f
                sums[b, 2] += squared * leverage
                sums[b, 3] += w[i] * w[i] * (f * once)
                value[i] = left_out * gradient_of[b] + own * (g * g - plugin[k])
                u[i] = pulled
            if estimated:
                for i in range(len(place)):
                    value[i] += through[k, start + i]
            total_square = 0.0
            for i in range(len(place)):
                f = 1.0 if frequency is None else frequency[start + i]
                total_square += value[i] * value[i] * (f * min(f, 1.0))
                summed[i] += value[i]
            square[k] += total_square
            if D > 0:
                for i in range(len(place)):
                    b = place[i]
                    if size[i] * trace_of[b] > threshold:
                        root = np.copysign(np.sqrt(size[i]), u[i])
                        for s in range(D):
                            at[i, s] += root * sketch[k, b, s]
        for b in range(width):
            for s in range(4):
                noise[s, k, b] = sums[b, s]
    return noise, square


@reordered
def add_influence(
    score: np.ndarray, bins: np.ndarray, true: np.ndarray, group: np.ndarray, groups: int,
    frequency: np.ndarray | None, lines: np.ndarray, through: np.ndarray, sketch: np.ndarray,
    trace: np.ndarray, threshold: float, total: np.ndarray, x: np.ndarray,
) -> np.ndarray:  # fmt: skip
    """(E,) sums of squared influence over labelled rows of some events, none of weight below 1.

    Adds to ``total`` and ``x`` as `add_source_influence` does. ``lines`` (4, E, B G) are of
    `GroupSums`, ``trace`` (E, B) the trace weights of bins.
    """
    (E, n), D, estimated = score.shape, x.shape[1], through.shape[1] > 0
    square, u, value, size = np.zeros(E), np.empty(TILE), np.empty(TILE), np.empty(TILE)
    for start in range(0, n, TILE):
        rows = slice(start, min(start + TILE, n))
        summed, label, at = total[rows], group[rows], x[rows]
        for k in range(E):
            place, a, b, c, d = bins[k, rows], lines[0, k], lines[1, k], lines[2, k], lines[3, k]
            _find_residuals(score[k, rows], true[rows], k, u)
            for i in range(len(place)):
                cell = np.uint64(place[i])
                if groups > 1:
                    cell = cell * np.uint64(groups) + np.uint64(label[i])
                value[i] = a[cell] * u[i] + b[cell]
                size[i] = c[cell] * u[i] + d[cell]
            if estimated:
                for i in range(len(place)):
                    value[i] += through[k, start + i]
            sums = 0.0
            for i in range(len(place)):
                f = 1.0 if frequency is None else frequency[start + i]
                sums += value[i] * value[i] * f
                summed[i] += value[i]
            square[k] += sums
            if D > 0:
                for i in range(len(place)):
                    bin_ = place[i]
                    if threshold < 0 or size[i] * size[i] * trace[k, bin_] > threshold:
                        for s in range(D):
                            at[i, s] += size[i] * sketch[k, bin_, s]
    return square


@reordered
def add_target_influence(
    bins: np.ndarray, frequency: np.ndarray | None, values: np.ndarray, through: np.ndarray,
    total: np.ndarray,
) -> np.ndarray:  # fmt: skip
    """(E,) sums of squares of the values (E, B) of the bins in which rows lie.

    Adds the values to ``total`` (n,); ``through`` as in `add_source_influence`.
    """
    E, n = bins.shape
    square, estimated, value = np.zeros(E), through.shape[1] > 0, np.empty(TILE)
    for start in range(0, n, TILE):
        summed = total[start : min(start + TILE, n)]
        for k in range(E):
            place, values_k, sums = bins[k, start : start + TILE], values[k], 0.0
            for i in range(len(place)):
                value[i] = values_k[place[i]]
                if estimated:
                    value[i] += through[k, start + i]
            for i in range(len(place)):
                summed[i] += value[i]
                f = 1.0 if frequency is None else frequency[start + i]
                sums += value[i] * value[i] * (f * min(f, 1.0))
            square[k] += sums
    return square


@compiled
def add_drift(
    score: np.ndarray, bins: np.ndarray, slope: np.ndarray, gap: np.ndarray, rows: np.ndarray
) -> None:
    """Add to ``rows`` (5, n): sums of h - psi and of second order, extremes of g, least |u - g|.

    Without a label of these events; ``slope`` and ``gap`` (E, B) are g and nothing for norm 2, and
    for norm 1 the sign of g and |d|.
    """
    (E, n), absolute, g = score.shape, gap.shape[1] > 0, np.empty(TILE)
    for start in range(0, n, TILE):
        end = min(start + TILE, n)
        first, other = rows[0, start:end], rows[1, start:end]
        least, most, nearest = rows[2, start:end], rows[3, start:end], rows[4, start:end]
        for k in range(E):
            f, place, slopes = score[k, start:end], bins[k, start:end], slope[k]
            for i in range(end - start):
                g[i] = slopes[place[i]]
            for i in range(end - start):
                if absolute:
                    near = np.float64(f[i])
                    first[i] += gap[k, place[i]] + g[i] * near
                    other[i] += near - gap[k, place[i]]
                else:
                    near = np.float64(f[i]) + g[i]
                    first[i] += 2.0 * (g[i] * near)
                    other[i] += near * near
                least[i], most[i] = min(least[i], g[i]), max(most[i], g[i])
                nearest[i] = min(nearest[i], near)


@compiled
def find_changes(
    rows: np.ndarray, through: np.ndarray, up: float, down: float, absolute: bool, events: int
) -> np.ndarray:
    """(3, n) the largest change upwards, downwards, and of second order, from `add_drift`.

    ``through`` (n,) is the influence by way of the class weights, ``up`` and ``down`` its extremes
    over labels; ``absolute`` is for norm 1.
    """
    n = rows.shape[1]
    changes, share = np.empty((3, n)), 1.0 / events
    first, other, least, most, nearest = rows[0], rows[1], rows[2], rows[3], rows[4]
    for i in range(n):
        own = 1.0 - 2.0 * nearest[i]
        twice = 1.0 if absolute else 2.0
        changes[0, i] = (first[i] - twice * least[i] + through[i] + up) * share
        if absolute:
            changes[1, i] = (other[i] + own - through[i] + down) * share
            changes[2, i] = 0.0
        else:
            changes[1, i] = (2.0 * most[i] - first[i] - through[i] + down) * share
            changes[2, i] = (other[i] + own) * share
    return changes


@compiled
def count_sizes(values: np.ndarray, frequency: np.ndarray) -> np.ndarray:
    """(V, 2, C) rows and sums of each of V values, by size; negative ones count as 0."""
    V, n = values.shape
    out, size = np.zeros((V, 2, SIZES)), np.empty(n)
    for k in range(V):
        for i in range(n):
            size[i] = max(values[k, i], 0.0)
        bits, rows, sums = size.view(np.int64), out[k, 0], out[k, 1]
        for i in range(n):
            cell = min(max((bits[i] >> MANTISSA) - FIRST, 0), SIZES - 1)
            rows[cell] += frequency[i]
            sums[cell] += frequency[i] * size[i]
    return out


@compiled
def factor_band(
    diagonal: np.ndarray, above: np.ndarray, singular: float
) -> tuple[np.ndarray, np.ndarray]:
    """The diagonal of L and the one below it, (E, R) each; pivots below ``singular`` count as 0."""
    main, below = np.zeros(diagonal.shape), np.zeros(diagonal.shape)
    for e in range(len(diagonal)):
        rest, least = diagonal[e, 0], singular * diagonal[e, 0]
        for k in range(diagonal.shape[1]):
            least = max(least, singular * diagonal[e, k])
        for k in range(diagonal.shape[1]):
            if rest > least:
                main[e, k] = np.sqrt(rest)
                below[e, k] = above[e, k] / main[e, k]
            if k + 1 < diagonal.shape[1]:
                rest = diagonal[e, k + 1] - below[e, k] ** 2
    return main, below


@compiled
def sum_weighted_rows(
    bins: np.ndarray, values: np.ndarray, others: np.ndarray, width: int
) -> np.ndarray:
    """(E, width, S) sums over rows of values (E, n) times others (n, S), by event and bin."""
    (E, n), S = bins.shape, others.shape[1]
    sums = np.zeros((E, width, S))
    for start in range(0, n, TILE):
        stop = min(n, start + TILE)
        for k in range(E):
            for i in range(start, stop):
                here, value = sums[k, bins[k, i]], values[k, i]
                for s in range(S):
                    here[s] += value * others[i, s]
    return sums


@compiled
def add_labelled(
    score: np.ndarray, bins: np.ndarray, true: np.ndarray, code: np.ndarray, weight: np.ndarray,
    frequency: np.ndarray | None, fit: np.ndarray, least: float, left: np.ndarray,
    share: np.ndarray, sums: np.ndarray, means: np.ndarray,
) -> None:  # fmt: skip
    """Add sums over rows of some events, in hats at knots, by class: ``code`` (n,).

    ``fit`` (4, E, B) has g, leverage, trace weight and the sign of g of the bins. To ``sums``
    (E, 4, R, S) are added excess, residual and the two bands, or the first alone; to ``means``
    (E, 2, S) noise and signed residuals.
    """
    E, n = score.shape
    last, every, u = sums.shape[2] - 1, sums.shape[1] > 1, np.empty(n)
    for k in range(E):
        _find_residuals(score[k], true, k, u)
        at, mean = sums[k], means[k]
        for i in range(n):
            b, s, f = bins[k, i], code[i], 1.0 if frequency is None else frequency[i]
            g = fit[0, k, b]
            e, r, far = u[i] - g, left[k, b], share[k, b]
            near, r2 = 1.0 - far, min(r + 1, last)
            mean[0, s] += e * e * fit[2, k, b] * f
            mean[1, s] += u[i] * fit[3, k, b] * f
            left_out = e / max(1.0 - fit[1, k, b] * weight[i], least) * f
            at[0, r, s] += near * left_out
            at[0, r2, s] += far * left_out
            if every:
                at[1, r, s] += near * u[i] * f
                at[1, r2, s] += far * u[i] * f
                at[2, r, s] += near * near * f
                at[2, r2, s] += far * far * f
                at[3, r, s] += near * far * f


@compiled
def add_products(
    score: np.ndarray, bins: np.ndarray, true: np.ndarray, weight: np.ndarray,
    frequency: np.ndarray | None, fit: np.ndarray, least: float, left: np.ndarray,
    share: np.ndarray, others: np.ndarray, sums: np.ndarray,
) -> None:  # fmt: skip
    """Add X' w e / (1 - l) others, (E, R, S), over labelled rows of some events; others (n, S).

    ``fit`` (2, E, B) has g and leverage of the bins, ``left`` and ``share`` (E, B) their hats.
    """
    (E, n), S, last = score.shape, others.shape[1], sums.shape[1] - 1
    u = np.empty(TILE)
    for start in range(0, n, TILE):
        rows = slice(start, min(start + TILE, n))
        one, w = others[rows], weight[rows]
        for k in range(E):
            place, at = bins[k, rows], sums[k]
            _find_residuals(score[k, rows], true[rows], k, u)
            for i in range(len(place)):
                b, f = place[i], 1.0 if frequency is None else min(frequency[start + i], 1.0)
                gap = max(1.0 - fit[1, k, b] * (w[i] * f), least)
                left_out = (u[i] - fit[0, k, b]) * w[i] / gap
                far = share[k, b] * left_out
                near, r = left_out - far, left[k, b]
                here, there = at[r], at[min(r + 1, last)]
                for s in range(S):
                    here[s] += near * one[i, s]
                if far != 0.0:
                    for s in range(S):
                        there[s] += far * one[i, s]
