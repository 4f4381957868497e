"""Rows with other probabilities, worked out in every pass."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np

from calshift.engine import Engine, Kernel
from calshift.facts import Facts, counted
from calshift.predictions import Predictions


class Mapped:
    """An engine whose rows have other probabilities."""

    kept = None

    def __init__(self, inner: Engine, function: Callable[[Predictions], np.ndarray]) -> None:
        self.inner = inner
        self.function = function

    @cached_property
    def facts(self) -> Facts:
        """Those of the changed rows."""
        return Facts(None, **self.total(counted))

    def total(self, kernel: Kernel) -> Any:
        """kernel(batch) summed over the batches."""
        return self.inner.total(After(self.function, kernel))

    def mapped(self, function: Callable[[Predictions], np.ndarray]) -> Engine:
        """The same rows with probabilities function(batch)."""
        return Mapped(self, function)


class After:
    """A kernel on rows whose probabilities a function has changed."""

    def __init__(self, function: Callable[[Predictions], np.ndarray], kernel: Kernel) -> None:
        self.function = function
        self.kernel = kernel

    def __call__(self, batch: Predictions) -> Any:
        return self.kernel(batch.with_probabilities(self.function(batch)))
