"""What the workers of a cluster do: sums over one partition of a table, packed to travel."""

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
    """How columns become rows. It travels to the workers."""

    @property
    def table(self) -> str:
        """Its name, for messages."""

    @property
    def classes(self) -> tuple[Any, ...] | None:
        """Their names, if they have any."""

    @property
    def fingerprint(self) -> str:
        """By which the same reading is recognised in another run."""

    def __call__(self, columns: Columns, place: str, start: int) -> Predictions:
        """Checked rows; ``place``, and ``start`` rows before them there, are for messages."""


class PartitionSum(NamedTuple):
    """The sum of a partition; or the problem with its rows, which no second try can mend."""

    part: int
    rows: int
    classes: int
    total: bytes | None
    problem: str | None = None


class SumPartition:
    """A kernel's sum over one partition, as a batch of one `Part`."""

    def __init__(self, kernel: Summand, reading: Reading) -> None:
        self.kernel = kernel
        self.reading = reading

    def __call__(self, batches: Iterable[Any]) -> Iterator[Any]:
        from pyspark import TaskContext

        context = TaskContext.get()
        assert context is not None  # tasks have one
        part = context.partitionId()
        yield _as_batch(_part(part, partial(self.summed, batches, part)))

    def summed(self, batches: Iterable[Any], part: int) -> tuple[Any, int, int]:
        """Sum, rows and classes."""
        table, total, rows, widths = self.reading.table, 0, 0, set()
        place = f"{table}, partition {part}"
        try:
            for columns in gathered(batches):
                batch = self.reading(columns, place, rows)
                widths.add(batch.n_classes)
                classes = one_width(widths, table)
                total, rows = total + self.kernel(batch), rows + len(batch)
        except InvalidInput as problem:
            msg = str(problem) if table in str(problem) else f"{place}: {problem}"
            raise InvalidInput(msg) from problem
        return total, rows, classes if rows else 0


class MergeGroups:
    """Parts of groups of partitions, so many in each, as batches of one `Part` a group."""

    def __init__(self, size: int, table: str) -> None:
        self.size = size
        self.table = table

    def __call__(self, batches: Iterable[Any]) -> Iterator[Any]:
        groups: dict[int, list[PartitionSum]] = {}
        for part in sorted(PartitionSum(**row) for batch in batches for row in batch.to_pylist()):
            groups.setdefault(part.part // self.size, []).append(part)
        for number, parts in groups.items():
            yield _as_batch(_part(number, partial(added, parts, self.table)))


def added(parts: Iterable[PartitionSum], table: str) -> tuple[Any, int, int]:
    """Sum, rows and classes of parts, in the order of their numbers; their first problem raised."""
    total, rows, widths = 0, 0, set()
    for part in sorted(parts, key=lambda part: part.part):
        if part.total is None:
            raise InvalidInput(part.problem)
        if part.rows:
            widths.add(part.classes)
            classes = one_width(widths, table)
            total, rows = total + unpacked(part.total), rows + part.rows
    return total, rows, classes if rows else 0


def gathered(batches: Iterable[Any]) -> Iterator[Columns]:
    """Arrow's batches joined until they are worth a kernel's call; empty ones are left out."""
    held: list[Any] = []
    for batch in batches:
        if batch.num_rows:
            held.append(batch)
        if sum(one.nbytes for one in held) >= BATCH_BYTES:
            yield _columns(held)
            held = []
    if held:
        yield _columns(held)


def one_width(widths: set[int], table: str) -> int:
    """The number of classes that all rows have."""
    if len(widths) > 1:
        some, others = sorted(widths)[:2]
        msg = (
            f"{table}: its lists must have one number a class; "
            f"some rows have {some}, others {others}"
        )
        raise InvalidInput(msg)
    return next(iter(widths))


def packed(total: Any) -> bytes:
    """A sum as bytes; of its numbers many are zero."""
    return zlib.compress(pickle.dumps(total, protocol=5), 1)


def unpacked(content: bytes) -> Any:
    """The sum again."""
    return pickle.loads(zlib.decompress(content))


def _part(number: int, work: Callable[[], tuple[Any, int, int]]) -> PartitionSum:
    """The sum that was worked out, or why it could not be."""
    try:
        total, rows, classes = work()
    except InvalidInput as problem:
        return PartitionSum(number, 0, 0, None, str(problem))
    return PartitionSum(number, rows, classes, packed(total))


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
