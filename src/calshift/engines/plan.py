"""Sums that are made together with the next pass over a sample, which needs no pass of its own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from calshift.engines.base import Summand, Summands


class PassPlan:
    """Summands that wait for the next pass, and the sums of those that it made.

    Summands are recognised when they are equal. Each sum is given once, so that it is not kept.
    """

    def __init__(self) -> None:
        self.waiting: list[Summand] = []
        self.made: list[tuple[Summand, Any]] = []

    def add(self, kernel: Summand) -> None:
        """Make this sum along with the next pass, unless it was made and not asked for."""
        if kernel not in self.waiting and all(one != kernel for one, _ in self.made):
            self.waiting.append(kernel)

    def total(self, kernel: Summand, sum_up: Callable[[Summand], Any]) -> Any:
        """The sum of a kernel: made before, or now by ``sum_up`` together with those that wait."""
        for place, (one, value) in enumerate(self.made):
            if one == kernel:
                del self.made[place]
                return value
        others = [one for one in self.waiting if one != kernel]
        self.waiting = []
        if not others:
            return sum_up(kernel)
        total, *more = sum_up(Summands(kernel, *others)).values()
        self.made += zip(others, more, strict=True)
        return total
