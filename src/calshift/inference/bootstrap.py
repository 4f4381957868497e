"""The bootstrap: both samples drawn again, weights refitted, everything recomputed.

Each row is counted Poisson(1) times (Poisson of its sample weight; that weight times Poisson(1) if
it is below 1), or drawn within its class where class counts were fixed. Every draw has a seed of
its own, so that the draws are the same for any number of processes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from calshift._core.predictions import Predictions
from calshift._core.validate import validate_integer, validate_rng
from calshift.errors import InvalidInput
from calshift.results import BootstrapDistribution

LEAST_DRAWS = 20
LOST = 0.1  # share of draws without an answer that is tolerated

BootstrapStatistic = Callable[
    [Predictions, "Predictions | None"], np.ndarray
]  # samples -> error of each event
Progress = Callable[[int, int], Any]


@dataclass(frozen=True)
class Bootstrap:
    """How many draws, from which seed, in how many processes, told to whom."""

    draws: int
    rng: Any
    jobs: int
    progress: Progress | None
    stratified: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "draws", validate_integer(self.draws, "n_boot", LEAST_DRAWS))
        object.__setattr__(self, "jobs", validate_integer(self.jobs, "n_jobs", 1))
        if self.rng is not None:
            validate_rng(self.rng)
        if self.progress is not None and not callable(self.progress):
            msg = f"progress must be callable with (done, total); got {self.progress!r}"
            raise InvalidInput(msg)

    def distributions(
        self,
        recipe: BootstrapStatistic,
        source: Predictions,
        target: Predictions | None,
        values: np.ndarray,
    ) -> tuple[BootstrapDistribution, BootstrapDistribution]:
        """Of the mean over the events, and of each event (those with a value)."""
        kept = ~np.isnan(values)
        found = np.array(list(self._drawn(recipe, source, target, len(values))))[:, kept]
        lost = np.isnan(found).all(axis=1)
        if lost.mean() > LOST:
            msg = (
                f"{lost.sum()} of {len(found)} draws had too few rows or classes for an answer: "
                'the samples are too small for interval="bootstrap"'
            )
            raise InvalidInput(msg)
        found, mean = found[~lost], np.nanmean(found[~lost], axis=1)
        return BootstrapDistribution(np.mean(values[kept]), mean), BootstrapDistribution(
            values[kept], found
        )

    def _drawn(
        self,
        recipe: BootstrapStatistic,
        source: Predictions,
        target: Predictions | None,
        errors: int,
    ) -> Iterator[np.ndarray]:
        seeds = _sequence(self.rng).spawn(self.draws)
        work = _Work(recipe, source, target, errors, self.stratified)
        if self.jobs == 1:
            found = map(work, seeds)
            yield from self._told(found)
            return
        from concurrent.futures import ProcessPoolExecutor  # late: importing must be fast

        with ProcessPoolExecutor(self.jobs, initializer=_receive, initargs=(work,)) as pool:
            size = max(1, self.draws // (8 * self.jobs))
            yield from self._told(pool.map(_answer, seeds, chunksize=size))

    def _told(self, found: Iterator[np.ndarray]) -> Iterator[np.ndarray]:
        for done, one in enumerate(found, 1):
            yield one
            if self.progress is not None:
                self.progress(done, self.draws)


@dataclass(frozen=True)
class _Work:
    """One draw, from its seed."""

    recipe: BootstrapStatistic
    source: Predictions
    target: Predictions | None
    errors: int
    stratified: bool

    def __call__(self, seed: np.random.SeedSequence) -> np.ndarray:
        rng = np.random.default_rng(seed)
        draw = _within_classes if self.stratified else _poisson
        source = self.source.with_frequency(draw(self.source, rng))
        target = None
        if self.target is not None:
            target = self.target.with_frequency(_poisson(self.target, rng))
        try:
            return self.recipe(source, target)
        except InvalidInput:  # too few rows or classes in this draw
            return np.full(self.errors, np.nan)


def _poisson(sample: Predictions, rng: np.random.Generator) -> np.ndarray:
    """A row stands for so many, each of which is counted or not; or for less than one."""
    many, part = np.maximum(sample.frequency, 1.0), np.minimum(sample.frequency, 1.0)
    return np.asarray(part * rng.poisson(many))


def _within_classes(sample: Predictions, rng: np.random.Generator) -> np.ndarray:
    """As many rows of each class as there were."""
    counts = np.zeros(len(sample))
    for c in np.unique(sample.labels):
        rows = np.flatnonzero(sample.labels == c)
        frequency = sample.frequency[rows]
        many = np.maximum(frequency, 1.0)
        drawn = rng.multinomial(round(float(many.sum())), many / many.sum())
        counts[rows] = drawn * np.minimum(frequency, 1.0)
    return counts


_work: list[_Work] = []  # of a worker process: the samples travel once, not with every draw


def _receive(work: _Work) -> None:
    _work[:] = [work]


def _answer(seed: np.random.SeedSequence) -> np.ndarray:
    return _work[0](seed)


def _sequence(rng: Any) -> np.random.SeedSequence:
    """Seeds for the draws: the same rng, the same seeds."""
    if isinstance(rng, np.random.SeedSequence):  # spawning counts on: begin anew every time
        return np.random.SeedSequence(rng.entropy, spawn_key=rng.spawn_key, pool_size=rng.pool_size)
    if rng is None or isinstance(rng, int | np.integer):
        return np.random.SeedSequence(None if rng is None else int(rng))
    entropy = validate_rng(rng).integers(2**63, size=4)
    return np.random.SeedSequence([int(word) for word in entropy])
