"""Interval of the absolute (L1) error, the ECE. (docs/mathematics.md 8)

Fields may be arrays, one entry for each class.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from calshift._core.frozen import Frozen
from calshift.results.intervals.estimated_weights import EstimatedWeightsDistribution
from calshift.results.intervals.squared_l2 import SquaredErrorDistribution


@dataclass(frozen=True, eq=False)
class AbsoluteErrorDistribution(Frozen):
    """Distribution of mean |g|, between two bounds.

    A mean of u s, with |s| <= 1 from the other rows' fit, cannot exceed mean |g| in expectation: it
    bounds the error from below. From above, any remaining bias of the bias-corrected estimate is
    upwards, and no mean of |g| exceeds the root of the mean of g^2.

    Attributes
    ----------
    estimate : mean |d|, bias-corrected
    least : mean of u s, where s is the fit in standard errors clipped to [-1, 1]
    variance : of either
    square : the distribution of mean g^2
    """

    estimate: Any
    least: Any
    variance: Any
    square: SquaredErrorDistribution | EstimatedWeightsDistribution

    @property
    def standard_error(self) -> np.ndarray:
        """Of the estimate."""
        return np.asarray(np.sqrt(self.variance))

    def scaled(self, factor: float) -> AbsoluteErrorDistribution:
        """The distribution of a multiple."""
        square = self.square.scaled(factor**2)
        return AbsoluteErrorDistribution(
            self.estimate * factor, self.least * factor, self.variance * factor**2, square
        )

    def inflated(self, factor: float) -> AbsoluteErrorDistribution:
        """With the standard error multiplied by a factor."""
        square = self.square.inflated(factor)
        return AbsoluteErrorDistribution(
            self.estimate, self.least, self.variance * factor**2, square
        )

    def interval(self, level: float) -> tuple[np.ndarray, np.ndarray]:
        """From below the lower bound to above the upper one; from 0 if g = 0 is not rejected.

        It contains the estimate, and the root of the squared error where that is less: the lower
        bound is a mean over the source, and may exceed both by chance.
        """
        from scipy.special import ndtri

        reach = ndtri((1 + level) / 2) * self.standard_error
        low, high = self.square.interval(level)
        root = np.sqrt(np.maximum(self.square.plug - self.square.bias, 0.0))
        bound = np.minimum(self.least - reach, np.minimum(self.estimate, root))
        return (
            np.where(low > 0, np.maximum(bound, 0.0), 0.0),
            np.minimum(self.estimate + reach, np.sqrt(high)),
        )
