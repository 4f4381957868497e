"""Rows in memory."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from calshift.predictions import Predictions


class Arrays:
    """The engine of arrays in memory: kernels see blocks of rows, so temporaries stay small."""

    def __init__(self, predictions: Predictions, rows: int = 262_144) -> None:
        self.predictions = predictions
        self.rows = rows

    def total(self, kernel: Callable[[Predictions], Any]) -> Any:
        """kernel(block) summed over the blocks; the empty sum is 0."""
        total: Any = 0
        for start in range(0, len(self.predictions), self.rows):
            total = total + kernel(self.predictions.rows(start, start + self.rows))
        return total
