"""Batches of arrays passed by users, with or without labels and sample weights.

`BatchReader` reads them again in every pass; `Spool` keeps those that come only once in temporary
files.
"""

from __future__ import annotations

import pickle
import shutil
import tempfile
import weakref
from collections.abc import Callable, Generator, Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from calshift._core.convert import split_column, to_numpy
from calshift._core.labels import check_same_names, validate_classes
from calshift._core.predictions import Predictions, concatenate_rows, counted_predictions
from calshift._core.validate import is_number
from calshift.errors import InvalidInput
from calshift.io.file_reader import python_option_names, rows_for
from calshift.io.prediction_file import errors_name, softmax_rows


@dataclass(frozen=True)
class BatchSpec:
    """What the user specified about all batches."""

    classes: tuple[Any, ...] | None = None
    logits: bool = False
    labelled: bool | None = None
    weight: str | None = None  # the column of the frequency weights in every batch, a data frame


class BatchReader:
    """Batches from ``source()``, which returns the same ones each time it is called."""

    def __init__(
        self, source: Callable[[], Iterable[Any]], spec: BatchSpec, batch_rows: int | None
    ) -> None:
        self.source = source
        self.spec = spec
        self.batch_rows = batch_rows
        self.names: list[Any] = [] if spec.classes is None else [spec.classes]

    @property
    def fingerprint(self) -> str:
        """How batches are read; whether they are the same is up to the user."""
        return f"{self.spec} {self.batch_rows}"

    @property
    def classes(self) -> tuple[Any, ...] | None:
        """Names of the classes: given, or those of the first batch, read now if none was yet."""
        if not self.names:
            next(self.batches(0), None)
        return self.names[0] if self.names else None

    def batches(self, skip: int) -> Iterator[Predictions]:
        """Validated batches, cut where they are large, without the first ``skip``."""
        return islice(self._pieces(), skip, None)

    def _fresh(self) -> Iterable[Any]:
        try:
            found = self.source()
        except TypeError as problem:
            msg = f"data must be a function without arguments that returns batches: {problem}"
            raise InvalidInput(msg) from problem
        if not hasattr(found, "__iter__"):
            msg = f"data must return an iterator of batches when it is called; got {type(found)!r}"
            raise InvalidInput(msg)
        return found

    def _pieces(self) -> Iterator[Predictions]:
        first: tuple[int, Predictions] | None = None
        for number, batch in enumerate(self._fresh()):
            with python_option_names(), errors_name(f"batch {number}"):
                read = read_batch(batch, self.spec)
                if read is None:
                    continue
                first = first or (number, read)
                self.names = self.names or [read.classes]
                check_like_first(*first, read)
            yield from read.blocks(self.batch_rows or rows_for(read.n_classes))


def read_batch(batch: Any, spec: BatchSpec) -> Predictions | None:
    """One validated batch; None if it has no rows."""
    if isinstance(batch, Predictions):
        return _apply_spec(batch, spec)
    if isinstance(batch, str | Path):
        msg = f"it is a path, {str(batch)!r}: pass a list of paths, and no arrays among them"
        raise InvalidInput(msg)
    if isinstance(batch, list) and batch and is_number(batch[0]):
        msg = "a list of numbers may be a row or a batch of scores: pass an array"
        raise InvalidInput(msg)
    p, y, weight = _split(batch)
    if spec.weight is not None:
        p, weight = _split_weight(p, weight, spec.weight)
    if spec.labelled and y is None:
        msg = "it must be (p, y): labelled=True was asked for"
        raise InvalidInput(msg)
    p, columns = to_numpy(p, "p")
    if weight is not None:
        weight = to_numpy(weight, "sample_weight")[0]
    if p.ndim and len(p) == 0:
        return None
    p = softmax_rows(p) if spec.logits and p.ndim in (1, 2) else p
    y = None if spec.labelled is False else y
    classes = spec.classes if spec.classes is not None else columns
    name = "sample_weight" if spec.weight is None else f"column {spec.weight!r}"
    return counted_predictions(p, y, classes, "p", "y", weight=weight, name_weight=name)


def _apply_spec(batch: Predictions, spec: BatchSpec) -> Predictions | None:
    """Predictions with the labels and class names that were specified."""
    if spec.labelled and batch.y is None:
        msg = "it has no labels: labelled=True was asked for"
        raise InvalidInput(msg)
    if spec.weight is not None:
        msg = "a Predictions has weights of its own and no columns: leave out sample_weight="
        raise InvalidInput(msg)
    if spec.logits:
        msg = "a Predictions contains probabilities: pass logits=False"
        raise InvalidInput(msg)
    names = batch.classes if spec.classes is None else spec.classes
    names = validate_classes(names, batch.n_classes)
    check_same_names(batch.classes, names, ("it", "classes="))
    y = None if spec.labelled is False else batch.y
    if not len(batch):
        return None
    return Predictions.from_validated(batch.p, y, names, batch.sample_weight)


def _split(batch: Any) -> tuple[Any, Any, Any]:
    """p, y and sample_weight; a list is a tuple if its first member is a matrix."""
    matrix_first = isinstance(batch, list) and getattr((batch or [0])[0], "ndim", 0) == 2
    if not isinstance(batch, tuple) and not (matrix_first and 2 <= len(batch) <= 3):
        return batch, None, None
    if not 1 <= len(batch) <= 3:
        msg = f"it must be p, (p, y) or (p, y, sample_weight); got {len(batch)} things"
        raise InvalidInput(msg)
    p, y, weight = (*batch, None, None)[:3]
    return p, y, weight


def _split_weight(p: Any, weight: Any, column: str) -> tuple[Any, np.ndarray]:
    """The data frame without its column of weights, and that column."""
    if weight is not None:
        msg = f"it has weights as its third member: leave out sample_weight={column!r}"
        raise InvalidInput(msg)
    return split_column(p, column)


def check_like_first(number: int, first: Predictions, batch: Predictions) -> None:
    """Check that a batch has the kind of the first with rows."""
    for what, one, other in (
        ("dimensions", first.p.ndim, batch.p.ndim),
        ("classes", first.n_classes, batch.n_classes),
        ("labels", "no" if first.y is None else "its", "no" if batch.y is None else "its"),
    ):
        if one != other:
            msg = f"it must be like batch {number}, which has {one} {what}; it has {other}"
            raise InvalidInput(msg)
    check_same_names(first.classes, batch.classes, (f"batch {number}", "it"))


class Spool:
    """Validated batches in a temporary folder, which is deleted with the reader."""

    def __init__(self, reader: BatchReader) -> None:
        self.fingerprint = reader.fingerprint
        self.folder = Path(tempfile.mkdtemp(prefix="calshift-"))
        weakref.finalize(self, shutil.rmtree, self.folder, ignore_errors=True)
        self.classes: tuple[Any, ...] | None = None
        self.count = 0
        for batch in _merge_small(reader.batches(0), reader.batch_rows):
            self._keep(batch)

    def batches(self, skip: int) -> Generator[Predictions]:
        """The batches as they were read, without the first ``skip``."""
        for number in range(skip, self.count):
            with open(self._path(number), "rb") as file:
                yield pickle.load(file)

    def _keep(self, batch: Predictions) -> None:
        try:
            with open(self._path(self.count), "wb") as file:
                pickle.dump(batch, file, protocol=5)
        except OSError as problem:
            msg = (
                f"data comes only once, and its batches cannot be kept in {self.folder.parent} "
                f"({problem.strerror or 'disk full'}): free space there, set TMPDIR, or pass a "
                "function that returns a fresh iterator"
            )
            raise InvalidInput(msg) from problem
        self.classes, self.count = batch.classes, self.count + 1

    def _path(self, number: int) -> Path:
        return self.folder / f"{number}.pickle"


def _merge_small(batches: Iterable[Predictions], batch_rows: int | None) -> Iterator[Predictions]:
    """Small batches joined, so that there are few files."""
    waiting: list[Predictions] = []
    rows = 0
    for batch in batches:
        waiting.append(batch)
        rows += len(batch)
        if rows >= (batch_rows or rows_for(batch.n_classes)):
            yield concatenate_rows(waiting)
            waiting, rows = [], 0
    if waiting:
        yield concatenate_rows(waiting)
