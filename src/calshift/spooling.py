"""Batches that come only once, kept in temporary files for the passes to come."""

from __future__ import annotations

import shutil
import tempfile
import weakref
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from calshift.errors import InvalidInput
from calshift.handed import HandedReader
from calshift.predictions import Predictions, joined_rows
from calshift.readers import rows_for


class Spool:
    """Checked batches in a folder of npy files, which goes away with the reader."""

    def __init__(self, reader: HandedReader) -> None:
        self.mark = reader.mark
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
            yield Predictions.trusted(p, y, self.classes, weight)

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
            yield joined_rows(waiting)
            waiting, rows = [], 0
    if waiting:
        yield joined_rows(waiting)
