"""Paths, patterns and folders as lists of files; a search ends after many entries."""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Iterator
from fnmatch import fnmatch
from itertools import takewhile
from pathlib import Path
from typing import Any

from calshift._core.validate import validate_path
from calshift.errors import InvalidInput
from calshift.io.formats import FORMATS, file_extension

HIDDEN = ("_", ".")  # files that other programs write beside the data
MOST_ENTRIES = 100_000  # of all folders that a search lists


def expand_paths(data: Any) -> list[Path]:
    """The files behind a path, a pattern, a folder, or a list of these, each once.

    Sorted but for a list.
    """
    if isinstance(data, list | tuple):
        if not data:
            msg = "data must name at least one file; the list is empty"
            raise InvalidInput(msg)
        return _unique([path for one in data for path in expand_paths(one)])
    path = validate_path(data)
    if os.path.isdir(path):
        return _expand_folder(path)
    if os.path.exists(path) or not glob.has_magic(str(data)):
        return [path]
    return _expand_pattern(str(data))


def total_bytes(data: Any) -> int:
    """The size of all files together."""
    return sum(path.stat().st_size for path in expand_paths(data) if os.path.exists(path))


def _unique(paths: list[Path]) -> list[Path]:
    """Each file once, also if it is named by a link."""
    return list({os.path.realpath(path): path for path in reversed(paths)}.values())[::-1]


class Search:
    """Lists folders and counts their entries; ``name`` is what the user asked for."""

    def __init__(self, name: Any) -> None:
        self.name = name
        self.entries = 0

    def list_folder(self, folder: str) -> list[str]:
        """The sorted names in a folder; none if it cannot be listed."""
        names = []
        try:
            with os.scandir(folder or os.curdir) as entries:
                for entry in entries:
                    names.append(entry.name)
                    self._count()
        except OSError:
            return []
        return sorted(names)

    def _count(self) -> None:
        self.entries += 1
        if self.entries > MOST_ENTRIES:
            msg = (
                f"{self.name}: more than {MOST_ENTRIES:,} files and folders were searched: name a "
                "narrower folder or pattern"
            )
            raise InvalidInput(msg)

    def all_below(
        self, folder: str, hidden: tuple[str, ...], above: frozenset[str] = frozenset()
    ) -> Iterator[str]:
        """All paths below a folder; links are followed, except to a folder above."""
        here = os.path.realpath(folder or os.curdir)
        for name in self.list_folder(folder) if here not in above else []:
            if not name.startswith(hidden):
                path = os.path.join(folder, name)
                yield path
                if os.path.isdir(path):
                    yield from self.all_below(path, hidden, above | {here})


def match_pattern(pattern: str, search: Search) -> Iterator[str]:
    """Paths that match, as those of glob.glob do; "**" is any number of folders."""
    folder, name = os.path.split(pattern)
    magic = folder != pattern and glob.has_magic(folder)
    for one in match_pattern(folder, search) if magic else [folder]:
        if name == "**":
            yield os.path.join(one, "")
            yield from search.all_below(one, (".",))
        elif glob.has_magic(name):
            kept = (found for found in search.list_folder(one) if fnmatch(found, name))
            shown = (found for found in kept if name[0] == "." or found[0] != ".")
            yield from (os.path.join(one, found) for found in shown)
        elif os.path.lexists(os.path.join(one, name)):
            yield os.path.join(one, name)


def _expand_pattern(pattern: str) -> list[Path]:
    """Files that match a pattern, and those in folders that do."""
    hidden = re.compile(rf"(^|[/\\])[{''.join(HIDDEN)}]")
    start = len(_plain_start(pattern))  # folders that are written out may be hidden ones
    search = Search(pattern)
    names = [name for name in sorted(set(match_pattern(pattern, search))) if name]
    shown = [Path(name) for name in names if not hidden.search(name[start:])]
    below = [[one] if one.is_file() else _files_below(one, search) for one in shown]
    files = _unique([file for inside in below for file in inside])
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


def _expand_folder(folder: Path) -> list[Path]:
    """All files of known extensions in a folder, sorted by name."""
    place = os.path.realpath(folder)
    if place == os.path.dirname(place):
        msg = f"{folder} is the whole file system: name a folder in it"
        raise InvalidInput(msg)
    found = _files_below(folder, Search(folder))
    if not found:
        msg = f"{folder} is a folder without a file of a known format ({', '.join(FORMATS)})"
        raise InvalidInput(msg)
    return found


def _files_below(folder: Path, search: Search) -> list[Path]:
    """All files of known extensions, perhaps none; also broken links, refused when opened."""
    below = map(Path, search.all_below(str(folder), HIDDEN))
    return [path for path in below if file_extension(path) in FORMATS and not path.is_dir()]
