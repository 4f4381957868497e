"""Arrays in npy and npz files, read some rows at a time."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np


@dataclass(frozen=True)
class Stored:
    """An array in a file, or in an archive under the name of ``member``."""

    path: Path
    member: str | None
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    turned: bool  # column after column

    def __len__(self) -> int:
        return self.shape[0]

    @property
    def ndim(self) -> int:
        """How many dimensions it has."""
        return len(self.shape)

    def blocks(self, rows: int, first: int = 0) -> Iterator[np.ndarray]:
        """So many rows at a time, beginning at the row ``first``."""
        starts = range(first, len(self), rows)
        if self.turned and self.ndim > 1:  # its rows are all over the file
            whole = self.whole()
            yield from (whole[start : start + rows] for start in starts)
            return
        size = self.dtype.itemsize * int(np.prod(self.shape[1:], dtype=int))
        with _opened(self.path, self.member) as file:
            _header(file)
            file.seek(first * size, 1)
            for start in starts:
                count = min(rows, len(self) - start)
                read = np.frombuffer(_exactly(file, count * size), self.dtype)
                yield read.reshape(count, *self.shape[1:])

    def whole(self) -> np.ndarray:
        """All of it, mapped rather than read where that can be."""
        if self.member is None:
            return np.asarray(np.load(self.path, mmap_mode="r", allow_pickle=False))
        with _opened(self.path, self.member) as file:
            return np.asarray(np.lib.format.read_array(file, allow_pickle=False))


def stored_array(path: Path, member: str | None = None) -> Stored:
    """What the header says; objects are a ValueError, as is a file that is too short for it."""
    with _opened(path, member) as file:
        shape, turned, dtype = _header(file)
        if dtype.hasobject:
            msg = "it holds Python objects, which are not loaded: allow_pickle is off"
            raise ValueError(msg)
        wanted = file.tell() + dtype.itemsize * int(np.prod(shape, dtype=int))
        if _size(path, member) < wanted:
            msg = "it ends before its last row"
            raise ValueError(msg)
    return Stored(path, member, tuple(shape), dtype, turned)


def stored_names(path: Path) -> list[str]:
    """The arrays of an archive."""
    from zipfile import ZipFile

    with ZipFile(path) as archive:
        return [name.removesuffix(".npy") for name in archive.namelist() if name.endswith(".npy")]


@contextmanager
def _opened(path: Path, member: str | None) -> Iterator[IO[bytes]]:
    if member is None:
        with open(path, "rb") as file:
            yield file
        return
    from zipfile import ZipFile

    with ZipFile(path) as archive, archive.open(f"{member}.npy") as file:
        yield file


def _size(path: Path, member: str | None) -> int:
    """Bytes, as an archive's table of contents has them."""
    if member is None:
        return path.stat().st_size
    from zipfile import ZipFile

    with ZipFile(path) as archive:
        return archive.getinfo(f"{member}.npy").file_size


def _header(file: IO[bytes]) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    """Shape, whether columns come one after the other, type."""
    version = np.lib.format.read_magic(file)
    if version == (1, 0):
        return np.lib.format.read_array_header_1_0(file)
    return np.lib.format.read_array_header_2_0(file)


def _exactly(file: IO[bytes], size: int) -> bytes:
    read = file.read(size)
    if len(read) < size:
        msg = "it ends before its last row"
        raise EOFError(msg)
    return read
