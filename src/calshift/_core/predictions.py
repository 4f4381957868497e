"""The one door: whatever users hold becomes Predictions, checked once and trusted ever after."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from calshift._core.convert import to_numpy
from calshift._core.frozen import Frozen
from calshift._core.validate import (
    validate_classes,
    validate_labels,
    validate_probabilities,
    validate_sample_weight,
)
from calshift.errors import InvalidInput

PART_CELLS = 2**20  # probabilities that may be copied at once


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
        self,
        p: Any,
        y: Any,
        classes: Any,
        sample_weight: Any,
        name_p: str,
        name_y: str,
        start: int = 0,
    ) -> None:
        p, columns = to_numpy(p, name_p)
        p = validate_probabilities(p, name_p, start)
        n, K = len(p), 2 if p.ndim == 1 else p.shape[1]
        classes = validate_classes(classes if classes is not None else columns, K)
        if y is not None:
            y = validate_labels(to_numpy(y, name_y)[0], n, K, classes, name_y, start)
        weight = None if sample_weight is None else validate_sample_weight(sample_weight, n)
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
    def fingerprint(self) -> int:
        """A number by which labels and sample weights in this order are recognised."""
        kind = np.min_scalar_type(self.n_classes - 1)
        labels = zlib.crc32(np.ascontiguousarray(self.labels, dtype=kind).data)
        weight = self.sample_weight
        if weight is None or (weight == 1).all():
            return labels
        return zlib.crc32(np.ascontiguousarray(weight).data, labels)

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
        root, first = self.origin
        block.__dict__["_origin"] = root, first + start
        return block

    @property
    def origin(self) -> tuple[Predictions, int]:
        """The sample of which these rows are a view made by `rows`, and the first row in it."""
        found: tuple[Predictions, int] = self.__dict__.get("_origin", (self, 0))
        return found

    def take(self, which: np.ndarray) -> Predictions:
        """Some of the rows, by their numbers."""
        other = object.__new__(Predictions)
        other.__dict__.update(
            p=self.p[which],
            y=None if self.y is None else self.y[which],
            classes=self.classes,
            sample_weight=None if self.sample_weight is None else self.sample_weight[which],
        )
        return other

    @staticmethod
    def trusted(
        p: np.ndarray,
        y: np.ndarray | None,
        classes: tuple[Any, ...] | None,
        sample_weight: np.ndarray | None = None,
    ) -> Predictions:
        """From arrays that were checked before."""
        read = object.__new__(Predictions)
        read.__dict__.update(p=p, y=y, classes=classes, sample_weight=sample_weight)
        read._freeze()
        return read

    @property
    def predicted(self) -> np.ndarray:
        """(n,) the class of largest probability; in parts, since numpy copies frozen rows."""
        if self.p.ndim == 1:
            return np.asarray(self.p > 0.5, dtype=np.intp)
        step = max(1, PART_CELLS // self.n_classes)
        found = np.empty(len(self), np.intp)
        for start in range(0, len(self), step):
            self.p[start : start + step].argmax(axis=1, out=found[start : start + step])
        return found

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

    def in_double(self) -> Predictions:
        """The same rows in double precision."""
        return self if self.p.dtype == np.float64 else self.mended(self.p.astype(np.float64))

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


def concatenate_rows(parts: Sequence[Predictions]) -> Predictions:
    """Rows of several samples of the same kind, one after the other."""
    first = parts[0]
    weights = [part.frequency for part in parts]
    weighed = any(part.sample_weight is not None for part in parts)
    return Predictions.trusted(
        np.concatenate([part.p for part in parts]),
        None if first.y is None else np.concatenate([part.labels for part in parts]),
        first.classes,
        np.concatenate(weights) if weighed else None,
    )


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
    p: Any,
    y: Any,
    classes: tuple[str, ...] | None,
    name_p: str,
    name_y: str,
    start: int = 0,
    sample_weight: Any = None,
) -> Predictions:
    """Predictions whose messages name where the numbers come from; rows count from ``start``."""
    read = object.__new__(Predictions)
    read._fill(p, y, classes, sample_weight, name_p, name_y, start)
    return read
