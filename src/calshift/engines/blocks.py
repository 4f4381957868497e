"""Batches of any engine cut into smaller blocks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from calshift._core.predictions import Predictions
from calshift.engines.base import Engine, Summand
from calshift.engines.sample_summary import SampleSummary

BLOCK_CELLS = 2**20  # probabilities in a block: temporaries as wide as the rows stay in the cache
LEAST_ROWS = 64


class Blocks:
    """An engine for kernels that use whole rows at once: they see a million cells at most."""

    def __init__(self, inner: Engine) -> None:
        self.inner = inner

    @property
    def summary(self) -> SampleSummary:
        """Those of the engine."""
        return self.inner.summary

    @property
    def in_memory(self) -> Predictions | None:
        """Those of the engine."""
        return self.inner.in_memory

    def total(self, kernel: Summand) -> Any:
        """kernel(block) summed over the blocks of all batches."""
        return self.inner.total(Cut(kernel))

    def mapped(self, function: Callable[[Predictions], np.ndarray]) -> Blocks:
        """The same rows with probabilities function(block)."""
        return Blocks(self.inner.mapped(Joined(function)))


class Cut:
    """A kernel that sums another one over blocks of its batch."""

    def __init__(self, kernel: Summand) -> None:
        self.kernel = kernel

    def __call__(self, batch: Predictions) -> Any:
        total: Any = 0
        for block in in_blocks(batch):
            total = total + self.kernel(block)
        return total


class Joined:
    """A function of rows, worked out block by block."""

    def __init__(self, function: Callable[[Predictions], np.ndarray]) -> None:
        self.function = function

    def __call__(self, batch: Predictions) -> np.ndarray:
        return np.concatenate([self.function(block) for block in in_blocks(batch)])


def in_blocks(batch: Predictions) -> list[Predictions]:
    """The rows in blocks of a million cells at most; a batch that is one block is itself."""
    rows = max(LEAST_ROWS, BLOCK_CELLS // batch.n_classes)
    if len(batch) <= rows:
        return [batch]
    return [batch.rows(start, start + rows) for start in range(0, len(batch), rows)]
