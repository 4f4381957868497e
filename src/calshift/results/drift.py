"""How far an error can be off if label shift is only approximate. (docs/mathematics.md 8)

A share d of the target's rows comes from another distribution of scores and labels, spread over at
least a tenth of the target's rows. To first order the estimate then errs by d E[h - psi], and the
error itself grows by a term of second order; both are bounded by means over the worst rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from calshift._core.frozen import Frozen
from calshift.compiled import fastest

SPREAD = 0.1  # least share of the target's rows over which the other distribution is spread
CELLS_AN_OCTAVE, OCTAVES = 16, 64  # of the grid of sizes, which ends at 2^16
MANTISSA = 48  # bits of a double below those that give the cell
FIRST = (1023 + 16 - OCTAVES) * CELLS_AN_OCTAVE  # leading bits of the smallest size, 2^-48
STEPS = 60  # of a bisection
DRIFT_NEEDS = (
    'interval="influence" with norm 1 or 2 of "debiased" or "plugin" on bins, and a target '
    "without labels"
)


@dataclass(frozen=True)
class DriftSensitivity(Frozen):
    """How far an estimate can be off under a drift, at worst and to first order.

    Attributes
    ----------
    drift : share of the target's rows that come from another distribution
    too_high, too_low : how far the estimate can be above, and below, the error
    change : the larger of both
    root_change : the largest change of the root, in units of probability
    """

    drift: float
    too_high: float
    too_low: float
    root_change: float

    @property
    def change(self) -> float:
        """The larger of both."""
        return max(self.too_high, self.too_low)

    def to_dict(self) -> dict[str, float]:
        """Plain numbers."""
        return {"drift": self.drift, "change": self.change, "root_change": self.root_change}


@dataclass(frozen=True, eq=False)
class DriftInfluence(Frozen):
    """How much a row of another distribution changes estimate - error, with its worst label.

    Attributes
    ----------
    counts, sums : (3, C) the target's rows in cells of a grid, and the sums of their values: of
        the change upwards, of the one downwards, and of the second order of the error
    """

    counts: np.ndarray
    sums: np.ndarray

    @staticmethod
    def of(histograms: np.ndarray) -> DriftInfluence:
        """From `count_sizes`, without the cells that are empty."""
        kept = histograms[:, 0].any(axis=0)
        return DriftInfluence(histograms[:, 0, kept], histograms[:, 1, kept])

    def change(self, drift: float) -> tuple[float, float]:
        """How far the estimate can be too high, and too low."""
        share = max(drift, SPREAD)
        high, low, second = (self.mean_of_largest(k, share) for k in range(3))
        return drift * high, drift * low + drift * (drift / share) * second

    def mean_of_largest(self, kind: int, share: float) -> float:
        """The mean of a value over the share of the rows where it is largest."""
        rows, upto = self._from_largest[:, kind]
        asked = share * rows[-1]
        return float(np.interp(asked, rows, upto) / asked)

    @cached_property
    def _from_largest(self) -> np.ndarray:
        """(2, 3, C + 1) counts and sums of the largest cells."""
        both = np.stack([self.counts, self.sums])[:, :, ::-1]
        return np.concatenate([np.zeros((2, 3, 1)), np.cumsum(both, axis=2)], axis=2)


@fastest
def count_sizes(values: np.ndarray, frequency: np.ndarray) -> np.ndarray:
    """(V, 2, C) rows and sums of each of V values, by size; negative ones count as 0."""
    C = CELLS_AN_OCTAVE * OCTAVES
    out = np.empty((len(values), 2, C))
    for k, value in enumerate(np.maximum(values, 0.0)):
        cell = (value.view(np.int64) >> MANTISSA) - FIRST
        cell = np.clip(cell, 0, C - 1)
        out[k] = [np.bincount(cell, f, C) for f in (frequency, frequency * value)]
    return out


def widen(ends: Any, influence: DriftInfluence, drift: float) -> tuple[Any, Any]:
    """An interval that allows for a drift: the error is estimate - change."""
    too_high, too_low = influence.change(drift)
    return ends[0] - too_high, ends[1] + too_low


def sensitivity(
    influence: DriftInfluence, estimate: float, norm: float, drift: float
) -> DriftSensitivity:
    """Of an estimate, and of its root: by how much the error can be less, or more."""
    too_high, too_low = influence.change(drift)
    found = max(estimate, 0.0)
    down = found ** (1 / norm) - max(found - too_high, 0.0) ** (1 / norm)
    up = (found + too_low) ** (1 / norm) - found ** (1 / norm)
    return DriftSensitivity(drift, too_high, too_low, max(down, up))


def break_even(influence: DriftInfluence, ends: tuple[float, float], limit: float) -> float:
    """The least drift at which an interval contains a limit; 0 if it does, inf if none up to 1."""

    def contains(drift: float) -> bool:
        low, high = widen(ends, influence, drift)
        return bool(max(low, 0.0) <= limit <= high)

    low, high = 0.0, 1.0
    if contains(low):
        return 0.0
    if not contains(high):
        return float("inf")
    for _ in range(STEPS):
        middle = (low + high) / 2
        low, high = (low, middle) if contains(middle) else (middle, high)
    return high
