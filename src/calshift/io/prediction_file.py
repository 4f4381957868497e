"""One file of predictions: rows in batches, and the file with other probabilities."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from io import BufferedIOBase
from pathlib import Path
from typing import Any

import numpy as np

from calshift._core.convert import softmax
from calshift.errors import InvalidInput
from calshift.io.columns import ColumnSpec, ResolvedColumns, find_columns, quote
from calshift.io.decode import decode_labels, decode_numbers, decode_times
from calshift.io.formats import file_extension, open_format
from calshift.io.formats.base import Format, read_errors
from calshift.io.formats.new_numbers import NewNumbers

SUM_ERROR = 0.02  # of rows of probabilities, in any precision and rounding
LEAST_GAP = 2.0**-53  # of a probability from 1, by which log-odds stay finite

Labels = Callable[[Any, str, str, int], np.ndarray]  # column, its name, file, first row


@dataclass(frozen=True)
class RawBatch:
    """A batch: probabilities (n, K) or (n,), labels, number of its first row, and weights."""

    p: np.ndarray
    y: np.ndarray | None
    start: int = 0
    weight: np.ndarray | None = None

    @property
    def counts(self) -> bool:
        """Whether any row has a weight other than 0."""
        return self.weight is None or bool(self.weight.any())


@dataclass(frozen=True)
class PredictionFile:
    """An open file of predictions; ``order`` is that of the classes where it is not its own."""

    path: Path
    form: Format
    columns: ResolvedColumns
    logits: bool
    order: tuple[int, ...] | None = None

    @property
    def classes(self) -> tuple[str, ...] | None:
        """Names of the classes in the order in which they are read, where the file has them."""
        names = self.columns.classes or self.form.classes
        return names if names is None or self.order is None else _pick(names, self.order)

    @property
    def one_column(self) -> bool:
        """Whether it has scores of class 1 alone."""
        return len(self.columns.probabilities) == 1 and not self.lists

    @property
    def lists(self) -> bool:
        """Whether one column contains lists."""
        return self.columns.probabilities[0] in self.form.lists

    @property
    def stored_columns(self) -> set[str]:
        """The probabilities' columns by the names that the file itself has."""
        own = {short: long for long, short in self.form.renamed.items()}
        return {own.get(name, name) for name in self.columns.probabilities}

    @property
    def count(self) -> int | None:
        """Number of rows, where it is known without reading the file."""
        return self.form.rows_of(self.columns.probabilities[0])

    def batches(self, rows: int, first: int, labels: Labels = decode_labels) -> Iterator[RawBatch]:
        """Batches of so many rows, beginning at a row; ``labels`` reads their labels."""
        label, start = self.columns.label, first
        numbers = (*self.columns.probabilities, *self._weight)
        others = [] if label is None else [label]
        for batch in self.form.batches(numbers, others, rows, first):
            p = self.probabilities_of(batch, start)
            with read_errors(self.path):
                y = None if label is None else labels(batch[label], label, str(self.path), start)
            yield RawBatch(p, y, start, self._weight_of(batch, start))
            start += len(p)

    @property
    def _weight(self) -> tuple[str, ...]:
        """The column of frequency weights, if there is one."""
        return () if self.columns.weight is None else (self.columns.weight,)

    def _weight_of(self, batch: Any, start: int) -> np.ndarray | None:
        """(n,) frequency weights, not validated but for being numbers."""
        with read_errors(self.path):
            found = (decode_numbers(batch[w], w, str(self.path), start) for w in self._weight)
            return next(found, None)

    def times(self) -> np.ndarray:
        """(rows,) times of the rows of positive weight, in microseconds."""
        name, start, found = str(self.columns.time), 0, [np.zeros(0, dtype="datetime64[us]")]
        for batch in self.form.batches(self._weight, [name]):
            with read_errors(self.path):
                times = decode_times(batch[name], name, str(self.path), start)
            weight = self._weight_of(batch, start)
            found.append(times if weight is None else times[weight > 0])
            start += len(times)
        return np.concatenate(found)

    def probabilities_of(self, batch: Any, start: int) -> np.ndarray:
        """(n, K) or (n,) probabilities of a batch of columns that begins at row ``start``."""
        names, path = self.columns.probabilities, str(self.path)
        with read_errors(path), errors_name(path):
            return decode_probabilities(batch, names, path, start, self.logits, self.order)

    def reorder(self, order: tuple[int, ...]) -> PredictionFile:
        """The file with its classes in another order than they are read now."""
        return replace(self, order=order if self.order is None else _pick(self.order, order))

    def without_weights(self) -> PredictionFile:
        """The file with every row as one."""
        return replace(self, columns=replace(self.columns, weight=None))

    def without_labels(self) -> PredictionFile:
        """The file with its column of labels left unread."""
        return replace(self, columns=replace(self.columns, label=None))

    def rewrite(self, blocks: Iterable[np.ndarray], out: BufferedIOBase) -> int:
        """Write the file with other probabilities, in blocks (n, K) or (n,); the number of rows."""
        names = self.columns.probabilities
        numbers = NewNumbers(names, map(self._as_columns, blocks), self.path)
        self.form.rewrite(numbers, out)
        return numbers.finish()

    def _as_columns(self, p: np.ndarray) -> dict[str, np.ndarray]:
        """Probabilities as the file has them, classes in its own order."""
        if p.ndim == 2 and self.order is not None:
            p = p[:, np.argsort(self.order)]
        values, names = _to_logits(p) if self.logits else p, self.columns.probabilities
        return {names[0]: values} if len(names) == 1 else dict(zip(names, values.T, strict=True))


def open_predictions(path: str | Path, role: str, spec: ColumnSpec) -> PredictionFile:
    """Open the file of a role, "source", "target" or "either", and find its columns."""
    form = open_format(path, role, spec.label)
    if spec.weight is not None and file_extension(Path(path)) == ".npy":
        msg = f"{path} has no columns for --sample-weight to name: save named arrays in .npz"
        raise InvalidInput(msg)
    own: dict[str, Any] = {
        field: form.renamed.get(name, name)
        for field in ("label", "columns", "weight")
        if isinstance(name := getattr(spec, field), str)
    }
    spec = replace(spec, **own)
    return PredictionFile(
        Path(path), form, find_columns(form.names, form.lists, spec, str(path)), spec.logits
    )


def binary_class_names(classes: tuple[Any, ...] | None, one_column: bool) -> tuple[Any, ...] | None:
    """Names of two classes where one column of scores names the second."""
    if classes is None or not one_column or len(classes) != 1:
        return classes
    return ("0" if classes[0] == "1" else f"not {classes[0]}", classes[0])


@contextmanager
def errors_name(place: str | Path, columns: ResolvedColumns | None = None) -> Iterator[None]:
    """Errors name the file or batch, and the columns read where rows do not sum to 1."""
    try:
        yield
    except InvalidInput as problem:
        msg = str(problem) if str(place) in str(problem) else f"{place}: {problem}"
        if columns is not None and "sums to" in msg and len(columns.probabilities) > 1:
            read = quote(columns.probabilities)
            msg += f"; the columns read are {read}: choose others with --columns"
        raise type(problem)(msg) from problem


def _pick(values: tuple[Any, ...], order: tuple[int, ...]) -> tuple[Any, ...]:
    return tuple(values[k] for k in order)


def decode_probabilities(
    columns: dict[str, Any],
    names: tuple[str, ...],
    place: str,
    start: int,
    logits: bool,
    order: tuple[int, ...] | None,
) -> np.ndarray:
    """(n, K) or (n,) probabilities of these columns, classes in the order given."""
    values = [decode_numbers(columns[name], name, place, start) for name in names]
    p = values[0] if len(values) == 1 else np.stack(values, axis=1)
    p = softmax_rows(p, start) if logits else p
    return p if order is None or p.ndim == 1 else p.take(order, axis=1)


def softmax_rows(z: np.ndarray, start: int = 0) -> np.ndarray:
    """Softmax of rows in double precision; of one column of scores z, that of (0, z).

    Rows are counted from ``start``.
    """
    z = z.astype(float, copy=False)
    largest = z.max(axis=1) if z.ndim == 2 and z.size else z
    if not np.isfinite(largest).all():
        row = start + int(np.argmax(~np.isfinite(largest)))
        msg = f"logits must be finite, or -inf beside finite ones; row {row} is not"
        raise InvalidInput(msg)
    if z.ndim == 2:
        _check_logits(z)
        return softmax(z)
    return np.ascontiguousarray(softmax(np.stack([np.zeros_like(z), z], axis=1))[:, 1])


def _check_logits(z: np.ndarray) -> None:
    """Refuse rows of probabilities: numbers that are not negative and sum to 1, or 100 percent."""
    if not z.size or z.min() < 0:
        return
    sums = z.sum(axis=1)
    if np.allclose(sums, 1, rtol=0, atol=SUM_ERROR):
        msg = "these numbers are probabilities, no logits: leave out --logits"
        raise InvalidInput(msg)
    if np.allclose(sums, 100, rtol=0, atol=100 * SUM_ERROR):
        msg = "these numbers are percentages, no logits: divide by 100 and leave out --logits"
        raise InvalidInput(msg)


def _to_logits(p: np.ndarray) -> np.ndarray:
    """Logits that `softmax_rows` reads as p: logarithms, or log-odds of one column."""
    if p.ndim == 2:
        return np.asarray(np.log(np.maximum(p, np.finfo(float).tiny)))
    inside = np.clip(p, LEAST_GAP, 1 - LEAST_GAP)  # the same distance from either end
    return np.asarray(np.log(inside / (1 - inside)))
