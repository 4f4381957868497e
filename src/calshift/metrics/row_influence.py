"""Influence of rows on metrics: its coefficients, the standard errors, and what results keep."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from calshift._core.frozen import Frozen
from calshift.engines.base import Engine
from calshift.metrics.products import LabelledRows, SourceRows, TargetRows, combine_products
from calshift.results.metrics import MetricInfluence

MOST_KEPT = 2_000_000  # numbers of the influence of rows that a result keeps


@dataclass(frozen=True, eq=False)
class RowCoefficients(Frozen):
    """By which the designs enter the influence of rows, (U, M) each."""

    shifted: np.ndarray  # of source rows on the metrics of the target
    own: np.ndarray  # of source rows on those of the source
    target: np.ndarray  # of target rows

    def errors(
        self, before: Any, after: Any, sizes: tuple[float, float], more: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Standard errors on the target, on the source, and of the difference."""
        n, m = sizes
        pairs = (("t", self.shifted, "t", self.shifted), ("t", self.shifted, "s", self.own))
        of_source, both = (combine_products(before, *pair) / n**2 for pair in pairs)
        own = combine_products(before, "s", self.own, "s", self.own) / n**2
        variance = of_source + more
        variance += combine_products(after, "t", self.target, "t", self.target) / m**2
        squares = (variance, own, variance + own - 2 * both)
        first, second, third = (np.sqrt(np.maximum(one, 0.0)) for one in squares)
        return first, second, third


def influence_of_labelled(
    sample: Engine, rows: LabelledRows, by: np.ndarray
) -> MetricInfluence | None:
    """Of a labelled sample in memory that is not large."""
    if sample.in_memory is None or len(sample.in_memory) * by.shape[1] > MOST_KEPT:
        return None
    own, design = rows.columns(sample.in_memory)
    r = np.sqrt(sample.in_memory.squared_frequency)[:, None]
    return MetricInfluence(
        r * (own + design @ by) / sample.summary.size, None, sample.in_memory.fingerprint
    )


def influence_of_pair(
    source: Engine,
    target: Engine,
    rows: tuple[SourceRows, TargetRows],
    coefficients: RowCoefficients,
) -> MetricInfluence | None:
    """Of samples in memory that are not large."""
    first, second = source.in_memory, target.in_memory
    if first is None or second is None:
        return None
    if (len(first) + len(second)) * coefficients.target.shape[1] > MOST_KEPT:
        return None
    _, weighted, _, design = rows[0].columns(first)
    a, other = rows[1].columns(second)
    r = [np.sqrt(one.squared_frequency)[:, None] for one in (first, second)]
    return MetricInfluence(
        r[0] * (weighted + design @ coefficients.shifted) / source.summary.size,
        r[1] * (a + other @ coefficients.target) / target.summary.size,
        first.fingerprint,
    )
