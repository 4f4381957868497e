"""Rows in memory."""

from __future__ import annotations

from functools import cached_property, reduce
from operator import add
from typing import Any

import numpy as np

from calshift._core.predictions import Predictions
from calshift.engines.base import Mapping, Passes, Summand
from calshift.engines.sample_summary import SampleSummary, summarize

BLOCK_ROWS = 2**18
LEAST_ROWS = 4096  # of a thread


class Arrays:
    """The engine of arrays in memory: kernels see blocks of rows, so temporaries stay small.

    With several ``jobs`` as many threads work on blocks, which are added up in their order.
    """

    def __init__(self, predictions: Predictions, rows: int = BLOCK_ROWS, jobs: int = 1) -> None:
        self.in_memory = predictions
        self.rows = rows
        self.jobs = jobs

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
            return reduce(add, map(kernel, self.in_memory.blocks(self.rows)), 0)
        from concurrent.futures import ThreadPoolExecutor  # late: importing must be fast

        blocks = self.in_memory.blocks(min(self.rows, -(-n // self.jobs)))
        with ThreadPoolExecutor(self.jobs) as pool:
            return reduce(add, pool.map(kernel, blocks), 0)

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
