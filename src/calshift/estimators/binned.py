"""The plug-in and debiased errors of events, from their fitted residuals. (docs/mathematics.md 4)

    plug-in:   sum_b P_b |g_b|^p
    debiased:  sum_b P_b (g_b^2 - s_b^2)  for p = 2, and the folded normal inverted for other p
    s_b^2 = X_b' S X_b - 2 g_b X_b' V sum_i X_i l_i w_i e_i / (1 - l_i)

S is the covariance of the fit's coefficients: the noise of the residuals, and of estimated weights.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from calshift._core.addable import Sums
from calshift.binning.edges import merge_sparse_bins
from calshift.binning.statistics import ShiftStatistics
from calshift.compiled import loops
from calshift.estimators.folded_normal import unfold
from calshift.estimators.regression import (
    ResidualRegression,
    banded_rows,
    fit_residuals,
    near_diagonal,
)
from calshift.estimators.statistics_sums import bin_sums_of, event_cells, second_sums


@dataclass(frozen=True)
class RegressionNoise:
    """What the noise of the rows does to the fits.

    Attributes
    ----------
    fits : whose noise it is
    covariance : S, (E, R, R), or (E, R) where it is diagonal
    tilt : (E, B) sum_i l_i w_i e_i / (1 - l_i), by which a ratio whose w depends on y is biased
    """

    fits: ResidualRegression
    covariance: np.ndarray
    tilt: np.ndarray

    @property
    def trace(self) -> np.ndarray:
        """(E,) tr M S."""
        return self._judged[0]

    @property
    def lean(self) -> np.ndarray:
        """(E,) 2 a . sum_i l_i o_i / (1 - l_i)."""
        return self._judged[1]

    @property
    def squares(self) -> np.ndarray:
        """(E,) |S|^2 = tr(M S M S)."""
        return self._judged[2]

    @cached_property
    def _judged(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        fits, S, compiled = self.fits, self.covariance, loops()
        if compiled is not None and S.ndim == 3:
            trace, lean, squares = np.empty((3, len(S)))
            noise = S, fits.layout.count, fits.slope, self.tilt
            compiled.judge_hats(*fits.moments, *noise, trace, lean, squares)
            return trace, lean, squares
        (main, beside), (own, next_) = fits.moments, near_diagonal(S)
        trace = (main * own + 2 * (beside * next_)).sum(axis=1)
        lean = (fits.slope * self.tilt).sum(axis=1)
        if S.ndim == 2:
            return trace, lean, ((main * S) ** 2).sum(axis=1)
        product = banded_rows(main, beside, S)
        return trace, lean, np.einsum("ers,esr->e", product, product)


def from_statistics(
    statistics: ShiftStatistics, class_weights: np.ndarray, norm: float, debias: bool
) -> tuple[np.ndarray, int]:
    """Error of every event held, weights known, and how many bins or knots were joined."""
    w = class_weights / class_weights.max()
    fits = fit_residuals(bin_sums_of(statistics, w), statistics.edges)
    if not debias:
        return errors(fits, norm, None), fits.merged
    noise, tilt = second_sums(statistics, w, fits)
    return errors(fits, norm, RegressionNoise(fits, fits.covariance(noise), tilt)), fits.merged


def errors(fits: ResidualRegression, norm: float, second: RegressionNoise | None) -> np.ndarray:
    """(E,) sum_b P_b |g_b|^p, freed of the noise in g_b if that is given."""
    if second is not None and norm == 2:
        return np.asarray(fits.plug + second.lean - second.trace)
    gaps = np.abs(fits.value) ** norm if second is None else unfold_errors(fits, norm, second)
    return np.asarray((fits.sums.share * gaps).sum(axis=1))


def unfold_errors(fits: ResidualRegression, norm: float, second: RegressionNoise) -> np.ndarray:
    """(E, B) |d|^p of each bin, the p-th power of the true gap."""
    variance = fits.layout.quadratic(*near_diagonal(second.covariance))
    lean = fits.layout.spread(fits.times(fits.layout.gathered(second.tilt)))
    error = unfold(fits.value, variance - 2 * fits.value * lean, norm)
    if norm != 2 and fits.room is not None:  # hats can overshoot what a frequency in [0, 1] allows
        room = np.where(fits.value > 0, 1 - fits.room, fits.room)
        error = np.minimum(error, np.maximum(room, 0.0) ** norm)
    return np.asarray(error)


@dataclass(frozen=True)
class Points:
    """Sums in groups of bins, pooled over events.

    Attributes
    ----------
    starts : (B,) first bin of each group
    score, count : (B,) mean score and rows of the target
    mass, residual : (B,) sum of weights, and weighted mean residual of the source
    excess : (B, K) sum of residuals less that mean, by label
    """

    starts: np.ndarray
    score: np.ndarray
    count: np.ndarray
    mass: np.ndarray
    residual: np.ndarray
    excess: np.ndarray


def reliability(
    parts: Iterable[ShiftStatistics], class_weights: np.ndarray, least: float
) -> Points:
    """Points of a reliability curve: the frequency is the mean score plus the mean residual."""
    sums, K = Sums((0.0,) * 7), len(class_weights)
    for statistics in parts:
        for k in range(len(statistics.edges)):
            cells = event_cells(statistics, k, class_weights)
            mass, residual = cells.rows * cells.weight, cells.residual * cells.weight
            labels = [cells.by_bin_and_label(v, K) for v in (cells.residual, cells.rows)]
            source = [cells.usable_rows(), cells.by_bin(mass), cells.by_bin(residual)]
            sums = sums + Sums((*source, cells.target_count, cells.target_score, *labels))
    usable, mass, residual, count, score, by_label, rows = sums
    starts = merge_sparse_bins(count, usable, least=least)
    mass, residual, count, score, by_label, rows = (
        np.add.reduceat(one, starts, axis=0)
        for one in (mass, residual, count, score, by_label, rows)
    )
    mean = residual / mass
    return Points(starts, score / count, count, mass, mean, by_label - mean[:, None] * rows)
