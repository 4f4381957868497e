"""Values of a result that are computed when they are first asked for, or that are not pickled."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


class Lazy:
    """The value of a function without arguments, which is called once."""

    __slots__ = ("_function", "_value")

    def __init__(self, function: Callable[[], Any]) -> None:
        self._function: Callable[[], Any] | None = function
        self._value: Any = None

    def value(self) -> Any:
        """The value, computed the first time."""
        if self._function is not None:
            self._value, self._function = self._function(), None
        return self._value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Lazy) and bool(self.value() == other.value())

    __hash__ = None  # type: ignore[assignment]

    def __reduce__(self) -> tuple[Any, ...]:
        return _computed, (self.value(),)

    def __copy__(self) -> Lazy:
        return self


def _computed(value: Any) -> Lazy:
    """One whose value is known."""
    return Lazy(lambda: value)


class Unpickled:
    """A value that is neither compared nor pickled: a loaded result has None instead."""

    __slots__ = ("value",)

    def __init__(self, value: Any = None) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Unpickled)

    __hash__ = None  # type: ignore[assignment]

    def __reduce__(self) -> tuple[type[Unpickled], tuple[()]]:
        return Unpickled, ()

    def __copy__(self) -> Unpickled:
        return self

    def __deepcopy__(self, memo: object) -> Unpickled:
        return self
