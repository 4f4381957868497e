"""What every format of a file shares: what it offers, and complaints in one line."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from calshift.errors import InvalidInput

BATCH = 65_536  # rows
PACKINGS = {".gz": "gzip", ".bz2": "bz2", ".zst": "zstd"}
Batch = dict[str, Any]


class Format(Protocol):
    """An open file."""

    names: tuple[str, ...]
    lists: tuple[str, ...]
    classes: tuple[str, ...] | None
    renamed: dict[str, str]  # other names that a column has

    def rows_of(self, column: str) -> int | None:
        """How many rows the column has, where the file tells without being read."""

    def batches(
        self, numbers: Iterable[str], others: Iterable[str], rows: int = BATCH, first: int = 0
    ) -> Iterator[Batch]:
        """Columns as arrow arrays or numpy arrays; ``numbers`` are to be read as such.

        A batch has at most so many rows, the same ones every time; ``first`` is the row to begin
        at.
        """

    def rewritten(self, numbers: dict[str, np.ndarray]) -> bytes:
        """The whole file again with other numbers in some columns: (n,), or (n, K) for lists."""


def check_file(path: Path) -> None:
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
        why = shortened(" ".join(str(problem).split()))
        msg = f"{path} cannot be read ({why}): is it whole, and of the kind its ending says?"
        raise InvalidInput(msg) from problem


def _bad_archive() -> type[Exception]:
    from zipfile import BadZipFile

    return BadZipFile


def shortened(text: str) -> str:
    """Of a length that fits into a message."""
    return text if len(text) <= 160 else text[:157] + "..."


def check_rows(path: Path, found: int, wanted: int) -> None:
    """What is written again must have the rows that were read."""
    if found != wanted:
        msg = f"{path} has {found} rows now and had {wanted} before: it changed while it was read"
        raise InvalidInput(msg)
