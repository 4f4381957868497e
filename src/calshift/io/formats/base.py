"""The protocol of file formats, their errors in one line, and columns of arrow schemas.

A format has a file of its own in this folder, and is registered in `FORMATS` of its `__init__`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, ClassVar, Protocol

import numpy as np

from calshift.errors import InvalidInput
from calshift.io.columns import check_unique

BATCH = 65_536  # rows
PACKINGS = {".gz": "gzip", ".bz2": "bz2", ".zst": "zstd"}
Batches = Iterator[dict[str, Any]]  # of columns, as arrow or numpy arrays by name
Names = Iterable[str]


class Format(Protocol):
    """An open file."""

    names: tuple[str, ...]
    lists: tuple[str, ...]
    classes: tuple[str, ...] | None
    renamed: dict[str, str]  # other names that a column has

    def rows_of(self, column: str) -> int | None:
        """Number of rows of the column, where it is known without reading the file."""

    def batches(self, numbers: Names, others: Names, rows: int = BATCH, first: int = 0) -> Batches:
        """Batches beginning at row ``first``, with the columns ``numbers`` read as numbers.

        A batch has at most so many rows, the same ones every time.
        """

    def rewrite(self, numbers: dict[str, np.ndarray]) -> bytes:
        """The contents of the file with other numbers in some columns, (n,) or lists (n, K)."""


def check_file(path: Path) -> None:
    """Check that there is a file, and that it is not empty."""
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
def read_errors(path: Path) -> Iterator[None]:
    """Raise errors of reading as one line with the name of the file."""
    try:
        yield
    except InvalidInput:
        raise
    except ImportError:
        msg = f"reading {path} needs pyarrow: pip install 'calshift[files]'"
        raise InvalidInput(msg) from None
    except (OSError, ValueError, KeyError, EOFError, _bad_archive()) as problem:
        why = shorten(" ".join(str(problem).split()))
        msg = (
            f"{path} cannot be read ({why}): is the file truncated, or does its extension not "
            "match its format?"
        )
        raise InvalidInput(msg) from problem


def _bad_archive() -> type[Exception]:
    from zipfile import BadZipFile

    return BadZipFile


def shorten(text: str) -> str:
    """The text cut to a length that fits into a message."""
    return text if len(text) <= 160 else text[:157] + "..."


def check_rows(path: Path, found: int, wanted: int) -> None:
    """Check that a file that is rewritten still has the rows that were read."""
    if found != wanted:
        msg = f"{path} has {found} rows now and had {wanted} before: it changed while it was read"
        raise InvalidInput(msg)


class ArrowColumns:
    """Columns of an arrow schema."""

    classes: tuple[str, ...] | None = None
    renamed: ClassVar[dict[str, str]] = {}

    def _describe(self, schema: Any) -> None:
        import pyarrow.types as kinds

        self.names = tuple(schema.names)
        check_unique(self.names, self.path)
        self.lists = tuple(
            field.name
            for field in schema
            if kinds.is_list(field.type)
            or kinds.is_large_list(field.type)
            or kinds.is_fixed_size_list(field.type)
        )

    def rows_of(self, column: str) -> int | None:
        """None: not known before the file is read."""
        return None

    path: Path
    names: tuple[str, ...]
    lists: tuple[str, ...]


def resize_batches(batches: Iterable[Any], rows: int, first: int = 0) -> Iterator[Any]:
    """Record batches of exactly so many rows except the last, without the first rows."""
    waiting: list[Any] = []
    wanted = rows
    for batch in batches:
        first, batch = max(first - batch.num_rows, 0), batch.slice(min(first, batch.num_rows))
        while batch.num_rows:
            waiting.append(batch.slice(0, wanted))
            batch, wanted = batch.slice(wanted), wanted - waiting[-1].num_rows
            if not wanted:
                yield _concatenate(waiting)
                waiting, wanted = [], rows
    if waiting:
        yield _concatenate(waiting)


def _concatenate(batches: list[Any]) -> Any:
    import pyarrow as pa

    if len(batches) == 1:
        return batches[0]
    return pa.Table.from_batches(batches).combine_chunks().to_batches()[0]


def replace_columns(table: Any, numbers: dict[str, np.ndarray], path: Path) -> Any:
    """The table with other numbers in some columns, of the types that were there."""
    for name, values in numbers.items():
        check_rows(path, table.num_rows, len(values))
        place = table.schema.get_field_index(name)
        field = table.schema.field(place)
        made = make_column(values, field.type)
        table = table.set_column(place, field.with_type(made.type), made)
    return table


def make_column(values: np.ndarray, kind: Any) -> Any:
    """Numbers as a column of a type, or of double where the type is not a float."""
    import pyarrow as pa
    import pyarrow.types as kinds

    if values.ndim == 1:
        return pa.array(values, kind if kind in (pa.float32(), pa.float64()) else pa.float64())
    inner = kind.value_type if kind.value_type in (pa.float32(), pa.float64()) else pa.float64()
    n, K = values.shape
    flat = pa.array(values.ravel(), inner)
    if kinds.is_fixed_size_list(kind):
        return pa.FixedSizeListArray.from_arrays(flat, K)
    if kinds.is_large_list(kind):
        return pa.LargeListArray.from_arrays(pa.array(np.arange(n + 1) * K, pa.int64()), flat)
    return pa.ListArray.from_arrays(pa.array(np.arange(n + 1) * K, pa.int32()), flat)
