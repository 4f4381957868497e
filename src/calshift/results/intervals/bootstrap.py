"""Interval from bootstrap draws."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from calshift._core.frozen import Frozen


@dataclass(frozen=True, eq=False)
class BootstrapDistribution(Frozen):
    """Distribution of an estimate by the bootstrap.

    Resampling adds noise, and with it bias, to the draws: their deviations from their own mean are
    added to the estimate. Near an error of 0 the interval is too wide.

    Attributes
    ----------
    estimate : (), or (E,)
    draws : (draws,), or (draws, E); NaN where a draw has no estimate
    """

    estimate: Any
    draws: np.ndarray

    @property
    def standard_error(self) -> np.ndarray:
        """Standard deviation of the draws."""
        return np.asarray(np.nanstd(self.draws, axis=0, ddof=1))

    def scaled(self, factor: float) -> BootstrapDistribution:
        """The distribution of a multiple."""
        return BootstrapDistribution(self.estimate * factor, self.draws * factor)

    def inflated(self, factor: float) -> BootstrapDistribution:
        """With the standard error multiplied by a factor."""
        mean = np.nanmean(self.draws, axis=0)
        return BootstrapDistribution(self.estimate, mean + factor * (self.draws - mean))

    def interval(self, level: float) -> tuple[np.ndarray, np.ndarray]:
        """The estimate plus the quantiles of the draws around their mean."""
        tail = (1 - level) / 2
        ends = np.nanquantile(self.draws, [tail, 1 - tail], axis=0)
        around = ends - np.nanmean(self.draws, axis=0)
        low, high = np.maximum(self.estimate + around, 0.0)
        return low, high
