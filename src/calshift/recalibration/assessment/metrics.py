"""Metrics on the target before recalibration, and cross-fitted after it."""

from __future__ import annotations

from typing import Any

from calshift._core.predictions import Predictions
from calshift.api.metrics import MetricPlan, metrics_of_target
from calshift.engines import Arrays
from calshift.engines.sample_summary import SampleSummary
from calshift.metrics.terms import MOST_CLASSES
from calshift.results import CalibrationErrorResult, MetricsResult

WITHOUT_TABLE = ("accuracy", "log_loss", "brier_score")  # metrics of any number of classes


def plan_metrics(
    summary: SampleSummary, metrics: Any, decision: Any, cost: Any, positive: Any
) -> MetricPlan:
    """The metrics asked for, by default the usual ones as far as there are not too many classes."""
    if metrics is None and summary.n_classes > MOST_CLASSES:
        metrics = WITHOUT_TABLE
    return MetricPlan.of(summary, metrics, decision, cost, positive)


def measure_rows(
    source: Predictions,
    target: Predictions,
    plan: MetricPlan,
    error: CalibrationErrorResult,
    waive: frozenset[str],
) -> MetricsResult:
    """The metrics of these rows, with the class weights and the test of the error."""
    samples = Arrays(source), Arrays(target)
    return metrics_of_target(samples, plan, error.class_weights, error.assumption, waive)
