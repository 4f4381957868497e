"""The protocol of file formats, their errors in one line, and columns of arrow schemas.

A format has a file of its own in this folder, and is registered in `FORMATS` of its `__init__`.
"""

from __future__ import annotations

import re
import stat
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from io import BufferedIOBase
from pathlib import Path
from typing import Any, ClassVar, Protocol

import numpy as np

from calshift._core.memory import is_memory_error
from calshift.errors import InvalidInput
from calshift.io.columns import check_unique
from calshift.io.formats.new_numbers import NewNumbers

BATCH = 65_536  # rows
LARGEST_RATIO = 1000  # of contents to a file, by any compression
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

    def rewrite(self, numbers: NewNumbers, out: BufferedIOBase) -> None:
        """Write the file with other numbers in some columns, (n,) or lists (n, K)."""


def check_file(path: Path) -> None:
    """Check that there is a file, and that it is not empty."""
    try:
        found = path.stat()
    except FileNotFoundError:
        msg = f"{path}: no such file; check the path"
        raise InvalidInput(msg) from None
    except (OSError, ValueError) as problem:  # a name that is too long, or has a null character
        msg = f"{path} cannot be opened ({getattr(problem, 'strerror', problem)}); check the path"
        raise InvalidInput(msg) from None
    if stat.S_ISDIR(found.st_mode):
        msg = f"{path} is a folder: name a file in it"
        raise InvalidInput(msg)
    check_regular(path, found.st_mode)
    if found.st_size == 0:
        msg = f"{path} is empty: was its writing interrupted?"
        raise InvalidInput(msg)


def check_regular(path: Path, mode: int) -> None:
    """Refuse what is no file by its mode; reading a pipe might wait for ever."""
    if not stat.S_ISREG(mode):
        pipe, socket = stat.S_ISFIFO(mode), stat.S_ISSOCK(mode)
        kind = "pipe" if pipe else "socket" if socket else "device"
        msg = (
            f"{path} is a {kind}, which cannot be read more than once: save it to a file, and name "
            "that"
        )
        raise InvalidInput(msg)


@contextmanager
def read_errors(path: str | Path) -> Iterator[None]:
    """Raise any error of a reader as one line with the name of the file."""
    try:
        yield
    except InvalidInput:
        raise
    except MemoryError as problem:
        if not _claims_too_much(Path(path), str(problem)):
            raise
        msg = f"{path} cannot be read ({problem}): its contents are damaged"
        raise InvalidInput(msg) from problem
    except ModuleNotFoundError:
        msg = f"reading {path} needs pyarrow: pip install 'calshift[files]'"
        raise InvalidInput(msg) from None
    except ImportError:  # such as a library that does not fit into memory
        raise
    except Exception as problem:
        if is_memory_error(problem):
            raise MemoryError from problem
        why = shorten(" ".join(str(problem).split())) or type(problem).__name__
        msg = (
            f"{path} cannot be read ({why}): is the file truncated, or does its extension not "
            "match its format?"
        )
        raise InvalidInput(msg) from problem


def _claims_too_much(path: Path, problem: str) -> bool:
    """Whether a reader asked for more memory than a file of this size can fill."""
    if "capacity too large" in problem:  # beyond what arrow can address
        return True
    asked = re.search(r"alloc of size (\d+)", problem)
    return asked is not None and int(asked[1]) > LARGEST_RATIO * path.stat().st_size + 2**30


def shorten(text: str) -> str:
    """The text cut to a length that fits into a message."""
    return text if len(text) <= 160 else text[:157] + "..."


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
        batch.validate(full=True)  # offsets and indices of a damaged file may point anywhere
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


def replace_columns(batch: Any, numbers: dict[str, np.ndarray]) -> Any:
    """The record batch with other numbers in some columns, of the types that were there."""
    import pyarrow as pa

    batch.validate(full=True)
    arrays, schema = list(batch.columns), batch.schema
    for name, values in numbers.items():
        place = schema.get_field_index(name)
        arrays[place] = make_column(values, schema.field(place).type)
        schema = schema.set(place, schema.field(place).with_type(arrays[place].type))
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


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
