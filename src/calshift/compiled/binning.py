"""Scores laid on the grid and in their fine bins, compiled with numba.

The numbers are those of `calshift._core.score_grid` and `calshift.binning.edges`.
"""

from __future__ import annotations

import numpy as np

from calshift._core.score_grid import ANGLE, CELLS, CENTRE, HALF, MIDDLE, SHIFT, WIDER
from calshift.compiled.support import bits, compiled

STEP = 512  # rows turned at once: they stay in the cache
ROOM = STEP + 16  # for them: at strides of a power of 2 they would drive each other out
COLUMNS = 8  # events turned at once to be laid on the grid

_SHIFT, _HALF = SHIFT[8], HALF + WIDER[8]


@compiled
def _cell(score: float) -> int:
    """The cell of the grid, as `calshift._core.score_grid.cell_of` has it."""
    nearer = min(score, 1.0 - score)
    steps = min(_HALF - (bits(nearer) >> _SHIFT), CENTRE)  # type: ignore[call-arg]
    return CENTRE - steps if score < 0.5 else CENTRE + steps


@compiled
def _cells_of(score: np.ndarray, cells: np.ndarray) -> None:
    """Of several scores; nothing but this, so that they are worked on side by side."""
    for i in range(len(score)):
        cells[i] = _cell(np.float64(score[i]))


@compiled
def _range(cells: np.ndarray) -> tuple[int, int]:
    """The lowest and the highest."""
    low = high = cells[0]
    for i in range(len(cells)):
        if cells[i] < low:
            low = cells[i]
        if cells[i] > high:
            high = cells[i]
    return low, high


@compiled
def turn(p: np.ndarray, columns: np.ndarray, score: np.ndarray) -> None:
    """(E, rows) some columns of some rows."""
    for i in range(len(p)):
        for k in range(len(columns)):
            score[k, i] = p[i, columns[k]]


@compiled
def _first_nearer(left: int, right: int) -> int:
    """The first cell nearer to the right one, as `score_grid.first_nearer` has it."""
    halfway = (MIDDLE[left] + MIDDLE[right]) / 2
    cell = _cell(halfway)
    here = MIDDLE[cell]
    return cell + (here < halfway or (here == halfway and cell >= CENTRE))


@compiled
def count(
    p: np.ndarray, columns: np.ndarray, f: np.ndarray | None, rows: np.ndarray, total: np.ndarray
) -> None:
    """Rows and sums of scores (E, CELLS) on the grid; f is None where every row counts once."""
    turned, cells = np.empty((len(columns), ROOM), p.dtype), np.empty(STEP, np.uint16)
    for start in range(0, len(p), STEP):
        size = min(STEP, len(p) - start)
        turn(p[start : start + size], columns, turned)
        for k in range(len(columns)):
            score, here, sums = turned[k, :size], rows[k], total[k]
            _cells_of(score, cells)
            for i in range(size):
                once = 1.0 if f is None else f[start + i]
                here[cells[i]] += once
                sums[cells[i]] += once * np.float64(score[i])


@compiled
def place(p: np.ndarray, columns: np.ndarray, table: np.ndarray, bins: np.ndarray) -> None:
    """The bin (E, n) of each score, from those of the cells."""
    turned, cells = np.empty((len(columns), ROOM), p.dtype), np.empty(STEP, np.uint16)
    for start in range(0, len(p), STEP):
        size = min(STEP, len(p) - start)
        turn(p[start : start + size], columns, turned)
        for k in range(len(columns)):
            lying, bin_of = bins[k, start : start + size], table[k]
            _cells_of(turned[k, :size], cells)
            for i in range(size):
                lying[i] = bin_of[cells[i]]


@compiled
def _occupied(
    rows: np.ndarray, low: int, high: int, most: int, cells: np.ndarray, step: np.ndarray
) -> int:
    """How many cells from low to high have rows; which, and the step to which their t rounds.

    Loop by loop: none has a branch that cannot be foreseen, and the divisions go side by side.
    """
    number, upto = np.uint64(0), 0.0
    for cell in range(np.uint64(low), np.uint64(high) + np.uint64(1)):
        cells[number] = cell
        number += np.uint64(rows[cell] != 0)
    for j in range(number):
        here = rows[cells[j]]
        upto += here
        step[j] = upto - here / 2
    first = ANGLE[cells[0]]
    last = ANGLE[cells[number - np.uint64(1)]]
    span = last - first if last > first else 1.0
    for j in range(number):
        away = (step[j] / upto + (ANGLE[cells[j]] - first) / span) / 2 - 0.5
        steps = min(np.floor(np.abs(away) * (most - 1) + 0.5), float((most - 1) // 2))
        step[j] = np.copysign(steps, away)
    return int(number)


@compiled
def _cut(
    rows: np.ndarray, low: int, high: int, most: int, room: tuple[np.ndarray, np.ndarray],
    cuts: np.ndarray, count: np.ndarray, table: np.ndarray,
) -> int:  # fmt: skip
    """The fine bins of one event, whose rows lie from low to high; room for cells and steps."""
    cells, step = room
    b, begin, held = np.uint64(0), np.uint64(0), rows[low]
    for j in range(1, _occupied(rows, low, high, most, cells, step)):
        if step[j] != step[j - 1]:
            end = np.uint64(_first_nearer(cells[j - 1], cells[j]))
            for cell in range(begin, end):
                table[cell] = b
            cuts[b], count[b] = end, held
            b, begin, held = b + np.uint64(1), end, 0.0
        held += rows[cells[j]]
    for cell in range(begin, np.uint64(CELLS)):
        table[cell] = b
    count[b] = held
    return int(b)


@compiled
def _ends(rows: np.ndarray) -> tuple[int, int]:
    """The lowest and the highest cell that has rows."""
    low, high = 0, len(rows) - 1
    while rows[low] == 0:
        low += 1
    while rows[high] == 0:
        high -= 1
    return low, high


@compiled
def cut_cells(
    rows: np.ndarray, score: np.ndarray, most: int, cuts: np.ndarray,
    sums: np.ndarray, number: np.ndarray, table: np.ndarray,
) -> None:  # fmt: skip
    """The fine bins of `binning.edges.fine_cuts`, with their sums and the bin of each cell.

    ``cuts`` (E, most) has room for their first cells, ``sums`` (2, E, most) for rows and scores,
    ``number`` (E,) is how many there are, ``table`` (E, CELLS).
    """
    room = np.empty(CELLS, np.uint16), np.empty(CELLS)
    for k in range(len(rows)):
        low, high = _ends(rows[k])
        number[k] = _cut(rows[k], low, high, most, room, cuts[k], sums[0, k], table[k])
        for cell in range(CELLS):
            sums[1, k, table[k, cell]] += score[k, cell]


@compiled
def _count_cells(cells: np.ndarray, f: np.ndarray | None, rows: np.ndarray) -> None:
    """Rows in each cell."""
    for i in range(len(cells)):
        rows[cells[i]] += 1.0 if f is None else f[i]


@compiled
def _place_and_sum(
    score: np.ndarray, f: np.ndarray | None, cells: np.ndarray, table: np.ndarray,
    bins: np.ndarray, sums: np.ndarray,
) -> None:  # fmt: skip
    """The bin of each score, and the sums of scores in them."""
    for i in range(len(score)):
        b = table[cells[i]]
        bins[i] = b
        sums[b] += np.float64(score[i]) if f is None else np.float64(score[i]) * f[i]


@compiled
def lay(
    p: np.ndarray, columns: np.ndarray, f: np.ndarray | None, most: int, bins: np.ndarray,
    cuts: np.ndarray, sums: np.ndarray, number: np.ndarray, table: np.ndarray,
) -> None:  # fmt: skip
    """`count`, `cut_cells` and `place` in one, for all rows at once, event by event."""
    rows, room = np.zeros(CELLS), (np.empty(CELLS, np.uint16), np.empty(CELLS))
    at_once = min(COLUMNS, len(columns))
    turned, cells = np.empty((at_once, len(p)), p.dtype), np.empty(len(p), np.uint16)
    for k in range(len(columns)):
        if k % at_once == 0:
            turn(p, columns[k : k + at_once], turned)
        score = turned[k % at_once]
        _cells_of(score, cells)
        low, high = _range(cells)
        _count_cells(cells, f, rows)
        number[k] = _cut(rows, low, high, most, room, cuts[k], sums[0, k], table[k])
        rows[low : high + 1] = 0.0
        _place_and_sum(score, f, cells, table[k], bins[k], sums[1, k])
