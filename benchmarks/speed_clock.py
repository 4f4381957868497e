"""The measuring processes of the speed benchmark: time and memory of calls, as they are asked for.

A case of n rows and K classes is made, and called once before it is timed. A call that takes
more CPU time than `SLOW` is timed then: it has been called on few rows before. Needs numpy alone.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import resource
import signal
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

Run = Callable[[], float]
Cases = dict[str, Callable[[int, int], Run]]
SLOW, LONG_ENOUGH, MOST_CALLS = 20.0, 0.25, 50  # CPU seconds of a call; seconds and calls of a time
FEW_ROWS, FEW_CLASSES = 2000, 100  # of the call before a slow one


def most_memory() -> int:
    """Bytes: the most this process has held since `forget_memory`, or ever where /proc is not."""
    try:
        status = Path("/proc/self/status").read_text(encoding="ascii")
    except OSError:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    return int(status.split("VmHWM:")[1].split()[0]) * 1024


def forget_memory() -> int:
    """Bytes held now, from which `most_memory` counts anew."""
    with contextlib.suppress(OSError, AttributeError):  # what was freed is given back first
        ctypes.CDLL(None).malloc_trim(0)
        Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
    return most_memory()


def memory_of_children() -> int:
    """Bytes: the most that a process held that has ended, 0 if there was none."""
    return resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024


def processor_seconds() -> float:
    """CPU time of this process and of those it has waited for."""
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + children.ru_utime + children.ru_stime


def timed(run: Run, calls: int) -> dict[str, float]:
    """CPU and wall time of a call, seconds of CPU time outside this thread, and the answer."""
    begun = processor_seconds(), time.thread_time(), time.perf_counter()
    for _ in range(calls):
        answer = run()
    wall = time.perf_counter() - begun[2]
    cpu = processor_seconds() - begun[0]
    outside = max(0.0, cpu - (time.thread_time() - begun[1]))
    found = {"cpu": cpu - apart(run), "wall": wall, "outside": outside}
    return {name: value / calls for name, value in found.items()} | {"answer": answer}


def apart(run: Run) -> float:
    """Seconds of CPU time that are not counted, such as those of making rows."""
    return float(getattr(run, "apart", float)())


class Prepared:
    """A case that can be timed: it has been called once, which shows its memory."""

    def __init__(self, make: Callable[[int, int], Run], n: int, K: int) -> None:
        make(min(n, FEW_ROWS), min(K, FEW_CLASSES))()
        self.run = make(n, K)
        apart(self.run)
        held = forget_memory()
        self.first = timed(self.run, 1)
        peak = most_memory()
        self.memory = {"peak": peak, "bytes": max(peak - held, memory_of_children())}
        seconds = max(self.first["cpu"], LONG_ENOUGH / MOST_CALLS)
        self.slow = seconds > SLOW
        self.calls = max(1, int(LONG_ENOUGH / seconds))

    def times(self) -> dict[str, Any]:
        found = self.first if self.slow else timed(self.run, self.calls)
        return {**found, **self.memory, "slow": self.slow}


def answer_requests(cases: Cases) -> None:
    """Measure what each line of the input asks for as `[case, n, K, seconds]`; answer with JSON."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what others print is no answer
    warnings.simplefilter("ignore")
    ready: dict[tuple[str, int, int], Prepared] = {}
    for line in sys.stdin:
        name, n, K, most = json.loads(line)
        signal.alarm(most)  # it ends the process
        try:
            if (name, n, K) not in ready:
                ready[name, n, K] = Prepared(cases[name], n, K)
            found = ready[name, n, K].times()
        except Exception as error:  # what a peer does not do is shown, not hidden
            found = {"failed": f"{type(error).__name__}: {error}"}
        signal.alarm(0)
        print(json.dumps(found), file=answers, flush=True)
    os._exit(0)  # some peers take long to end
