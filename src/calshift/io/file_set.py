"""Sets of files that are read as one, from paths, patterns and folders."""

from __future__ import annotations

import glob
import hashlib
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatch
from itertools import takewhile
from pathlib import Path
from typing import Any, TypeVar

from calshift.errors import InvalidInput
from calshift.io.columns import ColumnSpec, ResolvedColumns, quote
from calshift.io.formats import FORMATS, file_extension
from calshift.io.formats.base import check_file
from calshift.io.prediction_file import PredictionFile, open_predictions

HIDDEN = ("_", ".")  # files that other programs write beside the data


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


def expand_paths(data: Any) -> list[Path]:
    """The files behind a path, a pattern, a folder, or a list of these, each once.

    Sorted but for a list.
    """
    if isinstance(data, list | tuple):
        if not data:
            msg = "data must name at least one file; the list is empty"
            raise InvalidInput(msg)
        return _unique([path for one in data for path in expand_paths(one)])
    path = Path(data)
    if os.path.isdir(path):
        return _expand_folder(path)
    if os.path.exists(path) or not glob.has_magic(str(data)):
        return [path]
    return _expand_pattern(str(data))


def _expand_pattern(pattern: str) -> list[Path]:
    """Files that match a pattern, and those in folders that do."""
    hidden = re.compile(rf"(^|[/\\])[{''.join(HIDDEN)}]")
    start = len(_plain_start(pattern))  # folders that are written out may be hidden ones
    names = [name for name in sorted(glob.glob(pattern, recursive=True)) if name]
    shown = [Path(name) for name in names if not hidden.search(name[start:])]
    below = [(one, [one] if one.is_file() else _files_below(one)) for one in shown]
    files = _unique([file for _, inside in below for file in inside])
    known = [file for file in files if file_extension(file) in FORMATS]
    if not files:
        msg = f"{pattern}: no file matches this pattern; check the path"
        raise InvalidInput(msg)
    return known or files


def _plain_start(pattern: str) -> str:
    """The folders of a pattern before its first star."""
    parts = re.split(r"(?<=[/\\])", pattern)
    plain = list(takewhile(lambda part: not glob.has_magic(part), parts))
    return "".join(plain)


def _unique(paths: list[Path]) -> list[Path]:
    return list({os.path.abspath(path): path for path in reversed(paths)}.values())[::-1]


def total_bytes(data: Any) -> int:
    """The size of all files together."""
    return sum(path.stat().st_size for path in expand_paths(data) if os.path.exists(path))


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


def _expand_folder(folder: Path) -> list[Path]:
    """All files of known extensions in a folder, sorted by name."""
    found = _files_below(folder)
    if not found:
        msg = f"{folder} is a folder without a file of a known format ({', '.join(FORMATS)})"
        raise InvalidInput(msg)
    return found


def _files_below(folder: Path, above: frozenset[str] = frozenset()) -> list[Path]:
    """All such files, perhaps none; links are followed, except to a folder above."""
    here, found = os.path.realpath(folder), []
    for name in sorted(os.listdir(folder)) if here not in above else []:
        path = folder / name
        if name.startswith(HIDDEN):
            continue
        if os.path.isdir(path):
            found += _files_below(path, above | {here})
        elif file_extension(path) in FORMATS:  # also a broken link, which is an error when opened
            found.append(path)
    return found


def _display(data: Any) -> str:
    if not isinstance(data, list | tuple):
        return str(data)
    more = f" and {len(data) - 1} more" if len(data) > 1 else ""
    return f"{data[0]}{more}"


def _state(path: Path) -> tuple[int, int]:
    status = path.stat()
    return status.st_size, status.st_mtime_ns
