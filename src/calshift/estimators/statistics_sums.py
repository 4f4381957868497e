"""Sums by bin and label of `ShiftStatistics` used as rows, for weights that are given later."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from calshift.binning.statistics import ShiftStatistics
from calshift.estimators.regression import SMALLEST_GAP, BinSums, ResidualRegression


@dataclass(frozen=True)
class StatisticsAsRows:
    """One event's sums of rows, residuals and squared residuals in each occupied cell."""

    bin: np.ndarray  # (C,), as are the next six; a cell is a bin and a stratum
    label: np.ndarray
    weight: np.ndarray
    rows: np.ndarray
    unit: np.ndarray  # observations a row stands for: 1, or less if frequency weights are below 1
    residual: np.ndarray
    squared: np.ndarray
    target_count: np.ndarray  # (B,)
    target_score: np.ndarray

    @property
    def bins(self) -> int:
        """B, how many bins there are."""
        return len(self.target_count)

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


def event_cells(statistics: ShiftStatistics, k: int, class_weights: np.ndarray) -> StatisticsAsRows:
    """Sums of u = outcome - score over the cells of the k-th event held."""
    events, bins = statistics.edges.events, len(statistics.edges[k]) + 1
    outcome = events.stratum_outcome(statistics.edges.which[k])
    b, stratum = np.nonzero(statistics.source[0, k, :bins])
    count, score, square = statistics.source[:, k, b, stratum]
    true, label = outcome[stratum], events.stratum_label[stratum]
    return StatisticsAsRows(
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


def bin_sums_of(statistics: ShiftStatistics, class_weights: np.ndarray) -> BinSums:
    """The sums for the regressions, with these class weights."""
    edges = statistics.edges
    table = np.zeros((5, len(edges), edges.max_bins))
    for k in range(len(edges)):
        cells = event_cells(statistics, k, class_weights)
        mass, residual = cells.rows * cells.weight, cells.residual * cells.weight
        sums = [cells.rows, cells.rows * (cells.weight > 0), mass, mass * cells.weight, residual]
        table[:, k, : cells.bins] = [cells.by_bin(values) for values in sums]
    rows, usable, mass, square, residual = table
    count, score = statistics.target[:2]
    return BinSums(rows, usable, mass, square, residual, count, score)


def noise_sums_of(
    statistics: ShiftStatistics, class_weights: np.ndarray, fits: ResidualRegression
) -> np.ndarray:
    """(4, E, B) sums of w^2 e^2 / (1 - l), l w e / (1 - l), l w^2 e^2 / (1 - l), and w^2."""
    noise = np.zeros((4, *fits.value.shape))
    for k in range(noise.shape[1]):
        cells = event_cells(statistics, k, class_weights)
        g = fits.value[k, cells.bin]
        leverage = fits.leverage[k, cells.bin] * cells.weight * cells.unit
        gap = np.maximum(1 - leverage, SMALLEST_GAP)
        excess = cells.residual - g * cells.rows
        squared = cells.squared - 2 * g * cells.residual + g**2 * cells.rows
        squared_weight = cells.weight**2 * cells.unit
        squared *= squared_weight / gap
        each = (
            squared, excess * cells.weight * leverage / gap, squared * leverage,
            squared_weight * cells.rows,
        )  # fmt: skip
        noise[:, k, : cells.bins] = [cells.by_bin(values) for values in each]
    return noise
