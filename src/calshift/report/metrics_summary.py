"""Metrics as plain dicts: in the report, and of `calshift metrics`; schemas/metrics.json."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any

from calshift._core.convert import plain
from calshift._core.text import percent
from calshift.report.page.metrics_view import view_metrics
from calshift.report.page.templates import load_template
from calshift.report.requirements import REPORTED, Outcome, outcome_sentence
from calshift.report.verdict import EXIT_CODES
from calshift.results import MetricEstimate, MetricsResult

MOST_CLASSES = 30  # of a confusion matrix in the report
PER_1000 = ("missed_cases", "false_alarms")

LEVEL = 0.95


def metrics_fragment(found: MetricsResult) -> str:
    """The metrics for a notebook; plain text where jinja2 is not installed."""
    from html import escape  # late: importing calshift must be fast

    try:
        view = view_metrics(metrics_section(found, LEVEL))
        context = {"metrics": view, "level": percent(LEVEL)}
        return str(load_template("metrics_fragment.html").render(context))
    except ImportError:
        return f"<pre>{escape(str(found))}</pre>"


def metrics_section(
    found: MetricsResult, level: float = 0.95, outcomes: Iterable[Outcome] = ()
) -> dict[str, Any]:
    """The metrics of a report, with the outcomes of the requirements."""
    small = small_confusion(found) is not None
    return {
        "trusted": found.trusted,
        "decision": found.decision,
        "positive": None if found.positive is None else str(found.positive),
        "metrics": [{**one.to_dict(level), "unit": unit_of(one)} for one in found.values()],
        "confusion": small_confusion(found),
        "confusion_source": plain(found.confusion_source) if small else None,
        "classes": class_names(found),
        "requirements": [one.to_dict() for one in outcomes],
        "warnings": list(found.warnings),
        "diagnostics": [one.to_dict() for one in found.diagnostics],
    }


def small_confusion(found: MetricsResult) -> Any:
    """The confusion matrix in plain numbers; None of many classes."""
    known = found.confusion is not None and len(found.confusion) <= MOST_CLASSES
    return plain(found.confusion) if known else None


def unit_of(one: MetricEstimate) -> str:
    """How the number is shown best."""
    if one.name in PER_1000:
        return "per 1000"
    return "share" if one.bounds == (0.0, 1.0) else "number"


def class_names(found: MetricsResult) -> list[str]:
    """Names of the classes, or their numbers."""
    if found.classes is not None:
        return [str(name) for name in found.classes]
    known = found.class_weights if found.confusion is None else found.confusion
    return [str(k) for k in range(0 if known is None else len(known))]


def metrics_dict(
    found: MetricsResult,
    level: float = 0.95,
    outcomes: Iterable[Outcome] = (),
    *,
    asked: Collection[str] = (),
    origin: dict[str, Any] | None = None,
) -> dict[str, Any]:
    """Metrics with intervals, requirements, weights and the test of label shift.

    A metric ``asked`` for by name must be trusted itself. ``origin`` is how to reproduce it.
    """
    judged = list(outcomes)
    status, whole = metrics_status(found, judged, asked), found.to_dict(level)
    return {
        "schema": "calshift-metrics",
        "status": status,
        "exit_code": EXIT_CODES[status],
        "verdict": metrics_verdict(found, judged, level, asked),
        **whole,
        **metrics_section(found, level, judged),
        **{name: whole[name] for name in ("confusion", "confusion_source")},  # of many classes too
        **(origin or {}),
    }


def metrics_status(found: MetricsResult, outcomes: Iterable[Outcome], asked: Iterable[str]) -> str:
    """The worst of the metrics asked for and of the requirements."""
    statuses = [REPORTED[one.status] for one in outcomes]
    if not found.trusted or _distrusted(found, asked):
        statuses.append("untrusted")
    return max(statuses, key=EXIT_CODES.__getitem__, default="fine")


def metrics_verdict(
    found: MetricsResult, outcomes: list[Outcome], level: float, asked: Iterable[str]
) -> str:
    """The result in a few sentences."""
    if not found.trusted:
        reason = found.warnings[0] if found.warnings else "its conditions were not checked"
        return f"Not reliable: {reason}. The metrics may be wrong."
    parts = [f"Not reliable: {_reason(found[name])}." for name in _distrusted(found, asked)]
    parts.append(outcome_sentence(outcomes, level) or _headline(found, level))
    return " ".join(part for part in parts if part)


def _distrusted(found: MetricsResult, asked: Iterable[str]) -> list[str]:
    """Of the metrics asked for, those whose own conditions are not met."""
    return [name for name in asked if name in found and not found[name].trusted]


def _reason(one: MetricEstimate) -> str:
    failed = [condition.text for condition in one.diagnostics if condition.failed]
    return failed[0] if failed else f"{one.name} is not trusted"


def _headline(found: MetricsResult, level: float) -> str:
    """The first metric that is trusted, compared with the source."""
    one = next((one for one in found.values() if one.trusted), None)
    if one is None or not one.has_interval:
        return ""
    low, high = one.confidence_interval(level)
    text = f"{one.name} on the target: {one.estimate:.4g} ({percent(level)} interval "
    text += f"{low:.4g} to {high:.4g})"
    if one.source is None:
        return f"{text}."
    least, most = one.difference_interval(level)
    words = (
        "larger than" if least > 0 else "smaller than" if most < 0 else "not clearly different from"
    )
    return f"{text}, {words} the source's {one.source:.4g}."
