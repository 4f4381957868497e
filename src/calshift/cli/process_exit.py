"""The exit status of the process, also where it does not end in our own code.

Status 1 means that a limit was exceeded. It is Python's status for an exception that nobody
handles, and that of C libraries without memory, which call exit(1): both become 4. Importing this
module imports nothing large.
"""

from __future__ import annotations

import os
import signal
import sys
from contextlib import suppress
from types import FrameType, TracebackType

from calshift._core.memory import is_memory_error

FAULT, INTERRUPTED = 4, 128  # added to the number of the signal
NO_MEMORY = "not enough memory: use fewer rows, or --engine batches (of check and weights)"

_received: list[int] = []  # signals that end the command


def guard_process() -> None:
    """End with status 4 where an exception is not handled, or a library calls exit."""
    if sys.excepthook is not _end_by_exception:
        sys.excepthook = _end_by_exception
        _exit_with(FAULT)


def end_process(status: int) -> None:
    """End with this status, after all that Python does at exit."""
    _exit_with(status)
    sys.exit(status)


def _exit_with(status: int) -> None:
    """Let exit() of C end with this status; what was called last counts. Linux only."""
    if sys.platform.startswith("linux"):
        with suppress(Exception):
            import ctypes

            libc = ctypes.CDLL(None)
            libc.__cxa_atexit(libc._exit, ctypes.c_void_p(status), None)


def _end_by_exception(
    kind: type[BaseException], problem: BaseException, trace: TracebackType | None
) -> None:
    """Print one line and end; there may be no memory even for that."""
    status = FAULT
    try:
        if issubclass(kind, KeyboardInterrupt):
            status, message = interrupt_status(), "stopped"
        elif is_memory_error(problem):
            message = NO_MEMORY
        else:
            message = f"internal error ({kind.__name__}: {problem})"
        os.write(2, f"calshift: {' '.join(message.split())}\n".encode("utf-8", "backslashreplace"))
    finally:
        os._exit(status)


def stop_on_termination() -> None:
    """Handle SIGTERM and SIGHUP as an interrupt, unless the caller ignores them."""
    for name in ("SIGTERM", "SIGHUP"):  # the second is sent when a terminal is closed
        number = getattr(signal, name, None)
        if number is not None and signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, _interrupt)


def _interrupt(number: int, frame: FrameType | None) -> None:
    signal.signal(number, signal.SIG_IGN)  # a second one must not end the saving of sums
    _received.append(number)
    raise KeyboardInterrupt


def interrupt_status() -> int:
    """The status of the signal that was received first, or else of SIGINT."""
    return INTERRUPTED + (_received[0] if _received else signal.SIGINT)
