"""Bootstrap intervals of metrics: both samples drawn again, class weights refitted."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from calshift._core.predictions import Predictions
from calshift.engines import Arrays
from calshift.engines.base import Engine
from calshift.engines.open import check_pair
from calshift.errors import InvalidInput
from calshift.inference.bootstrap import draw_statistic
from calshift.inference.options import Resampling
from calshift.metrics.catalogue import Metric
from calshift.metrics.decision_rule import DecisionRule
from calshift.metrics.estimate import MetricValues, estimate_labelled, estimate_target
from calshift.weights import resolve_class_weights


@dataclass(frozen=True, eq=False)
class _MetricStatistic:
    """(2 M,) metrics on the target and on the source, of samples drawn again."""

    metrics: tuple[Metric, ...]
    rule: DecisionRule
    weights: Any

    def __call__(self, source: Predictions, target: Predictions | None) -> np.ndarray:
        if not len(source):
            msg = "a draw without rows"
            raise InvalidInput(msg)
        rows = Arrays(source)
        if target is None:
            found = estimate_labelled(rows, self.metrics, self.rule, interval=False)
        else:
            others = Arrays(target)
            check_pair(rows.summary, others.summary)
            weights = resolve_class_weights(self.weights, rows, others)
            found = estimate_target(rows, others, self.metrics, self.rule, weights, interval=False)
        return np.concatenate([found.values, found.source])


def with_bootstrap(
    found: MetricValues,
    samples: tuple[Engine, Engine | None],
    metrics: tuple[Metric, ...],
    rule: DecisionRule,
    weights: Any,
    resampling: Resampling,
) -> MetricValues:
    """The same metrics with draws and the standard errors that follow from them."""
    statistic, M = _MetricStatistic(metrics, rule, weights), len(metrics)
    draws = draw_statistic(statistic, *samples, resampling, 2 * M)
    around = (draws - draws.mean(axis=0)).reshape(-1, 2, M).transpose(1, 0, 2)
    values = around + np.stack([found.values, found.source])[:, None]
    error, own = values.std(axis=1, ddof=1)
    difference = (values[0] - values[1]).std(axis=0, ddof=1)
    return replace(
        found, draws=values, error=error, source_error=own,
        difference_error=None if samples[1] is None else difference,
    )  # fmt: skip
