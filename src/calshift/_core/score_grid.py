"""Scores in cells of a fixed grid, 128 to an octave of p near 0 and of 1 - p near 1.

The cell of a score is read off the leading bits of min(p, 1 - p): no search, no sorting. Counts on
the grid add up over batches, and edges between its cells are exact wherever the rows are. The
grid is symmetric: 1 - p has the cells of p in reverse. (docs/mathematics.md 4)
"""

from __future__ import annotations

from typing import Any

import numpy as np

OCTAVES = 40  # below 2^-40, and above 1 - 2^-40, all scores share a cell
STEPS = 128  # cells of an octave
CENTRE = (OCTAVES - 1) * STEPS  # the cell of 1/2 alone
CELLS = 2 * CENTRE + 1

HALF = 126 * STEPS  # the leading bits of 1/2 in single precision: exponent, then mantissa
SHIFT = {4: 16, 8: 45}  # what is dropped of a float of so many bytes
WIDER = {4: 0, 8: (1023 - 127) * STEPS}  # by which double precision counts its exponents more


def cell_of(score: np.ndarray) -> np.ndarray:
    """The cell of each score in [0, 1], from 0 to CELLS - 1, as an index."""
    size = score.dtype.itemsize
    nearer = 1 - score
    np.minimum(nearer, score, out=nearer)
    steps: Any = nearer.view(np.int32 if size == 4 else np.int64)
    steps >>= SHIFT[size]
    np.subtract(HALF + WIDER[size], steps, out=steps)  # from the centre
    np.minimum(steps, CENTRE, out=steps)
    below = score < score.dtype.type(0.5)
    steps *= np.subtract(1, 2 * below.view(np.int8), dtype=np.int8)
    steps += CENTRE
    return np.asarray(steps.astype(np.intp, copy=False))


def lowest_score(cell: np.ndarray) -> np.ndarray:
    """The least number in each cell."""
    low = np.ldexp(1 + cell % STEPS / STEPS, cell // STEPS - OCTAVES)
    above = 2 * CENTRE + 1 - cell  # the cell below the mirror image
    high = 1 - np.ldexp(1 + above % STEPS / STEPS, above // STEPS - OCTAVES)
    least = np.where(cell <= CENTRE, low, np.nextafter(high, 2.0))
    return np.where(cell == 0, 0.0, least)


def first_nearer(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """The first cell whose middle lies nearer to that of ``right`` than of ``left``.

    A cell halfway goes to the side of 1/2. All in exact arithmetic, so that 1 - p is cut as p is.
    """
    halfway = (MIDDLE[left] + MIDDLE[right]) / 2
    cell = cell_of(halfway)
    here = MIDDLE[cell]
    return np.asarray(cell + ((here < halfway) | ((here == halfway) & (cell >= CENTRE))))


def _middles() -> np.ndarray:
    """The middle of each cell: exact in 49 bits, and the mean of two in 50."""
    cell = np.arange(CENTRE)
    low = np.ldexp(1 + (cell % STEPS + 0.5) / STEPS, cell // STEPS - OCTAVES)
    return np.concatenate([low, [0.5], 1 - low[::-1]])


def _angles() -> np.ndarray:
    """arcsin sqrt of the middle of each cell."""
    angle = np.arcsin(np.sqrt(MIDDLE[:CENTRE]))
    return np.concatenate([angle, [np.pi / 4], np.pi / 2 - angle[::-1]])


MIDDLE = _middles()
ANGLE = _angles()
LOWEST = lowest_score(np.arange(CELLS))
