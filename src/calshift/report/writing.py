"""Files that are whole or not there."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from calshift.errors import InvalidInput


def check_writable(path: str | Path) -> None:
    """Fail before the work, not after it, if the file can never be written."""
    path = Path(path)
    if path.is_dir():
        msg = f"{path} is a folder: name a file in it"
        raise InvalidInput(msg)
    if not path.parent.is_dir():
        msg = f"{path}: there is no folder {path.parent}; make it first"
        raise InvalidInput(msg)
    if not os.access(path.parent, os.W_OK):
        msg = f"{path}: writing in {path.parent} is not allowed"
        raise InvalidInput(msg)


def write_whole(path: str | Path, content: str) -> None:
    """Write text beside the place and move it there in one step: nobody sees half a file."""
    _written(Path(path), content.encode("utf-8", "backslashreplace"))


def write_figure(path: str | Path, figure: Any) -> None:
    """The same for a figure of matplotlib, in the format of the path's ending."""
    import io

    ending = Path(path).suffix.lower().removeprefix(".")
    if ending not in figure.canvas.get_supported_filetypes():
        msg = f"{path}: its ending must be a format that can be drawn: png, svg or pdf"
        raise InvalidInput(msg)
    drawn = io.BytesIO()
    figure.savefig(drawn, format=ending, dpi=150)
    _written(Path(path), drawn.getvalue())


def _written(path: Path, content: bytes) -> None:
    check_writable(path)
    beside = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        with open(beside, "xb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(beside, path)
    except OSError as problem:
        beside.unlink(missing_ok=True)
        msg = f"{path} cannot be written ({problem.strerror}); nothing was left behind"
        raise InvalidInput(msg) from problem
    except BaseException:
        beside.unlink(missing_ok=True)
        raise
