"""What every engine offers: the sum of an addable kernel over a sample's rows, and plain facts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import numpy as np

from calshift.errors import InvalidInput
from calshift.facts import Facts
from calshift.predictions import Predictions

Kernel = Callable[[Predictions], Any]


class Engine(Protocol):
    """A sample, wherever its rows are."""

    @property
    def facts(self) -> Facts:
        """Sizes, class counts, names: one pass, kept."""

    @property
    def kept(self) -> Predictions | None:
        """The rows, where they are in memory."""

    def total(self, kernel: Kernel) -> Any:
        """kernel(batch) summed over all batches; the empty sum is 0."""

    def mapped(self, function: Callable[[Predictions], np.ndarray]) -> Engine:
        """The same rows with probabilities function(batch)."""


def kernel_name(kernel: Any) -> str:
    """What a kernel is called, and those it works through."""
    inner = getattr(kernel, "kernel", None) or getattr(kernel, "func", None)
    own = getattr(kernel, "__qualname__", type(kernel).__qualname__)
    return own if inner is None else f"{own}({kernel_name(inner)})"


def rows_in_memory(engine: Engine, what: str) -> Predictions:
    """The rows, for what cannot be done in sums."""
    if engine.kept is None:
        msg = f"{what} needs all rows at once: pass arrays, not batches or a cluster's table"
        raise InvalidInput(msg)
    return engine.kept
