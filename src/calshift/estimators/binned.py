"""The plug-in and debiased errors of an event, from its fitted residuals. (docs/mathematics.md 4)

    plug-in:   sum_b P_b |g_b|^p
    debiased:  sum_b P_b (g_b^2 - s_b^2)  for p = 2, and the folded normal inverted for other p
    s_b^2 = H_b' S H_b - 2 g_b H_b' sum_i l_i o_i / (1 - l_i)

S is the covariance of the fit's coordinates: the noise of the residuals, and of estimated weights.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from calshift.binning import joined
from calshift.engines import Sums
from calshift.fits import Fit, event_cells, fitted
from calshift.folded import unfolded
from calshift.statistics import ShiftStatistics


def from_statistics(
    statistics: ShiftStatistics, class_weights: np.ndarray, norm: float, debias: bool
) -> tuple[np.ndarray, int]:
    """Error of every event held, weights known, and how many bins or knots were joined."""
    fits = [fitted(statistics, k, class_weights) for k in range(len(statistics.edges))]
    return np.array([event_error(fit, norm, debias) for fit in fits]), sum(f.thin for f in fits)


def event_error(
    fit: Fit, norm: float, debias: bool, weights_noise: np.ndarray | None = None
) -> float:
    """sum_b P_b |g_b|^p, freed of the noise in g_b if asked.

    ``weights_noise`` is what the estimation of the weights adds to the covariance S.
    """
    if not debias:
        return float(fit.cells.share @ np.abs(fit.value) ** norm)
    return float(fit.cells.share @ unfolded_gap(fit, norm, weights_noise))


def unfolded_gap(fit: Fit, norm: float, weights_noise: np.ndarray | None = None) -> np.ndarray:
    """(B,) |d|^p of each bin, the p-th power of the true gap."""
    noise = fit.noise if weights_noise is None else fit.noise + weights_noise
    variance = fit.basis.quadratic(noise) - 2 * fit.value * fit.basis.curve(fit.lean)
    error = unfolded(fit.value, variance, norm)
    if norm != 2 and fit.score is not None:  # hats can overshoot what a frequency in [0, 1] allows
        room = np.where(fit.value > 0, 1 - fit.score, fit.score)
        error = np.minimum(error, np.maximum(room, 0.0) ** norm)
    return error


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
    starts = joined(count, usable, least=least)
    mass, residual, count, score, by_label, rows = (
        np.add.reduceat(one, starts, axis=0)
        for one in (mass, residual, count, score, by_label, rows)
    )
    mean = residual / mass
    return Points(starts, score / count, count, mass, mean, by_label - mean[:, None] * rows)
