"""Sums over the partitions of a Spark table: computed by executors, sent back packed."""

from __future__ import annotations

import pickle
import zlib
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any, NamedTuple, Protocol

from calshift._core.predictions import Predictions
from calshift.engines.base import Summand
from calshift.errors import InvalidInput

BATCH_BYTES = 2**23  # of columns that a kernel sees at once; the cluster's batches are smaller
SCHEMA = "part long, rows long, classes long, total binary, problem string"

Columns = dict[str, Any]


class Reading(Protocol):
    """Converts columns to rows; it is sent to the executors."""

    @property
    def table(self) -> str:
        """The name of the table, for messages."""

    @property
    def classes(self) -> tuple[Any, ...] | None:
        """Names of the classes, if they have any."""

    @property
    def fingerprint(self) -> str:
        """Identifies the same conversion in another run."""

    @property
    def weight(self) -> str | None:
        """The column of frequency weights, if there is one."""

    def __call__(self, columns: Columns, place: str, start: int) -> Predictions | None:
        """Validated rows, or None if all weights are 0.

        Messages name the ``place``, and count rows from ``start``.
        """


class PartitionSum(NamedTuple):
    """The sum of a partition, or the error in its rows, which would recur in a second attempt."""

    part: int
    rows: int
    classes: int
    total: bytes | None
    problem: str | None = None


class SumPartition:
    """A kernel's sum over one partition, as a batch of one `PartitionSum`."""

    def __init__(self, kernel: Summand, reading: Reading) -> None:
        self.kernel = kernel
        self.reading = reading

    def __call__(self, batches: Iterable[Any]) -> Iterator[Any]:
        from pyspark import TaskContext

        context = TaskContext.get()
        assert context is not None  # tasks have one
        part = context.partitionId()
        yield _as_batch(_partition_sum(part, partial(self.sum, batches, part)))

    def sum(self, batches: Iterable[Any], part: int) -> tuple[Any, int, int]:
        """Sum, rows and classes."""
        table, total, rows, widths = self.reading.table, 0, 0, set()
        place = f"{table}, partition {part}"
        try:
            for batch in self._read(batches, place):
                widths.add(batch.n_classes)
                classes = common_width(widths, table)
                total, rows = total + self.kernel(batch), rows + len(batch)
        except InvalidInput as problem:
            msg = str(problem) if table in str(problem) else f"{place}: {problem}"
            raise InvalidInput(msg) from problem
        return total, rows, classes if rows else 0

    def _read(self, batches: Iterable[Any], place: str) -> Iterator[Predictions]:
        """The rows of a partition that count, in batches."""
        start = 0
        for columns in merge_batches(batches):
            batch = self.reading(columns, place, start)
            start += len(next(iter(columns.values())))
            if batch is not None:
                yield batch


class MergeGroups:
    """Sums of groups of so many partitions, as batches of one `PartitionSum` a group."""

    def __init__(self, size: int, table: str) -> None:
        self.size = size
        self.table = table

    def __call__(self, batches: Iterable[Any]) -> Iterator[Any]:
        groups: dict[int, list[PartitionSum]] = {}
        for part in sorted(PartitionSum(**row) for batch in batches for row in batch.to_pylist()):
            groups.setdefault(part.part // self.size, []).append(part)
        for number, parts in groups.items():
            yield _as_batch(_partition_sum(number, partial(merge_sums, parts, self.table)))


def merge_sums(parts: Iterable[PartitionSum], table: str) -> tuple[Any, int, int]:
    """Sum, rows and classes of all parts, in the order of their numbers; raises the first error."""
    total, rows, widths = 0, 0, set()
    for part in sorted(parts, key=lambda part: part.part):
        if part.total is None:
            raise InvalidInput(str(part.problem))
        if part.rows:
            widths.add(part.classes)
            classes = common_width(widths, table)
            total, rows = total + unpack(part.total), rows + part.rows
    return total, rows, classes if rows else 0


def merge_batches(batches: Iterable[Any]) -> Iterator[Columns]:
    """Arrow's batches joined to BATCH_BYTES for one call of a kernel; empty ones are left out."""
    waiting: list[Any] = []
    for batch in batches:
        if batch.num_rows:
            waiting.append(batch)
        if sum(one.nbytes for one in waiting) >= BATCH_BYTES:
            yield _columns(waiting)
            waiting = []
    if waiting:
        yield _columns(waiting)


def common_width(widths: set[int], table: str) -> int:
    """The number of classes that all rows have."""
    if len(widths) > 1:
        some, others = sorted(widths)[:2]
        msg = (
            f"{table}: its lists must have one number a class; "
            f"some rows have {some}, others {others}"
        )
        raise InvalidInput(msg)
    return next(iter(widths))


def pack(total: Any) -> bytes:
    """A sum as compressed bytes: many of its numbers are zero."""
    return zlib.compress(pickle.dumps(total, protocol=5), 1)


def unpack(content: bytes) -> Any:
    """The sum from its bytes."""
    return pickle.loads(zlib.decompress(content))


def _partition_sum(number: int, work: Callable[[], tuple[Any, int, int]]) -> PartitionSum:
    """The result of the work, or its error."""
    try:
        total, rows, classes = work()
    except InvalidInput as problem:
        return PartitionSum(number, 0, 0, None, str(problem))
    return PartitionSum(number, rows, classes, pack(total))


def _columns(batches: list[Any]) -> Columns:
    import pyarrow as pa

    return {
        name: pa.concat_arrays([batch.column(k) for batch in batches])
        for k, name in enumerate(batches[0].schema.names)
    }


def _as_batch(part: PartitionSum) -> Any:
    import pyarrow as pa

    kinds = (pa.int64(), pa.int64(), pa.int64(), pa.binary(), pa.string())
    values = [pa.array([value], kind) for value, kind in zip(part, kinds, strict=True)]
    return pa.RecordBatch.from_arrays(values, names=list(PartitionSum._fields))
