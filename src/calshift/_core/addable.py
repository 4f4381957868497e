"""Several sums made in one pass over the rows."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice
from typing import Any

import numpy as np


class Tally(dict[Any, Any]):
    """Sums by name; two tallies add up name by name, and the number 0 is the empty sum."""

    def __add__(self, other: Any) -> Any:
        if not isinstance(other, Tally):
            return self if isinstance(other, int) and other == 0 else NotImplemented
        return Tally({name: value + other[name] for name, value in self.items()})

    __radd__ = __add__


def add_up(values: Iterable[Any]) -> Any:
    """The sum of the values, added in their order; 0 if there are none.

    Later values are added in place to the sum of the first two, which belongs to no caller.
    """
    parts = iter(values)
    total: Any = 0
    for value in islice(parts, 2):
        total = total + value
    for value in parts:
        total = _add_to(total, value)
    return total


def _add_to(total: Any, value: Any) -> Any:
    """total + value, in the memory of the total where arrays of one shape and type are added."""
    if isinstance(total, Tally) and isinstance(value, Tally):
        for name, one in value.items():
            total[name] = _add_to(total[name], one)
        return total
    arrays = type(total) is np.ndarray and type(value) is np.ndarray
    if arrays and total.shape == value.shape and total.dtype == value.dtype:
        return np.add(total, value, out=total)
    return total + value
