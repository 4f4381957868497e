"""Several sums made in one pass over the rows."""

from __future__ import annotations

from typing import Any


class Tally(dict[Any, Any]):
    """Sums by name; two tallies add up name by name, and the number 0 is the empty sum."""

    def __add__(self, other: Any) -> Any:
        if not isinstance(other, Tally):
            return self if isinstance(other, int) and other == 0 else NotImplemented
        return Tally({name: value + other[name] for name, value in self.items()})

    __radd__ = __add__
