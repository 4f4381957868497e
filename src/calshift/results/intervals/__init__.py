"""Sampling distributions of calibration errors: standard errors and intervals."""

from __future__ import annotations

from typing import Protocol

import numpy as np


class SamplingDistribution(Protocol):
    """Sampling distribution of an error, or of an array of errors."""

    @property
    def standard_error(self) -> np.ndarray:
        """Of the estimate."""

    def scaled(self, factor: float) -> SamplingDistribution:
        """That of a multiple of the error."""

    def inflated(self, factor: float) -> SamplingDistribution:
        """With the standard error multiplied by a factor."""

    def interval(self, level: float) -> tuple[np.ndarray, np.ndarray]:
        """Lower and upper ends, at least 0."""
