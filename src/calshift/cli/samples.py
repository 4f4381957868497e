"""Source and target of a command: in memory, read in passes, or on a cluster."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from calshift._core.memory import release_memory
from calshift._core.predictions import Predictions
from calshift._core.validate import validate_integer
from calshift.engines import Arrays, Batches
from calshift.engines.base import Engine
from calshift.engines.open import check_pair
from calshift.engines.run import CheckpointFile
from calshift.errors import InvalidInput
from calshift.io.columns import ColumnSpec, quote
from calshift.io.file_reader import FileReader, match_readers
from calshift.io.file_set import FileSet, open_file_set
from calshift.io.formats.base import check_file
from calshift.io.paths import total_bytes
from calshift.io.prediction_file import errors_name
from calshift.io.whole import read_all

ENGINES = ("auto", "arrays", "batches", "spark")
LARGE = 2**30  # bytes of files above which they are read in passes


@dataclass(frozen=True)
class OpenedSamples:
    """Both samples as engines, and the properties that the options depend on."""

    source: Engine
    target: Engine
    classes: tuple[Any, ...] | None
    n_classes: int
    one_column: bool
    in_passes: bool = False


@dataclass(frozen=True)
class LoadedPair:
    """Both samples in memory, the target's times if requested, and the reader of the target.

    The engines keep their summaries, which are computed here once for the checks and the API.
    """

    engines: tuple[Arrays, Arrays]
    time: np.ndarray | None
    reader: FileReader

    @property
    def source(self) -> Predictions:
        """The labelled source."""
        return self.engines[0].in_memory

    @property
    def target(self) -> Predictions:
        """The target, with its classes in the order of the source."""
        return self.engines[1].in_memory

    def opened(self) -> OpenedSamples:
        """The pair as engines."""
        rows = self.source
        return OpenedSamples(*self.engines, rows.classes, rows.n_classes, rows.p.ndim == 1)


def open_samples(
    source: str, target: str, asked: ColumnSpec, options: dict[str, Any]
) -> OpenedSamples:
    """Both samples by --engine; "auto" depends on the size of the files and on --checkpoint."""
    engine = options["engine"]
    if engine == "auto":
        large = options["checkpoint"] is not None or total_bytes([source, target]) > LARGE
        engine = "batches" if large else "arrays"
    if engine == "spark":
        return _open_on_spark(source, target, asked)
    if engine == "arrays":
        return read_pair(source, target, asked).opened()
    before, after = _open_readers(source, target, asked)
    jobs = validate_integer(options["jobs"], "--jobs", 1)
    engines = Batches(before, jobs=jobs), Batches(after, jobs=jobs)
    return OpenedSamples(*engines, before.classes, before.n_classes, not before.shape, True)


def open_windows(
    source: str, target: str, asked: ColumnSpec
) -> tuple[OpenedSamples, np.ndarray | None]:
    """Both samples and the target's times; of a large target one window is read at a time."""
    if total_bytes([target]) <= LARGE:
        pair = read_pair(source, target, asked)
        return pair.opened(), pair.time
    before, after = _open_readers(source, target, asked)
    engines = Arrays(_read_all(before)), Batches(after)  # every window needs the whole source
    opened = OpenedSamples(*engines, before.classes, before.n_classes, not before.shape)
    return opened, _read_times(after.parts)


def _open_readers(source: Any, target: Any, asked: ColumnSpec) -> tuple[FileReader, FileReader]:
    """Readers of both samples, the target's classes matched by name to the source's order."""
    labelled = replace(asked, labelled=True, time=None)
    before = FileReader(open_file_set(source, "source", labelled))
    after = FileReader(open_file_set(target, "target", replace(asked, labelled=False)))
    return match_readers(before, after)


def _open_on_spark(source: str, target: str, asked: ColumnSpec) -> OpenedSamples:
    from calshift.engines.spark.tables import open_spark  # late: Spark is optional

    before = open_spark(source, replace(asked, time=None, labelled=True))
    after = open_spark(target, replace(asked, time=None, labelled=False), before.classes)
    found = before.summary
    return OpenedSamples(before, after, found.classes, found.n_classes, found.one_column, True)


@contextmanager
def keep_checkpoint_until_written(path: str | None) -> Iterator[Any]:
    """The checkpoint of a command, deleted when all outputs are written."""
    if path is None:
        yield None
        return
    checkpoint = CheckpointFile(path)
    try:
        yield checkpoint
    except KeyboardInterrupt as stop:
        raise KeyboardInterrupt(_resume_message(path, stop)) from stop
    except InvalidInput as problem:
        if not checkpoint.failure:
            raise
        msg = f"{problem}; the checkpoint could not be written either: {checkpoint.failure}"
        raise InvalidInput(msg) from problem
    checkpoint.close()


def _resume_message(path: str, stop: KeyboardInterrupt) -> str:
    if notes := getattr(stop, "__notes__", None):
        return f"stopped; {notes[0]}"
    if Path(path).exists():
        return f"stopped; the same command goes on from {path}"
    return "stopped before the first sums were complete; no checkpoint was written"


def read_pair(
    source: str | Path, target: str | Path, asked: ColumnSpec | None = None
) -> LoadedPair:
    """Both samples in memory, the target's classes matched by name to the source's order."""
    readers = _open_readers(source, target, asked or ColumnSpec())
    before, after = engines = Arrays(_read_all(readers[0])), Arrays(_read_all(readers[1]))
    counts = before.summary.n_classes, after.summary.n_classes
    if counts[0] != counts[1]:
        msg = (
            f"{source} and {target} must have the same classes; "
            f"the first has {counts[0]}, the second {counts[1]}"
        )
        raise InvalidInput(msg)
    with errors_name(source):
        check_pair(before.summary, after.summary)
    return LoadedPair(engines, _read_times(readers[1].parts), readers[1])


def open_target(path: str | Path, asked: ColumnSpec, classes: tuple[str, ...] | None) -> FileReader:
    """A reader of an unlabelled file, with its classes matched by name to this order."""
    check_file(Path(path))
    reader = FileReader(open_file_set(path, "target", asked))
    names, K = reader.classes, reader.n_classes
    if classes is not None and len(classes) != K:
        msg = f"{path} has {K} classes, and the recalibrator {len(classes)}: {quote(classes)}"
        raise InvalidInput(msg)
    if classes is not None and names is not None and set(names) != set(classes):
        msg = f"{path} must have the classes {quote(classes)}; it has {quote(names)}"
        raise InvalidInput(msg)
    return FileReader(reader.parts, classes).in_small_batches()


def _read_all(reader: FileReader) -> Predictions:
    """The rows of all files."""
    rows = read_all(reader)
    if rows is None:  # of a damaged file, whose header names rows
        msg = f"{reader.parts.files[0].path} has no rows"
        raise InvalidInput(msg)
    release_memory()
    return rows


def _read_times(parts: FileSet) -> np.ndarray | None:
    if parts.columns.time is None:
        return None
    return np.concatenate([file.times() for file in parts.files])
