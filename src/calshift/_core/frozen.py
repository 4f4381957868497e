"""Values that stay as they were made: frozen fields, read-only arrays, equality by content."""

from __future__ import annotations

from typing import Any

import numpy as np


def read_only(array: np.ndarray) -> np.ndarray:
    """A read-only view: the caller's own array stays writable and is not copied."""
    if not array.flags.writeable:
        return array
    view = array.view()
    view.flags.writeable = False
    return view


class Frozen:
    """Base of the frozen dataclasses: arrays become read-only, also after unpickling or copying."""

    def __post_init__(self) -> None:
        self._freeze()

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._freeze()

    def _freeze(self) -> None:
        held = self.__dict__
        for name, value in held.items():
            if isinstance(value, np.ndarray):
                held[name] = read_only(value)
            elif isinstance(value, tuple) and any(map(_loose, value)):
                held[name] = _frozen(value)

    def __eq__(self, other: object) -> bool:
        if type(self) is not type(other):
            return NotImplemented
        return same_values(self.__dict__, other.__dict__)

    __hash__ = None  # type: ignore[assignment]


def _loose(value: Any) -> bool:
    """Whether there is something to freeze."""
    if isinstance(value, np.ndarray):
        return bool(value.flags.writeable)
    return isinstance(value, tuple) and any(map(_loose, value))


def _frozen(value: Any) -> Any:
    if isinstance(value, tuple):
        return tuple(_frozen(item) for item in value)
    return read_only(value) if isinstance(value, np.ndarray) else value


def same_values(a: dict[str, Any], b: dict[str, Any]) -> bool:
    """Whether two objects have equal attributes."""
    return a.keys() == b.keys() and all(_same(value, b[name]) for name, value in a.items())


def _same(a: Any, b: Any) -> bool:
    if isinstance(a, np.ndarray) or isinstance(b, np.ndarray):
        return bool(np.shape(a) == np.shape(b) and np.array_equal(a, b, equal_nan=True))
    if isinstance(a, tuple) and isinstance(b, tuple):
        return len(a) == len(b) and all(_same(x, y) for x, y in zip(a, b, strict=True))
    return bool(a == b)
