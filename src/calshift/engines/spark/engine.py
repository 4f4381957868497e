"""Rows in a Spark table: executors add kernels up, and only sums come back."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import cached_property
from math import ceil, isqrt
from typing import Any

import numpy as np

from calshift._core.predictions import Predictions
from calshift.engines.base import Engine, MappedEngine, Summand, kernel_name
from calshift.engines.checkpoint import Journal
from calshift.engines.sample_summary import SampleSummary, summary_terms
from calshift.engines.spark.errors import plainly
from calshift.engines.spark.partition import (
    SCHEMA,
    MergeGroups,
    PartitionSum,
    Reading,
    SumPartition,
    added,
)
from calshift.errors import InvalidInput, NoRows

Progress = Callable[[int, int], Any]

MOST_PARTS = 64  # partitions whose sums the driver adds up itself


class Spark:
    """The engine of a Spark DataFrame that has the columns to read and no others.

    All that a task leaves is its sum, so that one tried again counts once. Sums are added in the
    order of the partitions, whichever is finished first.
    """

    in_memory = None

    def __init__(
        self, frame: Any, reading: Reading, journal: Journal | None = None, name: str = ""
    ) -> None:
        self.frame = frame
        self.reading = reading
        self.journal = journal or Journal()
        self.name = name  # tells samples that share a journal apart
        self.progress: Progress | None = None
        self.first: list[Any] = []  # sum, rows and partitions of the first pass

    @property
    def classes(self) -> tuple[Any, ...] | None:
        """Their names, known without a pass."""
        return self.reading.classes

    @property
    def fingerprint(self) -> str:
        """By which the same rows are recognised: how they are read, and from which files."""
        with plainly(self.reading.table):
            return f"{self.reading.fingerprint} {sorted(self.frame.inputFiles())}"

    @property
    def parts(self) -> int:
        """Partitions, 0 before the first pass."""
        return int(self.first[2]) if self.first else 0

    @cached_property
    def summary(self) -> SampleSummary:
        """Sizes, class counts, names: the first pass."""
        if self.first:
            self.journal.end(self.first, self._what(summary_terms))
        else:
            self.first.extend(self._pass(summary_terms))
        if not self.first[1]:
            msg = f"{self.reading.table} has columns but no row"
            raise NoRows(msg)
        summary = SampleSummary(self.classes, **self.first[0])
        if self.classes is not None and len(self.classes) != summary.n_classes:
            msg = (
                f"{self.reading.table} has {summary.n_classes} classes, and names were given for "
                f"{len(self.classes)}"
            )
            raise InvalidInput(msg)
        return summary

    def running(self, journal: Journal, progress: Progress | None, name: str) -> Spark:
        """The same rows in a run that keeps its passes in a journal; one of its own stays."""
        in_memory = self.journal if journal.path is None else journal
        other = Spark(self.frame, self.reading, in_memory, name)
        other.progress, other.first = progress, self.first
        return other

    def total(self, kernel: Summand) -> Any:
        """kernel(batch) summed over the table; the empty sum is 0."""
        return self._pass(kernel)[0]

    def mapped(self, function: Callable[[Predictions], np.ndarray]) -> Engine:
        """The same rows with probabilities function(batch), worked out in every pass."""
        return MappedEngine(self, function)

    def _what(self, kernel: Summand) -> str:
        return f"{self.name} {kernel_name(kernel)}"

    def _pass(self, kernel: Summand) -> list[Any]:
        """Sum, rows and partitions, noted in the journal."""
        what = self._what(kernel)
        finished, _, found = self.journal.begin(what)
        if not finished:
            found = self._added(kernel)
        self._check_rows(found[1])
        self.journal.end(found, what)
        self.journal.save()  # a pass is long, and none should be made twice
        if self.progress is not None:
            self.progress(found[1], found[1])
        return list(found)

    def _added(self, kernel: Summand) -> list[Any]:
        with plainly(self.reading.table):
            parts = [PartitionSum(*row) for row in self._sums(kernel).collect()]
        total, rows, _ = added(parts, self.reading.table)
        return [total, rows, self.parts or len(parts)]

    def _sums(self, kernel: Summand) -> Any:
        """A table of sums: one a partition, or one a group of them where they are many.

        The first pass, whose sums are small, counts the partitions.
        """
        sums = _mapped(self.frame, SumPartition(kernel, self.reading))
        if self.parts <= MOST_PARTS:
            return sums
        from pyspark.sql.functions import expr

        size = isqrt(self.parts)
        groups = sums.repartition(ceil(self.parts / size), expr(f"part div {size}"))
        return _mapped(groups, MergeGroups(size, self.reading.table))

    def _check_rows(self, rows: int) -> None:
        if self.first and rows != self.first[1]:
            msg = (
                f"{self.reading.table}: there were {self.first[1]:,} rows in the first pass and "
                f"{rows:,} in a later one: the table must stay as it is"
            )
            raise InvalidInput(msg)


def _mapped(frame: Any, function: Any) -> Any:
    with warnings.catch_warnings():  # about pandas, which Spark asks for and nothing here uses
        warnings.simplefilter("ignore", FutureWarning)
        return frame.mapInArrow(function, SCHEMA)
