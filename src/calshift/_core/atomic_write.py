"""Files that are whole or not there."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import Any

from calshift.errors import InvalidInput

DRAWN = (".png", ".svg", ".pdf")


def check_writable(path: str | Path) -> None:
    """Fail before the work, not after it, if the file can never be written."""
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
    """Write text beside the place and move it there in one step: nobody sees half a file."""
    write_content(path, content.encode("utf-8", "backslashreplace"))


def check_drawable(path: str | Path) -> None:
    """The same for a figure, whose ending says its format."""
    check_writable(path)
    if Path(path).suffix.lower() not in DRAWN:
        msg = f"{path}: its ending must be one of {', '.join(DRAWN)}"
        raise InvalidInput(msg)


def write_figure(path: str | Path, figure: Any) -> None:
    """The same for a figure of matplotlib, in the format of the path's ending."""
    import io

    check_drawable(path)
    drawn = io.BytesIO()
    figure.savefig(drawn, format=Path(path).suffix.lower().removeprefix("."), dpi=150)
    write_content(path, drawn.getvalue())


def write_content(path: str | Path, content: bytes) -> None:
    """The same for bytes."""
    path = Path(path)
    check_writable(path)
    try:
        if path.exists() and not path.is_file():  # a pipe or a device is written to, not replaced
            path.write_bytes(content)
        else:
            _replaced(Path(os.path.realpath(path)), content)  # a link stays a link
    except OSError as problem:
        msg = f"{path} cannot be written ({problem.strerror}); nothing was left behind"
        raise InvalidInput(msg) from problem


def _replaced(path: Path, content: bytes) -> None:
    """The file under its name in one step, with the rights that it had."""
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
