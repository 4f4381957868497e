"""Sums that are made together with the next pass over a sample, which needs no pass of its own."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from calshift.engines.arrays import Blocks, _sum_blocks
from calshift.engines.base import Engine, Summand, Summands


def plan(engine: Engine, kernel: Summand) -> None:
    """Make this sum along with the next pass over files or a Spark table, to be asked for later."""
    if isinstance(engine, Blocks):
        plan(engine.inner, partial(_sum_blocks, kernel))
    elif isinstance(planned := getattr(engine, "planned", None), PassPlan):
        planned.add(kernel)


class PassPlan:
    """Summands that wait for the next pass, and the sums of those that it made.

    Summands are recognised when they are equal, or partial functions with equal arguments. Each sum
    is given once, so that it is not kept.
    """

    def __init__(self) -> None:
        self.waiting: list[Summand] = []
        self.made: list[tuple[Summand, Any]] = []

    def add(self, kernel: Summand) -> None:
        """Make this sum along with the next pass, unless it was made and not asked for."""
        known = [*self.waiting, *(one for one, _ in self.made)]
        if not any(_are_equal(one, kernel) for one in known):
            self.waiting.append(kernel)

    def total(self, kernel: Summand, sum_up: Callable[[Summand], Any]) -> Any:
        """The sum of a kernel: made before, or now by ``sum_up`` together with those that wait."""
        for place, (one, value) in enumerate(self.made):
            if _are_equal(one, kernel):
                del self.made[place]
                return value
        others = [one for one in self.waiting if not _are_equal(one, kernel)]
        self.waiting = []
        if not others:
            return sum_up(kernel)
        total, *more = sum_up(Summands(kernel, *others)).values()
        self.made += zip(others, more, strict=True)
        return total


def _are_equal(one: Any, other: Any) -> bool:
    if one is other or isinstance(one, np.ndarray):
        return one is other
    if not (isinstance(one, partial) and isinstance(other, partial)):
        return bool(one == other)
    same = _are_equal(one.func, other.func) and len(one.args) == len(other.args)
    same = same and all(map(_are_equal, one.args, other.args))
    return same and one.keywords == other.keywords
