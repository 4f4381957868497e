"""Binary files through pyarrow: parquet, arrow and feather."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from io import BufferedIOBase
from pathlib import Path
from typing import Any

from calshift.io.formats.base import (
    BATCH,
    ArrowColumns,
    Batches,
    Names,
    read_errors,
    replace_columns,
    resize_batches,
)
from calshift.io.formats.new_numbers import NewNumbers

BUFFER = 2**20  # bytes read of a column at a time, instead of whole row groups
SETTINGS: dict[str, Any] = {"pre_buffer": False, "buffer_size": BUFFER}
GROUP = 2**26  # bytes of a row group that is written


class Parquet(ArrowColumns):
    """A parquet file; its row groups are the index of its rows."""

    def __init__(self, path: Path, role: str, label: str | None) -> None:
        import pyarrow.parquet as parquet

        self.path = path
        with parquet.ParquetFile(path) as file:
            about = file.metadata
            self.groups = tuple(about.row_group(k).num_rows for k in range(about.num_row_groups))
            self._describe(file.schema_arrow)

    def rows_of(self, column: str) -> int:
        return sum(self.groups)

    def batches(self, numbers: Names, others: Names, rows: int = BATCH, first: int = 0) -> Batches:
        import pyarrow.parquet as parquet

        wanted = [*numbers, *others]
        begin = 0
        while begin < len(self.groups) and self.groups[begin] <= first:
            first, begin = first - self.groups[begin], begin + 1
        groups = list(range(begin, len(self.groups)))
        with read_errors(self.path), parquet.ParquetFile(self.path, **SETTINGS) as file:
            read = file.iter_batches(rows, row_groups=groups, columns=wanted)
            for batch in resize_batches(read, rows, first):
                yield {name: batch.column(name) for name in wanted}

    def rewrite(self, numbers: NewNumbers, out: BufferedIOBase) -> None:
        import pyarrow.parquet as parquet

        with read_errors(self.path), parquet.ParquetFile(self.path, **SETTINGS) as file:
            batches = _replaced(file.iter_batches(self._group_rows(file.metadata)), numbers)
            _write_batches(batches, lambda schema: parquet.ParquetWriter(out, schema))

    def _group_rows(self, about: Any) -> int:
        """Rows of a row group that is written: as many as fit into memory."""
        groups = range(about.num_row_groups)
        size = int(sum(about.row_group(k).total_byte_size for k in groups))
        rows: int = GROUP * sum(self.groups) // max(size, 1)
        return min(max(rows, 2**10), 2**20)


class Ipc(ArrowColumns):
    """An arrow file (also called feather), or an arrow stream."""

    def __init__(self, path: Path, role: str, label: str | None) -> None:
        self.path = path
        with self._open() as reader:
            self._describe(reader.schema)

    def _open(self, wanted: Names | None = None) -> Any:
        """Opened for the columns ``wanted``, or all of them, in the order of the file."""
        import pyarrow as pa

        places = [] if wanted is None else sorted(map(self.names.index, wanted))
        options = pa.ipc.IpcReadOptions(included_fields=places)
        try:
            return pa.ipc.open_file(str(self.path), options=options)
        except pa.ArrowInvalid:
            return pa.ipc.open_stream(pa.OSFile(str(self.path)), options=options)

    def batches(self, numbers: Names, others: Names, rows: int = BATCH, first: int = 0) -> Batches:
        wanted = [*numbers, *others]
        with read_errors(self.path), self._open(wanted) as reader:
            for batch in resize_batches(_parts(reader), rows, first):
                yield {name: batch.column(name) for name in wanted}

    def rewrite(self, numbers: NewNumbers, out: BufferedIOBase) -> None:
        import pyarrow as pa

        options = pa.ipc.IpcWriteOptions(emit_dictionary_deltas=True)
        with read_errors(self.path), self._open() as reader:
            stream = not hasattr(reader, "num_record_batches")
            new = pa.ipc.new_stream if stream else pa.ipc.new_file
            batches = _replaced(_parts(reader), numbers)
            _write_batches(batches, lambda schema: new(out, schema, options=options))


def _parts(reader: Any) -> Iterator[Any]:
    """The record batches of an open arrow file or stream."""
    count = getattr(reader, "num_record_batches", None)
    return iter(reader) if count is None else map(reader.get_batch, range(count))


def _replaced(batches: Iterable[Any], numbers: NewNumbers) -> Iterator[Any]:
    """The batches that have rows, with the next numbers."""
    for batch in batches:
        if batch.num_rows:
            yield replace_columns(batch, numbers.take(batch.num_rows))


def _write_batches(batches: Iterable[Any], open_writer: Callable[[Any], Any]) -> None:
    """Write record batches one by one; the first has the schema."""
    with ExitStack() as stack:
        writer = None
        for batch in batches:
            writer = writer or stack.enter_context(open_writer(batch.schema))
            writer.write_batch(batch)
