"""Rows of files in memory."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from calshift._core.predictions import Predictions, concatenate_rows
from calshift.io.file_reader import FileReader


def read_all(reader: FileReader) -> Predictions | None:
    """All rows, in memory once if the files say how many there are; None if there is none."""
    batches: Iterator[Predictions] = reader.batches(0)
    first = next(batches, None)
    counts = [file.count for file in reader.parts.files]
    known = [count for count in counts if count is not None]
    if first is None or len(first) == sum(known) or len(known) < len(counts):
        return first and concatenate_rows([first, *batches])
    return _filled(first, batches, sum(known))


def _filled(first: Predictions, batches: Iterator[Predictions], rows: int) -> Predictions:
    """At most so many rows, copied batch by batch."""
    p = np.empty((rows, *first.p.shape[1:]), first.p.dtype)
    y = None if first.y is None else np.empty(rows, first.y.dtype)
    weight = None if first.sample_weight is None else np.empty(rows)
    batch: Predictions | None = first
    done, classes = 0, first.classes
    del first
    while batch is not None:
        here = slice(done, done + len(batch))
        p = p.astype(np.result_type(p, batch.p), copy=False)
        p[here], done = batch.p, here.stop
        if y is not None:
            y[here] = batch.labels
        if weight is not None:
            weight[here] = batch.frequency
        batch = next(batches, None)
    kept = slice(done)  # rows of weight 0 were left out
    return Predictions.from_validated(
        p[kept], None if y is None else y[kept], classes, None if weight is None else weight[kept]
    )
