"""Rows in memory."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np

from calshift._core.predictions import Predictions
from calshift.engines.sample_summary import SampleSummary, summarize

BLOCK_ROWS = 2**18
LEAST_ROWS = 4096  # of a thread: fewer are not worth one


class Arrays:
    """The engine of arrays in memory: kernels see blocks of rows, so temporaries stay small.

    With several ``jobs`` as many threads work on blocks, which add up in their order.
    """

    def __init__(self, predictions: Predictions, rows: int = BLOCK_ROWS, jobs: int = 1) -> None:
        self.in_memory = predictions
        self.rows = rows
        self.jobs = jobs

    @cached_property
    def summary(self) -> SampleSummary:
        """Sizes, class counts, names."""
        return summarize(self.in_memory)

    def total(self, kernel: Callable[[Predictions], Any]) -> Any:
        """kernel(block) summed over the blocks; the empty sum is 0."""
        if len(self.in_memory) <= self.rows and self.jobs == 1:
            return kernel(self.in_memory)
        total: Any = 0
        if self.jobs == 1 or len(self.in_memory) < self.jobs * LEAST_ROWS:
            for start in range(0, len(self.in_memory), self.rows):
                total = total + kernel(self.in_memory.rows(start, start + self.rows))
            return total
        from concurrent.futures import ThreadPoolExecutor  # late: importing must be fast

        rows = min(self.rows, -(-len(self.in_memory) // self.jobs))
        blocks = (self.in_memory.rows(at, at + rows) for at in range(0, len(self.in_memory), rows))
        with ThreadPoolExecutor(self.jobs) as pool:
            for part in pool.map(kernel, blocks):
                total = total + part
        return total

    def mapped(self, function: Callable[[Predictions], np.ndarray]) -> Arrays:
        """The same rows with probabilities function(block), computed once."""
        p: np.ndarray | None = None
        for start in range(0, len(self.in_memory), self.rows):
            block = function(self.in_memory.rows(start, start + self.rows))
            if p is None:
                p = np.empty((len(self.in_memory), block.shape[1]))
            p[start : start + self.rows] = block
        assert p is not None  # a sample has a row at least
        return Arrays(self.in_memory.with_probabilities(p), self.rows, self.jobs)
