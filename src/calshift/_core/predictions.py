"""Predictions: probabilities and labels from any container, validated once."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from calshift._core.convert import to_numpy
from calshift._core.frozen import Frozen, read_only
from calshift._core.labels import validate_classes, validate_labels
from calshift._core.linalg import row_max
from calshift._core.probabilities import validate_probabilities
from calshift._core.validate import validate_sample_weight
from calshift.compiled import fastest
from calshift.errors import InvalidInput

PART_CELLS = 2**20  # probabilities that may be copied at once
MOST_KEPT = 2**22  # rows of which the predicted classes are kept
FEW_CLASSES, MANY_ROWS = 16, 4096  # of which columns are compared, not rows
CACHED_CELLS = 2**16  # probabilities of a block that stays in the cache


@fastest
def find_largest(p: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(n,) the first of the largest columns of each row, and its value."""
    n, K = p.shape
    place, most = np.empty(n, np.intp), np.empty(n, p.dtype)
    by_column = K <= FEW_CLASSES and n >= MANY_ROWS
    step = max(1, (CACHED_CELLS if by_column else PART_CELLS) // K)  # numpy copies read-only rows
    for start in range(0, n, step):
        part, here = p[start : start + step], slice(start, start + step)
        if by_column:
            _compare_columns(np.ascontiguousarray(part.T), place[here], most[here])
        else:
            part.argmax(axis=1, out=place[here])
            most[here] = part[np.arange(len(part)), place[here]]
    return place, most


def _compare_columns(columns: np.ndarray, place: np.ndarray, most: np.ndarray) -> None:
    """`find_largest` of a block (K, n): several times as fast as row by row where K is small."""
    K = len(columns)
    columns.max(axis=0, out=most)
    before_end = np.zeros(len(most), np.uint8)
    for k, column in enumerate(columns):
        same = (column == most).view(np.uint8)
        np.maximum(before_end, np.multiply(same, np.uint8(K - k), out=same), out=before_end)
    np.subtract(K, before_end, out=place)


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
    _origin: ClassVar[tuple[Predictions, int] | None] = None  # of a view: the root, its first row
    _derived: ClassVar[dict[Hashable, np.ndarray] | None] = None  # if the rows keep what is derived
    _keeper: ClassVar[tuple[Predictions, int] | None] = None  # of a view: rows that keep it

    def __init__(
        self,
        p: Any,
        y: Any = None,
        *,
        classes: Sequence[Any] | None = None,
        sample_weight: Any = None,
    ) -> None:
        read = named_predictions(p, y, classes, "p", "y", sample_weight=sample_weight)
        self.__dict__.update(read.__dict__)

    @staticmethod
    def from_validated(
        p: np.ndarray,
        y: np.ndarray | None,
        classes: tuple[Any, ...] | None,
        sample_weight: np.ndarray | None = None,
    ) -> Predictions:
        """Predictions of arrays that were validated before."""
        made = _assemble(p=p, y=y, classes=classes, sample_weight=sample_weight)
        made._freeze()
        return made

    def _replace(self, **fields: Any) -> Predictions:
        """The same rows with some fields replaced, which are not validated."""
        return _assemble(**(self.__getstate__() | fields))

    def __getstate__(self) -> dict[str, Any]:
        """The fields; a copy of a view is no view."""
        return {name: value for name, value in self.__dict__.items() if name[0] != "_"}

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
        """The labels of a sample that is known to have them."""
        assert self.y is not None
        return self.y

    @property
    def class_counts(self) -> np.ndarray:
        """Rows (or their frequency weights) of each class."""
        return np.bincount(self.labels, self.sample_weight, self.n_classes).astype(float)

    def codes(self, seen: np.ndarray) -> np.ndarray:
        """The labels as places among the classes marked as seen."""
        return self.labels if seen.all() else np.asarray((np.cumsum(seen) - 1)[self.labels])

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
        """A checksum of labels and sample weights in their order."""
        kind = np.min_scalar_type(self.n_classes - 1)
        labels = zlib.crc32(np.ascontiguousarray(self.labels, dtype=kind).data)
        weight = self.sample_weight
        if weight is None or (weight == 1).all():
            return labels
        return zlib.crc32(np.ascontiguousarray(weight).data, labels)

    def derived(self, key: Hashable, function: Callable[[Predictions], np.ndarray]) -> np.ndarray:
        """function(rows), row by row; computed once, and not to be written to, if rows keep it."""
        if self._keeper is not None:
            keeper, start = self._keeper
            return keeper.derived(key, function)[start : start + len(self)]
        if self._derived is None:
            return function(self)
        if key not in self._derived:
            self._derived[key] = read_only(function(self))
        return self._derived[key]

    def keeping(self) -> Predictions:
        """A view of the same rows that keeps what is derived from them."""
        view = self.rows(0, len(self))
        view.__dict__["_derived"] = {}
        return view

    def rows(self, start: int, stop: int) -> Predictions:
        """The rows from start to stop, as a view that refers to its origin."""
        part = slice(*slice(start, stop).indices(len(self)))
        view = self.take(part)
        root, first = self._origin or (self, 0)
        view.__dict__["_origin"] = root, first + part.start
        if self._derived is not None:
            view.__dict__["_keeper"] = self, part.start
        elif self._keeper is not None:
            view.__dict__["_keeper"] = self._keeper[0], self._keeper[1] + part.start
        return view

    def blocks(self, rows: int) -> Iterator[Predictions]:
        """All rows in blocks of so many: itself if it is one block, else views."""
        if len(self) <= rows:
            yield self
            return
        for start in range(0, len(self), rows):
            yield self.rows(start, start + rows)

    def take(self, which: np.ndarray | slice) -> Predictions:
        """Some of the rows, by their numbers or by a mask."""
        return self._replace(
            p=self.p[which],
            y=None if self.y is None else self.y[which],
            sample_weight=None if self.sample_weight is None else self.sample_weight[which],
        )

    @property
    def predicted(self) -> np.ndarray:
        """(n,) the class of largest probability."""
        return self._largest[0]

    @property
    def confidence(self) -> np.ndarray:
        """(n,) the largest probability of each row."""
        root = self if self._origin is None else self._origin[0]
        known = "_known" in root.__dict__ or self.p.ndim == 1
        return self._largest[1] if known else row_max(self.p)

    @property
    def _largest(self) -> tuple[np.ndarray, np.ndarray]:
        """The predicted class and its probability; kept, unless rows are very many."""
        root, start = self._origin or (self, 0)
        if len(root) > MOST_KEPT:
            return self._find_largest()
        known = root.__dict__.get("_known")
        if known is None:
            known = root.__dict__["_known"] = root._find_largest()
        here = slice(start, start + len(self))
        return known[0][here], known[1][here]

    def _find_largest(self) -> tuple[np.ndarray, np.ndarray]:
        if self.p.ndim == 1:
            return (self.p > 0.5).astype(np.intp), np.maximum(self.p, 1 - self.p)
        return find_largest(self.p)

    def unlabelled(self) -> Predictions:
        """The same rows without their labels."""
        return self._replace(y=None)

    def with_frequency(self, frequency: np.ndarray) -> Predictions:
        """The same rows with these frequency weights; rows of weight 0 are left out."""
        kept = frequency > 0
        return self.take(kept)._replace(sample_weight=frequency[kept].astype(float))

    def with_probabilities(self, p: np.ndarray, keep_classes: bool = False) -> Predictions:
        """The same rows with other probabilities; the classes keep their names or have none."""
        return self._replace(p=p, classes=self.classes if keep_classes else None)

    def in_double(self) -> Predictions:
        """The same rows in double precision."""
        return self if self.p.dtype == np.float64 else self._replace(p=self.p.astype(np.float64))

    def __len__(self) -> int:
        return len(self.p)

    def __repr__(self) -> str:
        labelled = "unlabelled" if self.y is None else "labelled"
        return f"Predictions({len(self)} rows, {self.n_classes} classes, {labelled})"


def _assemble(**fields: Any) -> Predictions:
    """Predictions of these fields as they are."""
    made = object.__new__(Predictions)
    made.__dict__.update(fields)
    return made


def concatenate_rows(parts: list[Predictions]) -> Predictions:
    """Rows of several samples of the same kind, one after the other.

    The list is emptied on the way, so that rows are not in memory twice.
    """
    first, size = parts[0], sum(map(len, parts))
    weighed = any(part.sample_weight is not None for part in parts)
    p = np.empty((size, *first.p.shape[1:]), np.result_type(*{part.p.dtype for part in parts}))
    y = None if first.y is None else np.empty(size, first.y.dtype)
    weight = np.empty(size) if weighed else None
    parts.reverse()
    start = 0
    while parts:
        part = parts.pop()
        rows = slice(start, start + len(part))
        p[rows], start = part.p, rows.stop
        if y is not None:
            y[rows] = part.labels
        if weight is not None:
            weight[rows] = part.frequency
    return Predictions.from_validated(p, y, first.classes, weight)


def as_predictions(
    p: Any, y: Any = None, *, labelled: bool, name_p: str = "p", name_y: str = "y"
) -> Predictions:
    """Validated (p, y), or Predictions as they are; messages name the caller's arguments."""
    if isinstance(p, Predictions) and y is not None:
        msg = f"{name_y} must be None when {name_p} is a Predictions, which has its own labels"
        raise InvalidInput(msg)
    read = p if isinstance(p, Predictions) else named_predictions(p, y, None, name_p, name_y)
    if labelled and read.y is None:
        msg = f"{name_y} must be given: {name_p} has no labels"
        raise InvalidInput(msg)
    return read


def named_predictions(
    p: Any,
    y: Any,
    classes: Sequence[Any] | None,
    name_p: str,
    name_y: str,
    start: int = 0,
    sample_weight: Any = None,
    name_weight: str = "sample_weight",
) -> Predictions:
    """Validated predictions; messages use these names, and count rows from ``start``."""
    p, columns = to_numpy(p, name_p)
    p = validate_probabilities(p, name_p, start)
    n, K = len(p), 2 if p.ndim == 1 else p.shape[1]
    names = validate_classes(classes if classes is not None else columns, K)
    if y is not None:
        y = validate_labels(to_numpy(y, name_y)[0], n, K, names, name_y, start)
    weight = sample_weight
    if weight is not None:
        weight = validate_sample_weight(weight, n, name_weight, start)
    read = _assemble(p=p, y=y, classes=names, sample_weight=weight)
    if weight is not None and not weight.all():
        read = read.take(weight > 0)
    read._freeze()
    return read


def counted_predictions(
    p: np.ndarray,
    y: Any,
    classes: Sequence[Any] | None,
    name_p: str,
    name_y: str,
    start: int = 0,
    weight: np.ndarray | None = None,
    name_weight: str = "sample_weight",
) -> Predictions | None:
    """`named_predictions` of a batch; None if all its weights are 0, though rows must be valid."""
    if weight is None or weight.shape != p.shape[:1] or weight.any():
        return named_predictions(p, y, classes, name_p, name_y, start, weight, name_weight)
    named_predictions(p, y, classes, name_p, name_y, start)
    return None
