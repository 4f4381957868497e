"""The one door: whatever users hold becomes Predictions, checked once and trusted ever after."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from calshift.checks import (
    check_same_names,
    checked_classes,
    checked_labels,
    checked_probabilities,
    checked_weight,
)
from calshift.conversion import to_numpy
from calshift.errors import InvalidInput
from calshift.frozen import Frozen


@dataclass(frozen=True, eq=False, init=False, repr=False)
class Predictions(Frozen):
    """Predicted probabilities, with labels where they are known.

    Parameters
    ----------
    p : array of shape (n, K), or (n,) for the probability of class 1 of two
        numpy, list, torch tensor, or a pandas, polars or arrow frame (whose columns name the
        classes). float32 and float64 are kept as they are, without a copy.
    y : labels, optional
        Integers 0..K-1, or names that ``classes`` (or the frame's columns) list.
    classes : names of the K classes, optional
    sample_weight : (n,) frequency weights, optional
        A weight of 2 counts as two rows; 0 removes the row; the sample size is their sum.

    Examples
    --------
    >>> from calshift import Predictions
    >>> Predictions([[0.9, 0.1], [0.2, 0.8]], ["cat", "dog"], classes=["cat", "dog"])
    Predictions(2 rows, 2 classes, labelled)
    """

    p: np.ndarray
    y: np.ndarray | None
    classes: tuple[Any, ...] | None
    sample_weight: np.ndarray | None

    def __init__(
        self,
        p: Any,
        y: Any = None,
        *,
        classes: Sequence[Any] | None = None,
        sample_weight: Any = None,
    ) -> None:
        self._fill(p, y, classes, sample_weight, "p", "y")

    def _fill(
        self, p: Any, y: Any, classes: Any, sample_weight: Any, name_p: str, name_y: str
    ) -> None:
        p, columns = to_numpy(p, name_p)
        p = checked_probabilities(p, name_p)
        n, K = len(p), 2 if p.ndim == 1 else p.shape[1]
        classes = checked_classes(classes if classes is not None else columns, K)
        y = None if y is None else checked_labels(to_numpy(y, name_y)[0], n, K, classes, name_y)
        weight = None if sample_weight is None else checked_weight(sample_weight, n)
        if weight is not None and not weight.all():
            kept = weight > 0
            p, y, weight = p[kept], None if y is None else y[kept], weight[kept]
        self.__dict__.update(p=p, y=y, classes=classes, sample_weight=weight)
        self._freeze()

    @property
    def n_classes(self) -> int:
        """K, the number of classes."""
        return 2 if self.p.ndim == 1 else self.p.shape[1]

    @property
    def size(self) -> float:
        """The sample size: rows, or the sum of their frequency weights."""
        return float(len(self.p) if self.sample_weight is None else self.sample_weight.sum())

    @property
    def matrix(self) -> np.ndarray:
        """The probabilities as (n, K), also where one column was given."""
        return self.p if self.p.ndim == 2 else np.stack([1 - self.p, self.p], axis=1)

    @property
    def labels(self) -> np.ndarray:
        """The labels; asking for those of an unlabelled sample is a mistake of ours."""
        assert self.y is not None
        return self.y

    @property
    def class_counts(self) -> np.ndarray:
        """Rows (or their frequency weights) of each class."""
        return np.bincount(self.labels, self.sample_weight, self.n_classes).astype(float)

    @property
    def mean_prediction(self) -> np.ndarray:
        """(K,) the mean of the rows."""
        return np.asarray((self.frequency / self.size).astype(self.p.dtype) @ self.matrix)

    def codes(self, seen: np.ndarray) -> np.ndarray:
        """The labels, counted among the classes marked as seen."""
        return np.asarray((np.cumsum(seen) - 1)[self.labels])

    @property
    def frequency(self) -> np.ndarray:
        """How many rows each row stands for: its sample weight, or 1."""
        return np.ones(len(self.p)) if self.sample_weight is None else self.sample_weight

    @property
    def squared_frequency(self) -> np.ndarray:
        """The weight of each row in a sum of squares: less than one row counts by its square."""
        return np.asarray(self.frequency * np.minimum(self.frequency, 1.0))

    @property
    def worth(self) -> float:
        """How many observations the sample is worth: its size, or rows if they weigh below 1."""
        return self.size * (self.size / float(self.squared_frequency.sum()))

    @property
    def class_worth(self) -> np.ndarray:
        """The same of each class, 0 for one without rows."""
        square = np.bincount(self.labels, self.squared_frequency, self.n_classes)
        return np.asarray(self.class_counts**2 / np.maximum(square, 1e-300))

    @property
    def mark(self) -> int:
        """A number by which labels and sample weights in this order are recognised."""
        return zlib.crc32(
            self.frequency.tobytes(), zlib.crc32(self.labels.astype(np.int64).tobytes())
        )

    def rows(self, start: int, stop: int) -> Predictions:
        """The rows from start to stop, as views."""
        part = slice(start, stop)
        block = object.__new__(Predictions)
        block.__dict__.update(
            p=self.p[part],
            y=None if self.y is None else self.y[part],
            classes=self.classes,
            sample_weight=None if self.sample_weight is None else self.sample_weight[part],
        )
        return block

    def taken(self, which: np.ndarray) -> Predictions:
        """Some of the rows, by their numbers."""
        other = object.__new__(Predictions)
        other.__dict__.update(
            p=self.p[which],
            y=None if self.y is None else self.y[which],
            classes=self.classes,
            sample_weight=None if self.sample_weight is None else self.sample_weight[which],
        )
        return other

    def unlabelled(self) -> Predictions:
        """The same rows without their labels."""
        other = object.__new__(Predictions)
        other.__dict__.update(self.__dict__, y=None)
        return other

    def counted(self, frequency: np.ndarray) -> Predictions:
        """The same rows, each counted so many times; those counted 0 times are left out."""
        kept = frequency > 0
        other = object.__new__(Predictions)
        other.__dict__.update(
            p=self.p[kept],
            y=None if self.y is None else self.y[kept],
            classes=self.classes,
            sample_weight=frequency[kept].astype(float),
        )
        return other

    def with_probabilities(self, p: np.ndarray) -> Predictions:
        """The same rows with other probabilities, perhaps of fewer classes."""
        other = self.mended(p)
        other.__dict__.update(classes=None)
        return other

    def mended(self, p: np.ndarray) -> Predictions:
        """The same rows with other probabilities of the same classes."""
        other = object.__new__(Predictions)
        other.__dict__.update(self.__dict__, p=p)
        return other

    def __len__(self) -> int:
        return len(self.p)

    def __repr__(self) -> str:
        labelled = "unlabelled" if self.y is None else "labelled"
        return f"Predictions({len(self)} rows, {self.n_classes} classes, {labelled})"


def as_predictions(
    p: Any, y: Any = None, *, labelled: bool, name_p: str = "p", name_y: str = "y"
) -> Predictions:
    """Read (p, y), or pass on Predictions; messages name the caller's own arguments."""
    if isinstance(p, Predictions):
        if y is not None:
            msg = f"{name_y} must be None when {name_p} is a Predictions, which carries its labels"
            raise InvalidInput(msg)
        read = p
    else:
        read = object.__new__(Predictions)
        read._fill(p, y, None, None, name_p, name_y)
    if labelled and read.y is None:
        msg = f"{name_y} must be given: {name_p} has no labels"
        raise InvalidInput(msg)
    return read


def named_predictions(
    p: Any, y: Any, classes: tuple[str, ...] | None, name_p: str, name_y: str
) -> Predictions:
    """Predictions whose messages name where the numbers come from."""
    read = object.__new__(Predictions)
    read._fill(p, y, classes, None, name_p, name_y)
    return read


def as_source(p_source: Any, y_source: Any) -> Predictions:
    """The labelled source."""
    return as_predictions(p_source, y_source, labelled=True, name_p="p_source", name_y="y_source")


def as_pair(p_source: Any, y_source: Any, p_target: Any) -> tuple[Predictions, Predictions]:
    """Source and target, checked against each other."""
    source = as_source(p_source, y_source)
    target = as_predictions(p_target, labelled=False, name_p="p_target")
    if source.n_classes != target.n_classes:
        msg = (
            "p_source and p_target must have the same classes; "
            f"p_source has {source.n_classes}, p_target has {target.n_classes}"
        )
        raise InvalidInput(msg)
    check_same_names(source.classes, target.classes, ("p_source", "p_target"))
    check_pair(source, target)
    return source, target


def check_pair(source: Predictions, target: Predictions) -> None:
    """Both have rows, and the source two classes."""
    if np.count_nonzero(source.class_counts) < 2:
        msg = (
            "y_source must hold at least two classes: with one, nothing tells how the mix "
            f"changed; it holds {np.unique(source.labels).tolist()}"
        )
        raise InvalidInput(msg)
    if len(target) == 0:
        msg = "p_target must have at least one row of positive weight"
        raise InvalidInput(msg)
