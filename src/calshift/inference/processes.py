"""A function of many items, computed in several processes that end when nobody waits for them."""

from __future__ import annotations

import multiprocessing
import os
import signal
from collections.abc import Callable, Generator, Sequence
from multiprocessing.synchronize import Event
from threading import Thread
from typing import Any

CHUNKS = 8  # for each process: the last of them ends soon after the others


def map_in_processes(
    function: Callable[[Any], Any], items: Sequence[Any], jobs: int
) -> Generator[Any, None, None]:
    """function(item) of each item, in their order.

    Where the caller stops early, the processes skip the items that are left. Nothing is cancelled
    and no process is killed: an executor that loses a process after a task was cancelled may wait
    for ever (its thread fails when it reports the loss to the cancelled task).
    """
    from concurrent.futures import ProcessPoolExecutor
    from concurrent.futures.process import BrokenProcessPool

    stop = multiprocessing.Event()
    size = max(1, len(items) // (CHUNKS * jobs))
    chunks = [items[at : at + size] for at in range(0, len(items), size)]
    with ProcessPoolExecutor(jobs, initializer=_receive, initargs=(function, stop)) as pool:
        try:
            for pending in [pool.submit(_compute, chunk) for chunk in chunks]:
                yield from pending.result()
        except BrokenProcessPool as problem:
            msg = "a process was ended by the system, probably because memory was short"
            raise MemoryError(msg) from problem
        finally:
            stop.set()


_received: list[Any] = []  # in a worker: the function and its data are sent once, not with items


def _receive(function: Callable[[Any], Any], stop: Event) -> None:
    _received[:] = [function, stop]
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the process that waits stops this one
    for name in ("SIGTERM", "SIGHUP"):
        if hasattr(signal, name):
            signal.signal(getattr(signal, name), signal.SIG_DFL)
    Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    """End this process when the one that waits for it was killed."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _compute(chunk: Sequence[Any]) -> list[Any]:
    function, stop = _received
    return [function(item) for item in chunk if not stop.is_set()]
