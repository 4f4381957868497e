"""The innermost loops, compiled with numba: the sums of the numpy kernels without temporaries.

Imported by `calshift.fast` where numba is installed. All take the scores (E, n) of some events,
each event's in a row, and add to the sums they are given. The numbers are those of the kernels in
`tallies` and `moving`, to rounding.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import types
from numba.extending import intrinsic

from calshift.grid import ANGLE, CELLS, CENTRE, HALF, MIDDLE, SHIFT, WIDER

# what is taken from the grid is part of the compiled loops: touch this file when that changes
from calshift.hat_loops import (
    compiled,
    covary_hats,
    fit_hats,
    invert_hats,
    lay_hats,
    root_hats,
    square_hats,
    thin_part,
)

__all__ = [
    "count", "covary_hats", "cut_cells", "fit_hats", "invert_hats", "lay", "lay_hats",
    "move_source", "move_target", "place", "root_hats", "scale", "square_hats", "sum_rows",
    "sum_source", "thin_part",
]  # fmt: skip

_SHIFT, _HALF = SHIFT[8], HALF + WIDER[8]


@intrinsic
def _bits(context: Any, score: Any) -> Any:
    """The bits of a float as a whole number."""

    def codegen(ctx: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.bitcast(arguments[0], ctx.get_value_type(types.int64))

    return types.int64(types.float64), codegen


@compiled
def _cell(score: float) -> int:
    """The cell of the grid, as `calshift.grid.cell_of` has it."""
    nearer = min(score, 1.0 - score)
    steps = min(_HALF - (_bits(nearer) >> _SHIFT), CENTRE)  # type: ignore[call-arg]
    return CENTRE - steps if score < 0.5 else CENTRE + steps


@compiled
def _first_nearer(left: int, right: int) -> int:
    """The first cell nearer to the right one, as `calshift.grid.first_nearer` has it."""
    halfway = (MIDDLE[left] + MIDDLE[right]) / 2
    cell = _cell(halfway)
    here = MIDDLE[cell]
    return cell + (here < halfway or (here == halfway and cell >= CENTRE))


@compiled
def count(score: np.ndarray, f: np.ndarray, rows: np.ndarray, total: np.ndarray) -> None:
    """Rows and sums of scores (E, CELLS) on the grid; f is empty where every row counts once."""
    for k in range(len(score)):
        for i in range(score.shape[1]):
            value = np.float64(score[k, i])
            cell = _cell(value)
            once = f[i] if len(f) else 1.0
            rows[k, cell] += once
            total[k, cell] += once * value


@compiled
def sum_rows(p: np.ndarray, total: np.ndarray) -> None:
    """Sums (K,) of all rows, four at a time."""
    even = len(p) - len(p) % 4
    for i in range(0, even, 4):
        for k in range(p.shape[1]):
            first = np.float64(p[i, k]) + np.float64(p[i + 1, k])
            total[k] += first + (np.float64(p[i + 2, k]) + np.float64(p[i + 3, k]))
    for i in range(even, len(p)):
        for k in range(p.shape[1]):
            total[k] += p[i, k]


@compiled
def place(score: np.ndarray, table: np.ndarray, bins: np.ndarray) -> None:
    """The bin (E, n) of each score, from those of the cells."""
    for k in range(len(score)):
        for i in range(score.shape[1]):
            bins[k, i] = table[k, _cell(np.float64(score[k, i]))]


@compiled
def sum_source(
    score: np.ndarray,
    bins: np.ndarray,
    truth: np.ndarray,  # (n,) which of these events came true, or none of them
    w: np.ndarray,
    f: np.ndarray,
    out: np.ndarray,  # (E, 5, B) rows, usable ones, w, w^2, w u
) -> None:
    """Sums over source rows in each bin."""
    for k in range(len(score)):
        row, lying, sums = score[k], bins[k], out[k]
        for i in range(len(row)):
            b = np.uint64(lying[i])  # a signed one might count from the end: asked each time
            once = f[i] if len(f) else 1.0
            mass = once * w[i]
            u = (1.0 if truth[i] == k else 0.0) - np.float64(row[i])
            sums[0, b] += once
            sums[1, b] += once if mass > 0 else 0.0
            sums[2, b] += mass
            sums[3, b] += mass * w[i]
            sums[4, b] += mass * u


@compiled
def move_source(
    score: np.ndarray,
    bins: np.ndarray,
    truth: np.ndarray,
    w: np.ndarray,
    f: np.ndarray,
    fits: np.ndarray,  # (E, B, 4) g, leverage, slope, energy
    plug: np.ndarray,
    own: float,  # 1 / m if the source stands for the target too, else 0
    turned: np.ndarray,  # (E, R, D) V in the directions of the sketch, on the knots
    left: np.ndarray,  # (E, B) the knot at or before each bin, and the share of the next one
    share: np.ndarray,
    threshold: float,
    least: float,  # of 1 - l
    noise: np.ndarray,  # (E, B), as is tilt
    tilt: np.ndarray,
    variance: np.ndarray,  # (E,) squared moves
    moved: np.ndarray,  # (n,) moves summed over events
    x: np.ndarray,  # (n, D)
) -> None:
    """The noise of the fits, the moves of |a|^2, and S in some directions."""
    D = turned.shape[2]
    sketch = np.empty((left.shape[1] if D else 0, D))
    for k in range(len(score)):
        squares = 0.0
        for bin_ in range(len(sketch)):  # X V, an event at a time: it stays in the cache
            at, far = left[k, bin_], share[k, bin_]
            after = min(at + 1, turned.shape[1] - 1)
            for d in range(D):
                sketch[bin_, d] = (1.0 - far) * turned[k, at, d] + far * turned[k, after, d]
        row, lying, fit, noises, tilts = score[k], bins[k], fits[k], noise[k], tilt[k]
        for i in range(len(row)):
            b = np.uint64(lying[i])
            once = f[i] if len(f) else 1.0
            part = min(once, 1.0)
            g = fit[b, 0]
            e = (1.0 if truth[i] == k else 0.0) - np.float64(row[i]) - g
            leverage = fit[b, 1] * (w[i] * part)
            slack = max(1.0 - leverage, least)
            pulled = e * w[i]
            inverse = 1.0 / slack
            left_out = pulled * inverse
            squared = pulled * left_out * (once * part)
            noises[b] += squared
            tilts[b] += left_out * leverage * once
            move = left_out * fit[b, 2] + own * (g * g - plug[k])
            squares += move * move * (once * part)
            moved[i] += move
            if D and squared * fit[b, 3] > threshold:
                size = pulled * np.sqrt(inverse)
                for d in range(D):
                    x[i, d] += size * sketch[b, d]
        variance[k] += squares


@compiled
def move_target(
    bins: np.ndarray,
    f: np.ndarray,
    values: np.ndarray,
    variance: np.ndarray,
    moved: np.ndarray,
) -> None:
    """Squares (E,) of the values (E, B) where rows lie, and their sum over events (n,)."""
    for k in range(len(bins)):
        squares = 0.0
        for i in range(bins.shape[1]):
            move = values[k, bins[k, i]]
            once = f[i] * min(f[i], 1.0) if len(f) else 1.0
            squares += move * move * once
            moved[i] += move
        variance[k] += squares


@compiled
def _occupied(rows: np.ndarray, cells: np.ndarray, step: np.ndarray, most: int) -> int:
    """How many cells have rows; which they are, and the step to which their t rounds.

    Loop by loop: none has a branch that cannot be foreseen, and the divisions go side by side.
    """
    count, upto = 0, 0.0
    for cell in range(len(rows)):
        cells[count] = cell
        count += rows[cell] != 0
    for j in range(count):
        here = rows[cells[j]]
        upto += here
        step[j] = upto - here / 2
    first = ANGLE[cells[0]]
    span = ANGLE[cells[count - 1]] - first if count > 1 else 1.0
    for j in range(count):
        away = (step[j] / upto + (ANGLE[cells[j]] - first) / span) / 2 - 0.5
        step[j] = np.copysign(np.floor(np.abs(away) * (most - 1) + 0.5), away)
    return count


@compiled
def _cut(
    rows: np.ndarray, most: int, room: tuple[np.ndarray, np.ndarray],
    cuts: np.ndarray, count: np.ndarray, table: np.ndarray,
) -> int:  # fmt: skip
    """The fine bins of one event; ``room`` is for its cells and steps."""
    cells, step = room
    occupied, b, start = _occupied(rows, cells, step, most), 0, 0
    for j in range(occupied):
        if j > 0 and step[j] != step[j - 1]:
            cuts[b] = _first_nearer(cells[j - 1], cells[j])
            b += 1
        count[b] += rows[cells[j]]
    for k in range(b + 1):
        stop = cuts[k] if k < b else len(table)
        for cell in range(start, stop):
            table[cell] = k
        start = stop
    return b


@compiled
def cut_cells(
    rows: np.ndarray, score: np.ndarray, most: int, cuts: np.ndarray,
    sums: np.ndarray, number: np.ndarray, table: np.ndarray,
) -> None:  # fmt: skip
    """The fine bins of `calshift.binning.fine_cuts`, with their sums and the bin of each cell.

    ``cuts`` (E, most) has room for their first cells, ``sums`` (2, E, most) for rows and scores,
    ``number`` (E,) is how many there are, ``table`` (E, CELLS).
    """
    room = np.empty(CELLS, np.int64), np.empty(CELLS)
    for k in range(len(rows)):
        number[k] = _cut(rows[k], most, room, cuts[k], sums[0, k], table[k])
        for cell in range(CELLS):
            sums[1, k, table[k, cell]] += score[k, cell]


@compiled
def _count_cells(score: np.ndarray, f: np.ndarray, cells: np.ndarray, rows: np.ndarray) -> None:
    """The cell of each score, and the rows in each cell."""
    for i in range(len(score)):
        cells[i] = _cell(np.float64(score[i]))
    if len(f):
        for i in range(len(score)):
            rows[cells[i]] += f[i]
    else:
        for i in range(len(score)):
            rows[cells[i]] += 1.0


@compiled
def lay(
    score: np.ndarray, f: np.ndarray, most: int, bins: np.ndarray, cuts: np.ndarray,
    sums: np.ndarray, number: np.ndarray, table: np.ndarray,
) -> None:  # fmt: skip
    """`count`, `cut_cells` and `place` in one, for all rows at once, event by event."""
    rows, room = np.empty(CELLS), (np.empty(CELLS, np.int64), np.empty(CELLS))
    for k in range(len(score)):
        rows[:] = 0.0
        _count_cells(score[k], f, bins[k], rows)
        number[k] = _cut(rows, most, room, cuts[k], sums[0, k], table[k])
        for i in range(score.shape[1]):
            b = table[k, bins[k, i]]
            bins[k, i] = b
            sums[1, k, b] += np.float64(score[k, i]) * (f[i] if len(f) else 1.0)


@compiled
def scale(scores: np.ndarray, slope: np.ndarray, bias: np.ndarray, p: np.ndarray) -> None:
    """softmax(slope scores + bias) of each row; a slope and a bias a class, or one for all."""
    slopes, biases = len(slope) - 1, len(bias) - 1
    for i in range(len(scores)):
        top, total = -np.inf, 0.0
        for c in range(scores.shape[1]):
            p[i, c] = slope[min(c, slopes)] * scores[i, c] + bias[min(c, biases)]
            top = max(top, p[i, c])
        for c in range(scores.shape[1]):
            p[i, c] = np.exp(p[i, c] - top)
            total += p[i, c]
        for c in range(scores.shape[1]):
            p[i, c] *= 1.0 / total
