"""Binary files through pyarrow: parquet, arrow and feather."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from calshift.io.formats.base import (
    BATCH,
    ArrowColumns,
    Batches,
    Names,
    read_errors,
    replace_columns,
    resize_batches,
)

BUFFER = 2**20  # bytes read of a column at a time, instead of whole row groups


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
        settings: dict[str, Any] = {"pre_buffer": False, "buffer_size": BUFFER}
        with read_errors(self.path), parquet.ParquetFile(self.path, **settings) as file:
            read = file.iter_batches(rows, row_groups=groups, columns=wanted)
            for batch in resize_batches(read, rows, first):
                yield {name: batch.column(name) for name in wanted}

    def rewrite(self, numbers: dict[str, np.ndarray]) -> bytes:
        import pyarrow as pa
        import pyarrow.parquet as parquet

        with read_errors(self.path):
            table = replace_columns(parquet.read_table(self.path), numbers, self.path)
        written = pa.BufferOutputStream()
        parquet.write_table(table, written)
        return bytes(written.getvalue())


class Ipc(ArrowColumns):
    """An arrow file (also called feather), or an arrow stream."""

    def __init__(self, path: Path, role: str, label: str | None) -> None:
        self.path = path
        with self._open() as reader:
            self._describe(reader.schema)

    def _open(self) -> Any:
        import pyarrow as pa

        try:
            return pa.ipc.open_file(str(self.path))
        except pa.ArrowInvalid:
            return pa.ipc.open_stream(pa.OSFile(str(self.path)))

    def batches(self, numbers: Names, others: Names, rows: int = BATCH, first: int = 0) -> Batches:
        wanted = [*numbers, *others]
        with read_errors(self.path), self._open() as reader:
            count = getattr(reader, "num_record_batches", None)
            parts = iter(reader) if count is None else map(reader.get_batch, range(count))
            for batch in resize_batches((part.select(wanted) for part in parts), rows, first):
                yield {name: batch.column(name) for name in wanted}

    def rewrite(self, numbers: dict[str, np.ndarray]) -> bytes:
        import pyarrow as pa

        with read_errors(self.path), self._open() as reader:
            stream = not hasattr(reader, "num_record_batches")
            table = replace_columns(reader.read_all(), numbers, self.path)
        out = pa.BufferOutputStream()
        writer = (pa.ipc.new_stream if stream else pa.ipc.new_file)(out, table.schema)
        with writer:
            writer.write_table(table)
        return bytes(out.getvalue())
