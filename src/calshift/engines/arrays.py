"""Rows in memory."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from calshift.predictions import Predictions

BLOCK_CELLS = 2**20  # probabilities in a block of `in_blocks`: its temporaries stay in the cache


class Arrays:
    """The engine of arrays in memory: kernels see blocks of rows, so temporaries stay small."""

    def __init__(self, predictions: Predictions, rows: int = 262_144) -> None:
        self.predictions = predictions
        self.rows = rows

    @staticmethod
    def in_blocks(predictions: Predictions) -> Arrays:
        """For kernels that use whole rows at once."""
        return Arrays(predictions, max(64, BLOCK_CELLS // predictions.n_classes))

    def total(self, kernel: Callable[[Predictions], Any]) -> Any:
        """kernel(block) summed over the blocks; the empty sum is 0."""
        total: Any = 0
        for start in range(0, len(self.predictions), self.rows):
            total = total + kernel(self.predictions.rows(start, start + self.rows))
        return total

    def mapped(self, function: Callable[[Predictions], np.ndarray]) -> Arrays:
        """The same rows with probabilities function(block), computed once."""
        p: np.ndarray | None = None
        for start in range(0, len(self.predictions), self.rows):
            block = function(self.predictions.rows(start, start + self.rows))
            if p is None:
                p = np.empty((len(self.predictions), block.shape[1]))
            p[start : start + self.rows] = block
        assert p is not None  # a sample has a row at least
        return Arrays(self.predictions.with_probabilities(p), self.rows)
