"""Effective rows behind a metric: that of a handful of rows is not certain because all agree."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from calshift._core.frozen import Frozen
from calshift.metrics.catalogue import Metric
from calshift.metrics.class_counts import ClassRatio, balanced_accuracy
from calshift.metrics.row_scores import CellScore

LEAST = 1.0


@dataclass(frozen=True, eq=False)
class RowsBehind(Frozen):
    """By metric, from the source's confusion matrix in rows and the class weights.

    Attributes
    ----------
    size : effective rows of all classes
    counts : (K, K) source rows by predicted and true class, or None
    weights : (K,) class weights
    alarms : effective rows whose predictions are counted: of the target, or of labelled rows
    """

    size: float
    counts: np.ndarray | None
    weights: np.ndarray
    alarms: float

    def of(self, metric: Metric) -> float:
        """Effective rows; infinity for a class prior, which is no share of source rows."""
        score, function = metric.score, metric.function
        if isinstance(score, CellScore) and not score.hits.any():
            return np.inf if score.actual.any() else self.alarms
        if self.counts is None:
            return self.size
        if metric.areas or metric.precision_of is not None:
            return self._of_areas(metric)
        if function is balanced_accuracy:
            return min((self._of(k, "recall") for k in self._seen), default=self.size)
        if isinstance(function, ClassRatio) and function.label is not None:
            return self._of(function.label, function.name)
        return self.size

    @property
    def _seen(self) -> list[int]:
        return [int(k) for k in np.flatnonzero(self._actual)]

    def _of(self, label: int, ratio: str) -> float:
        """Rows in the denominator of a ratio of a class."""
        assert self.counts is not None
        if ratio == "f1":
            return min(self._of(label, "recall"), self._of(label, "precision"))
        own = np.arange(len(self.counts)) == label
        if ratio in ("recall", "specificity"):
            actual = own if ratio == "recall" else ~own
            return count_effective(self._actual[actual], self.weights[actual])
        return count_effective(self.counts[own if ratio == "precision" else ~own], self.weights)

    @cached_property
    def _actual(self) -> np.ndarray:
        """(K,) rows of each class."""
        assert self.counts is not None
        return np.asarray(self.counts.sum(axis=0))

    def _of_areas(self, metric: Metric) -> float:
        """Rows of the smaller side of any of the classes."""
        labels = metric.areas or (metric.precision_of or 0,)
        sides = (self._of(k, name) for k in labels for name in ("recall", "specificity"))
        return min((one for one in sides if one > LEAST), default=LEAST)


def count_effective(cells: np.ndarray, weights: np.ndarray) -> float:
    """(sum w)^2 / sum w^2 over the rows of these cells, whose last axis is that of the weights."""
    largest = float(weights.max(initial=0.0))
    if largest <= 0:
        return LEAST
    w = weights / largest
    square = float((cells * w**2).sum())
    return max(LEAST, float((cells * w).sum()) ** 2 / square) if square > 0 else LEAST
