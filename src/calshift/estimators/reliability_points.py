"""Points of a reliability curve: mean score and frequency in groups of bins."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from calshift._core.addable import Tally
from calshift.binning.edges import merge_sparse_bins
from calshift.binning.statistics import ShiftStatistics
from calshift.estimators.statistics_sums import StatisticsAsRows, event_cells


@dataclass(frozen=True)
class Points:
    """Sums in groups of bins, pooled over events.

    Attributes
    ----------
    starts : (B,) first bin of each group
    score, count : (B,) mean score and rows of the target
    mass, residual : (B,) sum of weights, and weighted mean residual of the source
    excess : (B, K) sum of (residual - that mean), by label
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
    sums: Any = sum(
        _point_sums(event_cells(statistics, k, class_weights), len(class_weights))
        for statistics in parts
        for k in range(len(statistics.edges))
    )
    starts = merge_sparse_bins(sums["count"], sums["usable"], least=least)
    mass, residual, count, score, by_label, rows = (
        np.add.reduceat(sums[name], starts, axis=0)
        for name in ("mass", "residual", "count", "score", "residual_by_label", "rows_by_label")
    )
    mean = residual / mass
    return Points(starts, score / count, count, mass, mean, by_label - mean[:, None] * rows)


def _point_sums(cells: StatisticsAsRows, labels: int) -> Tally:
    """Sums in each bin of one event."""
    return Tally(
        usable=cells.usable_rows(),
        mass=cells.by_bin(cells.rows * cells.weight),
        residual=cells.by_bin(cells.residual * cells.weight),
        count=cells.target_count,
        score=cells.target_score,
        residual_by_label=cells.by_bin_and_label(cells.residual, labels),
        rows_by_label=cells.by_bin_and_label(cells.rows, labels),
    )
