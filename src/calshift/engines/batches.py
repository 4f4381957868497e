"""Rows that are read again in every pass, so that only a few batches are in memory."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterator
from contextlib import closing
from functools import cached_property
from typing import Any, Protocol

from calshift._core.addable import Tally
from calshift._core.predictions import Predictions
from calshift.engines.base import Engine, Passes, Progress, Summand, kernel_name
from calshift.engines.checkpoint import Checkpoint
from calshift.engines.even_rows import EvenRows
from calshift.engines.plan import PassPlan
from calshift.engines.sample_summary import SampleSummary, summary_terms
from calshift.errors import InvalidInput, NoRows
from calshift.io.batch_reader import Spool
from calshift.io.file_reader import FileReader
from calshift.io.read_ahead import read_ahead


class Reader(Protocol):
    """A source of batches that can be read repeatedly."""

    @property
    def classes(self) -> tuple[Any, ...] | None:
        """Names of the classes, if they have any."""

    @property
    def fingerprint(self) -> str:
        """Identifies the same batches in another run; may be empty."""

    def batches(self, skip: int) -> Iterator[Predictions]:
        """Validated batches of at least one row, without the first ``skip`` of them."""


class Batches(Engine):
    """The engine of batches; ``jobs`` threads work on them, and they are added up in their order.

    A pass that is interrupted leaves its sum in the checkpoint, under the ``name`` of the sample.
    The callback ``progress(done, total)`` gets rows; the total is 0 in the first pass.
    """

    def __init__(
        self,
        reader: Reader,
        checkpoint: Checkpoint | None = None,
        jobs: int = 1,
        progress: Progress | None = None,
        name: str = "",
    ) -> None:
        self.reader = reader
        self.checkpoint = checkpoint or Checkpoint()
        self.jobs = jobs
        self.progress = progress
        self.name = name
        self.planned = PassPlan()
        self.counts = Tally()  # of the first pass, shared with the next run of the same rows
        self.sampled: list[EvenRows] = []  # in the first whole pass, and shared

    @cached_property
    def summary(self) -> SampleSummary:
        """Sizes, class counts, names: the first pass."""
        if self.counts and not self.planned.waiting:
            self.checkpoint.end(self.counts, self._pass_name(summary_terms))
        else:
            self.counts.update(self.total(summary_terms) or {})
        if not self.counts:
            msg = "there must be at least one row; all batches are empty"
            raise NoRows(msg)
        return SampleSummary(self.reader.classes, **self.counts)

    @property
    def even_rows(self) -> EvenRows:
        """Rows spread evenly; the first pass collects them, and no checkpoint has them."""
        if not self.sampled:
            for _ in self._read(0):
                pass
        return self.sampled[0]

    @property
    def fingerprint(self) -> str:
        """Identifies the same rows in another run."""
        return self.reader.fingerprint

    def running(self, name: str, passes: Passes) -> Batches:
        """The same rows in a run; the threads stay the same."""
        progress = passes.progress or self.progress
        other = Batches(self.reader, passes.checkpoint, self.jobs, progress, name)
        other.counts, other.sampled = self.counts, self.sampled
        return other

    @cached_property
    def unlabelled(self) -> Batches:
        """The same rows with the labels of files left unread."""
        if not isinstance(self.reader, FileReader):
            return self
        return self.reading(self.reader.without_labels())

    def reading(self, reader: Reader) -> Batches:
        """The same run with another reader."""
        if reader is self.reader:
            return self
        return Batches(reader, self.checkpoint, self.jobs, self.progress, self.name)

    def total(self, kernel: Summand) -> Any:
        """kernel(batch) summed over the batches; the empty sum is 0."""
        return self.planned.total(kernel, self._total)

    def record(self, name: str, compute: Callable[[], Any]) -> Any:
        """What is computed without a pass, or what the checkpoint has of it."""
        name = f"{self.name} {name}"
        finished, _, value = self.checkpoint.begin(name)
        if not finished:
            value = compute()
        self.checkpoint.end(value, name)
        return value

    def _total(self, kernel: Summand) -> Any:
        name = self._pass_name(kernel)
        finished, batches, total = self.checkpoint.begin(name)
        if not finished:
            with closing(self._terms(kernel, batches)) as terms:
                for one in terms:
                    total, batches = total + one, batches + 1
                    self.checkpoint.note(batches, total)
        self.checkpoint.end(total, name)
        return total

    def _pass_name(self, kernel: Summand) -> str:
        return f"{self.name} {kernel_name(kernel)}"

    def _terms(self, kernel: Summand, skip: int) -> Generator[Any]:
        """kernel(batch) in the order of the batches."""
        with closing(self._read(skip)) as batches:
            if self.jobs == 1:
                yield from map(kernel, batches)
            else:
                yield from self._terms_by_threads(kernel, batches)

    def _terms_by_threads(self, kernel: Summand, batches: Iterator[Predictions]) -> Iterator[Any]:
        from concurrent.futures import Future, ThreadPoolExecutor

        with ThreadPoolExecutor(self.jobs) as pool:
            waiting: deque[Future[Any]] = deque()
            for batch in batches:
                waiting.append(pool.submit(kernel, batch))
                if len(waiting) > self.jobs:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()

    def _read(self, skip: int) -> Generator[Predictions]:
        """The batches, counted; a change between two passes is an error.

        Where some batches are in double precision all are converted to it, as one array would be.
        """
        rows, known, even = 0, int(self.counts.get("rows", 0)), EvenRows()
        collects = not skip and not self.sampled
        for batch in self._batches(skip):
            read = batch.in_double() if self.counts.get("double") else batch
            if collects:
                even.include(read)
            yield read
            rows += len(batch)
            if self.progress is not None:
                self.progress(rows, known)
        if known and not skip and rows != known:
            msg = (
                f"there were {known:,} rows in the first pass and {rows:,} in a later one: "
                "batches must be the same each time they are read"
            )
            raise InvalidInput(msg)
        if collects and rows:
            self.sampled.append(even)

    def _batches(self, skip: int) -> Iterator[Predictions]:
        """Those of files are read ahead; what users pass is called in their own thread."""
        if isinstance(self.reader, FileReader | Spool):
            return read_ahead(self.reader.batches(skip))
        return self.reader.batches(skip)
