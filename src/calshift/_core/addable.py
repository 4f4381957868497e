"""Several sums made in one pass."""

from __future__ import annotations

from typing import Any


class Sums(tuple[Any, ...]):
    """What a kernel answers when it makes several sums: they add up one by one."""

    __slots__ = ()

    def __add__(self, other: Any) -> Any:
        if not isinstance(other, Sums):
            return self if isinstance(other, int) and other == 0 else NotImplemented
        return Sums(a + b for a, b in zip(self, other, strict=True))

    __radd__ = __add__


class Tally(dict[Any, Any]):
    """The same with a name for each of the sums."""

    def __add__(self, other: Any) -> Any:
        if not isinstance(other, Tally):
            return self if isinstance(other, int) and other == 0 else NotImplemented
        return Tally({name: value + other[name] for name, value in self.items()})

    __radd__ = __add__
