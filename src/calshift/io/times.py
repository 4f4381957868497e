"""Times in any notation, as UTC in microseconds."""

from __future__ import annotations

from datetime import UTC, date, datetime
from typing import Any

import numpy as np

from calshift.errors import InvalidInput

MICROSECONDS = "datetime64[us]"
LATEST = 1e11  # seconds, the year 5138: larger numbers are no seconds since 1970
EARLIEST_TEXT = 1e8  # digits below it are a number of something else, or a wrong date


def parse_times(values: np.ndarray, name: str, start: int = 0) -> np.ndarray:
    """(n,) from datetimes, ISO texts or seconds since 1970; times without a zone count as UTC.

    ``start`` is the number of the first row, for messages.
    """
    if values.dtype.kind in "iuf":
        return _from_seconds(values, name, start)
    if values.dtype.kind == "M":
        found = values.astype(MICROSECONDS)
    elif values.dtype.kind in "OUT":
        found = _from_texts(values.tolist(), name)
    else:
        raise InvalidInput(_message(name, values.flat[0]))
    if np.isnat(found).any():
        row = start + int(np.argmax(np.isnat(found)))
        msg = f"{name} must be known for every row; row {row} has none"
        raise InvalidInput(msg)
    return np.asarray(found)


def _from_seconds(values: np.ndarray, name: str, start: int) -> np.ndarray:
    seconds = values.astype(float)
    wrong = ~(np.abs(seconds) < LATEST)  # a NaN is wrong too
    if wrong.any():
        row = int(np.argmax(wrong))
        hint = _unit_hint(abs(float(seconds[row])))
        what = f"row {start + row} is {seconds[row]:.6g}{hint}"
        msg = f"{name}: numbers must be seconds since 1970; {what}"
        raise InvalidInput(msg)
    return np.asarray((seconds * 1e6).round().astype("int64").view(MICROSECONDS))


def _unit_hint(value: float) -> str:
    """A hint at the unit of numbers that are not seconds."""
    for least, unit, factor in ((1e17, "nano", "1e9"), (1e14, "micro", "1e6"), (0, "milli", "1e3")):
        if least <= value < np.inf:
            return f": divide {unit}seconds by {factor}"
    return ""


def _from_texts(texts: list[Any], name: str) -> np.ndarray:
    found = np.empty(len(texts), MICROSECONDS)
    for row, text in enumerate(texts):
        time = _parse_one(text)
        if time is None:
            raise InvalidInput(_message(name, text))
        found[row] = time
    return found


def _parse_one(value: Any) -> np.datetime64 | None:
    """The time of one datetime, date or text; None if it is not a time."""
    if isinstance(value, str):
        try:
            value = datetime.fromisoformat(value.strip())
        except ValueError:
            return _parse_seconds(value)
    if isinstance(value, datetime):
        if value.tzinfo is not None:
            value = value.astimezone(UTC).replace(tzinfo=None)
        return np.datetime64(value, "us")
    if isinstance(value, np.datetime64):
        return value
    return np.datetime64(value, "us") if isinstance(value, date) else None


def _parse_seconds(text: str) -> np.datetime64 | None:
    """Seconds since 1970, written as text."""
    try:
        seconds = float(text)
    except ValueError:
        return None
    if not EARLIEST_TEXT <= abs(seconds) < LATEST:
        return None
    return np.datetime64(round(seconds * 1e6), "us")


def _message(name: str, value: Any) -> str:
    return (
        f"{name} must be datetimes, ISO texts such as 2026-01-31T12:00:00, or seconds since 1970; "
        f"one is {value!r}"
    )
