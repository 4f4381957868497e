"""Files through pyarrow: parquet, csv, arrow and jsonl."""

from __future__ import annotations

import io
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, ClassVar

from calshift.errors import InvalidInput
from calshift.opening import BATCH, Batch, readable, shortened

JSON_BLOCK = 16_000_000  # bytes


class _Arrow:
    """Columns of an arrow schema."""

    classes: tuple[str, ...] | None = None
    renamed: ClassVar[dict[str, str]] = {}

    def _describe(self, schema: Any) -> None:
        import pyarrow.types as kinds

        self.names = tuple(schema.names)
        if len(set(self.names)) < len(self.names):
            twice = next(name for name in self.names if self.names.count(name) > 1)
            msg = f"{self.path} has two columns named {twice!r}: rename one"
            raise InvalidInput(msg)
        self.lists = tuple(
            field.name
            for field in schema
            if kinds.is_list(field.type)
            or kinds.is_large_list(field.type)
            or kinds.is_fixed_size_list(field.type)
        )

    path: Path
    names: tuple[str, ...]
    lists: tuple[str, ...]


class Parquet(_Arrow):
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


class Csv(_Arrow):
    """Text with a header line; the separator is the one that the header has most of."""

    def __init__(self, path: Path, role: str, label: str | None) -> None:
        import pyarrow as pa

        self.path = path
        with pa.input_stream(str(path)) as file:
            header = _first_line(file)
        self.separator = max(",;\t", key=header.count)
        with self._opened(None) as reader:
            self._describe(reader.schema)

    def _opened(self, convert: Any) -> Any:
        from pyarrow import csv

        parse = csv.ParseOptions(delimiter=self.separator)
        return csv.open_csv(str(self.path), parse_options=parse, convert_options=convert)

    def batches(self, numbers: Iterable[str], others: Iterable[str]) -> Iterator[Batch]:
        import pyarrow as pa
        from pyarrow import csv

        numbers, others = list(numbers), list(others)
        kinds = dict.fromkeys(numbers, pa.float64()) | dict.fromkeys(others, pa.string())
        convert = csv.ConvertOptions(
            column_types=kinds,
            include_columns=[*numbers, *others],
            null_values=[""],  # a class may be called NA
            strings_can_be_null=True,
        )
        try:
            with self._opened(convert) as reader:
                for batch in reader:
                    yield {name: batch.column(name) for name in kinds}
        except pa.ArrowInvalid as problem:
            raise InvalidInput(self._explained(str(problem), [*numbers, *others])) from problem

    def _explained(self, problem: str, read: list[str]) -> str:
        found = re.search(r"column #(\d+): .*invalid value '(.*)'", problem)
        if found is None:
            return f"{self.path} cannot be read ({shortened(' '.join(problem.split()))})"
        name = self.names[int(found[1])] if int(found[1]) < len(self.names) else read[0]
        return f"{self.path}: column {name!r} must hold numbers; one value is {found[2]!r}"


def _first_line(file: Any) -> str:
    return bytes(file.read(65_536)).split(b"\n")[0].decode("utf-8", "replace")


class Ipc(_Arrow):
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


class JsonLines(_Arrow):
    """One JSON object a line."""

    def __init__(self, path: Path, role: str, label: str | None) -> None:
        self.path = path
        first = next(self._tables(), None)
        if first is None:
            msg = f"{path} holds no line"
            raise InvalidInput(msg)
        self._describe(first.schema)

    def _tables(self) -> Iterator[Any]:
        import pyarrow as pa
        from pyarrow import json

        left = b""
        with pa.input_stream(str(self.path)) as file:
            while block := file.read(JSON_BLOCK):
                whole, end, rest = (left + bytes(block)).rpartition(b"\n")
                left = rest
                if end and whole.strip():
                    yield json.read_json(io.BytesIO(whole))
        if left.strip():
            yield json.read_json(io.BytesIO(left))

    def batches(self, numbers: Iterable[str], others: Iterable[str]) -> Iterator[Batch]:
        wanted = [*numbers, *others]
        with readable(self.path):
            for table in self._tables():
                for name in wanted:
                    if name not in table.schema.names:
                        msg = f"{self.path}: {name!r} is missing in some lines"
                        raise InvalidInput(msg)
                yield {name: table.column(name).combine_chunks() for name in wanted}
