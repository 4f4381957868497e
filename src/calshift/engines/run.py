"""One question to samples that are read in passes: what it keeps, and whom it tells."""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Callable, Iterator
from dataclasses import fields, is_dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np

from calshift._core.convert import to_numpy
from calshift.engines import Arrays
from calshift.engines.base import Engine
from calshift.engines.checkpoint import Journal
from calshift.errors import InvalidInput
from calshift.results import ClassWeights

NAMES = ("source", "target")
Progress = Callable[[int, int], Any]


class Checkpoint:
    """A file of sums whose owner closes it, such as a command after its report is written."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self.journal: Journal | None = None
        self.failure = ""  # why the sums could not be written

    def close(self) -> None:
        """Nothing is left to do: the file goes."""
        if self.journal is not None:
            self.journal.close()


class Run:
    """The passes of one call, kept in a checkpoint when it is interrupted.

    ``question`` is all that decides what the passes sum up, besides the rows.
    """

    def __init__(
        self,
        checkpoint: Any = None,
        progress: Progress | None = None,
        question: Any = None,
        jobs: int = 1,
    ) -> None:
        if checkpoint is not None and not isinstance(checkpoint, str | Path | Checkpoint):
            msg = f"checkpoint must be the path of a file; got {checkpoint!r}"
            raise InvalidInput(msg)
        if progress is not None and not callable(progress):
            msg = f"progress must be callable with (done, total); got {progress!r}"
            raise InvalidInput(msg)
        self.checkpoint: Any = checkpoint
        self.progress = progress
        self.question = question
        self.jobs = jobs
        self.journal = Journal()

    def taking(self, *engines: Engine) -> list[Engine]:
        """The samples, with their passes noted in one journal."""
        if self.checkpoint is not None:
            self.journal = self._opened(engines)
        return [self._noted(*one) for one in zip(engines, NAMES, strict=False)]

    def _noted(self, engine: Any, name: str) -> Engine:
        noted: Engine = engine
        if hasattr(engine, "running"):
            noted = engine.running(self.journal, self.progress, name)
        elif engine.in_memory is not None and self.jobs > 1:
            noted = Arrays(engine.in_memory, jobs=self.jobs)  # threads
        return noted

    def __enter__(self) -> Run:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        problem: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if problem is None and not isinstance(self.checkpoint, Checkpoint):
            self.journal.close()
            return
        try:
            self.journal.save()
        except InvalidInput as failure:  # neither hides the answer nor why there is none
            if problem is not None:
                problem.add_note(str(failure))
            elif isinstance(self.checkpoint, Checkpoint):
                self.checkpoint.failure = str(failure)

    def _opened(self, engines: tuple[Engine, ...]) -> Journal:
        if not any(hasattr(engine, "running") for engine in engines):
            msg = "checkpoint needs scanned data (calshift.scan); rows in memory are read at once"
            raise InvalidInput(msg)
        fingerprint = digest(_version(), self.question, [_mark(engine) for engine in engines])
        held = self.checkpoint if isinstance(self.checkpoint, Checkpoint) else None
        path = Path(self.checkpoint if held is None else held.path)
        for engine in engines:
            _check_outside(path, engine)
        journal = Journal(path, fingerprint)
        if held is not None:
            held.journal = journal
        return journal


def digest(*values: Any) -> str:
    """A text by which the same values are recognised."""
    found = hashlib.sha256()
    for value in values:
        for part in _told(value):
            found.update(part)
    return found.hexdigest()


def _told(value: Any) -> Iterator[bytes]:
    """A value as bytes that are the same in every process, arrays in full."""
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
            yield from _told(getattr(value, field.name))
    elif isinstance(value, list | tuple):
        yield f"{len(value)}".encode()
        for one in value:
            yield from _told(one)
    else:
        yield repr(value).encode()


def _mark(engine: Engine) -> str:
    """By which a sample is recognised: its files, or its rows if they are in memory."""
    rows = engine.in_memory
    if rows is None:
        return str(getattr(engine, "fingerprint", ""))
    arrays = [one for one in (rows.p, rows.y, rows.sample_weight) if one is not None]
    return f"{rows.p.shape} {[zlib.crc32(np.ascontiguousarray(one).data) for one in arrays]}"


def _check_outside(path: Path, engine: Engine) -> None:
    """A checkpoint in a folder that is read would be read as data by the next run."""
    parts = getattr(getattr(engine, "reader", None), "parts", None)
    if parts is not None and parts.would_contain(path):
        msg = f"checkpoint must not lie in what is read, {parts.path}: name another place"
        raise InvalidInput(msg)


def _version() -> str:
    from importlib.metadata import PackageNotFoundError, version  # late: importing must be fast

    try:
        return version("calshift")
    except PackageNotFoundError:
        return ""
