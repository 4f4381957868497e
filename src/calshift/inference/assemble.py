"""Results made from estimates: means over events, warnings, and what the results keep."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from calshift.binning.events import Events, select_events
from calshift.diagnostics.conditions import LABELLED, settle
from calshift.diagnostics.label_order import check_label_order
from calshift.diagnostics.label_tables import LabelTables, tabulate_labels
from calshift.diagnostics.trust import (
    collect_warnings,
    error_conditions,
    labelled_conditions,
    prior_conditions,
)
from calshift.diagnostics.weight_conditions import are_estimated
from calshift.engines import Arrays
from calshift.engines.base import Engine
from calshift.inference.estimate import event_errors
from calshift.inference.event_estimates import EventEstimates
from calshift.inference.options import Options, Resampling
from calshift.inference.reliability_sums import KeptCurves, keep_curves, plan_curves
from calshift.results import CalibrationErrorResult, ClassWeights, Diagnostic, LabelShiftCheck
from calshift.weights import METHODS, plan_class_weights


def labelled_result(
    sample: Engine,
    events: Events,
    options: Options,
    ones: np.ndarray,
    resampling: Resampling | None,
    waive: frozenset[str] = frozenset(),
    order: Diagnostic | None = None,
) -> CalibrationErrorResult:
    """The error with labels; a class with NaN instead of 1 is left out.

    ``order`` is the check of the order of labels and columns, where it was made before.

    Without resampling options, as for the error on the source, the interval has a closed form.
    """
    resampled = options.interval == "bootstrap" and resampling is not None
    closed = options.interval is not None and not resampled
    found = event_errors(sample, None, events, options, ones, interval=closed)
    if resampled:
        found = _resample(found, options, resampling, events, ones, sample, None)
    size = sample.summary.size
    result = CalibrationErrorResult(
        n_source=size, classes=sample.summary.classes, **_averaged(found, events, options)
    )
    order = order or check_label_order(tabulate_labels(sample, means=False, residuals=False))
    conditions = labelled_conditions(result, _rows_a_class(found, events, size), order)
    return _judge(result, found, conditions, waive)


def target_result(
    source: Engine,
    target: Engine,
    options: Options,
    weights: Any,
    resampling: Resampling | None,
    check: LabelShiftCheck | None,
    waive: frozenset[str] = frozenset(),
    tables: LabelTables | None = None,
    own: Callable[[], CalibrationErrorResult] | None = None,
) -> CalibrationErrorResult:
    """The error without labels from the rows of both samples, and the source's own beside it.

    ``tables`` are those of the source for the checks, with means, and ``own`` is the source's
    error, where they were made before.
    """
    events = select_events(options.kind, source.summary)
    found, used = estimate_target(source, target, events, options, weights, resampling)
    if check is not None:
        found = found.inflated(used.error_factor)
    ones, sizes = 0 * used.values + 1, (source.summary.size, target.summary.size)
    tables = tables or tabulate_labels(source, means=are_estimated(used))
    before = own or _own_error(source, events, options, ones, waive & {*LABELLED}, tables)
    curves = keep_curves(source, target, used, events.kind, found)
    classes = source.summary.classes
    return shifted_result(
        found, events, options, used, sizes, before, classes, check, curves, tables, waive
    )


def _own_error(
    source: Engine,
    events: Events,
    options: Options,
    ones: np.ndarray,
    waive: frozenset[str],
    tables: LabelTables | None,
) -> Callable[[], CalibrationErrorResult]:
    """The source's error, computed when it is first used."""
    options = replace(options, drift=None)  # which does not assume label shift
    order = check_label_order(tables)
    rows = source.in_memory
    again = source if rows is None else Arrays(rows)  # which keeps nothing derived from its rows
    before = partial(labelled_result, again, events, options, ones, None, waive, order)
    return partial(_return, before()) if rows is None else before  # they may be gone later


def _return(value: CalibrationErrorResult) -> CalibrationErrorResult:
    return value


def estimate_target(
    source: Engine,
    target: Engine,
    events: Events,
    options: Options,
    weights: Any,
    resampling: Resampling | None,
) -> tuple[EventEstimates, ClassWeights]:
    """Without target labels: the errors with their distributions, and the weights used."""
    used, compared = plan_class_weights(weights, source, target)
    in_memory = source.in_memory is not None and target.in_memory is not None
    found = event_errors(
        source, target, events, options, used.values, used.influence,
        interval=options.interval == "influence",
        curves=partial(plan_curves, source, target, events.kind) if in_memory else None,
    )  # fmt: skip
    if options.interval == "bootstrap":
        name = used.method.split(":")[0]  # without the description of the weights
        refit = name if used.influence is not None and name in METHODS else used
        found = _resample(found, options, resampling, events, refit, source, target)
    return found, compared()


def _resample(
    found: EventEstimates,
    options: Options,
    resampling: Resampling | None,
    events: Events,
    weights: Any,
    source: Engine,
    target: Engine | None,
) -> EventEstimates:
    from calshift.inference.bootstrap import BootstrapStatistic, with_bootstrap  # late: rare

    assert resampling is not None
    statistic = BootstrapStatistic(events, options, weights)
    return with_bootstrap(found, resampling, statistic, source, target)


def shifted_result(
    found: EventEstimates,
    events: Events,
    options: Options,
    class_weights: ClassWeights,
    sizes: tuple[float, float],
    source: Callable[[], CalibrationErrorResult] | None = None,
    classes: tuple[Any, ...] | None = None,
    assumption: LabelShiftCheck | None = None,
    curves: KeptCurves | None = None,
    tables: LabelTables | None = None,
    waive: frozenset[str] = frozenset(),
) -> CalibrationErrorResult:
    """The error without labels."""
    result = CalibrationErrorResult(
        n_source=sizes[0],
        n_target=sizes[1],
        class_weights=class_weights,
        assumption=assumption,
        classes=classes,
        _source=source,
        _curves=curves,
        **_averaged(found, events, options),
    )
    each = _rows_a_class(found, events, sizes[0])
    conditions = [
        *prior_conditions(class_weights, assumption, tables, sizes[1], each),
        *error_conditions(result, found.sparse, tables),
    ]
    return _judge(result, found, conditions, waive)


def _judge(
    result: CalibrationErrorResult,
    found: EventEstimates,
    conditions: Iterable[Diagnostic],
    waive: frozenset[str],
) -> CalibrationErrorResult:
    """The result with the outcomes of its conditions, and its warnings."""
    diagnostics = settle(conditions, waive)
    others: tuple[str, ...] = ()
    if found.distribution is not None and np.all(found.distribution.standard_error == 0):
        least = f"{3 / result.n_source:.2g}"
        others = (f"no residual at all: errors below about {least} cannot be detected",)
    notes = collect_warnings(
        diagnostics, result.class_weights, found.sparse, found.isolated, others
    )
    return replace(result, diagnostics=diagnostics, warnings=notes)


def _rows_a_class(found: EventEstimates, events: Events, n: float) -> float:
    """Source rows for each class of a classwise error, else infinity."""
    if events.kind != "classwise":
        return np.inf
    return n / int(np.count_nonzero(~np.isnan(found.values)))


def _averaged(found: EventEstimates, events: Events, options: Options) -> dict[str, Any]:
    """The mean over the events not left out, and what was asked."""
    classwise = events.kind == "classwise"
    kept = found.values[~np.isnan(found.values)]
    return {
        "estimate": float(kept.mean()),
        "per_class": found.values if classwise else None,
        "kind": events.kind,
        "norm": options.norm,
        "estimator": options.estimator,
        "merged_bins": found.merged,
        "_distribution": found.distribution,
        "_class_distributions": found.event_distributions if classwise else None,
        "_influence": found.influence,
        "_drift": found.drift,
        "settings": options.settings,
    }


def sum_variances(found: np.ndarray, events: Events, w: np.ndarray) -> dict[str, Any]:
    """Variances of each event and of their mean, as if the events were independent."""
    classwise = events.kind == "classwise"
    if classwise:
        found = np.where(np.isnan(w), np.nan, found)
    kept = int((~np.isnan(found[0])).sum())
    means = [float(np.nansum(values)) / kept**2 for values in found]
    shifted = len(found) == 2
    return {
        "kind": events.kind,
        "variance": means[0],
        "per_class": found[0] if classwise else None,
        "corrected": means[1] if shifted else None,
        "corrected_per_class": found[1] if shifted and classwise else None,
    }
