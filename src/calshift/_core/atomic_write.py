"""Atomic writes of one file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from calshift._core.outputs import Outputs, check_writable
from calshift.errors import InvalidInput

FIGURE_FORMATS = (".png", ".svg", ".pdf")


def write_atomically(path: str | Path, content: str) -> None:
    """Write text to a temporary file and rename it, so that the file is never incomplete."""
    write_content(path, encode_text(content))


def encode_text(content: str) -> bytes:
    """Text as a file has it."""
    return content.encode("utf-8", "backslashreplace")


def write_content(path: str | Path, content: bytes) -> None:
    """Write bytes atomically."""
    with Outputs() as files:
        files.open(path).write(content)


def check_drawable(path: str | Path) -> None:
    """`check_writable` for a figure, whose extension must be of a known format."""
    check_writable(path)
    if Path(path).suffix.lower() not in FIGURE_FORMATS:
        msg = f"{path}: its extension must be one of {', '.join(FIGURE_FORMATS)}"
        raise InvalidInput(msg)


def write_figure(path: str | Path, figure: Any, out: Any) -> None:
    """Write a figure of matplotlib, in the format of the extension of ``path``."""
    figure.savefig(out, format=Path(path).suffix.lower().removeprefix("."), dpi=150)
