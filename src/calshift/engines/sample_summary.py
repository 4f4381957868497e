"""What is known of a sample as a whole: sizes, class counts, mean prediction."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from calshift._core.addable import Tally
from calshift._core.frozen import Frozen
from calshift._core.predictions import Predictions


class LazyColumnSums:
    """(K,) sum of the predictions of a sample in memory, made when it is asked for."""

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
    classes : their names, if they have any
    rows : how many; size : the sum of their frequency weights, which are squared in square
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
        """Nobody else holds these arrays: they need no freezing."""

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
        """How many observations the sample is worth: its size, or rows if they weigh below 1."""
        return self.size * (self.size / self.square)

    @property
    def class_effective_size(self) -> np.ndarray:
        """The same of each class, 0 for one without rows."""
        return np.asarray(self.class_counts**2 / np.maximum(self.class_squares, 1e-300))

    @property
    def mean_prediction(self) -> np.ndarray:
        """(K,) the mean of the rows."""
        return np.asarray(self.predicted) / self.size


def summarize(rows: Predictions) -> SampleSummary:
    """Of a sample in memory."""
    return SampleSummary(rows.classes, **_counts(rows), predicted=LazyColumnSums(rows))


def summary_terms(batch: Predictions) -> Tally:
    """Kernel: the sums of `Facts`."""
    return Tally(**_counts(batch), predicted=_predicted(batch))


def _counts(batch: Predictions) -> dict[str, Any]:
    """All of these sums but that of the predictions."""
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
        ones = float(batch.p.sum(dtype=float)) if batch.sample_weight is None else None
        ones = float(batch.frequency @ batch.p) if ones is None else ones
        return np.array([batch.size - ones, ones])
    if batch.sample_weight is not None:
        return np.asarray(batch.sample_weight @ batch.p)
    return np.asarray(batch.p.sum(axis=0, dtype=float))
