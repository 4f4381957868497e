"""Rows in windows: by their times, or so many at a time.

Windows over the target's rows, an error for each.
"""

from __future__ import annotations

import re
import warnings as python_warnings
from collections.abc import Iterator
from datetime import timedelta
from itertools import pairwise
from typing import Any

import numpy as np

from calshift._core.convert import to_numpy
from calshift._core.predictions import Predictions, concatenate_rows
from calshift._core.validate import is_number, validate_integer
from calshift.diagnostics.label_shift_check import label_shift_check
from calshift.diagnostics.warnings import LEAST_TARGET
from calshift.engines import Arrays, Batches
from calshift.engines.base import Engine
from calshift.engines.open import open_pair
from calshift.errors import InvalidInput, UnreliableWeights
from calshift.inference.assemble import target_result
from calshift.inference.options import Options, Progress, Resampling
from calshift.io.times import MICROSECONDS, parse_times
from calshift.results import MonitoringResult, Skipped, Window
from calshift.weights import DEFAULT

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
    step = m if rows is None else validate_integer(rows, "rows", 2)
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
        step = validate_integer(int(months[1]), "window", 1)
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
    return parse_times(raw, "time")


LEAST_ROWS = int(LEAST_TARGET)  # of a window
LEVEL = 0.05  # chance that any window of a series is rejected though only the mix changed
DRAWS = (200, 4000)  # of each window's test: the least, the most


def monitor(
    p_source: Any,
    y_source: Any,
    p_target: Any,
    time: Any = None,
    *,
    window: Any = None,
    rows: int | None = None,
    weights: Any = DEFAULT,
    kind: str = "classwise",
    norm: float = 2,
    estimator: str = "debiased",
    bins: Any = "auto",
    binning: str = "mass",
    kernel: str | None = None,
    bandwidth: float | str = "auto",
    check: bool = True,
    interval: str | None = "influence",
    n_boot: int = 500,
    rng: Any = None,
    n_jobs: int = 1,
    progress: Progress | None = None,
    stratified: bool = False,
) -> MonitoringResult:
    """`target_calibration_error` for each window of the target's rows.

    Parameters
    ----------
    p_source, y_source, p_target : as in `target_calibration_error`. Of a scanned ``p_target`` no
        more than a window and a batch are held at a time
    time : (m,) times of the target rows: datetimes, ISO texts, or seconds since 1970
    window : the length of a window: "30min", "12h", "1d", "1w", "1mo" or a timedelta. Days begin at
        midnight, weeks on Monday, months on the first
    rows : in the place of ``window``, rows in each; in the order of ``time`` if it is given
    progress : a callable that is told (done, total) windows
    check, weights, ... : as in `target_calibration_error`

    Returns
    -------
    MonitoringResult
        with ``.results``, ``.windows``, ``.band(level)`` and ``.plot(max_error=)``

    Notes
    -----
    Without ``window`` and ``rows`` all rows are one window. Windows of fewer than 30 rows are
    skipped, and listed in ``.skipped``. Where there are many windows, the test of label shift in
    each is stricter, so that the chance of any false alarm stays 5%.

    Examples
    --------
    >>> import calshift
    >>> simulation = calshift.simulate.BetaSimulation()
    >>> p_source, y_source = simulation.source(2000, rng=1)
    >>> p_target, _ = simulation.target(2000, rng=2)
    >>> series = calshift.monitor(p_source, y_source, p_target, rows=1000)
    >>> [round(result.root, 2) for result in series.results]
    [0.1, 0.1]
    """
    options = Options(kind, norm, estimator, bins, binning, kernel, bandwidth, interval, stratified)
    resampling = Resampling(n_boot, rng, n_jobs, None)
    source, target = open_pair(p_source, y_source, p_target)
    order, cuts = cut(target.summary.rows, time, window, rows)
    parts = [(place, order[start:stop]) for place, start, stop in cuts]
    long = [(place, part) for place, part in parts if len(part) >= LEAST_ROWS]
    if not long:
        msg = f"windows must have at least {LEAST_ROWS} rows; none has: make them longer"
        raise InvalidInput(msg)
    results, seed = [], rng if is_number(rng) else 0
    for done, rows_here in enumerate(_windows(target, [part for _, part in long])):
        sample = Arrays(rows_here)
        checked = None
        if check:
            checked = label_shift_check(source, sample, LEVEL / len(long), _draws(len(long)), seed)
        results.append(target_result(source, sample, options, weights, resampling, checked))
        if progress is not None:
            progress(done + 1, len(long))
    found = MonitoringResult(
        tuple(results),
        tuple(place for place, _ in long),
        tuple(
            Skipped(place, f"fewer than {LEAST_ROWS} rows")
            for place, part in parts
            if len(part) < LEAST_ROWS
        ),
    )
    _announce(found)
    return found


def _draws(windows: int) -> int:
    """As many as the level of each window needs to be reached."""
    return int(np.clip(2 * windows / LEVEL, *DRAWS))


def _windows(target: Engine, parts: list[np.ndarray]) -> Iterator[Predictions]:
    """The rows of each window: taken from memory, or from batches as they are read once."""
    if target.in_memory is not None:
        rows = target.in_memory
        return (_taken(rows, part) for part in parts)
    if not isinstance(target, Batches):
        msg = "monitor needs arrays or scanned batches: a cluster's table has no order"
        raise InvalidInput(msg)
    if any((np.diff(part) != 1).any() for part in parts) or any(
        later[0] < earlier[-1] for earlier, later in pairwise(parts)
    ):
        msg = (
            "the target's times must not go back where its rows are read batch by batch: sort them "
            "by time, or read them into memory"
        )
        raise InvalidInput(msg)
    return _streamed(target, [(int(part[0]), int(part[-1]) + 1) for part in parts])


def _streamed(target: Batches, spans: list[tuple[int, int]]) -> Iterator[Predictions]:
    """Rows from first to last of each span; no more than a window and a batch are held."""
    batches, start = target.reader.batches(0), 0
    held: list[Predictions] = []
    for first, last in spans:
        while start + sum(len(batch) for batch in held) < last:
            held.append(next(batches))
        while held and start + len(held[0]) <= first:
            start += len(held.pop(0))
        yield concatenate_rows(held).rows(first - start, last - start)


def _taken(target: Predictions, rows: np.ndarray) -> Predictions:
    """These rows, as views where they follow each other."""
    if (np.diff(rows) == 1).all():
        return target.rows(int(rows[0]), int(rows[-1]) + 1)
    return Predictions(
        target.p[rows],
        classes=target.classes,
        sample_weight=None if target.sample_weight is None else target.sample_weight[rows],
    )


def _announce(found: MonitoringResult) -> None:
    doubted = int((~found.trusted).sum())
    if doubted:
        msg = f"{doubted} of {len(found)} windows cannot be trusted: see .results[i].warnings"
        python_warnings.warn(msg, UnreliableWeights, stacklevel=3)
