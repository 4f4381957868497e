"""Files as batches of named columns, by their ending.

A format knows its columns' names, which of them hold lists, and gives batches of those asked for.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from calshift.errors import InvalidInput
from calshift.io.formats.arrow import Ipc, Parquet
from calshift.io.formats.base import PACKINGS, Format, check_file, readable
from calshift.io.formats.npy import npy, npz
from calshift.io.formats.text import Csv, JsonLines

FORMATS: dict[str, Any] = {
    ".parquet": Parquet, ".csv": Csv, ".tsv": Csv, ".arrow": Ipc, ".feather": Ipc, ".ipc": Ipc,
    ".jsonl": JsonLines, ".ndjson": JsonLines, ".npz": npz, ".npy": npy,
}  # fmt: skip


def open_format(path: str | Path, role: str, label: str | None = None) -> Format:
    """The file behind a path by its ending; ``role`` is "source", "target" or "either"."""
    path = Path(path)
    check_file(path)
    ending = file_extension(path)
    if ending not in FORMATS:
        msg = f"{path}: its ending must be one of {', '.join(FORMATS)}"
        raise InvalidInput(msg)
    with readable(path):
        form: Format = FORMATS[ending](path, role, label)
    return form


def file_extension(path: Path) -> str:
    """The last ending that is no compression."""
    endings = [ending.lower() for ending in path.suffixes]
    while len(endings) > 1 and endings[-1] in PACKINGS:
        endings.pop()
    return endings[-1] if endings else ""
