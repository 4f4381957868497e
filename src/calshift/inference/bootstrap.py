"""The bootstrap: both samples drawn again, weights refitted, everything recomputed.

Each row is counted Poisson(1) times (Poisson of its sample weight; that weight times Poisson(1) if
it is below 1), or drawn within its class where class counts were fixed. Every draw has a seed of
its own, so that the draws are the same for any number of processes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from calshift._core.predictions import Predictions
from calshift._core.validate import validate_rng
from calshift.binning.events import Events
from calshift.engines import Arrays
from calshift.engines.base import Engine, rows_in_memory
from calshift.engines.open import check_pair
from calshift.errors import InvalidInput
from calshift.inference.estimate import event_errors
from calshift.inference.event_estimates import EventEstimates
from calshift.inference.options import Options, Resampling
from calshift.inference.processes import map_in_processes
from calshift.results import BootstrapDistribution
from calshift.weights import resolve_class_weights

Statistic = Callable[[Predictions, Predictions | None], np.ndarray]
LOST = 0.1  # largest share of draws without a result
MOST_COUNTED = 1e15  # rows that a row may stand for and still be drawn as whole ones


@dataclass(frozen=True)
class BootstrapStatistic:
    """Errors of samples drawn again, with weights refitted where they were estimated."""

    events: Events
    options: Options
    weights: Any  # a method's name, or the weights themselves

    def __call__(self, source: Predictions, target: Predictions | None) -> np.ndarray:
        rows = Arrays(source)
        if target is None:
            return event_errors(rows, None, self.events, self.options, self.weights).values
        others = Arrays(target)
        check_pair(rows.summary, others.summary)
        found = resolve_class_weights(self.weights, rows, others)
        return event_errors(
            rows, others, self.events, self.options, found.values, found.influence
        ).values


def with_bootstrap(
    errors: EventEstimates,
    resampling: Resampling,
    statistic: BootstrapStatistic,
    source: Engine,
    target: Engine | None,
) -> EventEstimates:
    """The same errors with bootstrap distributions of their mean and of each."""
    values, kept = errors.values, ~np.isnan(errors.values)
    stratified = statistic.options.stratified
    found = draw_statistic(statistic, source, target, resampling, len(values), stratified)[:, kept]
    mean = np.nanmean(found, axis=1)
    return replace(
        errors,
        distribution=BootstrapDistribution(np.mean(values[kept]), mean),
        event_distributions=BootstrapDistribution(values[kept], found),
    )


def draw_statistic(
    statistic: Statistic,
    source: Engine,
    target: Engine | None,
    resampling: Resampling,
    values: int,
    stratified: bool = False,
) -> np.ndarray:
    """(draws, values) of a statistic of the rows; draws without an estimate are left out."""
    what = 'interval="bootstrap"'
    rows = rows_in_memory(source, what)
    others = None if target is None else rows_in_memory(target, what)
    work = _Draw(statistic, rows, others, values, stratified)
    found = np.array(list(_draw_all(work, resampling)))
    lost = np.isnan(found).all(axis=1)
    if lost.mean() > LOST:
        msg = (
            f"{lost.sum()} of {len(found)} draws had too few rows or classes for an estimate: "
            'the samples are too small for interval="bootstrap"'
        )
        raise InvalidInput(msg)
    return np.asarray(found[~lost])


def _draw_all(work: _Draw, resampling: Resampling) -> Iterator[np.ndarray]:
    """Errors of all draws, in one process or several."""
    seeds, jobs = _sequence(resampling.rng).spawn(resampling.draws), resampling.jobs
    if jobs == 1:
        yield from _report(map(work, seeds), resampling)
    else:
        with closing(map_in_processes(work, seeds, jobs)) as found:
            yield from _report(found, resampling)


def _report(found: Iterator[np.ndarray], resampling: Resampling) -> Iterator[np.ndarray]:
    for done, one in enumerate(found, 1):
        yield one
        if resampling.progress is not None:
            resampling.progress(done, resampling.draws)


@dataclass(frozen=True)
class _Draw:
    """One draw, from its seed."""

    statistic: Statistic
    source: Predictions
    target: Predictions | None
    values: int
    stratified: bool

    def __call__(self, seed: np.random.SeedSequence) -> np.ndarray:
        rng = np.random.default_rng(seed)
        draw = _within_classes if self.stratified else _poisson
        source = self.source.with_frequency(draw(self.source, rng))
        target = None
        if self.target is not None:
            target = self.target.with_frequency(_poisson(self.target, rng))
        try:
            return self.statistic(source, target)
        except InvalidInput:  # too few rows or classes in this draw
            return np.full(self.values, np.nan)


def _poisson(sample: Predictions, rng: np.random.Generator) -> np.ndarray:
    """A row stands for so many, each of which is counted or not; or for less than one."""
    many, part = np.maximum(sample.frequency, 1.0), np.minimum(sample.frequency, 1.0)
    return np.asarray(part * _draw_counts(many, rng))


def _draw_counts(mean: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Poisson numbers; normal ones where they are too large to be counted."""
    counted = rng.poisson(np.minimum(mean, MOST_COUNTED)).astype(float)
    large = mean > MOST_COUNTED
    counted[large] = mean[large] + np.sqrt(mean[large]) * rng.normal(size=large.sum())
    return np.asarray(counted)


def _within_classes(sample: Predictions, rng: np.random.Generator) -> np.ndarray:
    """As many rows of each class as there were."""
    counts = np.zeros(len(sample))
    for c in np.unique(sample.labels):
        rows = np.flatnonzero(sample.labels == c)
        frequency = sample.frequency[rows]
        many = np.maximum(frequency, 1.0)
        if many.sum() > MOST_COUNTED:
            drawn = _draw_counts(many, rng)
            drawn *= many.sum() / drawn.sum()
        else:
            drawn = rng.multinomial(round(float(many.sum())), many / many.sum()).astype(float)
        counts[rows] = drawn * np.minimum(frequency, 1.0)
    return counts


def _sequence(rng: Any) -> np.random.SeedSequence:
    """Seeds for the draws: the same rng, the same seeds."""
    if isinstance(rng, np.random.SeedSequence):  # spawning counts on: begin anew every time
        return np.random.SeedSequence(rng.entropy, spawn_key=rng.spawn_key, pool_size=rng.pool_size)
    if rng is None or isinstance(rng, int | np.integer):
        return np.random.SeedSequence(None if rng is None else int(rng))
    entropy = validate_rng(rng).integers(2**63, size=4)
    return np.random.SeedSequence([int(word) for word in entropy])
