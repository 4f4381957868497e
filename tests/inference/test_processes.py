"""Functions computed in several processes: their order, an early end, the loss of a process."""

from __future__ import annotations

import os
import signal
import time
from contextlib import closing

import numpy as np
import pytest

import calshift
from calshift.inference.options import Resampling
from calshift.inference.processes import map_in_processes


def square(item):
    return item * item


def sleep_after_the_first_chunk(item):
    if item >= 250:
        time.sleep(0.1)
    return item


def end_on_seven(item):
    if item == 7:
        os.kill(os.getpid(), signal.SIGKILL)
    return item


@pytest.mark.parametrize("jobs", [1, 2, 3])
@pytest.mark.parametrize("n", [0, 1, 5, 100])
def test_results_are_in_the_order_of_the_items(jobs, n):
    assert list(map_in_processes(square, range(n), jobs)) == [i * i for i in range(n)]


def test_items_that_nobody_waits_for_are_skipped():
    """4000 items are 16 chunks of 250, each 25 s but for the first; an item takes 0.1 s."""
    with closing(map_in_processes(sleep_after_the_first_chunk, range(4000), 2)) as found:
        assert next(found) == 0
        start = time.monotonic()
    assert time.monotonic() - start < 15


@pytest.mark.parametrize("asked", [10**6, 10**9, np.int64(500)])
def test_there_are_no_more_processes_than_processors(asked):
    most = max(2, os.cpu_count() or 1)
    assert Resampling(100, 0, asked, None).jobs == most
    assert calshift.scan([np.full(5, 0.5)], jobs=asked).jobs == most
    assert Resampling(100, 0, 1, None).jobs == 1


def test_the_loss_of_a_process_is_want_of_memory():
    with pytest.raises(MemoryError, match="ended by the system"):
        list(map_in_processes(end_on_seven, range(50), 2))
