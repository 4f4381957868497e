"""Metrics as a plain dict, and as a fragment for notebooks; schemas/metrics.json has the keys."""

from __future__ import annotations

from typing import Any

from calshift._core.text import percent
from calshift.report.page.metrics_view import view_metrics
from calshift.report.page.templates import load_template
from calshift.results import MetricsResult

LEVEL = 0.95
SECTION = (
    "trusted", "decision", "positive", "metrics", "confusion", "confusion_source", "classes",
    "warnings", "diagnostics",
)  # fmt: skip


def metrics_section(found: MetricsResult, level: float = LEVEL) -> dict[str, Any]:
    """What the page needs of metrics, in plain values."""
    plain = found.to_dict(level)
    return {**{key: plain[key] for key in SECTION}, "requirements": []}


def metrics_fragment(found: MetricsResult) -> str:
    """The metrics for a notebook; plain text where jinja2 is not installed."""
    from html import escape  # late: importing calshift must be fast

    try:
        view = view_metrics(metrics_section(found, LEVEL))
        context = {"metrics": view, "level": percent(LEVEL)}
        return str(load_template("metrics_fragment.html").render(context))
    except ImportError:
        return f"<pre>{escape(str(found))}</pre>"


def metrics_dict(found: MetricsResult, level: float = 0.95) -> dict[str, Any]:
    """Metrics with their intervals, weights and diagnostics."""
    return {"schema": "calshift-metrics", **found.to_dict(level)}
