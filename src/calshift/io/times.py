"""Times in any notation, as UTC in microseconds."""

from __future__ import annotations

from datetime import UTC, date, datetime
from typing import Any

import numpy as np

from calshift._core.validate import show
from calshift.errors import InvalidInput

MICROSECONDS = "datetime64[us]"
LATEST = 1e11  # seconds, the year 5138: larger numbers are no seconds since 1970
FARTHEST = 20_000 * 365.25 * 86_400  # seconds from 1970 of a datetime
EARLIEST = 1e8  # seconds, 1973: smaller numbers are years, dates such as 20150131, or row numbers
MOST_TRIED = 1000  # numbers that are compared with dates
SECONDS = {
    "Y": 31_556_952.0, "M": 2_629_746.0, "W": 604_800.0, "D": 86_400.0, "h": 3_600.0, "m": 60.0,
    "s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9, "ps": 1e-12, "fs": 1e-15, "as": 1e-18,
}  # fmt: skip


def parse_times(values: np.ndarray, name: str, start: int = 0) -> np.ndarray:
    """(n,) from datetimes, ISO texts or seconds since 1970; times without a zone count as UTC.

    ``start`` is the number of the first row, for messages.
    """
    if values.dtype.kind in "iuf":
        return _from_seconds(values, name, start)
    if values.dtype.kind == "M":
        found = _from_datetimes(values, name, start)
    elif values.dtype.kind in "OUT":
        found = _from_texts(values.tolist(), name, start)
    else:
        raise InvalidInput(_message(name, values.flat[0], start))
    if np.isnat(found).any():
        row = start + int(np.argmax(np.isnat(found)))
        msg = f"{name} must be known for every row; row {row} has none"
        raise InvalidInput(msg)
    return np.asarray(found)


def unit_seconds(dtype: np.dtype) -> float | None:
    """The unit of datetimes or timedeltas, in seconds (mean ones of years); None without a unit."""
    unit, count = np.datetime_data(dtype)
    return count * SECONDS[unit] if unit in SECONDS else None


def _from_datetimes(values: np.ndarray, name: str, start: int) -> np.ndarray:
    """Times of any unit; numpy wraps those that have no number of microseconds."""
    unit = unit_seconds(values.dtype)
    if unit is None:
        msg = f"{name}: datetimes must have a unit, such as datetime64[s]; got {values.dtype}"
        raise InvalidInput(msg)
    known = ~np.isnat(values)
    wrong = known & (np.abs(values.astype("int64").astype(float) * unit) >= FARTHEST)
    if wrong.any():
        row = start + int(np.argmax(wrong))
        what = "is more than 20000 years from 1970: is the unit of its type right?"
        msg = f"{name}: row {row} {what}"
        raise InvalidInput(msg)
    return values.astype(MICROSECONDS)


def _from_seconds(values: np.ndarray, name: str, start: int) -> np.ndarray:
    seconds = values.astype(float)
    distance = np.abs(seconds)
    wrong = ~((distance >= EARLIEST) & (distance < LATEST))  # a NaN is wrong too
    if wrong.any() or all(map(_is_date, seconds[:MOST_TRIED])):
        row = int(np.argmax(wrong))
        what = f"row {start + row} is {_as_written(seconds[row])}{_unit_hint(distance[row])}"
        msg = f"{name}: numbers must be seconds since 1970; {what}"
        raise InvalidInput(msg)
    return np.asarray((seconds * 1e6).round().astype("int64").view(MICROSECONDS))


def _is_date(number: float) -> bool:
    """Whether digits are year, month, day and hour, perhaps with minutes and seconds."""
    text = str(int(number)) if float(number).is_integer() else ""
    if len(text) not in (10, 12, 14) or text[:2] not in ("19", "20"):
        return False
    month, day, *rest = (int(text[at : at + 2]) for at in range(4, len(text), 2))
    return 1 <= month <= 12 and 1 <= day <= 31 and rest[0] < 24 and all(part < 60 for part in rest)


def _as_written(value: float) -> str:
    return str(int(value)) if value.is_integer() else f"{value:.6g}"


def _unit_hint(value: float) -> str:
    """Advice for numbers that are not seconds, by their size."""
    if value < EARLIEST or _is_date(value):
        return ": write dates as 2015-01-31"
    for least, unit, factor in ((1e17, "nano", "1e9"), (1e14, "micro", "1e6"), (0, "milli", "1e3")):
        if least <= value < np.inf:
            return f": divide {unit}seconds by {factor}"
    return ""


def _from_texts(texts: list[Any], name: str, start: int) -> np.ndarray:
    found = np.empty(len(texts), MICROSECONDS)
    for row, text in enumerate(texts):
        time = _parse_one(text)
        if time is None:
            raise InvalidInput(_message(name, text, start + row))
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
    if not EARLIEST <= abs(seconds) < LATEST:
        return None
    return np.datetime64(round(seconds * 1e6), "us")


def _message(name: str, value: Any, row: int) -> str:
    advice = ": write dates as 2015-01-31" if isinstance(value, str | int | float) else ""
    return (
        f"{name} must be datetimes, ISO texts such as 2026-01-31T12:00:00, or seconds since 1970; "
        f"row {row} is {show(value)}{advice}"
    )
