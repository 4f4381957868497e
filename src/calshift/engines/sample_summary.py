"""Sums over a whole sample: sizes, class counts, mean prediction."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from calshift._core.addable import Tally
from calshift._core.frozen import Frozen
from calshift._core.predictions import Predictions


class LazyColumnSums:
    """(K,) sum of the predictions of a sample in memory, computed on demand."""

    def __init__(self, rows: Predictions) -> None:
        self.rows = rows

    def __len__(self) -> int:
        return self.rows.n_classes

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return _predicted(self.rows)


@dataclass(frozen=True, eq=False)
class SampleSummary(Frozen):
    """Sums over all rows.

    Attributes
    ----------
    classes : names of the classes, if they have any
    rows : number of rows
    size, square : sums of their frequency weights, and of `Predictions.squared_frequency`
    single : rows that are one score, the probability of class 1 of two
    light : rows that count less than one
    double : rows in double precision
    predicted : (K,) sum of the predictions
    class_counts, class_squares : (K,) size and square of each class; empty without labels
    """

    classes: tuple[Any, ...] | None
    rows: int
    single: int
    size: float
    square: float
    light: int
    double: int
    predicted: np.ndarray | LazyColumnSums
    class_counts: np.ndarray
    class_squares: np.ndarray

    def __post_init__(self) -> None:
        """Nothing to freeze: nobody else refers to these arrays."""

    @property
    def n_classes(self) -> int:
        """K, the number of classes."""
        return len(self.predicted)

    @property
    def one_column(self) -> bool:
        """Whether the predictions are scores of class 1 alone."""
        return self.single > 0

    @property
    def labelled(self) -> bool:
        """Whether the rows have labels."""
        return len(self.class_counts) > 0

    @property
    def effective_size(self) -> float:
        """Effective sample size: the size, or less where frequency weights are below 1."""
        return self.size * (self.size / self.square)

    @property
    def class_effective_size(self) -> np.ndarray:
        """(K,) effective sample size of each class, 0 without rows."""
        return np.asarray(self.class_counts**2 / np.maximum(self.class_squares, 1e-300))

    @property
    def mean_prediction(self) -> np.ndarray:
        """(K,) the mean of the rows."""
        return np.asarray(self.predicted) / self.size


def summarize(rows: Predictions) -> SampleSummary:
    """The summary of a sample in memory."""
    return SampleSummary(rows.classes, **_counts(rows), predicted=LazyColumnSums(rows))


def summary_terms(batch: Predictions) -> Tally:
    """Kernel: the sums of a `SampleSummary`."""
    return Tally(**_counts(batch), predicted=_predicted(batch))


def _counts(batch: Predictions) -> dict[str, Any]:
    """All sums but that of the predictions."""
    f, n = batch.sample_weight, len(batch)
    square = None if f is None else batch.squared_frequency
    counts = _by_label(batch, f)
    return {
        "rows": n,
        "single": n if batch.p.ndim == 1 else 0,
        "size": batch.size,
        "square": float(n if square is None else square.sum()),
        "light": 0 if f is None else int(np.count_nonzero(f < 1)),
        "double": n if batch.p.dtype == np.float64 else 0,
        "class_counts": counts,
        "class_squares": counts if square is None else _by_label(batch, square),
    }


def _by_label(batch: Predictions, values: np.ndarray | None) -> np.ndarray:
    """(K,) sums by label, or counts; empty without labels."""
    if batch.y is None:
        return np.zeros(0)
    return np.bincount(batch.y, values, batch.n_classes).astype(float)


def _predicted(batch: Predictions) -> np.ndarray:
    """(K,) sum of the rows, in double precision."""
    if batch.p.ndim == 1:
        f = batch.sample_weight
        ones = float(batch.p.sum(dtype=float) if f is None else f @ batch.p)
        return np.array([batch.size - ones, ones])
    if batch.sample_weight is not None:
        return np.asarray(batch.sample_weight @ batch.p)
    return np.asarray(np.einsum("ij->j", batch.p, dtype=float))  # faster than sum()
