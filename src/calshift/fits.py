"""Source residuals regressed on a basis of the score, from sums over bins. (docs/mathematics.md 4)

Residuals u = event - score, weighted by w, are projected on functions H_r of the score that are
orthonormal on the target: hats turned so that A = sum w H H' is diagonal, or scaled indicators of
bins. With F = H A^-1 (A floored where the source is thin),

    a = sum_i w_i u_i F_i        g = H a: the fitted residual        sum_b P_b g_b^2 = |a|^2
    e = u - g                    l = w F . H: the leverage of a row
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from calshift.basis import hats, knots, planned_hats, positions
from calshift.binning import joined
from calshift.statistics import ShiftStatistics

EIGENVALUE_FLOOR = 0.5  # of A relative to M: where the source is this thin, shrink to no error
SMALLEST_GAP = 0.1  # 1 - l: a row that carries a bin alone says nothing of its noise
FEW_ROWS, PARTS = 5.0, 4  # rows below which a part of the scores is thin, parts of an event


@dataclass(frozen=True)
class Cells:
    """One event's sums of rows, residuals and squared residuals in each occupied cell."""

    bin: np.ndarray  # (C,), as are the next six; a cell is a bin and a stratum
    label: np.ndarray
    weight: np.ndarray
    rows: np.ndarray
    unit: np.ndarray  # what a row is of an observation: 1, or less if frequency weights are below 1
    residual: np.ndarray
    squared: np.ndarray
    target_count: np.ndarray  # (B,)
    target_score: np.ndarray

    @property
    def bins(self) -> int:
        """B, how many bins there are."""
        return len(self.target_count)

    @property
    def share(self) -> np.ndarray:
        """P_b, the target's share of each bin."""
        return np.asarray(self.target_count / self.target_count.sum())

    def by_bin(self, values: np.ndarray) -> np.ndarray:
        """Values of the cells summed in each bin."""
        return np.bincount(self.bin, values, self.bins)

    def by_bin_and_label(self, values: np.ndarray, labels: int) -> np.ndarray:
        """(B, K) values of the cells summed in each bin, label by label."""
        flat = np.bincount(self.bin * labels + self.label, values, self.bins * labels)
        return flat.reshape(self.bins, labels)

    def usable_rows(self) -> np.ndarray:
        """Source rows of positive weight in each bin."""
        return self.by_bin(self.rows * (self.weight > 0))


@dataclass(frozen=True)
class Indicators:
    """H and A^-1 of plain bins, in groups of joined ones: H = 1 / sqrt P, A^-1 = P / W."""

    starts: np.ndarray
    height: np.ndarray  # (R,) H in its own group
    shrink: np.ndarray  # (R,) A^-1
    bins: int

    @property
    def group(self) -> np.ndarray:
        """(B,) the group of each bin."""
        return np.repeat(np.arange(len(self.starts)), np.diff(np.append(self.starts, self.bins)))

    def gathered(self, values: np.ndarray) -> np.ndarray:
        """F' values: (B, ...) -> (R, ...)."""
        sums = np.add.reduceat(values, self.starts, axis=0)
        return np.asarray((sums.T * self.height * self.shrink).T)

    def spread(self, coordinates: np.ndarray) -> np.ndarray:
        """F coordinates: (R, ...) -> (B, ...)."""
        return np.asarray((coordinates.T * self.height * self.shrink).T[self.group])

    def curve(self, coordinates: np.ndarray) -> np.ndarray:
        """H coordinates: (R,) -> (B,)."""
        return np.asarray((coordinates * self.height)[self.group])

    def quadratic(self, matrix: np.ndarray) -> np.ndarray:
        """H_b' matrix H_b of every bin: (R, R) -> (B,)."""
        return np.asarray((np.diag(matrix) * self.height**2)[self.group])

    def squared(self, mass: np.ndarray) -> np.ndarray:
        """F' diag(mass) F: (B,) -> (R, R)."""
        size = (self.height * self.shrink) ** 2
        return np.diag(np.add.reduceat(mass, self.starts) * size)


@dataclass(frozen=True)
class Hats:
    """H and A^-1 of the smooth basis."""

    height: np.ndarray  # (B, R) H
    shrink: np.ndarray  # (R,) A^-1

    @cached_property
    def pull(self) -> np.ndarray:
        """F, (B, R)."""
        return np.asarray(self.height * self.shrink)

    def gathered(self, values: np.ndarray) -> np.ndarray:
        """F' values: (B, ...) -> (R, ...)."""
        return np.asarray(self.pull.T @ values)

    def spread(self, coordinates: np.ndarray) -> np.ndarray:
        """F coordinates: (R, ...) -> (B, ...)."""
        return np.asarray(self.pull @ coordinates)

    def curve(self, coordinates: np.ndarray) -> np.ndarray:
        """H coordinates: (R,) -> (B,)."""
        return np.asarray(self.height @ coordinates)

    def quadratic(self, matrix: np.ndarray) -> np.ndarray:
        """H_b' matrix H_b of every bin: (R, R) -> (B,)."""
        return np.asarray(np.einsum("br,br->b", self.height @ matrix, self.height))

    def squared(self, mass: np.ndarray) -> np.ndarray:
        """F' diag(mass) F: (B,) -> (R, R)."""
        return np.asarray(self.pull.T @ (mass[:, None] * self.pull))


@dataclass(frozen=True)
class Fit:
    """One event's fitted residuals: coordinates a, values g, and l / w of a row, bin by bin."""

    cells: Cells
    basis: Indicators | Hats
    coordinates: np.ndarray
    value: np.ndarray
    leverage: np.ndarray
    thin: int  # bins or planned hats that had too few rows of their own
    score: np.ndarray | None = None  # the target's mean score in each fine bin

    @cached_property
    def excess(self) -> np.ndarray:
        """(C,) sum of e in each cell."""
        return np.asarray(self.cells.residual - self.value[self.cells.bin] * self.cells.rows)

    @cached_property
    def slack(self) -> np.ndarray:
        """(C,) 1 - l; a frequency weight below 1 makes less than one observation."""
        leverage = self.leverage[self.cells.bin] * self.cells.weight * self.cells.unit
        return np.asarray(np.maximum(1 - leverage, SMALLEST_GAP))

    @cached_property
    def noise(self) -> np.ndarray:
        """(R, R) sum_i o_i o_i' / (1 - l_i), o = F w e: the sampling variance of a, w known."""
        cells, g = self.cells, self.value[self.cells.bin]
        squared = cells.squared - 2 * g * cells.residual + g**2 * cells.rows
        mass = cells.by_bin(squared * cells.weight**2 * cells.unit / self.slack)
        return self.basis.squared(mass)

    @cached_property
    def lean(self) -> np.ndarray:
        """(R,) sum_i l_i o_i / (1 - l_i): the bias of a ratio whose w depends on y."""
        cells = self.cells
        tilt = self.excess * cells.weight**2 * cells.unit * self.leverage[cells.bin] / self.slack
        return self.basis.gathered(cells.by_bin(tilt))


def fitted(statistics: ShiftStatistics, k: int, class_weights: np.ndarray) -> Fit:
    """The fit of the k-th event held; the scale of the weights does not matter."""
    cells = event_cells(statistics, k, class_weights / class_weights.max())
    if statistics.edges.smooth:
        return fit_hats(cells, np.concatenate([[0.0], statistics.edges[k]]))
    return fit_bins(cells)


def resting_on_few(fits: list[Fit]) -> tuple[float, float]:
    """Shares of the plug-in error, and of the target's rows, where the source is worth few rows.

    The scores of each event are cut in parts that hold about as much of its error each, or of the
    target; what a part is worth is (sum w)^2 / sum w^2.
    """
    errors = [_thin_part(fit, fit.cells.share * fit.value**2) for fit in fits]
    rows = [_thin_part(fit, fit.cells.share) for fit in fits]
    (thin, total), (bare, whole) = np.sum(errors, axis=0), np.sum(rows, axis=0)
    return float(thin / total) if total > 0 else 0.0, float(bare / whole)


def _thin_part(fit: Fit, part: np.ndarray) -> tuple[float, float]:
    """What of the bins' parts lies in places with few source rows, and all of it."""
    upto = np.cumsum(part)
    group = np.minimum((upto - part / 2) / max(upto[-1], 1e-300) * PARTS, PARTS - 1).astype(int)
    where, weight = group[fit.cells.bin], fit.cells.weight
    mass = np.bincount(where, fit.cells.rows * weight, PARTS)
    square = np.bincount(where, fit.cells.rows * weight**2, PARTS)
    few = mass**2 < FEW_ROWS * square + (square == 0)
    return float(np.bincount(group, part, PARTS)[few].sum()), float(upto[-1])


def event_cells(statistics: ShiftStatistics, k: int, class_weights: np.ndarray) -> Cells:
    """Sums of u = outcome - score over the cells of the k-th event held."""
    events, bins = statistics.edges.events, len(statistics.edges[k]) + 1
    outcome = events.stratum_outcome(statistics.edges.which[k])
    b, stratum = np.nonzero(statistics.source[0, k, :bins])
    count, score, square = statistics.source[:, k, b, stratum]
    true, label = outcome[stratum], events.stratum_label[stratum]
    return Cells(
        bin=b,
        label=label,
        weight=class_weights[label],
        rows=count,
        unit=statistics.unit[stratum],
        residual=true * count - score,
        squared=true * (count - 2 * score) + square,
        target_count=statistics.target[0, k, :bins],
        target_score=statistics.target[1, k, :bins],
    )


def fit_bins(cells: Cells) -> Fit:
    """g_b = sum w u / W_b in each group of bins."""
    starts = joined(cells.target_count, cells.usable_rows())
    share = np.add.reduceat(cells.share, starts)
    mass = np.add.reduceat(cells.by_bin(cells.rows * cells.weight), starts)
    basis = Indicators(starts, 1 / np.sqrt(share), share / mass, cells.bins)
    return _fit(cells, basis, (1 / mass)[basis.group], cells.bins - len(starts))


def fit_hats(cells: Cells, lower: np.ndarray) -> Fit:
    """Weighted least squares on hats."""
    source_count, target_count = cells.by_bin(cells.rows), cells.target_count
    mean = np.where(target_count > 0, cells.target_score / np.maximum(target_count, 1e-300), lower)
    t = positions(target_count, mean)
    planned = planned_hats(source_count.sum())
    chosen = knots(t, source_count, target_count, planned)
    basis = turned(hats(t, chosen), cells.by_bin(cells.rows * cells.weight), cells.share)
    leverage = (basis.height * basis.pull).sum(axis=1)
    thin = max(min(planned, len(t)) - len(chosen), 0)
    return _fit(cells, basis, leverage, thin, mean)


def turned(design: np.ndarray, mass: np.ndarray, share: np.ndarray) -> Hats:
    """The design in coordinates in which M = 1 and A is diagonal, A floored relative to M.

    Under label shift A / sum w and M are the same matrix in the limit; where the source has far
    less mass than the target, A^-1 would blow up on a handful of rows.
    """
    M = design.T @ (share[:, None] * design)
    A = design.T @ (mass[:, None] * design) / mass.sum()
    size, axes = np.linalg.eigh(M)
    seen = size > 1e-12 * size[-1]
    whiten = axes[:, seen] / np.sqrt(size[seen])
    ratio, turn = np.linalg.eigh(whiten.T @ A @ whiten)
    shrink = 1 / np.maximum(ratio, EIGENVALUE_FLOOR) / mass.sum()
    return Hats(design @ (whiten @ turn), shrink)


def _fit(
    cells: Cells,
    basis: Indicators | Hats,
    leverage: np.ndarray,
    thin: int,
    score: np.ndarray | None = None,
) -> Fit:
    coordinates = basis.gathered(cells.by_bin(cells.residual * cells.weight))
    return Fit(cells, basis, coordinates, basis.curve(coordinates), leverage, thin, score)
