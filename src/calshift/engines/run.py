"""Checkpointing and progress of one multi-pass computation."""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np

from calshift._core.convert import to_numpy
from calshift._core.validate import show, validate_path
from calshift.engines import Batches, Spark
from calshift.engines.base import Engine, Passes, Progress
from calshift.engines.checkpoint import Checkpoint
from calshift.errors import InvalidInput
from calshift.io.file_reader import FileReader
from calshift.results import ClassWeights

NAMES = ("source", "target")


class CheckpointFile:
    """A checkpoint that its owner closes, such as a command after its report is written."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self.checkpoint: Checkpoint | None = None
        self.failure = ""  # why the sums could not be written

    def close(self) -> None:
        """Delete the file: the work is complete."""
        if self.checkpoint is not None:
            self.checkpoint.close()


class Run:
    """The passes of one call, saved when it is interrupted if a checkpoint was asked for.

    ``question`` is all that determines what the passes sum up, besides the rows.
    """

    def __init__(
        self,
        checkpoint: str | Path | CheckpointFile | None = None,
        progress: Progress | None = None,
        question: Any = None,
        jobs: int = 1,
    ) -> None:
        if checkpoint is not None and not isinstance(checkpoint, str | Path | CheckpointFile):
            msg = f"checkpoint must be the path of a file; got {show(checkpoint)}"
            raise InvalidInput(msg)
        if isinstance(checkpoint, str | Path):
            validate_path(checkpoint, "checkpoint")
        validate_progress(progress)
        self.file = checkpoint
        self.progress = progress
        self.question = question
        self.jobs = jobs
        self.checkpoint: Checkpoint | None = None

    def open(self, *engines: Engine) -> list[Engine]:
        """The samples in this run, with one checkpoint for all their passes."""
        if self.file is not None:
            self.checkpoint = self._open_checkpoint(self.file, engines)
        passes = Passes(self.checkpoint, self.progress, self.jobs)
        return [one.running(name, passes) for one, name in zip(engines, NAMES, strict=False)]

    def __enter__(self) -> Run:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        problem: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self.checkpoint is None:
            return
        if problem is None and not isinstance(self.file, CheckpointFile):
            self.checkpoint.close()
            return
        try:
            self.checkpoint.save()
        except InvalidInput as failure:  # hides neither the result nor the reason for its absence
            if problem is not None:
                problem.add_note(str(failure))
            elif isinstance(self.file, CheckpointFile):
                self.file.failure = str(failure)

    def _open_checkpoint(
        self, file: str | Path | CheckpointFile, engines: tuple[Engine, ...]
    ) -> Checkpoint:
        if all(engine.in_memory is not None for engine in engines):
            msg = "checkpoint needs data that is scanned (calshift.scan); these rows are in memory"
            raise InvalidInput(msg)
        path = file.path if isinstance(file, CheckpointFile) else Path(file)
        for engine in engines:
            _check_outside(path, engine)
        marks = [_fingerprint(engine) for engine in engines]
        checkpoint = Checkpoint(path, digest(_version(), self.question, marks))
        if isinstance(file, CheckpointFile):
            file.checkpoint = checkpoint
        return checkpoint


def validate_progress(progress: Any) -> None:
    """Check that a callback can be called."""
    if progress is not None and not callable(progress):
        msg = f"progress must be callable with (done, total); got {show(progress)}"
        raise InvalidInput(msg)


def digest(*values: Any) -> str:
    """A checksum that is the same for the same values in every process."""
    found = hashlib.sha256()
    for part in _as_bytes(values):
        found.update(part)
    return found.hexdigest()


def _as_bytes(value: Any) -> Iterator[bytes]:
    """A value as bytes, arrays in full."""
    if isinstance(value, ClassWeights):
        value = (value.method, value.values, value.prior_source, value.n_source)
    elif hasattr(value, "__array__"):
        value = to_numpy(value, "value")[0]
    if isinstance(value, np.ndarray):
        yield f"{value.dtype} {value.shape}".encode()
        yield np.ascontiguousarray(value).tobytes()
    elif is_dataclass(value) and not isinstance(value, type):
        yield type(value).__name__.encode()
        for field in fields(value):
            yield from _as_bytes(getattr(value, field.name))
    elif isinstance(value, list | tuple):
        yield f"{len(value)}".encode()
        for one in value:
            yield from _as_bytes(one)
    else:
        yield repr(value).encode()


def _fingerprint(engine: Engine) -> str:
    """Identifies a sample: by its files, or by its rows if they are in memory."""
    if isinstance(engine, Batches | Spark):
        return engine.fingerprint
    rows = engine.in_memory
    if rows is None:
        return ""
    arrays = [one for one in (rows.p, rows.y, rows.sample_weight) if one is not None]
    return f"{rows.p.shape} {[zlib.crc32(np.ascontiguousarray(one).data) for one in arrays]}"


def _check_outside(path: Path, engine: Engine) -> None:
    """Refuse a checkpoint in a folder that is read: the next run would read it as data."""
    reader = engine.reader if isinstance(engine, Batches) else None
    if isinstance(reader, FileReader) and reader.parts.would_contain(path):
        msg = f"checkpoint must not be inside the data, {reader.parts.path}: choose another path"
        raise InvalidInput(msg)


def _version() -> str:
    from importlib.metadata import PackageNotFoundError, version  # late: importing must be fast

    try:
        return version("calshift")
    except PackageNotFoundError:
        return ""
