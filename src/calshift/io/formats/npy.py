"""Files of numpy: npz, and npy with its labels in a second file."""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np

from calshift.errors import InvalidInput
from calshift.io.formats._npy_rows import Stored, stored_array, stored_names
from calshift.io.formats.base import BATCH, Batch, readable


class NumpyFile:
    """Named numpy arrays: an npz file, or an npy file with its labels in a second one."""

    def __init__(
        self, path: Path, arrays: dict[str, Stored], renamed: dict[str, str] | None = None
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

    def batches(
        self, numbers: Iterable[str], others: Iterable[str], rows: int = BATCH, first: int = 0
    ) -> Iterator[Batch]:
        wanted = [*numbers, *others]
        sizes = {name: len(self.arrays[name]) for name in wanted}
        if len(set(sizes.values())) > 1:
            told = ", ".join(f"{name!r} has {count}" for name, count in sizes.items())
            msg = f"{self.path}: its arrays must have as many rows as each other; {told}"
            raise InvalidInput(msg)
        with readable(self.path):
            blocks = (self.arrays[name].blocks(rows, first) for name in wanted)
            for block in zip(*blocks, strict=True):
                yield dict(zip(wanted, block, strict=True))

    def rewritten(self, numbers: dict[str, np.ndarray]) -> bytes:
        """The same file with other numbers in some of its arrays."""
        written = io.BytesIO()
        cast = {name: _like(self.arrays[name], values) for name, values in numbers.items()}
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


def _like(array: Stored, values: np.ndarray) -> np.ndarray:
    """Of the kind that was there; half a float is too coarse for rows that sum to 1."""
    kind = array.dtype if array.dtype in (np.float32, np.float64) else np.dtype(float)
    return values.astype(np.float32 if array.dtype == np.float16 else kind)


def _plain(path: Path, name: str) -> Stored:
    try:
        return stored_array(path, name)
    except ValueError as problem:
        if "allow_pickle" not in str(problem):
            raise
        msg = f"{path}: {name!r} holds Python objects; save names as text: array.astype(str)"
        raise InvalidInput(msg) from None


def npz(path: Path, role: str, label: str | None) -> NumpyFile:
    """Arrays of an archive; where it has both, p_source is for the source and p_target not."""
    arrays = {name: _plain(path, name) for name in stored_names(path)}
    mine, other = ("_target", "_source") if role == "target" else ("_source", "_target")
    flat = {name: array for name, array in arrays.items() if array.ndim in (1, 2)}
    plain = {name: name for name in flat if not name.endswith((mine, other))}
    own = {name.removesuffix(mine): name for name in flat if name.endswith(mine)}
    real = plain | own  # p_target is the target's p, also where there is a p
    kept = {short: flat[long] for short, long in real.items()}
    return NumpyFile(path, kept, {long: short for short, long in real.items()})


def npy(path: Path, role: str, label: str | None) -> NumpyFile:
    """One array of probabilities; a source's labels are the file that ``label`` names."""
    arrays = {"p": stored_array(path)}
    if label is not None and role != "target":
        second = Path(label)
        if not second.exists():
            msg = f"{path}: its labels are a second file, named with --label; there is no {second}"
            raise InvalidInput(msg)
        with readable(second):
            arrays[label] = stored_array(second)
    elif role == "source":
        msg = f"{path} holds no labels: name the file that does, as in --label labels.npy"
        raise InvalidInput(msg)
    return NumpyFile(path, arrays)
