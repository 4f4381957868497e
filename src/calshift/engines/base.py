"""What every engine offers: the sum of an addable kernel over a sample's rows, and plain facts.

Rows with other probabilities, worked out in every pass.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any, Protocol

import numpy as np

from calshift._core.predictions import Predictions
from calshift.engines.sample_summary import SampleSummary, summary_terms
from calshift.errors import InvalidInput

Summand = Callable[[Predictions], Any]


class Engine(Protocol):
    """A sample, wherever its rows are."""

    @property
    def summary(self) -> SampleSummary:
        """Sizes, class counts, names: one pass, kept."""

    @property
    def in_memory(self) -> Predictions | None:
        """The rows, where they are in memory."""

    def total(self, kernel: Summand) -> Any:
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
    if engine.in_memory is None:
        msg = f"{what} needs all rows at once: pass arrays, not batches or a cluster's table"
        raise InvalidInput(msg)
    return engine.in_memory


class MappedEngine:
    """An engine whose rows have other probabilities."""

    in_memory = None

    def __init__(self, inner: Engine, function: Callable[[Predictions], np.ndarray]) -> None:
        self.inner = inner
        self.function = function

    @cached_property
    def summary(self) -> SampleSummary:
        """Those of the changed rows."""
        return SampleSummary(None, **self.total(summary_terms))

    def total(self, kernel: Summand) -> Any:
        """kernel(batch) summed over the batches."""
        return self.inner.total(SumAfterMapping(self.function, kernel))

    def mapped(self, function: Callable[[Predictions], np.ndarray]) -> Engine:
        """The same rows with probabilities function(batch)."""
        return MappedEngine(self, function)


class SumAfterMapping:
    """A kernel on rows whose probabilities a function has changed."""

    def __init__(self, function: Callable[[Predictions], np.ndarray], kernel: Summand) -> None:
        self.function = function
        self.kernel = kernel

    def __call__(self, batch: Predictions) -> Any:
        return self.kernel(batch.with_probabilities(self.function(batch)))
