"""Immutable values: frozen fields, read-only arrays, equality by content."""

from __future__ import annotations

from typing import Any

import numpy as np

PLAIN = frozenset({str, int, float, bool, type(None)})  # types of values without arrays


def read_only(array: np.ndarray) -> np.ndarray:
    """A read-only view of the array, which itself stays writable."""
    if not array.flags.writeable:
        return array
    view = array.view()
    view.flags.writeable = False
    return view


class Frozen:
    """Base of frozen dataclasses whose arrays are read-only, also after unpickling or copying."""

    def __post_init__(self) -> None:
        self._freeze()

    def __getstate__(self) -> dict[str, Any]:
        """What is pickled, copied and compared."""
        return self.__dict__

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._freeze()

    def _freeze(self) -> None:
        fields = self.__dict__
        for name, value in fields.items():
            kind = type(value)
            if kind is np.ndarray:
                if value.flags.writeable:
                    fields[name] = read_only(value)
            elif kind not in PLAIN and _is_writable(value):
                fields[name] = _freeze_value(value)

    def __eq__(self, other: object) -> bool:
        if type(self) is not type(other):
            return NotImplemented
        there = other.__getstate__()
        return all(_same(value, there[name]) for name, value in self.__getstate__().items())

    __hash__ = None  # type: ignore[assignment]


def _is_writable(value: Any) -> bool:
    """Whether it is or contains an array that can be written to."""
    if isinstance(value, np.ndarray):
        return bool(value.flags.writeable)
    for one in value if isinstance(value, tuple) else ():
        kind = type(one)
        if kind is np.ndarray:
            if one.flags.writeable:
                return True
        elif kind not in PLAIN and _is_writable(one):
            return True
    return False


def _freeze_value(value: Any) -> Any:
    if isinstance(value, tuple):
        return tuple(_freeze_value(item) for item in value)
    return read_only(value) if isinstance(value, np.ndarray) else value


def _same(a: Any, b: Any) -> bool:
    if isinstance(a, np.ndarray) or isinstance(b, np.ndarray):
        return bool(np.shape(a) == np.shape(b) and np.array_equal(a, b, equal_nan=True))
    if isinstance(a, tuple) and isinstance(b, tuple):
        return len(a) == len(b) and all(_same(x, y) for x, y in zip(a, b, strict=True))
    return bool(a == b)
