"""Source and target of a command: in memory, read in passes, or on a cluster.

Paths to Predictions in memory, classes of two samples matched by name.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from calshift._core.predictions import Predictions, concatenate_rows
from calshift._core.validate import validate_integer
from calshift.engines import Arrays, Batches
from calshift.engines.open import check_pair
from calshift.engines.run import CheckpointFile
from calshift.errors import InvalidInput
from calshift.io.columns import ColumnSpec, quote
from calshift.io.file_reader import FileReader, match_readers
from calshift.io.file_set import FileSet, open_file_set, total_bytes
from calshift.io.formats.base import check_file
from calshift.io.prediction_file import PredictionFile, errors_name_file

ENGINES = ("auto", "arrays", "batches", "spark")
LARGE = 2**30  # bytes of files beyond which they are read in passes


@dataclass(frozen=True)
class Opened:
    """Both samples as the library takes them, and what options have to know of them."""

    source: Any
    target: Any
    classes: tuple[Any, ...] | None
    n_classes: int
    one_column: bool
    in_passes: bool = False

    @property
    def target_size(self) -> float:
        """The size of the target sample."""
        return float(self.target.summary.size if self.in_passes else self.target.size)

    @staticmethod
    def in_memory(pair: Pair) -> Opened:
        """Rows that were read."""
        rows = pair.source
        return Opened(rows, pair.target, rows.classes, rows.n_classes, rows.p.ndim == 1)


def open_samples(source: str, target: str, asked: ColumnSpec, options: dict[str, Any]) -> Opened:
    """As --engine says, or as the files' size and --checkpoint do."""
    engine = options["engine"]
    if engine == "auto":
        large = options["checkpoint"] is not None or total_bytes([source, target]) > LARGE
        engine = "batches" if large else "arrays"
    if engine == "spark":
        return _on_spark(source, target, asked)
    if engine == "batches":
        return _in_passes(source, target, asked, options["jobs"])
    return Opened.in_memory(read_pair(source, target, asked))


def open_windows(source: str, target: str, asked: ColumnSpec) -> tuple[Opened, np.ndarray | None]:
    """Source, target and its times; of a large target a window is held at a time."""
    if total_bytes([target]) <= LARGE:
        pair = read_pair(source, target, asked)
        return Opened.in_memory(pair), pair.time
    before, after = _readers(source, target, asked)
    times = [file.times() for file in after.parts.files] if asked.time is not None else None
    rows = concatenate_rows(list(before.batches(0)))  # every window asks for all of them
    opened = Opened(rows, Batches(after), before.classes, before.n_classes, not before.shape)
    return opened, None if times is None else np.concatenate(times)


def _readers(source: str, target: str, asked: ColumnSpec) -> tuple[FileReader, FileReader]:
    labelled = replace(asked, labelled=True, time=None)
    before = FileReader(open_file_set(source, "source", labelled))
    after = FileReader(open_file_set(target, "target", replace(asked, labelled=False)))
    return match_readers(before, after)


def _in_passes(source: str, target: str, asked: ColumnSpec, jobs: int) -> Opened:
    before, after = _readers(source, target, asked)
    jobs = validate_integer(jobs, "--jobs", 1)
    one, two = Batches(before, jobs=jobs), Batches(after, jobs=jobs)
    return Opened(one, two, before.classes, before.n_classes, not before.shape, True)


def _on_spark(source: str, target: str, asked: ColumnSpec) -> Opened:
    from calshift.engines.spark.tables import open_spark  # late: only who asks for it needs Spark

    before = open_spark(source, replace(asked, time=None, labelled=True))
    after = open_spark(target, replace(asked, time=None, labelled=False), before.classes)
    summary = before.summary
    return Opened(before, after, summary.classes, summary.n_classes, summary.one_column, True)


@contextmanager
def keep_checkpoint_until_written(path: str | None) -> Iterator[Any]:
    """The checkpoint of a command, which goes when all is written; Ctrl-C says how to go on."""
    if path is None:
        yield None
        return
    checkpoint = CheckpointFile(path)
    try:
        yield checkpoint
    except KeyboardInterrupt as stop:
        raise KeyboardInterrupt(_how_to_go_on(path, stop)) from stop
    except InvalidInput as problem:
        if not checkpoint.failure:
            raise
        msg = f"{problem}; nor are the sums kept: {checkpoint.failure}"
        raise InvalidInput(msg) from problem
    checkpoint.close()


def _how_to_go_on(path: str, stop: KeyboardInterrupt) -> str:
    if notes := getattr(stop, "__notes__", None):
        return f"stopped; {notes[0]}"
    if Path(path).exists():
        return f"stopped; the same command goes on from {path}"
    return "stopped; nothing was summed up yet"


@dataclass(frozen=True)
class Pair:
    """Source and target as Predictions of the same classes, and the target's times if asked.

    ``files`` are the target's.
    """

    source: Predictions
    target: Predictions
    time: np.ndarray | None
    files: FileSet

    @property
    def file(self) -> PredictionFile:
        """The target's only file, to write it again with other probabilities."""
        (file,) = self.files.files
        return file


def read_pair(source: str | Path, target: str | Path, asked: ColumnSpec | None = None) -> Pair:
    """Both samples, the target's classes put into the source's order by their names."""
    asked = asked or ColumnSpec()
    before = open_file_set(source, "source", replace(asked, labelled=True, time=None))
    after = open_file_set(target, "target", replace(asked, labelled=False))
    readers = match_readers(FileReader(before), FileReader(after))
    one, two = map(_gathered, readers)
    if one.n_classes != two.n_classes:
        msg = (
            f"{source} and {target} must have the same classes; "
            f"the first has {one.n_classes}, the second {two.n_classes}"
        )
        raise InvalidInput(msg)
    with errors_name_file(source):
        check_pair(Arrays(one).summary, Arrays(two).summary)
    files = readers[1].parts
    return Pair(one, Predictions.from_validated(two.p, None, one.classes), _times(files), files)


def read_target(
    path: str | Path, asked: ColumnSpec, classes: tuple[str, ...] | None
) -> tuple[Predictions, PredictionFile]:
    """A file without labels alone, its classes put into this order by their names."""
    check_file(Path(path))
    reader = FileReader(open_file_set(path, "target", asked))
    names, K = reader.classes, reader.n_classes
    if classes is not None and len(classes) != K:
        msg = f"{path} has {K} classes, and the recalibrator {len(classes)}: {quote(classes)}"
        raise InvalidInput(msg)
    if classes is not None and names is not None and set(names) != set(classes):
        msg = f"{path} must have the classes {quote(classes)}; it has {quote(names)}"
        raise InvalidInput(msg)
    reader = FileReader(reader.parts, classes)
    return _gathered(reader), reader.parts.files[0]


def _gathered(reader: FileReader) -> Predictions:
    """All batches of all files as one."""
    batches = list(reader.batches(0))
    y = [batch.y for batch in batches if batch.y is not None]
    p = np.concatenate([batch.p for batch in batches])
    return Predictions.from_validated(p, np.concatenate(y) if y else None, reader.classes)


def _times(parts: FileSet) -> np.ndarray | None:
    if parts.columns.time is None:
        return None
    return np.concatenate([file.times() for file in parts.files])
