"""Text read through pyarrow: csv and jsonl."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from calshift.errors import InvalidInput
from calshift.io.formats.base import (
    BATCH,
    PACKINGS,
    ArrowColumns,
    Batches,
    Names,
    check_rows,
    read_errors,
    resize_batches,
    shorten,
)

JSON_BLOCK = 16_000_000  # bytes
JSON_HEAD = 1_000_000  # bytes whose lines determine the columns


class Csv(ArrowColumns):
    """Text with a header line; the separator is the most frequent one in it."""

    def __init__(self, path: Path, role: str, label: str | None) -> None:
        import pyarrow as pa

        self.path = path
        with pa.input_stream(str(path)) as file:
            header = bytes(file.read(65_536)).split(b"\n")[0].decode("utf-8", "replace")
        self.separator = max(",;\t", key=header.count)
        with self._open(None) as reader:
            self._describe(reader.schema)

    def _open(self, convert: Any) -> Any:
        from pyarrow import csv as arrow_csv

        parse = arrow_csv.ParseOptions(delimiter=self.separator, newlines_in_values=True)
        return arrow_csv.open_csv(str(self.path), parse_options=parse, convert_options=convert)

    def batches(self, numbers: Names, others: Names, rows: int = BATCH, first: int = 0) -> Batches:
        import pyarrow as pa
        from pyarrow import csv as arrow_csv

        numbers, others = list(numbers), list(others)
        kinds = dict.fromkeys(numbers, pa.float64()) | dict.fromkeys(others, pa.string())
        convert = arrow_csv.ConvertOptions(
            column_types=kinds,
            include_columns=[*numbers, *others],
            null_values=[""],  # a class may be called NA
            strings_can_be_null=True,
        )
        with read_errors(self.path):
            try:
                with self._open(convert) as reader:
                    for batch in resize_batches(reader, rows, first):
                        yield {name: batch.column(name) for name in kinds}
            except pa.ArrowInvalid as problem:
                msg = self._explain(str(problem), [*numbers, *others])
                raise InvalidInput(msg) from problem

    def _explain(self, problem: str, read: list[str]) -> str:
        found = re.search(r"column #(\d+): .*invalid value '(.*)'", problem)
        if found is None:
            return f"{self.path} cannot be read ({shorten(' '.join(problem.split()))})"
        name = self.names[int(found[1])] if int(found[1]) < len(self.names) else read[0]
        return f"{self.path}: column {name!r} must contain numbers; one value is {found[2]!r}"

    def rewrite(self, numbers: dict[str, np.ndarray]) -> bytes:
        """The file with these numbers field by field; all other bytes stay the same."""
        with read_errors(self.path):
            text = _decompress(self.path).decode("latin-1")  # any bytes, and back again
        texts = {self.names.index(name): list(map(repr, v.tolist())) for name, v in numbers.items()}
        wanted, rows, out = len(next(iter(numbers.values()))), -1, []  # the header comes first
        for line in _lines(text, self.separator):
            blank = len(line) == 1 and not line[0][0]
            for k, (field, end) in enumerate(line):
                replaced = k in texts and not blank and 0 <= rows < wanted
                out += [texts[k][rows] if replaced else field, end]
            rows += not blank
        check_rows(self.path, rows, wanted)
        return _compress("".join(out).encode("latin-1"), self.path)


def _lines(text: str, separator: str) -> Iterator[list[tuple[str, str]]]:
    """Lines of (field, its end), quotes kept; a quoted field may contain line ends."""
    plain = rf"[^{separator}\r\n]*"
    field = re.compile(rf'("(?:[^"]|"")*"{plain}|{plain})({separator}|\r\n|\r|\n|$)')
    line: list[tuple[str, str]] = []
    at = 0
    while at < len(text):
        found = field.match(text, at)
        assert found is not None  # an empty field at least
        line.append((found[1], found[2]))
        at = found.end()
        if found[2] != separator:
            yield line
            line = []
    if line:
        yield line


class JsonLines(ArrowColumns):
    """One JSON object a line."""

    def __init__(self, path: Path, role: str, label: str | None) -> None:
        self.path = path
        first = next(self._tables(JSON_HEAD), None)
        if first is None:
            msg = f"{path} has no lines"
            raise InvalidInput(msg)
        self._describe(first.schema)

    def _tables(self, size: int) -> Iterator[Any]:
        import pyarrow as pa
        from pyarrow import json

        left = b""
        with pa.input_stream(str(self.path)) as file:
            while block := file.read(size):
                whole, end, rest = (left + bytes(block)).rpartition(b"\n")
                left = rest
                if end and whole.strip():
                    yield json.read_json(io.BytesIO(whole))
        if left.strip():
            yield json.read_json(io.BytesIO(left))

    def batches(self, numbers: Names, others: Names, rows: int = BATCH, first: int = 0) -> Batches:
        wanted = [*numbers, *others]
        with read_errors(self.path):
            for table in self._tables(JSON_BLOCK):
                for name in wanted:
                    if name not in table.schema.names:
                        msg = f"{self.path}: {name!r} is missing in some lines"
                        raise InvalidInput(msg)
                # a column may be of another type in the next lines: batches do not cross blocks
                for batch in resize_batches(table.select(wanted).to_batches(), rows, first):
                    yield {name: batch.column(name) for name in wanted}
                first = max(first - table.num_rows, 0)

    def rewrite(self, numbers: dict[str, np.ndarray]) -> bytes:
        """The file with these numbers line by line; other values stay the same."""
        import json

        with read_errors(self.path):
            text = _decompress(self.path).decode("utf-8-sig")
            lines = [json.loads(line) for line in text.split("\n") if line.strip()]
        check_rows(self.path, len(lines), len(next(iter(numbers.values()))))
        for name, values in numbers.items():
            for line, value in zip(lines, values.tolist(), strict=True):
                line[name] = value
        whole = "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines)
        return _compress(whole.encode(), self.path)


def _decompress(path: Path) -> bytes:
    """The contents of a file, decompressed."""
    import pyarrow as pa

    with pa.input_stream(str(path)) as file:
        return bytes(file.read())


def _compress(content: bytes, path: Path) -> bytes:
    """The content, compressed as the extension of the path requires."""
    import pyarrow as pa

    kind = PACKINGS.get(path.suffix.lower())
    if kind is None:
        return content
    out = pa.BufferOutputStream()
    with pa.CompressedOutputStream(out, kind) as stream:
        stream.write(content)
    return bytes(out.getvalue())
