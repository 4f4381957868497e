"""The smooth basis of bins="auto": hats (piecewise-linear functions) laid on fine bins.

Knots look at counts and scores only, never at labels or weights. Their number, spacing and least
count were chosen by benchmarks/basis.py. (docs/mathematics.md 4)
"""

from __future__ import annotations

import numpy as np

from calshift.binning import FINE_BINS, unit_arcsin

HATS_SCALE, HATS_POWER = 2.2, 0.25  # hats planned: 10 at 500 rows, 22 at 10 000
LEAST_HATS = 3
LEAST_SOURCE = 5.0  # rows between two knots; all noise of the fit comes from the source
LEAST_TARGET = 2.0


def planned_hats(n: float) -> int:
    """How many hats a source of n rows carries: an odd number, with one in the middle."""
    planned = 2 * round(float(HATS_SCALE * n**HATS_POWER - 1) / 2) + 1
    return min(max(LEAST_HATS, planned), FINE_BINS)


def positions(target_count: np.ndarray, target_score: np.ndarray) -> np.ndarray:
    """t of each bin: halfway between mid-rank in the target and arcsin sqrt of the mean score."""
    upto = np.cumsum(target_count)
    rank = (upto - target_count / 2) / upto[-1]
    return np.asarray((rank + unit_arcsin(np.maximum.accumulate(target_score))) / 2)


def knots(
    t: np.ndarray, source_count: np.ndarray, target_count: np.ndarray, hats: int
) -> np.ndarray:
    """Bins at which the knots stand: even steps in t, longer where either sample is thin.

    From the middle outwards, so that scores read from the other end (1 - p) have the same knots.
    """
    few = len(t) <= hats  # a handful of distinct scores: each is its own knot
    step = 0.0 if few else (t[-1] - t[0]) / (hats - 1) * (1 - 1e-9)
    least = 2.0 if few else LEAST_SOURCE
    middle = int(np.argmin(np.abs(t - (t[0] + t[-1]) / 2)))
    upto = np.cumsum([source_count, target_count], axis=1)
    before = upto - [source_count, target_count]
    right = _outwards(t[middle:], (upto[:, middle:] - upto[:, [middle]]), step, least)
    left = _outwards(-t[middle::-1], before[:, [middle]] - before[:, middle::-1], step, least)
    chosen = np.concatenate([middle - left[:0:-1], middle + right])
    if len(left) == 1:  # nothing stands on that side: the middle one moves to the end
        chosen[0] = 0
    if len(right) == 1 and len(left) > 1:
        chosen[-1] = len(t) - 1
    return chosen


def _outwards(t: np.ndarray, rows: np.ndarray, step: float, least: float) -> np.ndarray:
    """Knots from the first bin to the last; rows of either sample up to each bin."""

    def apart(a: int, b: int, distance: float) -> bool:
        source, target = rows[:, b] - rows[:, a]
        enough = source >= least and target >= LEAST_TARGET
        return bool(enough and t[b] - t[a] >= distance and t[b] > t[a])

    last, chosen = len(t) - 1, [0]
    for b in range(1, last + 1):
        if apart(chosen[-1], b, step):
            chosen.append(b)
    if apart(chosen[-1], last, step / 2):
        chosen.append(last)
    elif len(chosen) > 1:  # the rest carries no knot of its own: the last one moves to the end
        chosen[-1] = last
    return np.array(chosen)


def hats(t: np.ndarray, chosen: np.ndarray) -> np.ndarray:
    """(B, L) value of each hat at each bin; rows sum to 1."""
    design = np.zeros((len(t), len(chosen)))
    if len(chosen) == 1:
        design[:] = 1.0
        return design
    at = t[chosen]
    left = np.clip(np.searchsorted(at, t, side="right") - 1, 0, len(at) - 2)
    share = (t - at[left]) / (at[left + 1] - at[left])
    row = np.arange(len(t))
    design[row, left] = 1 - share
    design[row, left + 1] = share
    return design
