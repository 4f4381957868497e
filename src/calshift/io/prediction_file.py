"""One file of predictions: its rows in batches, and the file again with other probabilities."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from calshift._core.convert import softmax
from calshift.errors import InvalidInput
from calshift.io.columns import ColumnSpec, ResolvedColumns, find_columns, listed
from calshift.io.decode import decode_labels, decode_numbers, decode_times
from calshift.io.formats import open_format
from calshift.io.formats.base import Format

LEAST_GAP = 2.0**-53  # of a probability from 1, by which log-odds stay finite

Labels = Callable[[Any, str, str, int], np.ndarray]  # column, its name, file, first row


@dataclass(frozen=True)
class RawBatch:
    """A batch: probabilities (n, K) or (n,), labels, and the number of its first row."""

    p: np.ndarray
    y: np.ndarray | None
    start: int = 0


@dataclass(frozen=True)
class PredictionFile:
    """An open file of predictions; ``order`` puts its classes into another file's order."""

    path: Path
    form: Format
    columns: ResolvedColumns
    logits: bool
    order: tuple[int, ...] | None = None

    @property
    def classes(self) -> tuple[str, ...] | None:
        """The classes' names in the order in which they are read, where the file tells them."""
        names = self.columns.classes or self.form.classes
        return names if names is None or self.order is None else _taken(names, self.order)

    @property
    def one_column(self) -> bool:
        """Whether it holds scores of class 1 alone."""
        return len(self.columns.probabilities) == 1 and not self.lists

    @property
    def lists(self) -> bool:
        """Whether one column holds lists."""
        return self.columns.probabilities[0] in self.form.lists

    @property
    def count(self) -> int | None:
        """How many rows it has, where it tells without being read."""
        return self.form.rows_of(self.columns.probabilities[0])

    def batches(self, rows: int, first: int, labels: Labels = decode_labels) -> Iterator[RawBatch]:
        """So many rows at a time, beginning at a row; ``labels`` reads theirs."""
        label, start = self.columns.label, first
        others = [] if label is None else [label]
        for batch in self.form.batches(self.columns.probabilities, others, rows, first):
            p = self.probabilities_of(batch, start)
            y = None if label is None else labels(batch[label], label, str(self.path), start)
            yield RawBatch(p, y, start)
            start += len(p)

    def times(self) -> np.ndarray:
        """(rows,) of its column of times, in microseconds."""
        name, start, found = str(self.columns.time), 0, [np.zeros(0, dtype="datetime64[us]")]
        for batch in self.form.batches([], [name]):
            found.append(decode_times(batch[name], name, str(self.path), start))
            start += len(found[-1])
        return np.concatenate(found)

    def probabilities_of(self, batch: Any, start: int) -> np.ndarray:
        """(n, K) or (n,) of a batch of columns that begins at a row."""
        names = self.columns.probabilities
        values = [decode_numbers(batch[name], name, str(self.path), start) for name in names]
        p = values[0] if len(values) == 1 else np.stack(values, axis=1)
        if self.logits:
            with errors_name_file(self.path):
                p = from_logits(p, start)
        return p if self.order is None or p.ndim == 1 else p.take(self.order, axis=1)

    def ordered(self, order: tuple[int, ...]) -> PredictionFile:
        """Its classes in another order than they are read now."""
        return replace(self, order=order if self.order is None else _taken(self.order, order))

    def rewritten(self, p: np.ndarray) -> bytes:
        """The whole file again with these probabilities, (n, K) or (n,), in the order read."""
        if p.ndim == 2 and self.order is not None:
            p = p[:, np.argsort(self.order)]
        values = _to_logits(p) if self.logits else p
        columns = self.columns.probabilities
        if len(columns) == 1:
            return self.form.rewritten({columns[0]: values})
        return self.form.rewritten(dict(zip(columns, values.T, strict=True)))


def open_predictions(path: str | Path, role: str, asked: ColumnSpec) -> PredictionFile:
    """The file of a role, "source", "target" or "either", and the columns it is read from."""
    form = open_format(path, role, asked.label)
    label = None if asked.label is None else form.renamed.get(asked.label, asked.label)
    columns = asked.columns
    if isinstance(columns, str):
        columns = form.renamed.get(columns, columns)
    asked = replace(asked, label=label, columns=columns)
    return PredictionFile(
        Path(path), form, find_columns(form.names, form.lists, asked, str(path)), asked.logits
    )


def binary_class_names(classes: tuple[Any, ...] | None, one_column: bool) -> tuple[Any, ...] | None:
    """Names of two classes where one column of scores names the second."""
    if classes is None or not one_column or len(classes) != 1:
        return classes
    return ("0" if classes[0] == "1" else f"not {classes[0]}", classes[0])


@contextmanager
def errors_name_file(path: str | Path, columns: ResolvedColumns | None = None) -> Iterator[None]:
    """Complaints that do not name a file name this one, and say what was read as probabilities."""
    try:
        yield
    except InvalidInput as problem:
        msg = str(problem) if str(path) in str(problem) else f"{path}: {problem}"
        if columns is not None and "sums to" in msg and len(columns.probabilities) > 1:
            msg += f"; read were {listed(columns.probabilities)}: pick others with --columns"
        raise type(problem)(msg) from problem


def _taken(values: tuple[Any, ...], order: tuple[int, ...]) -> tuple[Any, ...]:
    return tuple(values[k] for k in order)


def from_logits(z: np.ndarray, start: int = 0) -> np.ndarray:
    """Softmax of rows, counted from ``start``; of one column of scores, that of (0, z)."""
    largest = z.max(axis=1) if z.ndim == 2 and z.size else z
    if not np.isfinite(largest).all():
        row = start + int(np.argmax(~np.isfinite(largest)))
        msg = f"logits must be finite, or -inf beside finite ones; row {row} is not"
        raise InvalidInput(msg)
    if z.ndim == 2:
        return softmax(z)
    return np.ascontiguousarray(softmax(np.stack([np.zeros_like(z), z], axis=1))[:, 1])


def _to_logits(p: np.ndarray) -> np.ndarray:
    """What `from_logits` reads as p: logarithms, or log-odds of one column."""
    if p.ndim == 2:
        return np.asarray(np.log(np.maximum(p, np.finfo(float).tiny)))
    inside = np.clip(p, LEAST_GAP, 1 - LEAST_GAP)  # the same distance from either end
    return np.asarray(np.log(inside / (1 - inside)))
