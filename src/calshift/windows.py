"""Rows in windows: by their times, or so many at a time."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any

import numpy as np

from calshift.checks import checked_whole
from calshift.conversion import to_numpy
from calshift.errors import InvalidInput
from calshift.moments import MICROSECONDS, moments
from calshift.results import Window

MOST_SECONDS = 10**12  # of a window: more than numpy can date in microseconds
UNITS = {"s": 1, "min": 60, "h": 3600, "d": 86_400, "w": 604_800}
MONDAY = np.datetime64("1970-01-05", "us")  # windows are whole multiples from here


def cut(
    m: int, time: Any, window: Any, rows: int | None
) -> tuple[np.ndarray, list[tuple[Window, int, int]]]:
    """Rows in order, and the windows with their first and last row in it."""
    if window is not None and (rows is not None or time is None):
        msg = "window needs time, the times of the target rows, and excludes rows"
        raise InvalidInput(msg)
    order, moment = np.arange(m), None
    if time is not None:
        moment = _times(time, m)
        order = np.argsort(moment, kind="stable")
        moment = moment[order]
    if window is not None:
        assert moment is not None
        return order, _by_time(moment, window)
    step = m if rows is None else checked_whole(rows, "rows", 2)
    cuts = []
    for start in range(0, m, step):
        stop = min(start + step, m)
        first, end = (start, stop) if moment is None else (moment[start], _end(moment, stop))
        cuts.append((Window(first, end, float(stop - start)), start, stop))
    return order, cuts


def _end(moment: np.ndarray, stop: int) -> np.datetime64:
    """The first time after the rows before ``stop``."""
    after = moment[-1] + np.timedelta64(1, "us") if stop == len(moment) else moment[stop]
    return np.datetime64(after)


def _by_time(moment: np.ndarray, window: Any) -> list[tuple[Window, int, int]]:
    """Windows between multiples of a length; those without a row are left out."""
    months = re.fullmatch(r"\s*(\d+)\s*mo\s*", window) if isinstance(window, str) else None
    if months is not None:
        step = checked_whole(int(months[1]), "window", 1)
        if step > MOST_SECONDS // UNITS["w"]:
            raise InvalidInput(_wrong(window))
        number = moment.astype("datetime64[M]").astype(int) // step
    else:
        length = _length(window)
        number = (moment - MONDAY) // length
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


def _length(window: Any) -> np.timedelta64:
    found = re.fullmatch(r"\s*(\d+)\s*([a-z]+)\s*", window) if isinstance(window, str) else None
    if found is not None and found[2] in UNITS and int(found[1]) > 0:
        seconds = int(found[1]) * UNITS[found[2]]
        if seconds <= MOST_SECONDS:
            return np.timedelta64(seconds * 1_000_000, "us")
    if isinstance(window, timedelta | np.timedelta64):
        length: np.timedelta64 = np.timedelta64(window).astype("timedelta64[us]")
        if length > np.timedelta64(0, "us"):
            return length
    raise InvalidInput(_wrong(window))


def _wrong(window: Any) -> str:
    units = ", ".join([*UNITS, "mo"])
    return f"window must be a number with one of the units {units}, like 1d; got {window!r}"


def _times(time: Any, m: int) -> np.ndarray:
    """(m,) in microseconds."""
    raw = to_numpy(time, "time")[0]
    if raw.shape != (m,):
        msg = f"time must have one time a target row, shape ({m},); got {raw.shape}"
        raise InvalidInput(msg)
    return moments(raw, "time")
