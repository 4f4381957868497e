"""The calibration error of opened samples, and metrics with the same class weights."""

from __future__ import annotations

from typing import Any

from calshift.api import target_calibration_error
from calshift.api.metrics import MetricPlan, metrics_of_target
from calshift.cli.metric_options import MetricRequest
from calshift.cli.progress import Progress
from calshift.cli.samples import OpenedSamples
from calshift.diagnostics.conditions import LABEL_FREE, validate_waive
from calshift.engines.base import Engine
from calshift.engines.open import open_pair, start_run
from calshift.inference.options import Resampling
from calshift.results import CalibrationErrorResult, MetricsResult


def estimate_error(
    samples: OpenedSamples,
    asked: dict[str, Any],
    request: MetricRequest | None,
    progress: Progress | None,
    checkpoint: Any,
) -> tuple[CalibrationErrorResult, MetricsResult | None]:
    """The error, and the metrics of a request."""
    if request is None:
        result = target_calibration_error(
            samples.source, None, samples.target, progress=progress, checkpoint=checkpoint, **asked
        )
        return result, None
    of_passes, of_draws = (progress, None) if samples.in_passes else (None, progress)
    question = ("check", tuple(asked.items()), request.key)
    with start_run(checkpoint, of_passes, question, asked["n_jobs"]) as run:
        pair = open_pair(samples.source, None, samples.target, run)
        plan = MetricPlan.of(pair[0].summary, **request.arguments)
        if samples.in_passes:  # whose threads are those of the run
            asked = {**asked, "n_jobs": 1}
        result = target_calibration_error(pair[0], None, pair[1], progress=of_draws, **asked)
        return result, _metrics(pair, plan, result, asked, of_draws)


def _metrics(
    pair: tuple[Engine, Engine],
    plan: MetricPlan,
    result: CalibrationErrorResult,
    asked: dict[str, Any],
    progress: Progress | None,
) -> MetricsResult:
    """With the class weights and the test of the error."""
    interval = "bootstrap" if asked["interval"] == "bootstrap" else "influence"
    resampling = Resampling(asked["n_boot"], asked["rng"], asked["n_jobs"], progress)
    return metrics_of_target(
        pair, plan, result.class_weights, result.assumption,
        validate_waive(asked["waive"], LABEL_FREE, asked["check"]),
        interval, asked["drift"], resampling,
    )  # fmt: skip
