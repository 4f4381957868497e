"""Results made from estimated metrics: conditions of trust, notes, and what results keep."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np

from calshift._core.score_grid import CELLS
from calshift.diagnostics.conditions import settle, unchecked
from calshift.diagnostics.label_order import check_label_order
from calshift.diagnostics.label_tables import LabelTables, tabulate_labels
from calshift.diagnostics.sample_conditions import MOST_WIDTH, check_sample_size
from calshift.diagnostics.trust import collect_warnings, prior_conditions
from calshift.diagnostics.weight_conditions import are_estimated
from calshift.engines.base import Engine
from calshift.engines.sample_summary import SampleSummary
from calshift.metrics.catalogue import Metric
from calshift.metrics.curves.ranking import RESOLUTION
from calshift.metrics.decision_rule import DecisionRule
from calshift.metrics.estimate import MetricValues
from calshift.metrics.row_scores import LogLoss
from calshift.metrics.rows_behind import RowsBehind, count_effective
from calshift.results import ClassWeights, Diagnostic, LabelShiftCheck, MetricEstimate
from calshift.results.metrics import MetricsResult

LEAST_WRONG = 15.0  # effective rows not predicted correctly, for a log loss
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
    tables = tabulate_labels(sample, means=False)
    order = check_label_order(tables)
    conditions = (order, check_sample_size(summary.size, float("inf"), "sample"))
    diagnostics = settle(conditions, waive)
    trusted = not any(one.failed for one in diagnostics)
    rows = _rows_behind(found, summary, None, None)
    wrong = _count_wrong_rows(tables, np.ones(summary.n_classes))
    estimates = {
        metric.name: replace(
            _estimate(metric, found, k, rows, wrong, trusted, waive),
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
    rows = _rows_behind(found, source, target, class_weights)
    wrong = _count_wrong_rows(tables, np.nan_to_num(class_weights.values))
    estimates = {
        metric.name: _estimate(metric, found, k, rows, wrong, trusted, waive)
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
    found: MetricValues,
    source: SampleSummary,
    target: SampleSummary | None,
    weights: ClassWeights | None,
) -> tuple[RowsBehind, RowsBehind]:
    """Effective rows behind metrics of the target, and of the source."""
    table = found.source_confusion
    if target is None and found.tables is not None:
        table = found.tables.confusion
    counts = None if table is None else table * source.effective_size
    ones = np.ones(source.n_classes)
    own = RowsBehind(source.effective_size, counts, ones, source.effective_size)
    if target is None or weights is None:
        return own, own
    w = np.nan_to_num(weights.values)
    return RowsBehind(weights.ess, counts, w, target.effective_size), own


def _estimate(
    metric: Metric,
    found: MetricValues,
    k: int,
    rows: tuple[RowsBehind, RowsBehind],
    wrong: float | None,
    trusted: bool,
    waive: frozenset[str],
) -> MetricEstimate:
    """One metric, and whether its own conditions are met."""
    errors = (found.error, found.source_error, found.difference_error)
    first, second, third = (None if one is None else float(one[k]) for one in errors)
    one = MetricEstimate(
        metric.name, metric.title, float(np.clip(found.values[k], *metric.bounds)),
        float(found.source[k]), metric.bounds, note=_undefined_note(found.undefined[k]),
        _error=first, _source_error=second, _difference_error=third,
        _rows=(rows[0].of(metric), rows[1].of(metric)),
        _drift=(0.0, 0.0) if found.drift is None else found.drift[k],
        _draws=None if found.draws is None else found.draws[:, :, k],
    )  # fmt: skip
    conditions = [_check_width(one)]
    if isinstance(metric.score, LogLoss):
        conditions.append(_check_wrong_rows(wrong))
    diagnostics = settle(conditions, waive)
    known = metric.is_average or not found.undefined[k]
    met = not any(condition.failed for condition in diagnostics)
    return replace(one, diagnostics=diagnostics, trusted=trusted and known and met)


def _count_wrong_rows(tables: LabelTables | None, weights: np.ndarray) -> float | None:
    """Effective source rows whose most probable class is not their label; None if not known."""
    if tables is None:
        return None
    off = np.where(np.eye(len(weights), dtype=bool), 0.0, tables.confusion * tables.share)
    return count_effective(off, weights) if off.any() else 0.0


def _check_wrong_rows(rows: float | None) -> Diagnostic:
    """The rows that are not predicted correctly, on which a log loss rests."""
    if rows is None:
        why = "the rows on which the log loss rests are not known for so many classes"
        return unchecked("residual-rows", LEAST_WRONG, why)
    passed = rows >= LEAST_WRONG
    text = f"the log loss rests on {rows:,.0f} source rows that are not predicted correctly"
    if not passed:
        text += f" (at least {LEAST_WRONG:g} needed): with others it would be different"
    return Diagnostic("residual-rows", rows, LEAST_WRONG, passed, text)


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
    notes = [
        f"{metric.name}: {_undefined_note(undefined)}"
        for metric, undefined in zip(metrics, found.undefined, strict=True)
        if undefined
    ]
    if source.in_memory is None and any(metric.areas for metric in metrics):
        notes.append(RESOLUTION.format(cells=CELLS))
    return tuple(notes)
