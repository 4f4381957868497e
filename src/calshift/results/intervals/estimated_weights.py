"""Interval of an error whose class weights are estimated. (docs/mathematics.md 8)

Fields may be arrays, one entry for each class.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from calshift._core.frozen import Frozen
from calshift.results.intervals.squared_l2 import SquaredErrorDistribution


@dataclass(frozen=True, eq=False)
class EstimatedWeightsDistribution(Frozen):
    """Distribution of an error by the noise of the residuals and by that of the class weights.

    The error is far from linear in the weights: it may change little to first order and much to
    second. So the weights' part is not linearised, but taken from draws of the weights. Distances
    of both parts from the estimate, to either side, are added in squares (Zou and Donner, 2008).

    Attributes
    ----------
    whole : by a linear approximation of both parts; its plug-in less its bias is the estimate
    residuals : with known weights
    changes : (draws, ...) of the error by draws of the weights, sorted
    leading : part of the mean change that is due to the direction in which weights matter most
    """

    whole: SquaredErrorDistribution
    residuals: SquaredErrorDistribution
    changes: np.ndarray
    leading: np.ndarray

    @staticmethod
    def of(
        whole: SquaredErrorDistribution, residual_bias: np.ndarray, changes: np.ndarray
    ) -> EstimatedWeightsDistribution:
        """From changes in antithetic pairs; what these do not explain is noise of the residuals.

        The mean of a pair has the second-order part of the change alone: of noise in r equally
        important directions, its mean is r times that of one, and its variance 2 / r of its square.
        """
        half = len(changes) // 2
        even = (changes[:half] + changes[half:]) / 2
        mean, variance = even.mean(axis=0), even.var(axis=0)
        leading = np.divide(variance, 2 * mean, out=np.zeros_like(mean), where=mean > 0)
        residuals = SquaredErrorDistribution(
            whole.plug, residual_bias, np.maximum(whole.first - changes.var(axis=0), 0.0),
            np.maximum(whole.second - variance / 2, 0.0),
        )  # fmt: skip
        ordered = np.sort(changes, axis=0)
        return EstimatedWeightsDistribution(
            whole, residuals, ordered, np.minimum(leading, np.maximum(mean, 0.0))
        )

    def scaled(self, factor: float) -> EstimatedWeightsDistribution:
        """The distribution of a multiple."""
        return EstimatedWeightsDistribution(
            self.whole.scaled(factor), self.residuals.scaled(factor), self.changes * factor,
            self.leading * factor,
        )  # fmt: skip

    def inflated(self, factor: float) -> EstimatedWeightsDistribution:
        """With the standard error multiplied by a factor."""
        mean = self.changes.mean(axis=0)
        return EstimatedWeightsDistribution(
            self.whole.inflated(factor), self.residuals.inflated(factor),
            mean + factor * (self.changes - mean), self.leading,
        )  # fmt: skip

    @property
    def plug(self) -> np.ndarray:
        """The plug-in error."""
        return np.asarray(self.whole.plug)

    @property
    def bias(self) -> np.ndarray:
        """Its expected excess."""
        return np.asarray(self.whole.bias)

    @property
    def standard_error(self) -> np.ndarray:
        """Not less than by the linear approximation."""
        parts = self.residuals.standard_error**2 + self.changes.var(axis=0)
        return np.asarray(np.maximum(self.whole.standard_error, np.sqrt(parts)))

    def interval(self, level: float) -> tuple[np.ndarray, np.ndarray]:
        """Lower and upper ends.

        Draws around the estimate exceed it by the bias that was subtracted. In one direction that
        is what its square can be; of many directions the mean is known, and is subtracted again.
        """
        tails = (1 - level) / 2, (1 + level) / 2
        known = np.maximum(self.changes.mean(axis=0), 0.0) - self.leading
        least, most = np.quantile(self.changes, tails, axis=0) - known
        low, high = self.residuals.interval(level)
        here = self.residuals.plug - self.residuals.bias
        estimate = self.whole.plug - self.whole.bias
        below = np.hypot(np.maximum(here - low, 0.0), np.minimum(least, 0.0))
        above = np.hypot(np.maximum(high - here, 0.0), np.maximum(most, 0.0))
        return np.maximum(estimate - below, 0.0), np.maximum(estimate + above, 0.0)
