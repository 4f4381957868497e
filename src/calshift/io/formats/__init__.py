"""Files as batches of named columns, by their extension."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from calshift.errors import InvalidInput
from calshift.io.formats.arrow import Ipc, Parquet
from calshift.io.formats.base import PACKINGS, Format, check_file, read_errors
from calshift.io.formats.npy import npy, npz
from calshift.io.formats.text import Csv, JsonLines

FORMATS: dict[str, Any] = {
    ".parquet": Parquet, ".csv": Csv, ".tsv": Csv, ".arrow": Ipc, ".feather": Ipc, ".ipc": Ipc,
    ".jsonl": JsonLines, ".ndjson": JsonLines, ".npz": npz, ".npy": npy,
}  # fmt: skip


def open_format(path: str | Path, role: str, label: str | None = None) -> Format:
    """Open a file by its extension; ``role`` is "source", "target" or "either"."""
    path = Path(path)
    check_file(path)
    extension = file_extension(path)
    if extension not in FORMATS:
        msg = f"{path}: its extension must be one of {', '.join(FORMATS)}"
        raise InvalidInput(msg)
    with read_errors(path):
        form: Format = FORMATS[extension](path, role, label)
    return form


def file_extension(path: Path) -> str:
    """The last extension that is not of a compression."""
    suffixes = [suffix.lower() for suffix in path.suffixes]
    while len(suffixes) > 1 and suffixes[-1] in PACKINGS:
        suffixes.pop()
    return suffixes[-1] if suffixes else ""
