"""The innermost loops over rows, compiled with numba: the sums of the numpy kernels.

Imported by `calshift.compiled` where numba is installed. All take a matrix p (n, W), which of its
columns are the scores of some events, and add to the sums they are given, some rows at a time:
these are turned, so that each event's scores lie side by side in the cache. The numbers are those
of the kernels in `tallies` and `moving`, to rounding. Numbers of bins and columns are unsigned: a
signed one might count from the end, which would be asked for every score.
"""

from __future__ import annotations

import numpy as np

from calshift.compiled.binning import ROOM, STEP, count, cut_cells, lay, place, turn
from calshift.compiled.regression import (
    covary_hats,
    direct_hats,
    fit_hats,
    invert_hats,
    judge_hats,
    lay_hats,
    share_hats,
    thin_part,
)
from calshift.compiled.support import LANES, add_scaled, compiled, part

__all__ = [
    "LANES", "STEP", "count", "covary_hats", "cut_cells", "direct_hats", "fit_hats",
    "invert_hats", "judge_hats", "lay", "lay_hats", "move_source", "move_target", "place",
    "scale", "share_hats", "sum_rows", "sum_source", "thin_part",
]  # fmt: skip


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
def _residuals(score: np.ndarray, truth: np.ndarray, first: int) -> None:
    """Scores (E, rows) taken from the events, 1 or 0, of which ``first`` is the first.

    ``truth`` (rows,) is the event that came true.
    """
    for k in range(len(score)):
        u = score[k]
        for i in range(len(truth)):
            u[i] = -u[i]
    for i in range(len(truth)):
        true = truth[i] - first
        if 0 <= true < len(score):
            score[true, i] += 1.0


@compiled
def _weigh(labels: np.ndarray, w: np.ndarray, weight: np.ndarray) -> None:
    """The class weights of rows."""
    for i in range(len(labels)):
        weight[i] = w[labels[i]]


@compiled
def sum_source(
    p: np.ndarray, columns: np.ndarray, bins: np.ndarray, truth: np.ndarray, first: int,
    labels: np.ndarray, w: np.ndarray, f: np.ndarray | None, out: np.ndarray,
) -> None:  # fmt: skip
    """Sums over source rows in each bin (5, E, B): rows, usable ones, w, w^2, w u.

    w (K,) are the class weights, f is None where every row counts once.
    """
    E, B = out.shape[1:]
    u, room, weight = np.empty((E, ROOM)), np.zeros((E, B, 4)), np.empty(STEP)
    for start in range(0, len(p), STEP):
        rows = slice(start, min(start + STEP, len(p)))
        turn(p[rows], columns, u)
        _residuals(u, truth[rows], first)
        _weigh(labels[rows], w, weight)
        for k in range(E):
            _sum(u[k], bins[k, rows], weight, part(f, rows), room[k])
    for k in range(E):
        for b in range(B):
            out[0, k, b] += room[k, b, 0]
            out[1, k, b] += room[k, b, 0]
            out[2, k, b] += room[k, b, 1]
            out[3, k, b] += room[k, b, 2]
            out[4, k, b] += room[k, b, 3]
        if not w.all():
            for i in range(len(p)):
                if w[labels[i]] == 0:
                    out[1, k, bins[k, i]] -= 1.0 if f is None else f[i]


@compiled
def _sum(
    u: np.ndarray, bins: np.ndarray, w: np.ndarray, f: np.ndarray | None, sums: np.ndarray
) -> None:
    """Rows, w, w^2 and w u in each bin of one event."""
    for i in range(len(bins)):
        b = bins[i]
        once = 1.0 if f is None else f[i]
        mass = once * w[i]
        sums[b, 0] += once
        sums[b, 1] += mass
        sums[b, 2] += mass * w[i]
        sums[b, 3] += mass * u[i]


@compiled
def move_source(
    p: np.ndarray,
    columns: np.ndarray,
    bins: np.ndarray,
    truth: np.ndarray,
    first: int,
    labels: np.ndarray,
    w: np.ndarray,  # (K,)
    f: np.ndarray | None,
    fits: np.ndarray,  # (E, B, 4) g, leverage, slope, energy
    plug: np.ndarray,
    own: float,  # 1 / m if the source stands for the target too, else 0
    turned: np.ndarray,  # (E, R, D) V in the directions of the sketch, on the knots
    left: np.ndarray,  # (E, B) the knot at or before each bin, and the share of the next one
    share: np.ndarray,
    threshold: float,
    least: float,  # of 1 - l
    noise: np.ndarray,  # (E, B, 2) and tilt
    variance: np.ndarray,  # (E,) squared moves
    moved: np.ndarray,  # (n,) moves summed over events
    x: np.ndarray,  # (n, D), or room for STEP rows, whose squares are added to whole
    whole: np.ndarray,  # (D, D)
) -> None:
    """The noise of the fits, the moves of |a|^2, and S in some directions: D, a multiple of LANES.

    All events must be here at once if there is no room for the x of all rows.
    """
    E = len(columns)
    sketch, u, weight = _sketched(turned, left, share), np.empty((E, ROOM)), np.empty(STEP)
    passing = len(x) < len(p)
    for start in range(0, len(p), STEP):
        rows = slice(start, min(start + STEP, len(p)))
        here = x[: rows.stop - start] if passing else x[rows]
        if passing:
            here[:] = 0.0
        turn(p[rows], columns, u)
        _residuals(u, truth[rows], first)
        _weigh(labels[rows], w, weight)
        for k in range(E):
            variance[k] += _move(
                u[k], bins[k, rows], weight, part(f, rows), fits[k], plug[k], own, sketch[k],
                threshold, least, noise[k], moved[rows], here,
            )  # fmt: skip
        if passing:
            _square(here, part(f, rows), whole)


@compiled
def _sketched(turned: np.ndarray, left: np.ndarray, share: np.ndarray) -> np.ndarray:
    """(E, B, D) X V in the directions of the sketch."""
    (E, B), D = left.shape, turned.shape[2]
    sketch = np.empty((E, B if D else 0, D))
    for k in range(E):
        for b in range(sketch.shape[1]):
            at, far = left[k, b], share[k, b]
            after = min(at + 1, turned.shape[1] - 1)
            for d in range(D):
                sketch[k, b, d] = (1.0 - far) * turned[k, at, d] + far * turned[k, after, d]
    return sketch


@compiled
def _move(
    u: np.ndarray, bins: np.ndarray, w: np.ndarray, f: np.ndarray | None, fit: np.ndarray,
    plug: float, own: float, sketch: np.ndarray, threshold: float, least: float, noise: np.ndarray,
    moved: np.ndarray, x: np.ndarray,
) -> float:  # fmt: skip
    """Rows of one event, and the sum of their squared moves."""
    squares, lanes = 0.0, sketch.shape[1] // LANES
    for i in range(len(bins)):
        b = bins[i]
        once = 1.0 if f is None else f[i]
        less = min(once, 1.0)
        g = fit[b, 0]
        leverage = fit[b, 1] * (w[i] * less)
        pulled = (u[i] - g) * w[i]
        inverse = 1.0 / max(1.0 - leverage, least)
        left_out = pulled * inverse
        squared = pulled * left_out * (once * less)
        noise[b, 0] += squared
        noise[b, 1] += left_out * leverage * once
        move = left_out * fit[b, 2] + own * (g * g - plug)
        squares += move * move * (once * less)
        moved[i] += move
        if squared * fit[b, 3] > threshold:
            size = pulled * np.sqrt(inverse)
            if lanes == 1:
                add_scaled(x, i, sketch, b, 0, size)  # type: ignore[call-arg]
            else:
                for lane in range(lanes):
                    add_scaled(x, i, sketch, b, lane, size)  # type: ignore[call-arg]
    return squares


@compiled
def _square(x: np.ndarray, f: np.ndarray | None, whole: np.ndarray) -> None:
    """Adds x' x, rows weighed as in sums of squares; x itself is lost."""
    if f is not None:
        for i in range(len(x)):
            once = np.sqrt(f[i] * min(f[i], 1.0))
            for d in range(x.shape[1]):
                x[i, d] *= once
    found = np.dot(x.T, x)
    for c in range(len(whole)):
        for d in range(len(whole)):
            whole[c, d] += found[c, d]


@compiled
def move_target(
    bins: np.ndarray, f: np.ndarray | None, values: np.ndarray, variance: np.ndarray,
    moved: np.ndarray,
) -> None:  # fmt: skip
    """Squares (E,) of the values (E, B) where rows lie, and their sum over events (n,)."""
    for k in range(len(bins)):
        lying, value = bins[k], values[k]
        even = odd = 0.0  # so that a sum need not wait for the last
        for i in range(len(lying)):
            move = value[lying[i]]
            moved[i] += move
            square = move * move if f is None else move * move * f[i] * min(f[i], 1.0)
            if i % 2:
                odd += square
            else:
                even += square
        variance[k] += even + odd


@compiled
def scale(scores: np.ndarray, slope: np.ndarray, bias: np.ndarray, p: np.ndarray) -> None:
    """softmax(slope scores + bias) of each row; a slope and a bias a class, or one for all."""
    slopes, biases = len(slope) - 1, len(bias) - 1
    if scores.shape[1] == 2:
        more = bias[biases] - bias[0]
        for i in range(len(scores)):
            odds = slope[slopes] * scores[i, 1] - slope[0] * scores[i, 0] + more
            rest = np.exp(-abs(odds))  # one for both
            high = 1.0 / (1.0 + rest)
            p[i, 0] = rest * high if odds > 0 else high
            p[i, 1] = high if odds > 0 else rest * high
        return
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
