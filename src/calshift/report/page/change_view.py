"""Metrics before and after a change of the rule or of the probabilities, as texts."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from calshift._core.convert import plain
from calshift.report.page.metrics_view import MOST_METRICS, view_row
from calshift.report.page.number_texts import UNKNOWN
from calshift.results import DecisionCurve


def view_changes(
    changes: Iterable[dict[str, Any]], trusted: bool, before: str = "before", after: str = "after"
) -> dict[str, Any]:
    """Rows of a table of metrics; ``before`` and ``after`` are the keys of both estimates."""
    rows = [_row(as_metric(one, before, after), trusted) for one in changes]
    return {"rows": rows[:MOST_METRICS], "hidden": len(rows) - len(rows[:MOST_METRICS])}


def _row(one: dict[str, Any], trusted: bool) -> dict[str, Any]:
    """One metric as texts; "same" where the change has no effect on it."""
    row = view_row(one, trusted)
    row["before"] = row["before"] or UNKNOWN
    if one["difference"] == 0 and one["difference_interval"] in (None, [0.0, 0.0]):
        row |= {"change": "same", "change_interval": ""}
    return row


def as_metric(one: dict[str, Any], before: str, after: str) -> dict[str, Any]:
    """A change as a metric: what is after takes the place of the target, before of the source."""
    return {
        **one[after],
        "source": one[before]["estimate"],
        "source_interval": one[before]["interval"],
        "difference": one["change"],
        "difference_interval": one["interval"],
        "unit": one.get("unit"),
        "trusted": one["trusted"],
    }


def view_curve(curve: DecisionCurve, level: float) -> list[dict[str, str]]:
    """Rows of a table of net benefits, at about twenty of the thresholds."""
    low, high = curve.band(level)
    names = ("net_benefit", "treat_all", "source")
    return [
        {
            "threshold": f"{curve.thresholds[k]:.4g}",
            **{name: _number(getattr(curve, name), k) for name in names},
            "interval": f"{_number(low, k)} to {_number(high, k)}",
        }
        for k in curve.shown
    ]


def _number(values: Any, k: int) -> str:
    """Four decimals; "unknown" for NaN, and nothing without values."""
    if values is None:
        return ""
    value = plain(values[k])
    return UNKNOWN if value is None else f"{value:.4f}"
