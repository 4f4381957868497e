"""Text read through pyarrow: csv and jsonl."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from calshift.arrow_columns import ArrowColumns
from calshift.errors import InvalidInput
from calshift.opening import Batch, check_rows, readable, shortened

JSON_BLOCK = 16_000_000  # bytes


class Csv(ArrowColumns):
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
        from pyarrow import csv as arrow_csv

        parse = arrow_csv.ParseOptions(delimiter=self.separator)
        return arrow_csv.open_csv(str(self.path), parse_options=parse, convert_options=convert)

    def batches(self, numbers: Iterable[str], others: Iterable[str]) -> Iterator[Batch]:
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

    def rewritten(self, numbers: dict[str, np.ndarray]) -> bytes:
        """Field by field, so that every other column stays as it was written."""
        with readable(self.path):
            text = _text(self.path)
            rows = [row for row in csv.reader(io.StringIO(text), delimiter=self.separator) if row]
        n = len(next(iter(numbers.values())))
        check_rows(self.path, len(rows) - 1, n)
        for name, values in numbers.items():
            place = self.names.index(name)
            for row, value in zip(rows[1:], values.tolist(), strict=True):
                row[place] = repr(value)
        out = io.StringIO()
        csv.writer(out, delimiter=self.separator, lineterminator="\n").writerows(rows)
        return _packed(out.getvalue(), self.path)


class JsonLines(ArrowColumns):
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

    def rewritten(self, numbers: dict[str, np.ndarray]) -> bytes:
        """Line by line, so that everything else in an object stays."""
        import json

        with readable(self.path):
            lines = [json.loads(line) for line in _text(self.path).splitlines() if line.strip()]
        check_rows(self.path, len(lines), len(next(iter(numbers.values()))))
        for name, values in numbers.items():
            for line, value in zip(lines, values.tolist(), strict=True):
                line[name] = value
        whole = "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines)
        return _packed(whole, self.path)


def _text(path: Path) -> str:
    """What a file holds, unpacked."""
    import pyarrow as pa

    with pa.input_stream(str(path)) as file:
        return bytes(file.read()).decode("utf-8-sig")


def _packed(text: str, path: Path) -> bytes:
    """Packed as the file of that name is."""
    import pyarrow as pa

    kind = {".gz": "gzip", ".bz2": "bz2", ".zst": "zstd"}.get(path.suffix.lower())
    content = text.encode()
    if kind is None:
        return content
    out = pa.BufferOutputStream()
    with pa.CompressedOutputStream(out, kind) as packed:
        packed.write(content)
    return bytes(out.getvalue())


def _first_line(file: Any) -> str:
    return bytes(file.read(65_536)).split(b"\n")[0].decode("utf-8", "replace")
