"""Sets of files that are read as one."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatch
from pathlib import Path
from typing import Any, TypeVar

from calshift.errors import InvalidInput
from calshift.io.columns import ColumnSpec, ResolvedColumns, quote
from calshift.io.formats.base import check_file
from calshift.io.paths import expand_paths
from calshift.io.prediction_file import PredictionFile, open_predictions


@dataclass(frozen=True)
class FileSet:
    """Files of the same columns and classes, in their order; ``path`` is the user's text."""

    path: str
    files: tuple[PredictionFile, ...]
    states: tuple[tuple[int, int], ...]  # bytes and time of change of each, when it was opened
    sources: tuple[str, ...] = ()  # folders, patterns and paths

    @property
    def classes(self) -> tuple[str, ...] | None:
        """Names of the classes, where the files have them."""
        return self.files[0].classes

    @property
    def columns(self) -> ResolvedColumns:
        """The columns that are read in every file."""
        return self.files[0].columns

    @property
    def fingerprint(self) -> str:
        """Identifies the same files in another run."""
        described = [
            (str(file.path.resolve()), state, file.columns, file.order, file.logits)
            for file, state in zip(self.files, self.states, strict=True)
        ]
        return hashlib.sha256(repr(described).encode()).hexdigest()

    def reorder(self, order: tuple[int, ...]) -> FileSet:
        """The same files with the classes in another order than they are read now."""
        return replace(self, files=tuple(file.reorder(order) for file in self.files))

    def without_weights(self) -> FileSet:
        """The same files with every row as one."""
        return replace(self, files=tuple(file.without_weights() for file in self.files))

    def without_labels(self) -> FileSet:
        """The same files with their labels left unread."""
        return replace(self, files=tuple(file.without_labels() for file in self.files))

    def would_contain(self, path: Path) -> bool:
        """Whether a file of that name would be found when the set is opened again."""
        place = os.path.realpath(path)
        wanted = (os.path.realpath(one) for one in self.sources)
        return any(
            place.startswith(os.path.join(one, "")) if os.path.isdir(one) else fnmatch(place, one)
            for one in wanted
        )

    def check_unchanged(self, number: int) -> None:
        """Refuse a file that changed since it was opened."""
        path = self.files[number].path
        check_file(path)
        if _state(path) != self.states[number]:
            msg = f"{path} changed while it was read"
            raise InvalidInput(msg)


def check_different(source: FileSet, target: FileSet) -> None:
    """Refuse a file whose same columns are read as source and as target."""
    known = {_identity(file.path): file for file in source.files}
    for file in target.files:
        same = known.get(_identity(file.path))
        if same is not None and same.stored_columns & file.stored_columns:
            msg = (
                f"{file.path} is both in the source and in the target: name different files, or "
                "different columns"
            )
            raise InvalidInput(msg)


def _identity(path: Path) -> tuple[int, int]:
    """The same for links to the same file."""
    found = path.stat()
    return found.st_dev, found.st_ino


Named = TypeVar("Named", PredictionFile, FileSet)


def open_file_set(data: Any, role: str, spec: ColumnSpec) -> FileSet:
    """The files of a role behind a path, a pattern, a folder, or a list of these."""
    paths = expand_paths(data)
    first = open_predictions(paths[0], role, spec)
    if len(paths) > 1 and first.path.suffix.lower() == ".npy" and first.columns.label:
        msg = f"{first.path}: labels are not supported for several .npy files; use .npz"
        raise InvalidInput(msg)
    others = (_read_like(first, open_predictions(path, role, spec)) for path in paths[1:])
    files = (first, *others)
    states = tuple(_state(file.path) for file in files)
    sources = data if isinstance(data, list | tuple) else [data]
    return FileSet(_display(data), files, states, tuple(map(str, sources)))


def in_order(files: Named, classes: tuple[Any, ...]) -> Named:
    """Files with their classes, where they are named, in the order given."""
    if files.classes is None or files.classes == classes:
        return files
    if set(files.classes) != set(classes) or len(files.classes) != len(classes):
        there = quote(files.classes)
        msg = f"{files.path} must have the classes {quote(classes)}; it has {there}"
        raise InvalidInput(msg)
    return files.reorder(tuple(files.classes.index(name) for name in classes))


def match_classes(before: Named, after: Named) -> Named:
    """The second with its classes in the order of the first, if both name them."""
    if before.classes is None or after.classes is None:
        return after
    missing = [name for name in before.classes if name not in after.classes]
    new = [name for name in after.classes if name not in before.classes]
    if missing or new:
        differences = _only(before.path, missing) + _only(after.path, new)
        msg = (
            f"{before.path} and {after.path} must have the same classes; {'; '.join(differences)}: "
            "rename columns, or pick them with --columns"
        )
        raise InvalidInput(msg)
    return in_order(after, before.classes)


def _read_like(first: PredictionFile, other: PredictionFile) -> PredictionFile:
    """Another file, read by the columns of the first; both must have them, in any order."""
    columns = first.columns
    wanted, there = (
        {*one.columns.probabilities, *filter(None, [one.columns.label])} for one in (first, other)
    )
    if wanted != there or first.one_column != other.one_column:
        only = _only(first.path, sorted(wanted - there)) + _only(other.path, sorted(there - wanted))
        kinds = "; ".join(only) or f"{columns.probabilities[0]!r} has lists in one of them only"
        msg = f"{first.path} and {other.path} must have the same columns; {kinds}"
        raise InvalidInput(msg)
    return match_classes(first, replace(other, columns=columns))


def _only(path: str | Path, names: Sequence[str]) -> list[str]:
    return [f"only {path} has {quote(names)}"] if names else []


def _display(data: Any) -> str:
    if not isinstance(data, list | tuple):
        return str(data)
    more = f" and {len(data) - 1} more" if len(data) > 1 else ""
    return f"{data[0]}{more}"


def _state(path: Path) -> tuple[int, int]:
    status = path.stat()
    return status.st_size, status.st_mtime_ns
