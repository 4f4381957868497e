"""Rows in memory, and batches of any engine in small blocks."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from functools import cached_property, partial
from typing import Any

import numpy as np

from calshift._core.addable import add_up
from calshift._core.predictions import Predictions
from calshift.engines.base import Engine, Mapping, Passes, Summand
from calshift.engines.sample_summary import SampleSummary, summarize

BLOCK_ROWS = 2**18
LEAST_ROWS = 4096  # of a thread
BLOCK_CELLS = 2**18  # so that the arrays of a kernel stay small
LEAST_BLOCK = 64  # rows of a small block
KEPT_CELLS = 2**25  # probabilities of a sample, up to which its blocks keep what is derived

# glibc returns unused memory at the end of the heap to the system, and each pass over rows would
# get its temporaries from there again, page by page: a quarter of the time of a call with 10,000
# rows of 10 classes. Once a block of 16 MB was allocated and released, glibc keeps up to 32 MB
# (mallopt(3), M_MMAP_THRESHOLD). The block is never written to; other allocators ignore it.
np.empty(2**24, np.uint8)


class Arrays:
    """The engine of arrays in memory: kernels see blocks of rows, so temporaries stay small.

    With several ``jobs`` as many threads work on blocks, which are added up in their order.
    """

    def __init__(self, predictions: Predictions, rows: int = BLOCK_ROWS, jobs: int = 1) -> None:
        self.in_memory = predictions
        self.rows = rows
        self.jobs = jobs
        self.known: dict[Hashable, Any] = {}  # what was computed of all rows, by `remember`

    @cached_property
    def summary(self) -> SampleSummary:
        """Sizes, class counts, names."""
        return summarize(self.in_memory)

    def total(self, kernel: Summand) -> Any:
        """kernel(block) summed over the blocks; the empty sum is 0."""
        n = len(self.in_memory)
        if n <= self.rows and self.jobs == 1:
            return kernel(self.in_memory)
        if self.jobs == 1 or n < self.jobs * LEAST_ROWS:
            return add_up(map(kernel, self.in_memory.blocks(self.rows)))
        return self._sum_in_threads(
            kernel, self.in_memory.blocks(min(self.rows, -(-n // self.jobs)))
        )

    @cached_property
    def small_blocks(self) -> list[Predictions]:
        """The rows in small blocks, which keep what is derived from them if that is not much."""
        blocks = in_blocks(self.in_memory)
        if len(self.in_memory) * self.in_memory.n_classes > KEPT_CELLS:
            return blocks
        return [block.keeping() for block in blocks]

    def total_of_blocks(self, kernel: Summand) -> Any:
        """kernel(block) summed over the small blocks."""
        several = self.jobs > 1 and len(self.small_blocks) > 1
        if several and len(self.in_memory) >= self.jobs * LEAST_ROWS:
            return self._sum_in_threads(kernel, self.small_blocks)
        return add_up(map(kernel, self.small_blocks))

    def _sum_in_threads(self, kernel: Summand, blocks: Iterable[Predictions]) -> Any:
        """kernel(block) summed over the blocks in their order."""
        from concurrent.futures import ThreadPoolExecutor  # late: importing must be fast

        with ThreadPoolExecutor(self.jobs) as pool:
            return add_up(pool.map(kernel, blocks))

    def mapped(self, function: Mapping) -> Arrays:
        """The same rows with probabilities function(block), computed once."""
        p, start = np.empty(0), 0
        for block in self.in_memory.blocks(self.rows):
            values = function(block)
            p = p if start else np.empty((len(self.in_memory), values.shape[1]))
            p[start : start + len(block)] = values
            start += len(block)
        return Arrays(self.in_memory.with_probabilities(p), self.rows, self.jobs)

    def running(self, name: str, passes: Passes) -> Arrays:
        """The same rows, summed by the threads that were asked for."""
        return self if passes.jobs == 1 else Arrays(self.in_memory, jobs=passes.jobs)


class Blocks:
    """An engine for kernels that use whole rows at once: they see a million cells at most."""

    def __init__(self, inner: Engine) -> None:
        self.inner = inner

    @property
    def summary(self) -> SampleSummary:
        """The summary of the engine."""
        return self.inner.summary

    @property
    def in_memory(self) -> Predictions | None:
        """The rows, where they are in memory."""
        return self.inner.in_memory

    def total(self, kernel: Summand) -> Any:
        """kernel(block) summed over the blocks of all batches."""
        if isinstance(self.inner, Arrays):
            return self.inner.total_of_blocks(kernel)
        return self.inner.total(partial(_sum_blocks, kernel))

    def mapped(self, function: Mapping) -> Blocks:
        """The same rows with probabilities function(block)."""
        return Blocks(self.inner.mapped(partial(_map_blocks, function)))

    def running(self, name: str, passes: Passes) -> Blocks:
        """The same rows in a run."""
        return Blocks(self.inner.running(name, passes))


def remember(engine: Engine, key: Hashable, compute: Callable[[], Any]) -> Any:
    """What depends on all rows of a sample alone: computed once if they are in memory."""
    inner = engine.inner if isinstance(engine, Blocks) else engine
    if not isinstance(inner, Arrays):
        return compute()
    if key not in inner.known:
        inner.known[key] = compute()
    return inner.known[key]


def _sum_blocks(kernel: Summand, batch: Predictions) -> Any:
    return add_up(map(kernel, in_blocks(batch)))


def _map_blocks(function: Mapping, batch: Predictions) -> np.ndarray:
    """function(block) of all blocks, without a second copy of them."""
    first, *rest = in_blocks(batch)
    found = np.asarray(function(first))
    if not rest:
        return found
    whole, done = np.empty((len(batch), *found.shape[1:]), found.dtype), len(first)
    whole[:done] = found
    for block in rest:
        whole[done : done + len(block)] = function(block)
        done += len(block)
    return whole


def in_blocks(batch: Predictions) -> list[Predictions]:
    """The rows in blocks of a million cells at most; a batch that fits into one is itself."""
    return list(batch.blocks(max(LEAST_BLOCK, BLOCK_CELLS // batch.n_classes)))
