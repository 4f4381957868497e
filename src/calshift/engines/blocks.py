"""Batches of any engine cut into smaller blocks."""

from __future__ import annotations

from functools import partial, reduce
from operator import add
from typing import Any

import numpy as np

from calshift._core.predictions import Predictions
from calshift.engines.base import Engine, Mapping, Passes, Summand
from calshift.engines.sample_summary import SampleSummary

BLOCK_CELLS = 2**20  # probabilities in a block: temporaries as wide as the rows stay in the cache
LEAST_ROWS = 64


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
        return self.inner.total(partial(_sum_blocks, kernel))

    def mapped(self, function: Mapping) -> Blocks:
        """The same rows with probabilities function(block)."""
        return Blocks(self.inner.mapped(partial(_map_blocks, function)))

    def running(self, name: str, passes: Passes) -> Blocks:
        """The same rows in a run."""
        return Blocks(self.inner.running(name, passes))


def _sum_blocks(kernel: Summand, batch: Predictions) -> Any:
    return reduce(add, map(kernel, in_blocks(batch)), 0)


def _map_blocks(function: Mapping, batch: Predictions) -> np.ndarray:
    return np.concatenate([function(block) for block in in_blocks(batch)])


def in_blocks(batch: Predictions) -> list[Predictions]:
    """The rows in blocks of a million cells at most; a batch that fits into one is itself."""
    return list(batch.blocks(max(LEAST_ROWS, BLOCK_CELLS // batch.n_classes)))
