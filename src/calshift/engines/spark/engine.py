"""Rows in a Spark table: executors sum kernels up, and the driver gets only the sums."""

from __future__ import annotations

import warnings
from functools import cached_property
from math import ceil, isqrt
from typing import Any

from calshift.engines.base import Engine, Passes, Progress, Summand, kernel_name
from calshift.engines.checkpoint import Checkpoint
from calshift.engines.plan import PassPlan
from calshift.engines.sample_summary import SampleSummary, summary_terms
from calshift.engines.spark.errors import short_errors
from calshift.engines.spark.partition import (
    SCHEMA,
    MergeGroups,
    PartitionSum,
    Reading,
    SumPartition,
    merge_sums,
)
from calshift.errors import InvalidInput, NoRows

MOST_PARTS = 64  # partitions whose sums the driver adds up itself


class Spark(Engine):
    """The engine of a Spark DataFrame that has the columns to read and no others.

    A task returns only its sum, so that a repeated task counts once. Sums are added in the order of
    the partitions, whichever is finished first.
    """

    def __init__(
        self,
        frame: Any,
        reading: Reading,
        checkpoint: Checkpoint | None = None,
        name: str = "",
        progress: Progress | None = None,
    ) -> None:
        self.frame = frame
        self.reading = reading
        self.checkpoint = checkpoint or Checkpoint()
        self.name = name  # of the sample in a checkpoint that it shares with another
        self.progress = progress
        self.planned = PassPlan()
        self.first: list[Any] = []  # sum, rows and partitions of the first pass

    @property
    def classes(self) -> tuple[Any, ...] | None:
        """Names of the classes, known without a pass."""
        return self.reading.classes

    @property
    def fingerprint(self) -> str:
        """Identifies the same rows in another run: how they are read, and from which files."""
        with short_errors(self.reading.table):
            return f"{self.reading.fingerprint} {sorted(self.frame.inputFiles())}"

    @property
    def parts(self) -> int:
        """Partitions, 0 before the first pass."""
        return int(self.first[2]) if self.first else 0

    @cached_property
    def summary(self) -> SampleSummary:
        """Sizes, class counts, names: the first pass."""
        if self.first and not self.planned.waiting:
            self.checkpoint.end(self.first, self._pass_name(summary_terms))
        else:
            self.first[:] = self._first_pass()
        if not self.first[1]:
            raise self._no_rows()
        summary = SampleSummary(self.classes, **self.first[0])
        if self.classes is not None and len(self.classes) != summary.n_classes:
            msg = (
                f"{self.reading.table} has {summary.n_classes} classes, and names were given for "
                f"{len(self.classes)}"
            )
            raise InvalidInput(msg)
        return summary

    def _no_rows(self) -> InvalidInput:
        """The error of a table that is empty, or whose weights are all 0."""
        weight = self.reading.weight
        if weight is None:
            return NoRows(f"{self.reading.table} has columns but no row")
        return InvalidInput(f"{self.reading.table} has no row whose {weight!r} is positive")

    def running(self, name: str, passes: Passes) -> Spark:
        """The same rows in a run; a checkpoint of their own stays unless another is given."""
        checkpoint = passes.checkpoint or self.checkpoint
        other = Spark(self.frame, self.reading, checkpoint, name, passes.progress)
        other.first = self.first
        return other

    def total(self, kernel: Summand) -> Any:
        """kernel(batch) summed over the table; the empty sum is 0."""
        return self.planned.total(kernel, lambda summed: self._pass(summed)[0])

    def _first_pass(self) -> list[Any]:
        """Terms of the summary, rows and partitions; sums that were planned are made too."""
        found: list[Any] = []

        def sum_up(kernel: Summand) -> Any:
            found.extend(self._pass(kernel))
            return found[0]

        return [self.planned.total(summary_terms, sum_up), *found[1:]]

    def _pass_name(self, kernel: Summand) -> str:
        return f"{self.name} {kernel_name(kernel)}"

    def _pass(self, kernel: Summand) -> list[Any]:
        """Sum, rows and partitions, recorded in the checkpoint."""
        name = self._pass_name(kernel)
        finished, _, found = self.checkpoint.begin(name)
        if not finished:
            found = self._sum(kernel)
        self._check_rows(found[1])
        self.checkpoint.end(found, name)
        self.checkpoint.save()  # a pass may take long
        if self.progress is not None:
            self.progress(found[1], found[1])
        return list(found)

    def _sum(self, kernel: Summand) -> list[Any]:
        with short_errors(self.reading.table):
            parts = [PartitionSum(*row) for row in self._sums(kernel).collect()]
        total, rows, _ = merge_sums(parts, self.reading.table)
        return [total, rows, self.parts or len(parts)]

    def _sums(self, kernel: Summand) -> Any:
        """A table of sums: one a partition, or one a group of them where they are many.

        The first pass, whose sums are small, counts the partitions.
        """
        sums = _map_in_arrow(self.frame, SumPartition(kernel, self.reading))
        if self.parts <= MOST_PARTS:
            return sums
        from pyspark.sql.functions import expr

        size = isqrt(self.parts)
        groups = sums.repartition(ceil(self.parts / size), expr(f"part div {size}"))
        return _map_in_arrow(groups, MergeGroups(size, self.reading.table))

    def _check_rows(self, rows: int) -> None:
        if self.first and rows != self.first[1]:
            msg = (
                f"{self.reading.table}: there were {self.first[1]:,} rows in the first pass and "
                f"{rows:,} in a later one: the table must stay as it is"
            )
            raise InvalidInput(msg)


def _map_in_arrow(frame: Any, function: Any) -> Any:
    with warnings.catch_warnings():  # about pandas, which is not used here
        warnings.simplefilter("ignore", FutureWarning)
        return frame.mapInArrow(function, SCHEMA)
