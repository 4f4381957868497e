"""Parts of benchmarks/run.py that compare this version with another one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from speed_alone import window_rows
from speed_children import Series, measured_in_turns
from speed_rows import Row, comparison
from speed_setup import NUMBA, Asked, Setup

LIMITS: dict[Any, str] = {  # the most times the CPU time of the other version
    "default": "1/3",
    "default, norm=1": "1",
    "default, bins=15": "1",
    "given": "1.3",
    "labelled": "1.3",
    "recalibrate": "1",
    "monitor": "1",
    "calshift check": "1",
    "calshift recalibrate": "1",
    "calshift monitor": "1",
    "parquet": "1/2",
    ("default", 1_000, 3): "1",
    ("default", 10_000, 1000): "1/5",
    ("recalibrate", 10_000, 100): "1/4",
    ("recalibrate", 2_000, 1000): "1/5",
}
ALONE = ", interval=None"
WITH_INTERVAL = ("default", "given", "labelled")
MOST_BYTES = 1e9  # of a process that reads a stream


def default_rows(setup: Setup) -> list[Row]:
    """default: target_calibration_error; given: with class weights and check=False; labelled:
    calibration_error. Each size is measured in processes of its own.
    """
    asked, rows = setup.sizes["default"], []
    for size in dict.fromkeys(what[1:] for what in asked):
        calls = [what for what in asked if what[1:] == size]
        with setup.versions() as workers:
            found = dict(zip(calls, measured_in_turns(workers, calls, setup.pairs), strict=True))
        for what, series in found.items():
            rows += against(setup.other, what, series)
            if what[0] in WITH_INTERVAL:
                rows += without_interval(what, found)
    return rows


def against(other: str, what: Asked, series: Sequence[Series], **more: Any) -> list[Row]:
    """This version beside the other one, with numba and without."""
    limit = LIMITS.get(what, LIMITS.get(what[0], ""))
    return [
        comparison(what, numba, other, *series[first : first + 2], limit, **more)
        for first, numba in zip((0, 2), NUMBA, strict=True)
    ]


def without_interval(what: Asked, found: dict[Asked, list[Series]]) -> list[Row]:
    """A call without its interval beside the same call with it."""
    less = (what[0] + ALONE, *what[1:])
    if less not in found:
        return []
    return [
        comparison(less, numba, "with interval", found[less][k], found[what][k], "1")
        for k, numba in zip((0, 2), NUMBA, strict=True)
    ]


def other_rows(setup: Setup) -> list[Row]:
    """recalibrate; monitor, with windows of 1000 rows and a source of 10,000 rows at most; the
    command line on parquet files, with the CPU time and the memory of its process.
    """
    asked, rows = setup.sizes["others"], []
    with setup.versions() as workers:
        for what in asked:
            (series,) = measured_in_turns(workers, [what], setup.pairs)
            rows += against(setup.other, what, series)
    return rows + window_rows(setup)


def stream_rows(setup: Setup) -> list[Row]:
    """parquet: a default call, the target in ten files, a source of 100,000 rows in memory. made:
    scores of two classes made anew in every pass, whose CPU time is not counted; a source of
    1,000,000 rows. MB: the most that the process held in all during the first call.
    """
    rows = []
    for what in setup.sizes["streams"]:
        with setup.versions() as workers:
            (series,) = measured_in_turns(workers, [what], setup.pairs)
        rows += against(setup.other, what, series, memory="peak", most=MOST_BYTES)
    return rows
