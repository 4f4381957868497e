"""Rows that are read anew in every pass, so that memory holds a few batches of them at most."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from functools import cached_property
from typing import Any, Protocol

import numpy as np

from calshift._core.addable import Tally
from calshift._core.predictions import Predictions
from calshift.engines.base import Engine, MappedEngine, Summand, kernel_name
from calshift.engines.checkpoint import Journal
from calshift.engines.sample_summary import SampleSummary, summary_terms
from calshift.errors import InvalidInput, NoRows

Progress = Callable[[int, int], Any]


class Reader(Protocol):
    """Where batches come from, time and again."""

    @property
    def classes(self) -> tuple[Any, ...] | None:
        """Their names, if they have any."""

    @property
    def fingerprint(self) -> str:
        """By which the same batches are recognised in another run; empty if by nothing."""

    def batches(self, skip: int) -> Iterator[Predictions]:
        """Checked batches of at least one row, without the first ``skip`` of them."""


class Batches:
    """The engine of batches; ``jobs`` threads work on them, and they add up in their order.

    A pass that is interrupted leaves its sum in the journal. ``progress`` is told (rows done, rows
    in a pass, 0 in the first). ``name`` tells samples that share a journal apart.
    """

    in_memory = None

    def __init__(
        self,
        reader: Reader,
        journal: Journal | None = None,
        jobs: int = 1,
        progress: Progress | None = None,
        name: str = "",
    ) -> None:
        self.reader = reader
        self.journal = journal or Journal()
        self.jobs = jobs
        self.progress = progress
        self.name = name
        self.counts = Tally()  # of the first pass, shared with the next run of the same rows

    @cached_property
    def summary(self) -> SampleSummary:
        """Sizes, class counts, names: the first pass."""
        if self.counts:
            self.journal.end(self.counts, self._what(summary_terms))
        else:
            self.counts.update(self.total(summary_terms) or {})
        if not self.counts:
            msg = "there must be at least one row; all batches are empty"
            raise NoRows(msg)
        return SampleSummary(self.reader.classes, **self.counts)

    @property
    def fingerprint(self) -> str:
        """By which the same rows are recognised."""
        return self.reader.fingerprint

    def running(self, journal: Journal, progress: Progress | None, name: str) -> Batches:
        """The same rows in a run that keeps its passes in a journal."""
        other = Batches(self.reader, journal, self.jobs, progress or self.progress, name)
        other.counts = self.counts
        return other

    def reading(self, reader: Reader) -> Batches:
        """The same run over what another reader gives."""
        if reader is self.reader:
            return self
        return Batches(reader, self.journal, self.jobs, self.progress, self.name)

    def total(self, kernel: Summand) -> Any:
        """kernel(batch) summed over the batches; the empty sum is 0."""
        what = self._what(kernel)
        finished, batches, total = self.journal.begin(what)
        if not finished:
            for one in self._answers(kernel, batches):
                total, batches = total + one, batches + 1
                self.journal.note(batches, total)
        self.journal.end(total, what)
        return total

    def mapped(self, function: Callable[[Predictions], np.ndarray]) -> Engine:
        """The same rows with probabilities function(batch), worked out in every pass."""
        return MappedEngine(self, function)

    def _what(self, kernel: Summand) -> str:
        return f"{self.name} {kernel_name(kernel)}"

    def _answers(self, kernel: Summand, skip: int) -> Iterator[Any]:
        """kernel(batch) in the order of the batches."""
        if self.jobs == 1:
            yield from map(kernel, self._read(skip))
            return
        from concurrent.futures import Future, ThreadPoolExecutor

        with ThreadPoolExecutor(self.jobs) as pool:
            waiting: deque[Future[Any]] = deque()
            for batch in self._read(skip):
                waiting.append(pool.submit(kernel, batch))
                if len(waiting) > self.jobs:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()

    def _read(self, skip: int) -> Iterator[Predictions]:
        """The batches, counted; a source that changes between two passes is an error.

        Those of less precision than others are read in that of the others, as one array would be.
        """
        rows, known = 0, int(self.counts.get("rows", 0))
        for batch in self.reader.batches(skip):
            yield batch.in_double() if self.counts.get("double") else batch
            rows += len(batch)
            if self.progress is not None:
                self.progress(rows, known)
        if known and not skip and rows != known:
            msg = (
                f"there were {known:,} rows in the first pass and {rows:,} in a later one: "
                "batches must be the same each time they are read"
            )
            raise InvalidInput(msg)
