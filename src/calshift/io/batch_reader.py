"""Batches that users hand over: arrays, with labels and sample weights or without.

Batches that come only once, kept in temporary files for the passes to come.
"""

from __future__ import annotations

import shutil
import tempfile
import weakref
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from calshift._core.convert import to_numpy
from calshift._core.predictions import Predictions, concatenate_rows, named_predictions
from calshift._core.validate import check_same_names, is_number, validate_classes
from calshift.errors import InvalidInput
from calshift.io.file_reader import rows_for
from calshift.io.prediction_file import from_logits


@dataclass(frozen=True)
class BatchSpec:
    """What the user said of all batches."""

    classes: tuple[Any, ...] | None = None
    logits: bool = False
    labelled: bool | None = None


class BatchReader:
    """Batches from ``source()``, which gives the same ones each time it is asked."""

    def __init__(
        self, source: Callable[[], Iterable[Any]], spec: BatchSpec, batch_rows: int | None
    ) -> None:
        self.source = source
        self.spec = spec
        self.batch_rows = batch_rows
        self.names: list[Any] = [] if spec.classes is None else [spec.classes]

    @property
    def fingerprint(self) -> str:
        """How they are read; that they are the same only the user knows."""
        return f"{self.spec} {self.batch_rows}"

    @property
    def classes(self) -> tuple[Any, ...] | None:
        """Their names: given, or those of the first batch, which is read if none was yet."""
        if not self.names:
            next(self.batches(0), None)
        return self.names[0] if self.names else None

    def batches(self, skip: int) -> Iterator[Predictions]:
        """Checked batches, cut where they are large, without the first ``skip``."""
        return islice(self._pieces(), skip, None)

    def _fresh(self) -> Iterable[Any]:
        found = self.source()
        if not hasattr(found, "__iter__"):
            msg = f"data must return an iterator of batches when it is called; got {type(found)!r}"
            raise InvalidInput(msg)
        return found

    def _pieces(self) -> Iterator[Predictions]:
        first: tuple[int, Predictions] | None = None
        for number, batch in enumerate(self._fresh()):
            with numbered(number):
                read = read_batch(batch, self.spec)
                if read is None:
                    continue
                first = first or (number, read)
                self.names = self.names or [read.classes]
                check_alike(*first, read)
            rows = self.batch_rows or rows_for(read.n_classes)
            for start in range(0, len(read), rows):
                yield read.rows(start, start + rows)


@contextmanager
def numbered(number: int) -> Iterator[None]:
    """Complaints say which batch is meant, counted from 0."""
    try:
        yield
    except InvalidInput as problem:
        msg = f"batch {number}: {problem}"
        raise InvalidInput(msg) from problem


def read_batch(batch: Any, spec: BatchSpec) -> Predictions | None:
    """One batch, checked; None if it has no rows."""
    if isinstance(batch, Predictions):
        return _known(batch, spec)
    if isinstance(batch, str | Path):
        msg = f"it is a path, {str(batch)!r}: pass a list of paths, and no arrays among them"
        raise InvalidInput(msg)
    if isinstance(batch, list) and batch and is_number(batch[0]):
        msg = "a list of numbers may be a row or a batch of scores: pass an array"
        raise InvalidInput(msg)
    p, y, weight = _taken_apart(batch)
    if spec.labelled and y is None:
        msg = "it must be (p, y): labelled=True was asked for"
        raise InvalidInput(msg)
    p, columns = to_numpy(p, "p")
    if weight is not None:
        weight = to_numpy(weight, "sample_weight")[0]
    if p.ndim and len(p) == 0:
        return None
    p = from_logits(p) if spec.logits and p.ndim in (1, 2) else p
    y = None if spec.labelled is False else y
    classes = spec.classes if spec.classes is not None else columns
    if weight is None or weight.shape != p.shape[:1] or weight.any():
        return named_predictions(p, y, classes, "p", "y", sample_weight=weight)
    named_predictions(p, y, classes, "p", "y")  # none of these rows counts, and still they must fit
    return None


def _known(batch: Predictions, spec: BatchSpec) -> Predictions | None:
    """Predictions as they are, but for what was asked."""
    if spec.labelled and batch.y is None:
        msg = "it has no labels: labelled=True was asked for"
        raise InvalidInput(msg)
    if spec.logits:
        msg = "a Predictions holds probabilities: pass logits=False"
        raise InvalidInput(msg)
    names = batch.classes if spec.classes is None else spec.classes
    names = validate_classes(names, batch.n_classes)
    check_same_names(batch.classes, names, ("it", "classes="))
    y = None if spec.labelled is False else batch.y
    return (
        Predictions.from_validated(batch.p, y, names, batch.sample_weight) if len(batch) else None
    )


def _taken_apart(batch: Any) -> tuple[Any, Any, Any]:
    """p, y and sample_weight; a list is a tuple if its first member is a matrix."""
    listed = isinstance(batch, list) and 2 <= len(batch) <= 3 and _dimensions(batch[0]) == 2
    if not isinstance(batch, tuple) and not listed:
        return batch, None, None
    if not 1 <= len(batch) <= 3:
        msg = f"it must be p, (p, y) or (p, y, sample_weight); got {len(batch)} things"
        raise InvalidInput(msg)
    p, y, weight = (*batch, None, None)[:3]
    return p, y, weight


def _dimensions(value: Any) -> int:
    return int(getattr(value, "ndim", 0))


def check_alike(number: int, first: Predictions, batch: Predictions) -> None:
    """All batches are of one kind: that of the first with rows."""
    for what, one, other in (
        ("dimensions", first.p.ndim, batch.p.ndim),
        ("classes", first.n_classes, batch.n_classes),
        ("labels", _has(first.y), _has(batch.y)),
    ):
        if one != other:
            msg = f"it must be like batch {number}, which has {one} {what}; it has {other}"
            raise InvalidInput(msg)
    check_same_names(first.classes, batch.classes, (f"batch {number}", "it"))


def _has(labels: Any) -> str:
    return "no" if labels is None else "its"


class Spool:
    """Checked batches in a folder of npy files, which goes away with the reader."""

    def __init__(self, reader: BatchReader) -> None:
        self.fingerprint = reader.fingerprint
        self.folder = Path(tempfile.mkdtemp(prefix="calshift-"))
        weakref.finalize(self, shutil.rmtree, self.folder, ignore_errors=True)
        self.classes: tuple[Any, ...] | None = None
        self.count = 0
        for batch in _gathered(reader.batches(0), reader.batch_rows):
            self._keep(batch)

    def batches(self, skip: int) -> Iterator[Predictions]:
        """As they were read, without the first ``skip``."""
        for number in range(skip, self.count):
            p, y, weight = (self._loaded(number, name) for name in ("p", "y", "weight"))
            assert p is not None
            yield Predictions.from_validated(p, y, self.classes, weight)

    def _keep(self, batch: Predictions) -> None:
        self.classes = batch.classes
        arrays = {"p": batch.p, "y": batch.y, "weight": batch.sample_weight}
        try:
            for name, array in arrays.items():
                if array is not None:
                    np.save(self._path(self.count, name), array)
        except OSError as problem:
            msg = (
                f"data comes only once, and its batches cannot be kept in {self.folder.parent} "
                f"({problem.strerror or 'disk full'}): free it, set TMPDIR, or pass a function "
                "that returns a fresh iterator"
            )
            raise InvalidInput(msg) from problem
        self.count += 1

    def _loaded(self, number: int, name: str) -> np.ndarray | None:
        path = self._path(number, name)
        return np.asarray(np.load(path)) if path.exists() else None

    def _path(self, number: int, name: str) -> Path:
        return self.folder / f"{number}-{name}.npy"


def _gathered(batches: Iterable[Predictions], batch_rows: int | None) -> Iterator[Predictions]:
    """Small batches joined: as many files as are needed, however the rows came."""
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
