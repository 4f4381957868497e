"""Forked processes that run cases, with limits of time and memory.

A process announces each case before it runs it; so if it dies or does not answer, the parent knows
the case. Case numbers after it go on in a new process.
"""

from __future__ import annotations

import os
import resource
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass, field
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from tests.fuzz.api import Report
from tests.fuzz.oracles.outcomes import Finding

FORK = get_context("fork")
MEMORY = 2 * 2**30  # bytes that a case may ask for
PATIENCE = 60.0  # seconds without an answer
Examine = Callable[[int], Report]


@dataclass
class Worker:
    """A process for some case numbers; ``at`` is the one that runs now."""

    kind: str
    numbers: list[int]
    process: Any
    connection: Connection
    errors: Path
    at: int | None = None
    done: list[int] = field(default_factory=list)
    patience: float = PATIENCE
    heard: float = field(default_factory=time.monotonic)
    started: float = field(default_factory=time.monotonic)

    @property
    def silent(self) -> bool:
        """Whether it has not answered for too long."""
        return time.monotonic() - self.heard > self.patience

    @property
    def remaining(self) -> list[int]:
        """Numbers after the case that runs now."""
        return [n for n in self.numbers if n not in self.done and n != self.at]

    def kill(self) -> None:
        """End it."""
        os.kill(self.process.pid, signal.SIGKILL)
        self.process.join()

    def close(self) -> str:
        """Its last words on standard error."""
        self.process.join()
        self.connection.close()
        text = self.errors.read_text(errors="replace")[-2000:]
        self.errors.unlink()
        return text


def start(kind: str, seed: int, numbers: list[int], examine: Examine) -> Worker:
    """Fork a process that runs these cases."""
    mine, theirs = FORK.Pipe(duplex=False)
    number, name = tempfile.mkstemp(prefix="calshift-fuzz-")
    os.close(number)
    process = FORK.Process(
        target=_serve, args=(kind, seed, numbers, examine, theirs, name), daemon=True
    )
    process.start()
    theirs.close()
    return Worker(kind, numbers, process, mine, Path(name))


def _serve(
    kind: str, seed: int, numbers: list[int], examine: Examine, connection: Connection, errors: str
) -> None:
    with open(errors, "wb", buffering=0) as file:
        os.dup2(file.fileno(), 2)
    sys.stderr = open(2, "w", closefd=False)  # noqa: SIM115  lives as long as the process
    limit_process()
    for number in numbers:
        connection.send((number, None))
        try:
            report = examine(number)
        except BaseException as error:  # a fault of the harness is a finding too
            text = "".join(traceback.format_exception(error))
            found = Finding(f"harness: {type(error).__name__}", text[-3000:])
            report = Report(f"{kind}:{seed}:{number}", "harness", "failed", 0.0, [found])
        connection.send((number, report))
    connection.send((None, resource.getrusage(resource.RUSAGE_SELF)))
    os._exit(0)  # without finalizers of libraries


def ask(function: Callable[[], Any]) -> Any:
    """The value of a function, computed in a process of its own."""
    mine, theirs = FORK.Pipe(duplex=False)
    process = FORK.Process(target=lambda: theirs.send(function()), daemon=True)
    process.start()
    theirs.close()
    try:
        return mine.recv() if mine.poll(PATIENCE) else None
    except EOFError:
        return None
    finally:
        process.kill()
        process.join()
        mine.close()


def limit_process() -> None:
    """Bound memory above what is in use, and write no core files."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    allowed = pages * resource.getpagesize() + MEMORY
    resource.setrlimit(resource.RLIMIT_AS, (allowed, allowed))


def describe_death(worker: Worker) -> str:
    """How a process ended: the signal, or its exit status."""
    code = worker.process.exitcode
    if code is not None and code < 0:
        return f"died by {signal.Signals(-code).name}"
    return f"ended with status {code}"
