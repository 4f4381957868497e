"""Binary files through pyarrow: parquet, arrow and feather."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from calshift.arrow_columns import ArrowColumns, replaced
from calshift.opening import BATCH, Batch, readable


class Parquet(ArrowColumns):
    """A parquet file, row group by row group."""

    def __init__(self, path: Path, role: str, label: str | None) -> None:
        import pyarrow.parquet as parquet

        self.path = path
        self._describe(parquet.read_schema(path))

    def batches(self, numbers: Iterable[str], others: Iterable[str]) -> Iterator[Batch]:
        import pyarrow.parquet as parquet

        wanted = [*numbers, *others]
        with readable(self.path), parquet.ParquetFile(self.path) as file:
            for batch in file.iter_batches(BATCH, columns=wanted):
                yield {name: batch.column(name) for name in wanted}

    def rewritten(self, numbers: dict[str, np.ndarray]) -> bytes:
        import pyarrow as pa
        import pyarrow.parquet as parquet

        with readable(self.path):
            table = replaced(parquet.read_table(self.path), numbers, self.path)
        written = pa.BufferOutputStream()
        parquet.write_table(table, written)
        return bytes(written.getvalue())


class Ipc(ArrowColumns):
    """An arrow file (also called feather), or an arrow stream."""

    def __init__(self, path: Path, role: str, label: str | None) -> None:
        self.path = path
        with self._opened() as reader:
            self._describe(reader.schema)

    def _opened(self) -> Any:
        import pyarrow as pa

        try:
            return pa.ipc.open_file(str(self.path))
        except pa.ArrowInvalid:
            return pa.ipc.open_stream(pa.OSFile(str(self.path)))

    def batches(self, numbers: Iterable[str], others: Iterable[str]) -> Iterator[Batch]:
        wanted = [*numbers, *others]
        with readable(self.path), self._opened() as reader:
            count = getattr(reader, "num_record_batches", None)
            parts = iter(reader) if count is None else map(reader.get_batch, range(count))
            for batch in parts:
                yield {name: batch.column(name) for name in wanted}

    def rewritten(self, numbers: dict[str, np.ndarray]) -> bytes:
        import pyarrow as pa

        with readable(self.path), self._opened() as reader:
            stream = not hasattr(reader, "num_record_batches")
            table = replaced(reader.read_all(), numbers, self.path)
        out = pa.BufferOutputStream()
        writer = (pa.ipc.new_stream if stream else pa.ipc.new_file)(out, table.schema)
        with writer:
            writer.write_table(table)
        return bytes(out.getvalue())
