"""Functions compiled with numba: same names, signatures and results as their numpy versions.

All of them are in this one file, and it imports nothing of calshift: numba's cache of machine code
is invalidated when this file changes, and depends on no other. The constants of the score grid are
repeated here for that reason; a test compares them.
"""

from __future__ import annotations

import numpy as np
from numba import njit

CELLS, CENTRE = 9985, 4992  # of calshift._core.score_grid
SHIFT, HALF = 45, 126 * 128 + (1023 - 127) * 128  # in double precision

compiled = njit(cache=True, nogil=True, error_model="numpy", fastmath={"contract"})


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
def add_source_influence(
    score: np.ndarray, bins: np.ndarray, true: np.ndarray, weight: np.ndarray,
    frequency: np.ndarray | None, fit: np.ndarray, plugin: np.ndarray, through: np.ndarray,
    own: float, sketch: np.ndarray, threshold: float, least: float,
    total: np.ndarray, x: np.ndarray,
) -> tuple[np.ndarray, np.ndarray]:  # fmt: skip
    """Sums over labelled rows of some events: noise (2, E, B), and squared influence (E,).

    Adds to ``total`` (n,) the influence of each row on |a|^2, and to ``x`` (n, D) its influence on
    the coefficients in the directions of ``sketch`` (E, B, D). ``fit`` (4, E, B) has g, leverage,
    gradient and trace weight of the bins; ``through`` (E, n) the influence by way of the class
    weights, or has no columns; ``own`` is 1 / m where the source is the target too, else 0.
    """
    (E, n), width, D = score.shape, fit.shape[2], sketch.shape[2]
    noise, square, u = np.zeros((2, E, width)), np.zeros(E), np.empty(n)
    estimated = through.shape[1] > 0
    for k in range(E):
        _find_residuals(score[k], true, k, u)
        sums = 0.0
        for i in range(n):
            b = bins[k, i]
            f = 1.0 if frequency is None else frequency[i]
            once, g = min(f, 1.0), fit[0, k, b]
            leverage = fit[1, k, b] * (weight[i] * once)
            pulled = (u[i] - g) * weight[i]
            inverse = 1.0 / max(1.0 - leverage, least)
            left_out = pulled * inverse
            squared = pulled * left_out * (f * once)
            noise[0, k, b] += squared
            noise[1, k, b] += left_out * leverage * f
            value = left_out * fit[2, k, b] + own * (g * g - plugin[k])
            if estimated:
                value += through[k, i]
            sums += value * value * (f * once)
            total[i] += value
            if D > 0 and squared * fit[3, k, b] > threshold:
                size = pulled * np.sqrt(inverse)
                for d in range(D):
                    x[i, d] += size * sketch[k, b, d]
        square[k] = sums
    return noise, square


@compiled
def add_target_influence(
    bins: np.ndarray, frequency: np.ndarray | None, values: np.ndarray, through: np.ndarray,
    total: np.ndarray,
) -> np.ndarray:  # fmt: skip
    """(E,) sums of squares of the values (E, B) of the bins in which rows lie.

    Adds the values to ``total`` (n,); ``through`` as in `add_source_influence`.
    """
    E, n = bins.shape
    square, estimated = np.zeros(E), through.shape[1] > 0
    for k in range(E):
        sums = 0.0
        for i in range(n):
            value = values[k, bins[k, i]]
            if estimated:
                value += through[k, i]
            total[i] += value
            f = 1.0 if frequency is None else frequency[i]
            sums += value * value * (f * min(f, 1.0))
        square[k] = sums
    return square
