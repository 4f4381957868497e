"""Files of numpy, read some rows at a time: npz, and npy with its labels in a second file."""

from __future__ import annotations

import shutil
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from io import BufferedIOBase, BytesIO
from math import prod
from pathlib import Path
from typing import IO, Any

import numpy as np

from calshift.errors import InvalidInput
from calshift.io.formats.base import BATCH, Batches, Names, check_file, read_errors
from calshift.io.formats.new_numbers import NewNumbers

LENGTHS = {(1, 0): 2, (2, 0): 4, (3, 0): 4}  # bytes of the header's length, by version
MOST_HEADER = 10_000  # bytes, as of numpy


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

    def rewrite(self, numbers: NewNumbers, out: BufferedIOBase) -> None:
        """Write the file with other numbers in some of its arrays."""
        with read_errors(self.path), ExitStack() as stack:
            written = {
                name: stack.enter_context(tempfile.TemporaryFile()) for name in numbers.names
            }
            for start in range(0, self.rows_of(numbers.names[0]), BATCH):
                rows = min(BATCH, self.rows_of(numbers.names[0]) - start)
                for name, values in numbers.take(rows).items():
                    self._append(written[name], name, values, start == 0)
            for file in written.values():
                file.seek(0)
            if self.path.suffix.lower() == ".npy":
                shutil.copyfileobj(written[numbers.names[0]], out)
            else:
                self._write_archive(written, out)

    def _append(self, file: IO[bytes], name: str, values: np.ndarray, first: bool) -> None:
        """Write rows of an array, after its header if they are the first."""
        array = self.arrays[name]
        values = values.astype(_new_type(array.dtype))
        if first:
            shape = (len(array), *values.shape[1:])
            header = np.lib.format.header_data_from_array_1_0(values) | {"shape": shape}
            np.lib.format.write_array_header_1_0(file, header | {"fortran_order": False})
        file.write(np.ascontiguousarray(values).data)

    def _write_archive(self, written: dict[str, Any], out: BufferedIOBase) -> None:
        """Copy the archive member by member, but for the arrays that were written again."""
        from zipfile import ZIP_DEFLATED, ZipFile

        real = {short: long for long, short in self.renamed.items()}
        replaced = {f"{real[name]}.npy": file for name, file in written.items()}
        with ZipFile(self.path) as archive, ZipFile(out, "w", ZIP_DEFLATED) as target:
            for name in archive.namelist():
                with ExitStack() as stack:
                    source = replaced.get(name) or stack.enter_context(archive.open(name))
                    member = stack.enter_context(target.open(name, "w", force_zip64=True))
                    shutil.copyfileobj(source, member)


def _new_type(there: np.dtype[Any]) -> np.dtype[Any]:
    """The type that was there; float16 is too coarse for rows that sum to 1."""
    if there == np.float16:
        return np.dtype(np.float32)
    return there if there in (np.float32, np.float64) else np.dtype(float)


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
        check_file(second)
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
        size = self.dtype.itemsize * prod(self.shape[1:])
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
            _read_header(file)
            read = _read_exactly(file, self.dtype.itemsize * prod(self.shape))
        order: Any = "F" if self.column_major else "C"
        return np.frombuffer(read, self.dtype).reshape(self.shape, order=order)


def stored_array(path: Path, member: str | None = None) -> StoredArray:
    """The array by its header; ValueError if it contains objects or the file is too short."""
    with _open(path, member) as file:
        shape, column_major, dtype = _read_header(file)
        if dtype.hasobject:
            msg = "it contains Python objects, which are not loaded: allow_pickle is off"
            raise ValueError(msg)
        if not dtype.itemsize or not all(type(count) is int and count >= 0 for count in shape):
            msg = f"its shape is {shape} and its type {dtype}"
            raise ValueError(msg)
        wanted = file.tell() + dtype.itemsize * prod(shape)
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
    """Shape, whether columns are contiguous, type; ValueError of any header that is damaged.

    The length is checked first, since numpy would allocate whatever a damaged one says.
    """
    version = np.lib.format.read_magic(file)
    if version not in LENGTHS:
        msg = f"version {version} of its format is not known"
        raise ValueError(msg)
    start = _read_exactly(file, LENGTHS[version])
    length = int.from_bytes(start, "little")
    if length > MOST_HEADER:
        msg = f"its header has {length:,} bytes"
        raise ValueError(msg)
    text = BytesIO(start + _read_exactly(file, length))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of numpy and of Python's parser
        try:
            if version == (1, 0):
                return np.lib.format.read_array_header_1_0(text)
            return np.lib.format.read_array_header_2_0(text)
        except MemoryError as problem:  # of the parser, whatever memory there is
            msg = "its header is no Python literal"
            raise ValueError(msg) from problem


def _read_exactly(file: IO[bytes], size: int) -> bytes:
    read = file.read(size)
    if len(read) < size:
        msg = "it ends before its last row"
        raise EOFError(msg)
    return read
