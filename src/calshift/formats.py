"""Files as batches of named columns: parquet, csv, arrow, jsonl through pyarrow; npz, npy by numpy.

A format knows its columns' names, which of them hold lists, and gives batches of those asked for.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, ClassVar, Protocol

import numpy as np

from calshift.errors import InvalidInput

BATCH = 65_536  # rows
JSON_BLOCK = 16_000_000  # bytes
Batch = dict[str, Any]


class Format(Protocol):
    """An open file."""

    names: tuple[str, ...]
    lists: tuple[str, ...]
    classes: tuple[str, ...] | None
    renamed: dict[str, str]  # other names that a column has

    def batches(self, numbers: Iterable[str], others: Iterable[str]) -> Iterator[Batch]:
        """Columns as arrow arrays or numpy arrays; ``numbers`` are to be read as such."""


def open_format(path: str | Path, role: str, label: str | None = None) -> Format:
    """The file behind a path by its ending; ``role`` is "source" or "target"."""
    path = Path(path)
    _check_file(path)
    ending = _ending(path)
    if ending not in FORMATS:
        msg = f"{path}: its ending must be one of {', '.join(FORMATS)}"
        raise InvalidInput(msg)
    with readable(path):
        form: Format = FORMATS[ending](path, role, label)
    return form


def _check_file(path: Path) -> None:
    """There is a file, and something in it."""
    try:
        size = -1 if path.is_dir() else path.stat().st_size
    except FileNotFoundError:
        msg = f"{path}: no such file; check the path"
        raise InvalidInput(msg) from None
    except OSError as problem:
        msg = f"{path} cannot be opened ({problem.strerror}); check the path"
        raise InvalidInput(msg) from None
    if size <= 0:
        empty = "is empty: was its writing interrupted?"
        msg = f"{path} {'is a folder: name a file in it' if size else empty}"
        raise InvalidInput(msg)


@contextmanager
def readable(path: Path) -> Iterator[None]:
    """What goes wrong while reading, said in one line with the file's name."""
    try:
        yield
    except InvalidInput:
        raise
    except ImportError:
        msg = f"reading {path} needs pyarrow: pip install 'calshift[files]'"
        raise InvalidInput(msg) from None
    except (OSError, ValueError, KeyError, EOFError, _bad_archive()) as problem:
        why = _shortened(" ".join(str(problem).split()))
        msg = f"{path} cannot be read ({why}): is it whole, and of the kind its ending says?"
        raise InvalidInput(msg) from problem


def _bad_archive() -> type[Exception]:
    from zipfile import BadZipFile

    return BadZipFile


def _shortened(text: str) -> str:
    return text if len(text) <= 160 else text[:157] + "..."


def _ending(path: Path) -> str:
    """The last ending that is no compression."""
    endings = [ending.lower() for ending in path.suffixes]
    while len(endings) > 1 and endings[-1] in (".gz", ".bz2", ".zst"):
        endings.pop()
    return endings[-1] if endings else ""


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
            return f"{self.path} cannot be read ({_shortened(' '.join(problem.split()))})"
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


class Arrays:
    """Named numpy arrays: an npz file, or an npy file with its labels in a second one."""

    def __init__(
        self, path: Path, arrays: dict[str, np.ndarray], renamed: dict[str, str] | None = None
    ) -> None:
        self.path, self.arrays, self.renamed = path, arrays, renamed or {}
        for name, array in arrays.items():
            if array.ndim not in (1, 2):
                msg = (
                    f"{path}: {name!r} must have one or two dimensions; its shape is {array.shape}"
                )
                raise InvalidInput(msg)
        names = arrays.pop("classes", None)
        self.classes = None if names is None else tuple(str(name) for name in names.tolist())
        self.names = tuple(arrays)
        self.lists = tuple(name for name, array in arrays.items() if array.ndim == 2)

    def batches(self, numbers: Iterable[str], others: Iterable[str]) -> Iterator[Batch]:
        wanted = [*numbers, *others]
        rows = {name: len(self.arrays[name]) for name in wanted}
        if len(set(rows.values())) > 1:
            sizes = ", ".join(f"{name!r} has {count}" for name, count in rows.items())
            msg = f"{self.path}: its arrays must have as many rows as each other; {sizes}"
            raise InvalidInput(msg)
        for start in range(0, max(rows.values()), BATCH):
            yield {name: self.arrays[name][start : start + BATCH] for name in wanted}


def _npz(path: Path, role: str, label: str | None) -> Arrays:
    """Arrays of an archive; where it has both, p_source is for the source and p_target not."""
    with open(path, "rb") as file, np.load(file, allow_pickle=False) as archive:
        arrays = {name: archive[name] for name in archive.files}
    mine, other = f"_{role}", "_target" if role == "source" else "_source"
    kept = {
        name.removesuffix(mine): array
        for name, array in arrays.items()
        if not name.endswith(other) and array.ndim in (1, 2)
    }
    return Arrays(path, kept, {f"{name}{mine}": name for name in kept})


def _npy(path: Path, role: str, label: str | None) -> Arrays:
    arrays = {"p": np.load(path, mmap_mode="r", allow_pickle=False)}
    if label is not None and role == "source":
        second = Path(label)
        if not second.exists():
            msg = f"{path}: its labels are a second file, named with --label; there is no {second}"
            raise InvalidInput(msg)
        with readable(second):
            arrays[label] = np.load(second, mmap_mode="r", allow_pickle=False)
    elif role == "source":
        msg = f"{path} holds no labels: name the file that does, as in --label labels.npy"
        raise InvalidInput(msg)
    return Arrays(path, arrays)


FORMATS: dict[str, Any] = {
    ".parquet": Parquet, ".csv": Csv, ".tsv": Csv, ".arrow": Ipc, ".feather": Ipc, ".ipc": Ipc,
    ".jsonl": JsonLines, ".ndjson": JsonLines, ".npz": _npz, ".npy": _npy,
}  # fmt: skip
