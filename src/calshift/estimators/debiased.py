"""The plug-in and debiased errors of events, from their fitted residuals. (docs/mathematics.md 4)

    plug-in:   sum_b P_b |g_b|^p
    debiased:  sum_b P_b (g_b^2 - s_b^2)  for p = 2, and the folded normal inverted for other p
    s_b^2 = X_b' (S + C) X_b - 2 g_b X_b' V sum_i X_i (l_i - l_b) w_i e_i / (1 - l_i)

S is the covariance of the fit's coefficients: the noise of the residuals, and of estimated weights.
C corrects its bias where few rows determine the fit, and l_b is the mean leverage near a score.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from calshift._core.linalg import apply_by_width, multiply_band, near_diagonal
from calshift.binning.statistics import ShiftStatistics
from calshift.estimators.folded_normal import unfold
from calshift.estimators.regression import ResidualRegression, fit_residuals
from calshift.estimators.statistics_sums import bin_sums_of, noise_sums_of


@dataclass(frozen=True)
class RegressionNoise:
    """Sampling noise of the regressions.

    Attributes
    ----------
    fits : whose noise it is
    covariance : S, (E, R, R), or (E, R) where it is diagonal
    correction : C, of the same shape if only residuals are noisy
    leverage_sums : (E, B) sum_i (l_i - l_b) w_i e_i / (1 - l_i), the bias of a ratio whose w
        depends on y
    bias : (E,) of |a|^2 by noise where it is not tr M (S + C); None if it is
    """

    fits: ResidualRegression
    covariance: np.ndarray
    correction: np.ndarray
    leverage_sums: np.ndarray
    bias: np.ndarray | None = None

    @cached_property
    def trace(self) -> np.ndarray:
        """(E,) the bias of |a|^2 by noise: tr M (S + C), or what replaces it."""
        if self.bias is not None:
            return self.bias
        own, more = (trace_in_moments(self.fits, one) for one in (self.covariance, self.correction))
        return np.asarray(own + more)

    @cached_property
    def ratio_bias(self) -> np.ndarray:
        """(E,) 2 a . sum_i (l_i - l_b) o_i / (1 - l_i)."""
        return np.asarray((self.fits.gradient * self.leverage_sums).sum(axis=1))

    @cached_property
    def squares(self) -> np.ndarray:
        """(E,) |S|^2 = tr(M S M S)."""
        main, beside = self.fits.moments
        if self.covariance.ndim == 2:
            return np.asarray(((main * self.covariance) ** 2).sum(axis=1))

        def trace(*one: np.ndarray) -> np.ndarray:
            product = multiply_band(*one)
            return np.asarray(np.einsum("ers,esr->e", product, product))

        return apply_by_width(self.fits.basis.groups, trace, main, beside, self.covariance)


def trace_in_moments(fits: ResidualRegression, matrices: np.ndarray) -> np.ndarray:
    """(E,) tr M of symmetric matrices (E, R, R), or of diagonals (E, R)."""
    (main, beside), (own, above) = fits.moments, near_diagonal(matrices)
    return np.asarray((main * own + 2 * (beside * above)).sum(axis=1))


def regression_noise(fits: ResidualRegression, sums: np.ndarray) -> RegressionNoise:
    """From sums over rows (4, E, B): w^2 e^2 / (1 - l), l w e / (1 - l), the first times l, w^2.

    A residual contains the noise of the fit without its row, X' S X, and 1 - l of its own; and rows
    with a leverage unlike that of their neighbours pull the fit towards themselves.
    """
    noise, pull, leveraged, square = sums
    covariance, basis = fits.covariance(noise), fits.basis
    fitted_noise = square * basis.quadratic(*near_diagonal(covariance))
    mass, squared_mass = basis.project(fits.sums.mass), basis.project(square)
    weight = np.divide(squared_mass, mass, out=np.zeros(mass.shape), where=mass > 0)
    leverage = fits.leverage * basis.evaluate(weight)
    left_out = fits.sums.residual - fits.value * fits.sums.mass + pull  # of w e / (1 - l)
    correction = fits.covariance(leveraged - fitted_noise)
    return RegressionNoise(fits, covariance, correction, pull - leverage * left_out)


def from_statistics(
    statistics: ShiftStatistics, class_weights: np.ndarray, norm: float, debias: bool
) -> tuple[np.ndarray, int]:
    """Error of every event held, weights known, and how many bins or knots were joined."""
    w = class_weights / class_weights.max()
    fits = fit_residuals(bin_sums_of(statistics, w), statistics.edges)
    if not debias:
        return errors(fits, norm, None), fits.merged
    noise = regression_noise(fits, noise_sums_of(statistics, w, fits))
    return errors(fits, norm, noise), fits.merged


def errors(fits: ResidualRegression, norm: float, noise: RegressionNoise | None) -> np.ndarray:
    """(E,) sum_b P_b |g_b|^p, debiased if the noise in g_b is given.

    It is from -1 to 1: no error is larger, nor has a larger correction a meaning.
    """
    if noise is not None and norm == 2:
        return np.asarray(np.clip(fits.plugin + noise.ratio_bias - noise.trace, -1.0, 1.0))
    each = np.abs(fits.value) ** norm if noise is None else unfold_errors(fits, norm, noise)
    return np.asarray(np.clip((fits.sums.share * each).sum(axis=1), -1.0, 1.0))


def unfold_errors(fits: ResidualRegression, norm: float, noise: RegressionNoise) -> np.ndarray:
    """(E, B) debiased |d|^p of each bin, d the true difference of frequency and score."""
    both = (near_diagonal(one) for one in (noise.covariance, noise.correction))
    variance, more = (fits.basis.quadratic(*one) for one in both)
    variance += more
    bias = fits.basis.evaluate(fits.times(fits.basis.project(noise.leverage_sums)))
    error = unfold(fits.value, variance - 2 * fits.value * bias, norm)
    score = fits.mean_score
    if norm != 2 and score is not None:  # hats can exceed what a frequency in [0, 1] allows
        largest = np.where(fits.value > 0, 1 - score, score)
        error = np.minimum(error, np.maximum(largest, 0.0) ** norm)
    return np.asarray(error)
