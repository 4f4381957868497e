"""The protocol of file formats, and errors of reading in one line."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from calshift.errors import InvalidInput

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
