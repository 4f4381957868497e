"""A calibration error, and metrics if asked for, for each window of the target's rows."""

from __future__ import annotations

import warnings as python_warnings
from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np

from calshift._core.predictions import Predictions, concatenate_rows
from calshift._core.validate import is_number, validate_flag, validate_number
from calshift.api.metrics import MetricPlan
from calshift.diagnostics.conditions import LABEL_FREE, validate_waive
from calshift.diagnostics.label_shift_check import least_draws
from calshift.diagnostics.sample_conditions import LEAST_TARGET
from calshift.engines import Batches
from calshift.engines.base import Engine
from calshift.engines.open import open_pair
from calshift.errors import InvalidInput, UnreliableWeights
from calshift.inference.options import Options, Progress, Resampling
from calshift.monitoring.window_results import WindowEstimates, WindowResult
from calshift.monitoring.windows import split_windows
from calshift.results import MonitoringResult, Skipped
from calshift.weights import DEFAULT

LEAST_ROWS = int(LEAST_TARGET)  # of a window
LEVEL = 0.05  # chance that label shift is rejected in any window of a series under label shift
DRAWS = (200, 4000)  # of each window's test, unless its level needs more


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
    drift: float = 0.0,
    waive: Iterable[str] = (),
    metrics: Any = None,
    decision: Any = "argmax",
    cost: Any = None,
    positive: Any = None,
) -> MonitoringResult:
    """Estimate `target_calibration_error` for each window of the target's rows.

    With ``metrics`` the `target_metrics` of each window as well, with its class weights and its
    test of label shift.

    Parameters
    ----------
    p_source, y_source, p_target : array-like or scanned samples
        as in `target_calibration_error`. Of a scanned ``p_target`` at most a batch and a window,
        or ``n_jobs`` windows, are in memory at a time
    time : (m,) array-like, optional
        times of the target rows: datetimes, ISO texts, or seconds since 1970
    window : str or timedelta, optional
        length of a window: "30min", "12h", "1d", "1w", "1mo" or a timedelta. Days begin at
        midnight, weeks on Monday, months on the first
    rows : int, optional
        instead of ``window``, the number of rows in each; in the order of ``time`` if it is given
    n_jobs : int, default 1
        threads, each of which computes a window at a time; with ``interval="bootstrap"`` the
        processes that draw. The results are the same
    progress : callable, optional
        callback ``progress(done, total)``, in windows
    check, weights, drift, waive, ...
        as in `target_calibration_error`
    metrics, decision, cost, positive : optional
        as in `target_metrics`, but that None computes no metrics

    Returns
    -------
    MonitoringResult
        with ``.results``, ``.windows``, ``.band(level)`` and ``.plot(max_error=)``; of metrics
        ``.metrics``, ``.series(name, level)`` and ``.plot(metric=)``

    Raises
    ------
    InvalidInput
        if an argument is not valid, or no window has 30 rows

    Notes
    -----
    Without ``window`` and ``rows`` all rows are one window. Windows of fewer than 30 rows are
    listed in ``.skipped``. The level of the test of label shift in each window is 5% divided by
    the number of windows (Bonferroni), so that the chance of any false alarm is at most 5%.
    The results keep no number for each row of the source: `compare` compares a window with its
    ``.source``, but two windows, or two models on a window, only as results of
    `target_calibration_error` on those rows.

    Examples
    --------
    >>> import calshift
    >>> simulation = calshift.simulate.BetaSimulation()
    >>> p_source, y_source = simulation.source(2000, rng=1)
    >>> p_target, _ = simulation.target(2000, rng=2)
    >>> series = calshift.monitor(p_source, y_source, p_target, rows=1000)
    >>> [round(result.root, 2) for result in series.results]
    [0.1, 0.1]
    >>> series = calshift.monitor(p_source, y_source, p_target, rows=1000, metrics="accuracy")
    >>> estimates, low, high = series.series("accuracy")
    >>> estimates.round(2)
    array([0.82, 0.82])
    """
    smoothing = bins, binning, kernel, bandwidth
    drift = validate_number(drift, "drift", 0, 1)
    options = Options(kind, norm, estimator, *smoothing, interval, stratified, drift)
    resampling = Resampling(n_boot, rng, n_jobs, None)
    source, target = open_pair(p_source, y_source, p_target)
    windows = split_windows(target.summary.rows, time, window, rows)
    long = [(place, part) for place, part in windows if len(part) >= LEAST_ROWS]
    if not long:
        msg = f"windows must have at least {LEAST_ROWS} rows; none has: make them longer"
        raise InvalidInput(msg)
    waived = validate_waive(waive, LABEL_FREE, validate_flag(check, "check"))
    plan = _plan_metrics(source, metrics, decision, cost, positive)
    level = LEVEL / len(long)
    draws = max(int(np.clip(2 / level, *DRAWS)), least_draws(level))
    seed = rng if is_number(rng) else 0
    asked = (source, options, weights, resampling, waived, plan, level, draws, seed)
    at_once = 1 if interval == "bootstrap" else resampling.jobs  # whose draws are made in parallel
    found: list[WindowResult] = []
    rows_of_windows = _read_windows(target, [part for _, part in long])
    for one in WindowEstimates(*asked).of_windows(rows_of_windows, at_once):
        found.append(one)
        if progress is not None:
            progress(len(found), len(long))
    results = tuple(one.error for one in found)
    measured = tuple(one.metrics for one in found if one.metrics is not None)
    reason = f"fewer than {LEAST_ROWS} rows"
    skipped = (Skipped(place, reason) for place, part in windows if len(part) < LEAST_ROWS)
    sized = (  # by frequency weights, as in each result
        replace(place, rows=float(one.n_target or place.rows))
        for (place, _), one in zip(long, results, strict=True)
    )
    series = MonitoringResult(
        results, tuple(sized), tuple(skipped), None if plan is None else measured
    )
    _warn_unreliable(series)
    return series


def _plan_metrics(
    source: Engine, metrics: Any, decision: Any, cost: Any, positive: Any
) -> MetricPlan | None:
    """The metrics of every window, validated once; None if there are none."""
    if metrics is not None:
        return MetricPlan.of(source.summary, metrics, decision, cost, positive)
    usual = isinstance(decision, str) and decision == "argmax"
    if not usual or cost is not None or positive is not None:
        msg = "decision, cost and positive need metrics=, such as metrics=['accuracy']"
        raise InvalidInput(msg)
    return None


def _read_windows(target: Engine, parts: list[np.ndarray]) -> Iterator[Predictions]:
    """The rows of each window: from memory, or from batches in one pass."""
    if target.in_memory is not None:
        rows = target.in_memory.unlabelled()
        return (_take(rows, part) for part in parts)
    if not isinstance(target, Batches):
        msg = "monitor needs arrays or scanned batches: the rows of a cluster's table have no order"
        raise InvalidInput(msg)
    if any((np.diff(part) != 1).any() for part in parts) or any(
        later[0] < earlier[-1] for earlier, later in pairwise(parts)
    ):
        msg = (
            "times must increase where the target is read in batches: sort the rows by time, or "
            "read them into memory"
        )
        raise InvalidInput(msg)
    return _stream(target, [(int(part[0]), int(part[-1]) + 1) for part in parts])


def _stream(target: Batches, spans: list[tuple[int, int]]) -> Iterator[Predictions]:
    """Rows from first to last of each span, with a window and a batch in memory at a time."""
    batches, start = target.reader.batches(0), 0
    kept: list[Predictions] = []
    for first, last in spans:
        while start + sum(len(batch) for batch in kept) < last:
            kept.append(next(batches))
        while kept and start + len(kept[0]) <= first:
            start += len(kept.pop(0))
        yield concatenate_rows([*kept]).rows(first - start, last - start)


def _take(target: Predictions, rows: np.ndarray) -> Predictions:
    """These rows, as views where they are consecutive."""
    if (np.diff(rows) == 1).all():
        return target.rows(int(rows[0]), int(rows[-1]) + 1)
    return target.take(rows)


def _warn_unreliable(found: MonitoringResult) -> None:
    count = int((~found.trusted).sum())
    if count:
        msg = f"{count} of {len(found)} windows are not reliable: see .results[i].diagnostics"
        python_warnings.warn(msg, UnreliableWeights, stacklevel=3)
