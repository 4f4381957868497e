"""The plug-in and debiased estimators, from sums over bins. (docs/mathematics.md 4)

Both work on source residuals u = event - score, weighted by w_y, and regress them on a basis X:
bin indicators, or hats on fine bins. Per event, with A = sum w X X', M = mean over the target of
X X', g = X' alpha the fitted residual and P_b the target's share of bin b:

    alpha = A^-1 sum w X u        e = u - g        l = w X' A^-1 X
    s_b^2 = X_b' { sum [ o o' - 2 l alpha o' ] / (1 - l) } X_b,     o = A^-1 X w e
    plug-in:   sum_b P_b |g_b|^p
    debiased:  sum_b P_b (g_b^2 - s_b^2)  for p = 2, and the folded normal inverted for other p
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np

from calshift.basis import hats, knots, planned_hats, positions
from calshift.binning import joined
from calshift.folded import unfolded
from calshift.statistics import ShiftStatistics

EIGENVALUE_FLOOR = 0.5  # of A relative to M: where the source is this thin, shrink to no error
SMALLEST_GAP = 1e-9  # 1 - l, against rounding when one row carries its bin alone


@dataclass(frozen=True)
class Cells:
    """One event's sums of rows, residuals and squared residuals in each occupied cell."""

    bin: np.ndarray  # (C,), as are the next four; a cell is a bin and a stratum
    weight: np.ndarray
    rows: np.ndarray
    residual: np.ndarray
    squared: np.ndarray
    target_count: np.ndarray  # (B,)
    target_score: np.ndarray

    def by_bin(self, values: np.ndarray) -> np.ndarray:
        """Values of the cells summed in each bin."""
        return np.bincount(self.bin, values, len(self.target_count))

    def usable_rows(self) -> np.ndarray:
        """Source rows of positive weight in each bin."""
        return self.by_bin(self.rows * (self.weight > 0))

    def grouped(self, starts: np.ndarray) -> Cells:
        """The same sums on joined bins."""
        return replace(
            self,
            bin=np.searchsorted(starts, self.bin, side="right") - 1,
            target_count=np.add.reduceat(self.target_count, starts),
            target_score=np.add.reduceat(self.target_score, starts),
        )


@dataclass(frozen=True)
class Fit:
    """Residuals fitted on a basis: design (B, L) and A^-1, or None and 1 / W_b for plain bins."""

    design: np.ndarray | None
    inverse: np.ndarray
    value: np.ndarray  # g_b
    leverage: np.ndarray  # X_b' A^-1 X_b
    score: np.ndarray | None = None  # the target's mean score in each fine bin

    def variance(self, square: np.ndarray, cross: np.ndarray) -> np.ndarray:
        """s_b^2, from each bin's sums of w^2 e^2 / (1 - l) and of w l e / (1 - l)."""
        if self.design is None:
            return np.asarray(square * self.inverse**2 - 2 * self.value * cross * self.inverse)
        spread = self.design @ self.inverse
        noise = spread.T @ (square[:, None] * spread)
        lean = self.design @ (spread.T @ cross)
        quadratic = np.einsum("bi,ij,bj->b", self.design, noise, self.design)
        return np.asarray(quadratic - 2 * self.value * lean)


def from_statistics(
    statistics: ShiftStatistics, class_weights: np.ndarray, norm: float, debias: bool
) -> tuple[np.ndarray, int]:
    """Debiased or plug-in error of every event held, and how many bins or knots were joined."""
    values, thin = np.empty(len(statistics.edges)), 0
    class_weights = class_weights / class_weights.max()  # their scale does not matter
    for k in range(len(statistics.edges)):
        cells = event_cells(statistics, k, class_weights)
        if statistics.edges.smooth:
            fit, dropped = fit_hats(cells, np.concatenate([[0.0], statistics.edges[k]]))
        else:
            starts = joined(cells.target_count, cells.usable_rows())
            dropped = len(cells.target_count) - len(starts)
            cells = cells.grouped(starts)
            fit = fit_bins(cells)
        values[k] = event_error(cells, fit, norm, debias)
        thin += dropped
    return values, thin


def event_cells(statistics: ShiftStatistics, k: int, class_weights: np.ndarray) -> Cells:
    """Sums of u = outcome - score over the cells of the k-th event held."""
    events, bins = statistics.edges.events, len(statistics.edges[k]) + 1
    outcome = events.stratum_outcome(statistics.edges.which[k])
    b, stratum = np.nonzero(statistics.source[0, k, :bins])
    count, score, square = statistics.source[:, k, b, stratum]
    true = outcome[stratum]
    return Cells(
        bin=b,
        weight=class_weights[events.stratum_label][stratum],
        rows=count,
        residual=true * count - score,
        squared=true * (count - 2 * score) + square,
        target_count=statistics.target[0, k, :bins],
        target_score=statistics.target[1, k, :bins],
    )


def fit_bins(cells: Cells) -> Fit:
    """alpha_b = sum w u / W_b."""
    inverse = 1 / cells.by_bin(cells.rows * cells.weight)
    return Fit(None, inverse, cells.by_bin(cells.residual * cells.weight) * inverse, inverse)


def fit_hats(cells: Cells, lower: np.ndarray) -> tuple[Fit, int]:
    """Weighted least squares on hats; also how many of the planned hats had too few rows."""
    source_count, target_count = cells.by_bin(cells.rows), cells.target_count
    mean = np.where(target_count > 0, cells.target_score / np.maximum(target_count, 1e-300), lower)
    t = positions(target_count, mean)
    planned = planned_hats(source_count.sum(), target_count.sum())
    chosen = knots(t, source_count, target_count, planned)
    design = hats(t, chosen)
    inverse = floored_inverse(design, cells.by_bin(cells.rows * cells.weight), target_count)
    value = design @ (inverse @ (design.T @ cells.by_bin(cells.residual * cells.weight)))
    leverage = np.einsum("bi,ij,bj->b", design, inverse, design)
    return Fit(design, inverse, value, leverage, mean), max(min(planned, len(t)) - len(chosen), 0)


def floored_inverse(design: np.ndarray, mass: np.ndarray, target_count: np.ndarray) -> np.ndarray:
    """A^-1 with the eigenvalues of A / sum w relative to M floored.

    Under label shift both are the same matrix in the limit; where the source has far less mass
    than the target, A^-1 would blow up on a handful of rows.
    """
    M = design.T @ (target_count[:, None] * design) / target_count.sum()
    A = design.T @ (mass[:, None] * design) / mass.sum()
    size, axes = np.linalg.eigh(M)
    seen = size > 1e-12 * size[-1]
    whiten = axes[:, seen] / np.sqrt(size[seen])
    ratio, turn = np.linalg.eigh(whiten.T @ A @ whiten)
    whiten = whiten @ turn
    return np.asarray((whiten / np.maximum(ratio, EIGENVALUE_FLOOR)) @ whiten.T / mass.sum())


def event_error(cells: Cells, fit: Fit, norm: float, debias: bool) -> float:
    """sum_b P_b |g_b|^p, freed of the noise in g_b if asked."""
    share = cells.target_count / cells.target_count.sum()
    if not debias:
        return float(share @ np.abs(fit.value) ** norm)
    error = unfolded(fit.value, noise(cells, fit), norm)
    if norm != 2 and fit.score is not None:  # hats can overshoot what a frequency in [0, 1] allows
        room = np.where(fit.value > 0, 1 - fit.score, fit.score)
        error = np.minimum(error, np.maximum(room, 0.0) ** norm)
    return float(share @ error)


def noise(cells: Cells, fit: Fit) -> np.ndarray:
    """s_b^2, the sampling variance of g_b (and the bias of a ratio whose w depends on y)."""
    g, height = fit.value[cells.bin], fit.leverage[cells.bin]
    first = cells.residual - g * cells.rows
    second = cells.squared - 2 * g * cells.residual + g**2 * cells.rows
    unit = np.minimum(cells.rows, 1.0)  # frequency weights below 1 make less than one observation
    leverage = height * cells.weight * unit
    scale = cells.weight**2 * unit / np.maximum(1 - leverage, SMALLEST_GAP)
    return fit.variance(cells.by_bin(scale * second), cells.by_bin(scale * first * height))


def reliability(
    parts: Iterable[ShiftStatistics], class_weights: np.ndarray, least: float
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Mean score, frequency, share and first bin of each group of bins, pooled over all events.

    The frequency of a bin is the target's mean score plus the source's weighted mean residual.
    """
    sums: np.ndarray | int = 0
    for statistics in parts:
        for k in range(len(statistics.edges)):
            cells = event_cells(statistics, k, class_weights)
            mass, residual = cells.rows * cells.weight, cells.residual * cells.weight
            source = [cells.usable_rows(), cells.by_bin(mass), cells.by_bin(residual)]
            sums = sums + np.stack([*source, cells.target_count, cells.target_score])
    assert isinstance(sums, np.ndarray)
    starts = joined(sums[3], sums[0], least=least)
    _, mass, residual, count, score = np.add.reduceat(sums, starts, axis=1)
    mean = score / count
    return mean, np.clip(mean + residual / mass, 0.0, 1.0), count / count.sum(), starts
