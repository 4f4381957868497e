"""Results made from estimated metrics: conditions of trust, notes, and what results keep."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np

from calshift.diagnostics.conditions import settle, unchecked
from calshift.diagnostics.label_order import check_label_order
from calshift.diagnostics.label_tables import tabulate_labels
from calshift.diagnostics.sample_conditions import MOST_WIDTH, check_sample_size
from calshift.diagnostics.trust import collect_warnings, prior_conditions
from calshift.diagnostics.weight_conditions import are_estimated
from calshift.engines.base import Engine
from calshift.engines.sample_summary import SampleSummary
from calshift.metrics.catalogue import Metric
from calshift.metrics.class_counts import ClassRatio
from calshift.metrics.curves.ranking import RESOLUTION
from calshift.metrics.decision_rule import DecisionRule
from calshift.metrics.estimate import MetricValues
from calshift.metrics.row_scores import CellScore
from calshift.results import ClassWeights, Diagnostic, LabelShiftCheck, MetricEstimate
from calshift.results.metrics import MetricsResult

MOST_RELATIVE_WIDTH = 1.0  # of the interval of a metric without upper bound, relative to it


def labelled_metrics_result(
    sample: Engine,
    metrics: tuple[Metric, ...],
    rule: DecisionRule,
    found: MetricValues,
    waive: frozenset[str],
    **about: Any,
) -> MetricsResult:
    """Of labelled rows."""
    summary = sample.summary
    order = check_label_order(tabulate_labels(sample, means=False))
    conditions = (order, check_sample_size(summary.size, float("inf"), "sample"))
    diagnostics = settle(conditions, waive)
    trusted = not any(one.failed for one in diagnostics)
    estimates = {
        metric.name: replace(
            _estimate(
                metric, found, k, _rows_behind(metric, summary, None, summary.effective_size),
                trusted, waive,
            ),
            source=None, _source_error=None, _difference_error=None,
        )
        for k, metric in enumerate(metrics)
    }  # fmt: skip
    notes = collect_warnings(diagnostics, others=_notes(metrics, found, sample))
    return MetricsResult(
        estimates, rule.description, summary.size,
        confusion=None if found.tables is None else found.tables.confusion,
        diagnostics=diagnostics, warnings=notes, classes=summary.classes,
        _influence=found.influence, **about,
    )  # fmt: skip


def target_metrics_result(
    samples: tuple[Engine, Engine],
    metrics: tuple[Metric, ...],
    rule: DecisionRule,
    found: MetricValues,
    class_weights: ClassWeights,
    check: LabelShiftCheck | None,
    waive: frozenset[str],
    **about: Any,
) -> MetricsResult:
    """Of the target."""
    source, target = samples[0].summary, samples[1].summary
    tables = tabulate_labels(samples[0], means=are_estimated(class_weights))
    conditions = prior_conditions(class_weights, check, tables, target.size)
    diagnostics = settle(conditions, waive)
    trusted = not any(one.failed for one in diagnostics)
    estimates = {
        metric.name: _estimate(
            metric,
            found,
            k,
            _rows_behind(metric, source, target, class_weights.ess),
            trusted,
            waive,
        )
        for k, metric in enumerate(metrics)
    }
    notes = collect_warnings(diagnostics, class_weights, others=_notes(metrics, found, samples[0]))
    return MetricsResult(
        estimates, rule.description, source.size, target.size,
        confusion=None if found.tables is None else _without_negatives(found.tables.confusion),
        confusion_source=found.source_confusion, class_weights=class_weights, assumption=check,
        diagnostics=diagnostics, warnings=notes, classes=source.classes,
        _influence=found.influence, **about,
    )  # fmt: skip


def _without_negatives(table: np.ndarray) -> np.ndarray:
    """The table with 0 for negative cells, of the same sum."""
    kept = np.maximum(table, 0.0)
    return np.asarray(kept * (table.sum() / kept.sum()))


def _rows_behind(
    metric: Metric, source: SampleSummary, target: SampleSummary | None, ess: float
) -> tuple[float, float]:
    """Effective rows behind a metric on the target, and on the source.

    Predictions of the target's rows are counted; class priors are not a share of source rows.
    """
    score, function = metric.score, metric.function
    if isinstance(score, CellScore) and not score.hits.any():
        if score.actual.any():
            return np.inf, source.effective_size
        return (ess if target is None else target.effective_size), source.effective_size
    if (
        isinstance(function, ClassRatio)
        and function.label is not None
        and function.name == "recall"
    ):
        rows = float(source.class_effective_size[function.label])
        return min(ess, rows), rows
    return ess, source.effective_size


def _estimate(
    metric: Metric,
    found: MetricValues,
    k: int,
    rows: tuple[float, float],
    trusted: bool,
    waive: frozenset[str],
) -> MetricEstimate:
    """One metric, and whether its own interval is narrow enough."""
    errors = (found.error, found.source_error, found.difference_error)
    one = MetricEstimate(
        metric.name,
        metric.title,
        float(np.clip(found.values[k], *metric.bounds)),
        float(found.source[k]),
        metric.bounds,
        note=_undefined_note(found.undefined[k]),
        _error=None if errors[0] is None else float(errors[0][k]),
        _source_error=None if errors[1] is None else float(errors[1][k]),
        _difference_error=None if errors[2] is None else float(errors[2][k]),
        _rows=rows,
        _drift=(0.0, 0.0) if found.drift is None else found.drift[k],
        _draws=None if found.draws is None else found.draws[:, :, k],
    )
    (width,) = settle([_check_width(one)], waive)
    known = metric.is_average or not found.undefined[k]
    return replace(one, diagnostics=(width,), trusted=trusted and known and not width.failed)


def _check_width(one: MetricEstimate) -> Diagnostic:
    """The width of the 95% interval, relative to the range or to the estimate."""
    name, limit = "interval-width", MOST_WIDTH
    if not one.has_interval:
        return unchecked(name, limit, f"no interval of {one.name} was computed")
    low, high = one.confidence_interval(0.95)
    least, most = one.bounds
    width = (high - low) / (most - least)
    if not np.isfinite(most - least):
        limit = MOST_RELATIVE_WIDTH
        width = (high - low) / max(abs(one.estimate), 1e-300)
    passed = bool(width <= limit)
    text = f"the 95% interval of {one.name} has a width of {high - low:.2g}"
    if not passed:
        text += f" (limit {limit * (high - low) / width:.2g}): almost nothing is known about it"
    return Diagnostic(name, float(min(width, 1e300)), limit, passed, text)


def _undefined_note(classes: tuple[int, ...]) -> str:
    if not classes:
        return ""
    return f"undefined, counted as 0, for {len(classes)} class{'es' if len(classes) > 1 else ''}"


def _notes(metrics: Iterable[Metric], found: MetricValues, source: Engine) -> tuple[str, ...]:
    """What to know about single metrics."""
    from calshift._core.score_grid import CELLS

    notes = [
        f"{metric.name}: {_undefined_note(undefined)}"
        for metric, undefined in zip(metrics, found.undefined, strict=True)
        if undefined
    ]
    if source.in_memory is None and any(metric.areas for metric in metrics):
        notes.append(RESOLUTION.format(cells=CELLS))
    return tuple(notes)
