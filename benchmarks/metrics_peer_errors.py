"""Errors of estimates in the draws of metrics_peers.py, as cells of a table."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from metrics_peer_methods import Estimate
from weights_tasks import FACTORS

Row = tuple[str, str]  # data, task
Job = tuple[str, str, int, int]  # the same with imbalance and seed
Draws = dict[Job, dict[str, Estimate]]  # "truth" and estimates by method


class Errors:
    """100 |estimate - truth| of one metric in all draws."""

    def __init__(self, done: Draws, methods: Iterable[str], metric: int) -> None:
        self.done, self.methods, self.metric = done, list(methods), metric
        self.seeds = sorted({job[3] for job in done})
        self.rows = list(dict.fromkeys(job[:2] for job in done))

    def by_seed(self, method: str, rows: list[Row], factors: tuple[int, ...]) -> np.ndarray:
        """(seeds,) means over rows and imbalances."""
        k = self.metric
        draws = [
            [self.done[*row, factor, seed] for row in rows for factor in factors]
            for seed in self.seeds
        ]
        return np.array([
            np.mean([100 * abs(found[method][k] - found["truth"][k]) for found in draw])
            for draw in draws
        ])  # fmt: skip

    def cells(self, rows: list[Row], factors: tuple[int, ...] = FACTORS) -> list[str]:
        """Every method, the best of the others, and ours less it."""
        errors = {method: self.by_seed(method, rows, factors) for method in self.methods}
        figures = [with_error(values) for values in errors.values()]
        own = errors.pop("ours", None)
        means = {method: values.mean() for method, values in errors.items()}
        best = min((method for method in means if np.isfinite(means[method])), key=means.get)
        return [*figures, best, "-" if own is None else compared(own - errors[best])]


def standard_error(values: np.ndarray) -> float:
    return float(values.std(ddof=1) / np.sqrt(len(values))) if len(values) > 1 else np.nan


def with_error(values: np.ndarray) -> str:
    mean = values.mean()
    return f"{mean:.2f} ({standard_error(values):.2f})" if np.isfinite(mean) else "-"


def compared(gap: np.ndarray) -> str:
    worse = gap.mean() > 2 * standard_error(gap)
    return f"{gap.mean():+.2f} ({standard_error(gap):.2f}){' worse' if worse else ''}"
