"""The results of windows; what depends on the source alone is computed once."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cache, cached_property
from typing import Any, NamedTuple

import numpy as np

from calshift._core.predictions import Predictions
from calshift.api.metrics import MetricPlan, metrics_of_target
from calshift.binning.confidence_cells import count_steps
from calshift.diagnostics.conditions import LABEL_SHIFT
from calshift.diagnostics.label_shift_check import label_shift_check
from calshift.diagnostics.label_tables import LabelTables, tabulate_labels
from calshift.engines import Arrays
from calshift.engines.base import Engine
from calshift.inference.assemble import target_result
from calshift.inference.options import Options, Resampling
from calshift.results import CalibrationErrorResult, MetricsResult
from calshift.results.difference import RowInfluence, SummedInfluence

OwnError = Callable[[], CalibrationErrorResult]


class WindowResult(NamedTuple):
    """The error of a window, and its metrics if they were asked for."""

    error: CalibrationErrorResult
    metrics: MetricsResult | None


@dataclass(frozen=True)
class WindowEstimates:
    """What every window is asked, and of which source.

    ``level``, ``draws`` and ``seed`` are those of the test of label shift.
    """

    source: Engine
    options: Options
    weights: Any
    resampling: Resampling
    waived: frozenset[str]
    plan: MetricPlan | None
    level: float
    draws: int
    seed: int

    @cached_property
    def tables(self) -> LabelTables | None:
        """Sums of the source by label."""
        return tabulate_labels(self.source, means=True)

    @cached_property
    def steps(self) -> np.ndarray:
        """The source's rows by step of confidence, from which the cells of the test follow."""
        return count_steps(self.source, self.source.summary.class_counts > 0)

    def of_windows(self, windows: Iterable[Predictions], jobs: int) -> Iterator[WindowResult]:
        """The results in order, of so many windows at a time; the first one is made alone.

        No window keeps a number for each row of the source.
        """
        windows = iter(windows)
        first = self.of_rows(next(windows))
        own = _share_source(first.error)
        yield _without_rows(first, own)
        for found in _map_in_threads(lambda rows: self.of_rows(rows, own), windows, jobs):
            yield _without_rows(found, own)

    def of_rows(self, rows: Predictions, own: OwnError | None = None) -> WindowResult:
        """The result of a window; ``own`` is the error of the source, where it is known."""
        sample, checked = Arrays(rows), None
        if LABEL_SHIFT[0] not in self.waived:
            asked = self.level, self.draws, self.seed, self.steps
            checked = label_shift_check(self.source, sample, *asked)
        found = target_result(
            self.source, sample, self.options, self.weights, self.resampling, checked,
            self.waived, self.tables, own,
        )  # fmt: skip
        if self.plan is None:
            return WindowResult(found, None)
        samples, about = (self.source, sample), self.options
        measured = metrics_of_target(
            samples, self.plan, found.class_weights, checked, self.waived, about.interval,
            about.drift or 0.0, self.resampling,
        )  # fmt: skip
        return WindowResult(found, measured)


def _share_source(first: CalibrationErrorResult) -> OwnError:
    """The source's error for all windows, computed once: now if there are covariances with it."""
    assert first._source is not None
    if first._influence is None:
        return cache(first._source)
    known = first.source
    assert known is not None
    return lambda: known


def _without_rows(found: WindowResult, own: OwnError) -> WindowResult:
    """The result with sums over the source's rows in the place of numbers for each of them."""
    influence, metrics, summed = found.error._influence, found.metrics, None
    of_source = None if influence is None else own()._influence
    if isinstance(influence, RowInfluence) and isinstance(of_source, RowInfluence):
        summed = SummedInfluence(influence.variance, influence.with_other(of_source), of_source)
    if metrics is not None:
        metrics = replace(metrics, _influence=None)
    return WindowResult(replace(found.error, _influence=summed, _source=own), metrics)


def _map_in_threads(
    function: Callable[[Predictions], WindowResult], windows: Iterator[Predictions], jobs: int
) -> Iterator[WindowResult]:
    """function(window) in order; only as many windows are read ahead as there are threads."""
    if jobs == 1:
        yield from map(function, windows)
        return
    from concurrent.futures import ThreadPoolExecutor  # late: importing must be fast

    with ThreadPoolExecutor(jobs) as pool:
        waiting: deque[Any] = deque()
        try:
            for rows in windows:
                waiting.append(pool.submit(function, rows))
                if len(waiting) == jobs:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            for one in waiting:
                one.cancel()
