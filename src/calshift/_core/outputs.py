"""Outputs that are written to temporary files first and put into place together."""

from __future__ import annotations

import errno
import io
import os
import shutil
import stat
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import IO, Any

from calshift._core.validate import validate_path
from calshift.errors import InvalidInput

IN_MEMORY = 2**24  # bytes for a pipe or a device that are not kept in a temporary file
NOTHING_LEFT = "nothing was left behind"


class Outputs:
    """Files, pipes and standard output of one command: all are written, or none.

    At the end of the context pipes, devices and standard output get what was written for them; then
    the temporary files are renamed. After an error they are deleted.
    """

    def __init__(self) -> None:
        self.staged: list[StagedOutput] = []

    def open(self, path: str | Path) -> StagedOutput:
        """A binary file to write; a pipe or a device is not replaced."""
        path = check_writable(path)
        with write_errors(path):
            direct = path.exists() and not path.is_file()
            self.staged.append(Copied(path) if direct else Renamed(path))
        return self.staged[-1]

    def open_standard_output(self) -> StagedOutput:
        """A binary file whose contents go to standard output."""
        self.staged.append(Printed(Path("-")))
        return self.staged[-1]

    def __enter__(self) -> Outputs:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        problem: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            if problem is None:
                self._put_into_place()
        finally:
            for one in self.staged:
                one.discard()

    def _put_into_place(self) -> None:
        for one in self.staged:
            one.complete()
        written: list[str] = []
        for one in sorted(self.staged, key=lambda one: isinstance(one, Renamed)):
            left = f"written before: {', '.join(written)}" if written else NOTHING_LEFT
            one.put_into_place(left)
            written.append(str(one.path))


class StagedOutput(io.BufferedIOBase):
    """A temporary file; errors of writing name the output."""

    def __init__(self, path: Path, file: IO[bytes]) -> None:
        self.path, self.file = path, file

    def writable(self) -> bool:
        """True."""
        return True

    def write(self, content: Any) -> int:
        """Write bytes."""
        with write_errors(self.path):
            return self.file.write(content)

    def tell(self) -> int:
        """Bytes written so far."""
        return self.file.tell()

    def complete(self) -> None:
        """All is written."""

    def put_into_place(self, left: str) -> None:
        """Make the output visible; ``left`` is what an error says about the others."""
        raise NotImplementedError

    def discard(self) -> None:
        """Delete the temporary file, where it is not in its place."""
        self.file.close()


class Renamed(StagedOutput):
    """A file beside the one it will replace, whose permissions it gets; a link stays a link."""

    def __init__(self, path: Path) -> None:
        self.place = Path(os.path.realpath(path))
        self.beside = self.place.with_name(f".{self.place.name[:40]}.{os.urandom(8).hex()}.part")
        super().__init__(path, open(self.beside, "xb"))  # noqa: SIM115
        if self.place.exists():
            os.chmod(self.beside, stat.S_IMODE(self.place.stat().st_mode))

    def complete(self) -> None:
        with write_errors(self.path):
            self.file.flush()
            os.fsync(self.file.fileno())
            self.file.close()

    def put_into_place(self, left: str) -> None:
        with write_errors(self.path, left):
            os.replace(self.beside, self.place)

    def discard(self) -> None:
        try:
            self.file.close()
        except OSError:  # what it has not written yet
            pass
        finally:
            self.beside.unlink(missing_ok=True)


class Copied(StagedOutput):
    """The contents for a pipe or a device."""

    def __init__(self, path: Path) -> None:
        super().__init__(path, tempfile.SpooledTemporaryFile(IN_MEMORY))  # noqa: SIM115

    def put_into_place(self, left: str) -> None:
        self.file.seek(0)
        with write_errors(self.path, left), open(self._open(left), "wb") as out:
            shutil.copyfileobj(self.file, out)

    def _open(self, left: str) -> int:
        """A descriptor; a pipe is not waited for."""
        try:
            found = os.open(self.path, os.O_WRONLY | os.O_NONBLOCK)
        except OSError as problem:
            if problem.errno != errno.ENXIO:
                raise
            msg = f"{self.path} is a pipe that no program reads: start its reader first; {left}"
            raise InvalidInput(msg) from problem
        os.set_blocking(found, True)
        return found


class Printed(Copied):
    """The contents for standard output; its errors are those of printing."""

    def put_into_place(self, left: str) -> None:
        sys.stdout.flush()
        self.file.seek(0)
        shutil.copyfileobj(self.file, sys.stdout.buffer)
        sys.stdout.buffer.flush()


@contextmanager
def write_errors(path: Path, left: str = NOTHING_LEFT) -> Iterator[None]:
    """Raise errors of writing as one line with the name of the output."""
    try:
        yield
    except OSError as problem:
        msg = f"{path} cannot be written ({problem.strerror or problem}); {left}"
        raise InvalidInput(msg) from problem


def check_writable(path: str | Path) -> Path:
    """Raise if the file cannot be written, to be called before a long computation."""
    path = validate_path(path)
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
    return path
