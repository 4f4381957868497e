"""Times of rows and lengths of windows in other forms, and values that are none."""

from __future__ import annotations

import datetime
from typing import Any

import numpy as np

from tests.fuzz.strategies.arrays import Maker
from tests.fuzz.strategies.samples import Rng, pick

UNITS = ("Y", "M", "W", "D", "h", "m", "s", "ms", "us", "ns", "ps", "as")
SECOND = np.timedelta64(1, "s")


def _retype(rng: Rng, time: np.ndarray) -> np.ndarray:
    """The same numbers in another unit: some are far from any calendar."""
    return time.astype(np.int64).view(f"datetime64[{pick(rng, UNITS)}]")


def _seconds(time: np.ndarray) -> np.ndarray:
    return (time - np.datetime64(0, "s")) / SECOND


def _set(*values: Any) -> Maker:
    """One time replaced."""

    def make(rng: Rng, time: np.ndarray) -> Any:
        changed = time.astype(object).tolist()
        changed[int(rng.integers(len(changed)))] = pick(rng, values)
        return changed

    return make


def _missing(rng: Rng, time: np.ndarray) -> np.ndarray:
    time = time.copy()
    time[int(rng.integers(len(time)))] = np.datetime64("NaT")
    return time


def _masked(rng: Rng, time: np.ndarray) -> Any:
    return np.ma.MaskedArray(time, np.arange(len(time)) == 1)


def _pandas(rng: Rng, time: np.ndarray) -> Any:
    import pandas as pd

    return pick(
        rng, (pd.Series(time), pd.Series(time).dt.tz_localize("UTC"), pd.DatetimeIndex(time))
    )


def _polars(rng: Rng, time: np.ndarray) -> Any:
    import polars as pl

    return pl.Series(time.astype("datetime64[us]"))


TIMES: dict[str, tuple[Maker, str]] = {
    "texts": (lambda rng, time: time.astype(str), "equal"),
    "list of datetimes": (lambda rng, time: time.tolist(), "equal"),
    "seconds": (lambda rng, time: _seconds(time), "equal"),
    "nanoseconds as type": (lambda rng, time: time.astype("datetime64[ns]"), "equal"),
    "pandas": (_pandas, "equal"),
    "polars": (_polars, "equal"),
    "another unit": (_retype, "any"),
    "no unit": (lambda rng, time: time.astype(np.int64).view("datetime64"), "refuse"),
    "years": (lambda rng, time: np.full(len(time), 2015), "refuse"),
    "milliseconds": (lambda rng, time: _seconds(time) * 1e3, "refuse"),
    "missing": (_missing, "refuse"),
    "masked": (_masked, "refuse"),
    "one is no time": (_set(None, "", "soon", 2015, float("nan"), b"x", 10**400, [1]), "refuse"),
    "one is far": (_set("9999-12-31T23:59:59", datetime.datetime(1, 1, 1)), "any"),
    "too few": (lambda rng, time: time[1:], "refuse"),
    "a matrix": (lambda rng, time: time[:, None], "refuse"),
    "bools": (lambda rng, time: np.ones(len(time), bool), "refuse"),
}
WINDOWS = (
    "", "d", "0d", "1", "1 d", "-1d", "1.5d", "1y", "1M", "9" * 18 + "d", "9" * 400 + "s", "1mo ",
    "0mo", "999999999mo", "1us", "12h", datetime.timedelta(0), datetime.timedelta.max,
    datetime.timedelta(microseconds=1), *(np.timedelta64(n, unit) for n in (1, -1, 2**62)
    for unit in UNITS), np.array(5).view("timedelta64")[()],
)  # fmt: skip


def draw_window(rng: Rng) -> Any:
    """A length of windows that is extreme, or none."""
    return pick(rng, WINDOWS)
