"""Results made from estimates: means over events, warnings, and what the results keep."""

from __future__ import annotations

from typing import Any

import numpy as np

from calshift.binning.events import Events, select_events
from calshift.diagnostics.warnings import collect_warnings
from calshift.engines.base import Engine
from calshift.inference.bootstrap import Bootstrap
from calshift.inference.event_estimates import EventEstimates
from calshift.inference.intervals import estimated, labelled
from calshift.inference.kept_curves import KeptCurves, keep_curves
from calshift.inference.options import Options
from calshift.results import CalibrationErrorResult, ClassWeights, LabelShiftCheck
from calshift.results._lazy import Lazy, Unpickled
from calshift.weights.influence import ScaledWeights


def labelled_result(
    sample: Engine,
    events: Events,
    options: Options,
    ones: np.ndarray,
    draws: Bootstrap | None,
) -> CalibrationErrorResult:
    """The error with labels; a class with NaN in the place of a one is left out."""
    found = labelled(sample, events, options, ones, draws)
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
    draws: Bootstrap | None,
    check: LabelShiftCheck | None,
) -> CalibrationErrorResult:
    """The error without labels from the rows of both samples, and the source's own beside it."""
    events = select_events(options.kind, source.summary)
    found, class_weights = estimated(source, target, events, options, weights, draws)
    ones, sizes = 0 * class_weights.values + 1, (source.summary.size, target.summary.size)
    before = Lazy(lambda: labelled_result(source, events, options, ones, None))
    if source.in_memory is None:  # its rows may be gone later
        before.value()
    scaled = ScaledWeights.of(class_weights.values, class_weights.influence, sizes)
    curves = keep_curves(source, target, scaled, events.kind, found)
    classes = source.summary.classes
    return shifted_result(
        found, events, options, class_weights, sizes, before, classes, check, curves
    )


def shifted_result(
    found: EventEstimates,
    events: Events,
    options: Options,
    class_weights: ClassWeights,
    sizes: tuple[float, float],
    source: Lazy | None = None,
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
        _curves=Unpickled(curves),
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
        notes = (*notes, f"no row is off at all: errors below about {3 / n:.2g} cannot be seen")
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
