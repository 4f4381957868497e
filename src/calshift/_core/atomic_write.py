"""Atomic file writes."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import Any

from calshift.errors import InvalidInput

FIGURE_FORMATS = (".png", ".svg", ".pdf")


def check_writable(path: str | Path) -> None:
    """Raise if the file cannot be written, to be called before a long computation."""
    path = Path(path)
    try:
        folder = path.is_dir()
    except OSError as problem:  # such as a name that is too long
        msg = f"{path} cannot be written ({problem.strerror}): choose another name"
        raise InvalidInput(msg) from problem
    if folder:
        msg = f"{path} is a folder: name a file in it"
        raise InvalidInput(msg)
    if not path.parent.is_dir():
        msg = f"{path}: there is no folder {path.parent}; make it first"
        raise InvalidInput(msg)
    if not os.access(path.parent, os.W_OK):
        msg = f"{path}: writing in {path.parent} is not allowed"
        raise InvalidInput(msg)


def write_atomically(path: str | Path, content: str) -> None:
    """Write text to a temporary file and rename it, so that the file is never incomplete."""
    write_content(path, content.encode("utf-8", "backslashreplace"))


def check_drawable(path: str | Path) -> None:
    """`check_writable` for a figure, whose extension must be of a known format."""
    check_writable(path)
    if Path(path).suffix.lower() not in FIGURE_FORMATS:
        msg = f"{path}: its extension must be one of {', '.join(FIGURE_FORMATS)}"
        raise InvalidInput(msg)


def write_figure(path: str | Path, figure: Any) -> None:
    """Write a figure of matplotlib atomically, in the format of the extension."""
    import io

    check_drawable(path)
    content = io.BytesIO()
    figure.savefig(content, format=Path(path).suffix.lower().removeprefix("."), dpi=150)
    write_content(path, content.getvalue())


def write_content(path: str | Path, content: bytes) -> None:
    """Write bytes atomically."""
    path = Path(path)
    check_writable(path)
    try:
        if path.exists() and not path.is_file():  # a pipe or a device is written to, not replaced
            path.write_bytes(content)
        else:
            _replace_file(Path(os.path.realpath(path)), content)  # a link stays a link
    except OSError as problem:
        msg = f"{path} cannot be written ({problem.strerror}); nothing was left behind"
        raise InvalidInput(msg) from problem


def _replace_file(path: Path, content: bytes) -> None:
    """Replace the file in one step, keeping its permissions."""
    beside = path.with_name(f".{path.name[:100]}.{os.getpid()}.part")
    try:
        with open(beside, "xb") as file:
            if path.exists():
                os.chmod(beside, stat.S_IMODE(path.stat().st_mode))
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(beside, path)
    except BaseException:
        beside.unlink(missing_ok=True)
        raise
