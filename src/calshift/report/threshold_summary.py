"""A decision threshold as a plain dict, whose keys are promised by schemas/threshold.json."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from calshift._core.convert import plain
from calshift._core.text import percent
from calshift.report.metrics_summary import unit_of
from calshift.report.page.change_view import view_changes, view_curve
from calshift.report.page.templates import load_template
from calshift.report.verdict import EXIT_CODES
from calshift.results import DecisionCurve, DecisionThreshold, MetricEstimate

LEVEL = 0.95


def threshold_dict(
    found: DecisionThreshold,
    level: float = 0.95,
    *,
    asked: Collection[str] = (),
    settings: dict[str, Any] | None = None,
    origin: dict[str, Any] | None = None,
) -> dict[str, Any]:
    """The rule, and each metric with the present rule and with the new one.

    Metrics ``asked`` for by name must be trusted themselves, as must the one that decides.
    ``settings`` and ``origin`` are how to reproduce it.
    """
    reason = _distrust(found, asked)
    status = "untrusted" if reason else "fine" if found.reached else "breached"
    new = found.achieved
    return {
        "schema": "calshift-threshold",
        "status": status,
        "exit_code": EXIT_CODES[status],
        "verdict": _verdict(found, reason, level),
        "trusted": found.trusted and not reason,
        "goal": found.goal,
        "reached": found.reached,
        "threshold": plain(found.threshold),
        "recalibrated_threshold": plain(found.recalibrated_threshold),
        "rule": {"present": found.unchanged.decision, "new": found.description},
        "positive": None if new.positive is None else str(new.positive),
        "classes": None if new.classes is None else [str(name) for name in new.classes],
        "level": level,
        "metrics": metric_changes(found, level),
        "cost": plain(found.cost),
        "recalibrator": None if found.recalibrator is None else found.recalibrator.to_dict(),
        "n_source": new.n_source,
        "n_target": new.n_target,
        "warnings": list(found.warnings),
        "diagnostics": [one.to_dict() for one in new.diagnostics],
        "class_weights": None if new.class_weights is None else new.class_weights.to_dict(),
        "assumption": None if new.assumption is None else new.assumption.to_dict(),
        "settings": settings or {},
        **(origin or {}),
    }


def metric_changes(found: DecisionThreshold, level: float) -> list[dict[str, Any]]:
    """Each metric with the present rule, with the new one, and the change."""
    records = []
    for name, new in found.achieved.items():
        value, ends = found.change(name, level)
        records.append({
            "name": name, "title": new.title, "unit": unit_of(new),
            "present": _estimate(found.unchanged[name], level), "new": _estimate(new, level),
            "change": plain(value), "interval": None if ends is None else list(ends),
            "trusted": new.trusted and found.unchanged[name].trusted,
        })  # fmt: skip
    return records


def _estimate(one: MetricEstimate, level: float) -> dict[str, Any]:
    left_out = ("source", "source_interval", "difference", "difference_interval")
    return {name: value for name, value in one.to_dict(level).items() if name not in left_out}


def _distrust(found: DecisionThreshold, asked: Collection[str]) -> str:
    """Why the numbers should not be relied on, or ""."""
    if not found.achieved.trusted:
        warnings = found.achieved.warnings
        return warnings[0] if warnings else "the conditions of trust were not checked"
    named = dict.fromkeys([*([found.decisive] if found.decisive else []), *asked])
    wide = [found.achieved[name] for name in named if not found.achieved[name].trusted]
    failed = [each.text for one in wide for each in one.diagnostics if each.failed]
    return failed[0] if failed else f"{wide[0].name} is not trusted" if wide else ""


def _verdict(found: DecisionThreshold, reason: str, level: float) -> str:
    """The rule and what it does to the metric that decides."""
    rule = found.description
    if reason:
        return (
            f"NOT TRUSTED: {reason}. Keep the present rule. The rule found ({rule}) may be wrong."
        )
    name = found.decisive or next(iter(found.achieved))
    text = f"{rule[:1].upper()}{rule[1:]} ({found.goal}): {_outcome(found, name, level)}."
    first = "" if found.reached else found.warnings[0]
    return f"{first[:1].upper()}{first[1:]}. {text}" if first else text


def _outcome(found: DecisionThreshold, name: str, level: float) -> str:
    """A metric on the target with both rules."""
    new, old = found.achieved[name], found.unchanged[name]
    text = f"{name.replace('_', ' ')} on the target {new.estimate:.4g}{_brackets(new, level)}"
    value, ends = found.change(name, level)
    if value == 0:
        return f"{text}, as with the present rule"
    before = f"{old.estimate:.4g}" if old.estimate == old.estimate else "unknown"
    if ends is None:
        return f"{text}, with the present rule {before}"
    words = "not clearly different from"
    if not ends[0] <= 0 <= ends[1]:
        words = "smaller than" if ends[1] < 0 else "larger than"
    return f"{text}, {words} the {before} of the present rule"


def _brackets(one: MetricEstimate, level: float) -> str:
    if not one.has_interval:
        return ""
    low, high = one.confidence_interval(level)
    return f" ({percent(level)} interval {low:.4g} to {high:.4g})"


def threshold_fragment(found: DecisionThreshold) -> str:
    """A threshold for a notebook; plain text where jinja2 is not installed."""
    changes = metric_changes(found, LEVEL)
    view = view_changes(changes, found.achieved.trusted, "present", "new")
    return _render("threshold_fragment.html", found, **view)


def curve_fragment(found: DecisionCurve) -> str:
    """A decision curve for a notebook; plain text where jinja2 is not installed."""
    return _render("curve_fragment.html", found, rows=view_curve(found, LEVEL))


def _render(template: str, found: Any, **more: Any) -> str:
    from html import escape  # late: importing calshift must be fast

    try:
        context = {"found": found, "level": percent(LEVEL), **more}
        return str(load_template(template).render(context))
    except ImportError:
        return f"<pre>{escape(str(found))}</pre>"
