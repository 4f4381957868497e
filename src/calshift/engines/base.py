"""The engine protocol: sums of an addable kernel over the rows of a sample, wherever they are.

`Summands` makes several independent sums in one pass. `MappedEngine` sums over rows whose
probabilities are computed anew in every pass.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property, partial
from typing import Any, NamedTuple, Protocol

import numpy as np

from calshift._core.addable import Tally
from calshift._core.predictions import Predictions
from calshift.engines.checkpoint import Checkpoint
from calshift.engines.sample_summary import SampleSummary, summary_terms
from calshift.errors import InvalidInput

Summand = Callable[[Predictions], Any]
Mapping = Callable[[Predictions], np.ndarray]
Progress = Callable[[int, int], Any]


class Passes(NamedTuple):
    """How the passes of a run are made: where they are kept, who is notified, with what threads.

    The checkpoint and the callback ``progress(done, total)`` are for rows that are read, ``jobs``
    for rows in memory.
    """

    checkpoint: Checkpoint | None = None
    progress: Progress | None = None
    jobs: int = 1


class Engine(Protocol):
    """A sample, wherever its rows are; the defaults are those of rows that are not in memory."""

    @property
    def summary(self) -> SampleSummary:
        """Sizes, class counts, names: one pass, cached."""

    @property
    def in_memory(self) -> Predictions | None:
        """The rows, where they are in memory."""
        return None

    def total(self, kernel: Summand) -> Any:
        """kernel(batch) summed over all batches; the empty sum is 0."""

    def mapped(self, function: Mapping) -> Engine:
        """The same rows with probabilities function(batch), computed in every pass."""
        return MappedEngine(self, function)

    def running(self, name: str, passes: Passes) -> Engine:
        """The same rows in a run, in which the sample has this name."""


class Summands:
    """Several summands as one: a `Tally` of their values by place, so that one pass sums all."""

    def __init__(self, *kernels: Summand) -> None:
        self.kernels = kernels

    def __call__(self, batch: Predictions) -> Tally:
        """The values of a batch."""
        return Tally(enumerate(kernel(batch) for kernel in self.kernels))


def kernel_name(kernel: Any) -> str:
    """The name of a kernel and of the functions that it wraps."""
    if isinstance(kernel, Summands):
        return " + ".join(map(kernel_name, kernel.kernels))
    if isinstance(kernel, partial):
        inner = [kernel_name(one) for one in kernel.args if callable(one)]
        return f"{kernel_name(kernel.func)}({', '.join(inner)})"
    return str(getattr(kernel, "__qualname__", type(kernel).__qualname__))


def rows_in_memory(engine: Engine, what: str) -> Predictions:
    """The rows, for computations that are not sums."""
    if engine.in_memory is None:
        msg = f"{what} needs all rows at once: pass arrays, not batches or a Spark table"
        raise InvalidInput(msg)
    return engine.in_memory


class MappedEngine(Engine):
    """An engine of the same rows with probabilities function(batch)."""

    def __init__(self, inner: Engine, function: Mapping) -> None:
        self.inner = inner
        self.function = function

    @cached_property
    def summary(self) -> SampleSummary:
        """The summary of the mapped rows."""
        return SampleSummary(None, **self.total(summary_terms))

    def total(self, kernel: Summand) -> Any:
        """kernel(batch) summed over the batches."""
        return self.inner.total(partial(_sum_mapped, self.function, kernel))

    def running(self, name: str, passes: Passes) -> Engine:
        """The same rows in a run."""
        return MappedEngine(self.inner.running(name, passes), self.function)


def _sum_mapped(function: Mapping, kernel: Summand, batch: Predictions) -> Any:
    return kernel(batch.with_probabilities(function(batch)))
