"""Text read through pyarrow: csv and jsonl."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from contextlib import contextmanager
from io import BufferedIOBase
from pathlib import Path
from typing import Any

import numpy as np

from calshift._core.validate import show
from calshift.errors import InvalidInput
from calshift.io.formats.base import (
    BATCH,
    PACKINGS,
    ArrowColumns,
    Batches,
    Names,
    read_errors,
    resize_batches,
    shorten,
)
from calshift.io.formats.csv_records import split_records
from calshift.io.formats.new_numbers import NewNumbers

CSV_BLOCK = 2**20  # bytes that are rewritten at once
JSON_BLOCK = 16_000_000  # bytes
JSON_HEAD = 1_000_000  # bytes whose lines determine the columns
DEEPEST = 100  # lists and objects within each other in a line; pyarrow's parser is recursive
NOT_STRUCTURE = bytes(set(range(256)) - set(b'[]{}"'))
STEPS = bytes.maketrans(b"[{]}", b"\x01\x01\xff\xff")  # +1 and -1


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
        return f"{self.path}: column {name!r} must contain numbers; one value is {show(found[2])}"

    def rewrite(self, numbers: NewNumbers, out: BufferedIOBase) -> None:
        """Write the file with these numbers field by field; all other bytes stay the same."""
        with read_errors(self.path), _packed(out, self.path) as packed:
            # any bytes, and back again
            texts = (block.decode("latin-1") for block in _read(self.path, CSV_BLOCK))
            header = True
            for records in split_records(texts, self.separator):
                filled = [fields for fields, _ in records if fields != [""]]
                self._replace(filled[1:] if header else filled, numbers)
                header = header and not filled
                lines = (self.separator.join(fields) + end for fields, end in records)
                packed.write("".join(lines).encode("latin-1"))

    def _replace(self, rows: list[list[str]], numbers: NewNumbers) -> None:
        """Put the next numbers into the fields of rows."""
        for name, values in numbers.take(len(rows)).items():
            place = self.names.index(name)
            for fields, value in zip(rows, values.tolist(), strict=True):
                fields[place] = repr(value)


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
        return (self._parse(block) for block in self._blocks(size) if block.strip())

    def _blocks(self, size: int) -> Iterator[bytes]:
        """Blocks of whole lines."""
        left: list[bytes] = []
        for block in _read(self.path, size):
            whole, end, rest = block.rpartition(b"\n")
            if end:
                yield b"".join([*left, whole, end])
                left = []
            left.append(rest)
        yield b"".join(left)

    def _parse(self, lines: bytes) -> Any:
        from pyarrow import json

        if nesting_depth(lines) > DEEPEST:
            msg = f"{self.path} has lists or objects nested deeper than {DEEPEST}: remove them"
            raise InvalidInput(msg)
        return json.read_json(io.BytesIO(lines))

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

    def rewrite(self, numbers: NewNumbers, out: BufferedIOBase) -> None:
        """Write the file with these numbers line by line; other values stay the same."""
        import json

        with read_errors(self.path), _packed(out, self.path) as packed:
            for block in self._blocks(JSON_BLOCK):
                texts = block.decode("utf-8-sig").split("\n")
                lines = [json.loads(text) for text in texts if text.strip()]
                for name, values in numbers.take(len(lines)).items():
                    for line, value in zip(lines, values.tolist(), strict=True):
                        line[name] = value
                whole = "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines)
                packed.write(whole.encode())


def nesting_depth(text: bytes) -> int:
    """The most lists and objects within each other; brackets in strings do not count.

    Line ends do not close them: a parser may go on in the next line.
    """
    if b"\\" in text:
        text = text.replace(b"\\\\", b"").replace(b'\\"', b"")
    text = text.translate(None, NOT_STRUCTURE).replace(b'""', b"")  # most strings are empty now
    if b'"' in text:
        text = b"".join(text.split(b'"')[::2])
    level = np.cumsum(np.frombuffer(text.translate(STEPS), np.int8), dtype=np.int64)
    lowest = np.minimum(np.minimum.accumulate(level), 0)  # what was closed and never open
    return int((level - lowest).max(initial=0))


def _read(path: Path, size: int) -> Iterator[bytes]:
    """The contents of a file in blocks, decompressed."""
    import pyarrow as pa

    with pa.input_stream(str(path)) as file:
        while block := file.read(size):
            yield bytes(block)


@contextmanager
def _packed(out: BufferedIOBase, path: Path) -> Iterator[Any]:
    """The file to write, which compresses as the extension of the path requires."""
    import pyarrow as pa

    kind = PACKINGS.get(path.suffix.lower())
    if kind is None:
        yield out
        return
    with pa.CompressedOutputStream(pa.PythonFile(out, mode="w"), kind) as packed:
        yield packed
