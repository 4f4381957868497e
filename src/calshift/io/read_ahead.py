"""Batches that are read while the one before them is summed."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from contextlib import closing
from typing import TypeVar

Item = TypeVar("Item")


def read_ahead(items: Generator[Item]) -> Iterator[Item]:
    """The same items in their order; a thread makes the next one while the caller has one.

    An error in making an item is raised where the item would have come. The thread has ended when
    the iterator is exhausted or closed, and then the items are closed too.
    """
    from concurrent.futures import ThreadPoolExecutor  # late: importing must be fast

    nothing = object()
    with closing(items), ThreadPoolExecutor(1, "calshift-read") as thread:
        coming = thread.submit(next, items, nothing)
        while (item := coming.result()) is not nothing:
            coming = thread.submit(next, items, nothing)
            yield item  # type: ignore[misc]
