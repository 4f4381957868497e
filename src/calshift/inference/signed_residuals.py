"""Mean |g| as a weighted mean of u sign(g), for the interval of norm 1. (docs/mathematics.md 8)"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from calshift._core.linalg import near_diagonal
from calshift.estimators.regression import ROUNDING, ResidualRegression, sign


@dataclass(frozen=True)
class SignedResiduals:
    """Mean |g| as a weighted mean of u sign(g) over the source.

    Attributes
    ----------
    mean : (E,) sum w u sign(g) / sum w
    mass : sum w
    by_weight : (S, E) derivative of the mean in the class weights
    noise : (E, B) standard error of g, within which a sign counts in part
    gap, mean_gap : (E, B) debiased |d|, and (E,) its mean over the target
    """

    mean: np.ndarray
    mass: float
    by_weight: np.ndarray
    noise: np.ndarray
    gap: np.ndarray = field(default_factory=lambda: np.zeros(0))
    mean_gap: np.ndarray = field(default_factory=lambda: np.zeros(0))

    @staticmethod
    def of(
        fits: ResidualRegression, signed: np.ndarray | None, counts: np.ndarray, part: float
    ) -> SignedResiduals:
        """From the regressions; ``signed`` (E, S) has u sign(g) by label for estimated weights.

        ``part`` is what a row counts in sums of squares: less than 1 if it stands for less.
        """
        mass = float(fits.sums.mass[0].sum())
        mean = (fits.sums.residual * sign(fits.value)).sum(axis=1) / mass
        covariance = fits.covariance(fits.sums.expected_noise)
        variance = fits.basis.quadratic(*near_diagonal(covariance))
        noise = np.sqrt(np.maximum(variance * part, ROUNDING**2))
        by_weight = np.zeros((0, len(mean)))
        if signed is not None:
            by_weight = (signed - np.outer(mean, counts)).T / mass
        return SignedResiduals(mean, mass, by_weight, noise)

    def with_gaps(self, fits: ResidualRegression, gaps: np.ndarray) -> SignedResiduals:
        """The same with debiased |d| of each bin."""
        return replace(self, gap=gaps, mean_gap=(fits.sums.share * gaps).sum(axis=1))
