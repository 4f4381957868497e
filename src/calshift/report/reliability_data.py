"""Reliability curves of a report, as plain values."""

from __future__ import annotations

from typing import Any

from calshift._core.convert import plain
from calshift.results import CalibrationErrorResult, ReliabilityCurve


def reliability_dicts(result: CalibrationErrorResult, level: float) -> list[dict[str, Any]]:
    """Reliability of source and target: of the predicted class, and of the worst classes."""
    kept = result._curves
    return [
        {
            "of": _curve_name(result, one),
            "source": _curve_dict(one, level),
            "target": _curve_dict(two, level),
        }
        for one, two in (() if kept is None else kept.curves())
    ]


def changed_curves(
    before: CalibrationErrorResult, after: CalibrationErrorResult, level: float
) -> list[dict[str, Any]]:
    """Reliability of the target before and after, of what both results have curves of."""
    others = {one["of"]: one["target"] for one in reliability_dicts(after, level)}
    return [
        {"of": one["of"], "before": one["target"], "after": others[one["of"]]}
        for one in reliability_dicts(before, level)
        if one["of"] in others
    ]


def _curve_name(result: CalibrationErrorResult, curve: ReliabilityCurve) -> str:
    if curve.label is not None:
        return str(curve.label if result.classes is None else result.classes[curve.label])
    return "the predicted class" if curve.kind == "top-label" else "class 1"


def _curve_dict(curve: ReliabilityCurve, level: float) -> dict[str, Any]:
    low, high = curve.band(level)
    shown = {"score": curve.score, "frequency": curve.frequency, "mass": curve.mass}
    return {name: plain(values) for name, values in {**shown, "low": low, "high": high}.items()}
