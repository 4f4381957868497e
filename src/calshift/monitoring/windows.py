"""Windows over the rows of a sample: by time, or by a number of rows."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any

import numpy as np

from calshift._core.convert import to_numpy
from calshift._core.validate import show, validate_integer
from calshift.errors import InvalidInput
from calshift.io.times import MICROSECONDS, parse_times, unit_seconds
from calshift.results import Window

MOST_SECONDS = 10**12  # of a window: more than numpy can date in microseconds
UNITS = {"s": 1, "min": 60, "h": 3600, "d": 86_400, "w": 604_800}
MONDAY = np.datetime64("1970-01-05", "us")  # windows are whole multiples of their length from here
Slices = list[tuple[Window, int, int]]  # each window with its first row and the row after its last


def split_windows(
    m: int, time: Any, window: Any, rows: int | None
) -> list[tuple[Window, np.ndarray]]:
    """Windows in order, each with the numbers of its rows."""
    if window is not None and (rows is not None or time is None):
        msg = "window= requires time= and cannot be combined with rows="
        raise InvalidInput(msg)
    order, times = np.arange(m), None
    if time is not None:
        times = _validate_times(time, m)
        order = np.argsort(times, kind="stable")
        times = times[order]
    if window is None:
        slices = _by_rows(m, times, m if rows is None else validate_integer(rows, "rows", 2))
    else:
        assert times is not None
        slices = _by_time(times, window)
    return [(place, order[start:stop]) for place, start, stop in slices]


def _by_rows(m: int, times: np.ndarray | None, step: int) -> Slices:
    """Windows of ``step`` rows; a window of times ends where the next one begins."""
    ends: Any = range(m + 1)
    if times is not None:
        ends = np.append(times, times[-1] + np.timedelta64(1, "us"))
    slices = ((start, min(start + step, m)) for start in range(0, m, step))
    return [(Window(ends[a], ends[b], float(b - a)), a, b) for a, b in slices]


def _by_time(times: np.ndarray, window: Any) -> Slices:
    """Windows between multiples of a length, without those that have no rows."""
    months = re.fullmatch(r"\s*(\d{1,18})\s*mo\s*", window) if isinstance(window, str) else None
    if months is not None:
        step = validate_integer(int(months[1]), "window", 1)
        if step > MOST_SECONDS // UNITS["w"]:
            raise _wrong_window(window)
        number = times.astype("datetime64[M]").astype(int) // step
    else:
        length = _parse_length(window)
        number = (times - MONDAY) // length
    numbers, first, count = np.unique(number, return_index=True, return_counts=True)
    ends = np.stack([numbers, numbers + 1])
    if months is not None:
        ends = (ends * step).astype("datetime64[M]").astype(MICROSECONDS)
    else:
        ends = MONDAY + ends * length
    return [
        (Window(low, high, float(rows)), int(start), int(start + rows))
        for low, high, start, rows in zip(*ends, first, count, strict=True)
    ]


def _parse_length(window: Any) -> np.timedelta64:
    """A fixed length from a text or a timedelta; months and years have none."""
    seconds = _seconds_of_text(window) if isinstance(window, str) else _seconds_of_delta(window)
    if not 1e-6 <= seconds <= MOST_SECONDS:  # a NaN is wrong too
        raise _wrong_window(window)
    if isinstance(window, str):
        return np.timedelta64(int(seconds) * 1_000_000, "us")
    length: np.timedelta64 = np.timedelta64(window).astype("timedelta64[us]")
    return length


def _seconds_of_text(window: str) -> float:
    found = re.fullmatch(r"\s*(\d{1,18})\s*([a-z]+)\s*", window)
    return int(found[1]) * UNITS[found[2]] if found is not None and found[2] in UNITS else np.nan


def _seconds_of_delta(window: Any) -> float:
    """Seconds of a timedelta; NaN if it is none, unknown, or has no unit of fixed length."""
    if isinstance(window, timedelta):
        return window.total_seconds()
    if not isinstance(window, np.timedelta64) or np.isnat(window):
        return np.nan
    unit = unit_seconds(window.dtype)
    if unit is None or np.datetime_data(window.dtype)[0] in ("Y", "M"):
        return np.nan
    return float(window.astype("int64")) * unit


def _wrong_window(window: Any) -> InvalidInput:
    units = ", ".join([*UNITS, "mo"])
    msg = f"window must be a number with one of the units {units}, such as 1d; got {show(window)}"
    return InvalidInput(msg)


def _validate_times(time: Any, m: int) -> np.ndarray:
    """(m,) in microseconds."""
    raw = to_numpy(time, "time")[0]
    if raw.shape != (m,):
        msg = f"time must have one time for each target row, shape ({m},); got {raw.shape}"
        raise InvalidInput(msg)
    return parse_times(raw, "time")
