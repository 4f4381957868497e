"""The reliability curves of a report as plain values."""

from __future__ import annotations

from typing import Any

import numpy as np

from calshift._core.convert import plain
from calshift.binning.events import select_binned_events
from calshift.engines import Arrays
from calshift.engines.sample_summary import SampleSummary
from calshift.inference.reliability import reliability_curves
from calshift.results import CalibrationErrorResult, ReliabilityCurve
from calshift.weights.influence import ScaledWeights

CLASSES_DRAWN = 6  # those with the largest errors


def reliability_dicts(result: CalibrationErrorResult, level: float) -> list[dict[str, Any]]:
    """Curves of source and target: of the predicted class, and of the worst classes."""
    samples, weights = result.samples, result.class_weights
    if samples is None or samples.source is None or samples.target is None or weights is None:
        return []
    source, target = Arrays(samples.source), Arrays(samples.target)
    wanted = _wanted(result, source.summary)
    seen = weights.values * 0 + 1
    sizes = (source.summary.size, target.summary.size)
    before = reliability_curves(source, None, wanted, ScaledWeights.of(seen, None, sizes), "auto")
    scaled_weights = ScaledWeights.of(weights.values, weights.influence, sizes)
    after = reliability_curves(source, target, wanted, scaled_weights, "auto")
    return [
        {
            "of": _curve_name(result, one),
            "source": _curve_dict(one, level),
            "target": _curve_dict(two, level),
        }
        for one, two in zip(before, after, strict=True)
    ]


def _wanted(result: CalibrationErrorResult, source: SampleSummary) -> list[tuple[Any, int | None]]:
    """Events and the class of each curve, None for all."""
    if result.kind == "binary" or source.one_column:
        return [(select_binned_events("binary", source), None)]
    wanted: list[tuple[Any, int | None]] = [(select_binned_events("top-label", source), None)]
    if result.per_class is not None:
        worst = np.argsort(-np.nan_to_num(result.per_class, nan=-np.inf), kind="stable")
        shown = [c for c in worst[:CLASSES_DRAWN] if not np.isnan(result.per_class[c])]
        classes = select_binned_events("classwise", source)
        wanted += [(classes, int(c)) for c in shown]
    return wanted


def _curve_name(result: CalibrationErrorResult, curve: ReliabilityCurve) -> str:
    if curve.label is not None:
        return str(curve.label if result.classes is None else result.classes[curve.label])
    return "the predicted class" if curve.kind == "top-label" else "class 1"


def _curve_dict(curve: ReliabilityCurve, level: float) -> dict[str, Any]:
    low, high = curve.band(level)
    shown = {"score": curve.score, "frequency": curve.frequency, "mass": curve.mass}
    return {name: plain(values) for name, values in {**shown, "low": low, "high": high}.items()}
