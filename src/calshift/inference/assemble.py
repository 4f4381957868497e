"""Results made from estimates: means over events, warnings, and what the results keep."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from calshift.binning.events import Events, select_events
from calshift.diagnostics.trust import collect_warnings
from calshift.engines.base import Engine
from calshift.inference.estimate import event_errors
from calshift.inference.event_estimates import EventEstimates
from calshift.inference.options import Options, Resampling
from calshift.inference.reliability_sums import KeptCurves, keep_curves, plan_curves
from calshift.results import CalibrationErrorResult, ClassWeights, LabelShiftCheck
from calshift.weights import METHODS, resolve_class_weights


def labelled_result(
    sample: Engine,
    events: Events,
    options: Options,
    ones: np.ndarray,
    resampling: Resampling | None,
) -> CalibrationErrorResult:
    """The error with labels; a class with NaN instead of 1 is left out.

    Without resampling options, as for the error on the source, the interval has a closed form.
    """
    resampled = options.interval == "bootstrap" and resampling is not None
    closed = options.interval is not None and not resampled
    found = event_errors(sample, None, events, options, ones, interval=closed)
    if resampled:
        found = _resample(found, options, resampling, events, ones, sample, None)
    return CalibrationErrorResult(
        n_source=sample.summary.size,
        classes=sample.summary.classes,
        **_averaged(found, events, options, sample.summary.size),
    )


def target_result(
    source: Engine,
    target: Engine,
    options: Options,
    weights: Any,
    resampling: Resampling | None,
    check: LabelShiftCheck | None,
) -> CalibrationErrorResult:
    """The error without labels from the rows of both samples, and the source's own beside it."""
    events = select_events(options.kind, source.summary)
    found, used = estimate_target(source, target, events, options, weights, resampling)
    ones, sizes = 0 * used.values + 1, (source.summary.size, target.summary.size)
    before = partial(labelled_result, source, events, options, ones, None)
    if source.in_memory is None:  # its rows may be gone later
        known = before()
        before = partial(_return, known)
    curves = keep_curves(source, target, used, events.kind, found)
    classes = source.summary.classes
    return shifted_result(found, events, options, used, sizes, before, classes, check, curves)


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
    used = resolve_class_weights(weights, source, target)
    in_memory = source.in_memory is not None and target.in_memory is not None
    found = event_errors(
        source, target, events, options, used.values, used.influence,
        interval=options.interval == "influence",
        curves=partial(plan_curves, source, target, events.kind) if in_memory else None,
    )  # fmt: skip
    if options.interval == "bootstrap":
        refit = used.method if used.influence is not None and used.method in METHODS else used
        found = _resample(found, options, resampling, events, refit, source, target)
    return found, used


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
) -> CalibrationErrorResult:
    """The error without labels."""
    return CalibrationErrorResult(
        n_source=sizes[0],
        n_target=sizes[1],
        class_weights=class_weights,
        assumption=assumption,
        classes=classes,
        _source=source,
        _curves=curves,
        **_averaged(found, events, options, sizes[0], class_weights, assumption, sizes[1]),
    )


def _averaged(
    found: EventEstimates,
    events: Events,
    options: Options,
    n: float,
    class_weights: ClassWeights | None = None,
    assumption: LabelShiftCheck | None = None,
    m: float | None = None,
) -> dict[str, Any]:
    """The mean over the events not left out, and what was asked."""
    classwise = events.kind == "classwise"
    kept = found.values[~np.isnan(found.values)]
    each = n / len(kept) if classwise else np.inf
    notes, trusted = collect_warnings(
        class_weights, assumption, found.sparse, found.isolated, each, m
    )
    if found.distribution is not None and np.all(found.distribution.standard_error == 0):
        notes = (*notes, f"no residual at all: errors below about {3 / n:.2g} cannot be detected")
    return {
        "estimate": float(kept.mean()),
        "per_class": found.values if classwise else None,
        "kind": events.kind,
        "norm": options.norm,
        "estimator": options.estimator,
        "merged_bins": found.merged,
        "warnings": notes,
        "trusted": trusted,
        "_distribution": found.distribution,
        "_class_distributions": found.event_distributions if classwise else None,
        "_influence": found.influence,
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
