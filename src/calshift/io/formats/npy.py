"""Files of numpy, read some rows at a time: npz, and npy with its labels in a second file."""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np

from calshift.errors import InvalidInput
from calshift.io.formats.base import BATCH, Batches, Names, read_errors


class NumpyFile:
    """Named numpy arrays: an npz file, or an npy file with its labels in a second one."""

    def __init__(
        self, path: Path, arrays: dict[str, StoredArray], renamed: dict[str, str] | None = None
    ) -> None:
        self.path, self.arrays, self.renamed = path, arrays, renamed or {}
        for name, array in arrays.items():
            if array.ndim not in (1, 2):
                msg = (
                    f"{path}: {name!r} must have one or two dimensions; its shape is {array.shape}"
                )
                raise InvalidInput(msg)
        names = arrays.pop("classes", None)
        self.classes = None if names is None else tuple(map(str, names.whole().tolist()))
        self.names = tuple(arrays)
        self.lists = tuple(name for name, array in arrays.items() if array.ndim == 2)

    def rows_of(self, column: str) -> int:
        return len(self.arrays[column])

    def batches(self, numbers: Names, others: Names, rows: int = BATCH, first: int = 0) -> Batches:
        wanted = [*numbers, *others]
        sizes = {name: len(self.arrays[name]) for name in wanted}
        if len(set(sizes.values())) > 1:
            lengths = ", ".join(f"{name!r} has {count}" for name, count in sizes.items())
            msg = f"{self.path}: its arrays must have the same number of rows; {lengths}"
            raise InvalidInput(msg)
        with read_errors(self.path):
            blocks = (self.arrays[name].blocks(rows, first) for name in wanted)
            for block in zip(*blocks, strict=True):
                yield dict(zip(wanted, block, strict=True))

    def rewrite(self, numbers: dict[str, np.ndarray]) -> bytes:
        """The contents of the file with other numbers in some of its arrays."""
        written = io.BytesIO()
        cast = {name: _cast_like(self.arrays[name], values) for name, values in numbers.items()}
        if self.path.suffix.lower() == ".npy":
            np.save(written, next(iter(cast.values())))
            return written.getvalue()
        real = {short: long for long, short in self.renamed.items()}
        with np.load(self.path, allow_pickle=False) as archive:
            whole = {name: np.asarray(archive[name]) for name in archive.files}
        for name, values in cast.items():
            whole[real[name]] = values
        np.savez_compressed(written, **whole)  # type: ignore[arg-type]
        return written.getvalue()


def _cast_like(array: StoredArray, values: np.ndarray) -> np.ndarray:
    """Values of the type that was there; float16 is too coarse for rows that sum to 1."""
    kind = array.dtype if array.dtype in (np.float32, np.float64) else np.dtype(float)
    return values.astype(np.float32 if array.dtype == np.float16 else kind)


def _named_array(path: Path, name: str) -> StoredArray:
    try:
        return stored_array(path, name)
    except ValueError as problem:
        if "allow_pickle" not in str(problem):
            raise
        msg = f"{path}: {name!r} contains Python objects; save names as text: array.astype(str)"
        raise InvalidInput(msg) from None


def npz(path: Path, role: str, label: str | None) -> NumpyFile:
    """Open an archive; arrays named for the other role, such as p_target, are left out."""
    arrays = {name: _named_array(path, name) for name in stored_names(path)}
    mine, other = ("_target", "_source") if role == "target" else ("_source", "_target")
    flat = {name: array for name, array in arrays.items() if array.ndim in (1, 2)}
    plain = {name: name for name in flat if not name.endswith((mine, other))}
    own = {name.removesuffix(mine): name for name in flat if name.endswith(mine)}
    real = plain | own  # p_target is the target's p, also where there is a p
    kept = {short: flat[long] for short, long in real.items()}
    return NumpyFile(path, kept, {long: short for short, long in real.items()})


def npy(path: Path, role: str, label: str | None) -> NumpyFile:
    """Open one array of probabilities; the labels of a source are in the file ``label``."""
    arrays = {"p": stored_array(path)}
    if label is not None and role != "target":
        second = Path(label)
        if not second.exists():
            msg = f"{path}: its labels are a second file, named with --label; there is no {second}"
            raise InvalidInput(msg)
        with read_errors(second):
            arrays[label] = stored_array(second)
    elif role == "source":
        msg = f"{path} has no labels: name the file that has them, as in --label labels.npy"
        raise InvalidInput(msg)
    return NumpyFile(path, arrays)


@dataclass(frozen=True)
class StoredArray:
    """An array in a file, or in an archive under the name of ``member``."""

    path: Path
    member: str | None
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    column_major: bool

    def __len__(self) -> int:
        return self.shape[0]

    @property
    def ndim(self) -> int:
        """Number of dimensions."""
        return len(self.shape)

    def blocks(self, rows: int, first: int = 0) -> Iterator[np.ndarray]:
        """Blocks of so many rows, beginning at row ``first``."""
        starts = range(first, len(self), rows)
        if self.column_major and self.ndim > 1:  # rows are not contiguous in the file
            whole = self.whole()
            yield from (whole[start : start + rows] for start in starts)
            return
        size = self.dtype.itemsize * int(np.prod(self.shape[1:], dtype=int))
        with _open(self.path, self.member) as file:
            _read_header(file)
            file.seek(first * size, 1)
            for start in starts:
                count = min(rows, len(self) - start)
                read = np.frombuffer(_read_exactly(file, count * size), self.dtype)
                yield read.reshape(count, *self.shape[1:])

    def whole(self) -> np.ndarray:
        """The whole array, mapped into memory where that is possible."""
        if self.member is None:
            return np.asarray(np.load(self.path, mmap_mode="r", allow_pickle=False))
        with _open(self.path, self.member) as file:
            return np.asarray(np.lib.format.read_array(file, allow_pickle=False))


def stored_array(path: Path, member: str | None = None) -> StoredArray:
    """The array by its header; ValueError if it contains objects or the file is too short."""
    with _open(path, member) as file:
        shape, column_major, dtype = _read_header(file)
        if dtype.hasobject:
            msg = "it contains Python objects, which are not loaded: allow_pickle is off"
            raise ValueError(msg)
        wanted = file.tell() + dtype.itemsize * int(np.prod(shape, dtype=int))
        if _size(path, member) < wanted:
            msg = "it ends before its last row"
            raise ValueError(msg)
    return StoredArray(path, member, tuple(shape), dtype, column_major)


def stored_names(path: Path) -> list[str]:
    """The names of the arrays in an archive."""
    from zipfile import ZipFile

    with ZipFile(path) as archive:
        return [name.removesuffix(".npy") for name in archive.namelist() if name.endswith(".npy")]


@contextmanager
def _open(path: Path, member: str | None) -> Iterator[IO[bytes]]:
    if member is None:
        with open(path, "rb") as file:
            yield file
        return
    from zipfile import ZipFile

    with ZipFile(path) as archive, archive.open(f"{member}.npy") as file:
        yield file


def _size(path: Path, member: str | None) -> int:
    """Bytes of the array with its header."""
    if member is None:
        return path.stat().st_size
    from zipfile import ZipFile

    with ZipFile(path) as archive:
        return archive.getinfo(f"{member}.npy").file_size


def _read_header(file: IO[bytes]) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    """Shape, whether columns are contiguous, type."""
    version = np.lib.format.read_magic(file)
    if version == (1, 0):
        return np.lib.format.read_array_header_1_0(file)
    return np.lib.format.read_array_header_2_0(file)


def _read_exactly(file: IO[bytes], size: int) -> bytes:
    read = file.read(size)
    if len(read) < size:
        msg = "it ends before its last row"
        raise EOFError(msg)
    return read
