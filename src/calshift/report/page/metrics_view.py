"""Metrics as the texts of the page and of notebooks: "How good is the model now"."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from calshift.report.page.metric_names import name_in_words, unit_of
from calshift.report.page.number_texts import FORMS, Form, format_per_1000
from calshift.results import MetricsResult

MOST_METRICS = 150  # in the table; JSON has all
FIGURES = ("prevalence", "precision", "missed_cases")  # above the table, where they are known
FIGURES_OF_MANY = ("accuracy", "balanced_accuracy", "f1_macro")
SECTION = (
    "trusted", "decision", "positive", "confusion", "confusion_source", "classes", "warnings",
    "diagnostics",
)  # fmt: skip
DECISIONS = {
    "a function of the probabilities": "Classes are predicted by a function of the probabilities.",
    "least expected cost": "The predicted class is the one of least expected cost.",
    "most probable class": "The predicted class is the most probable one.",
}
BINARY = "Predicted positive if that is the more probable of the two classes."


def metrics_section(found: MetricsResult, level: float) -> dict[str, Any]:
    """What the page needs of metrics, in plain values."""
    plain = found.to_dict(level)
    metrics = [{**one, "unit": unit_of(one["name"])} for one in plain["metrics"]]
    return {**{key: plain[key] for key in SECTION}, "metrics": metrics, "requirements": []}


def view_metrics(section: dict[str, Any] | None, known: Iterable[str] = ()) -> Any:
    """Variables of the templates; None without metrics. ``known``: warnings shown elsewhere."""
    if section is None:
        return None
    rows = [_row(one, section["trusted"]) for one in section["metrics"]]
    reasons = [one["text"] for one in section["diagnostics"] if one["failed"]]
    said = {*known, *reasons}
    return {
        "trusted": section["trusted"],
        "reasons": reasons or ["the conditions of trust were not checked"],
        "conditions": len(section["diagnostics"]),
        "waived": [one["name"] for one in section["diagnostics"] if one["waived"]],
        "compared": any(one["source"] is not None for one in section["metrics"]),
        "decision": _decision(section),
        "positive": section["positive"],
        "figures": _figures(rows),
        "rows": rows[:MOST_METRICS],
        "hidden": len(rows) - len(rows[:MOST_METRICS]),
        "outcomes": _outcomes(section),
        "requirements": section.get("requirements") or [],
        "warnings": [note for note in section["warnings"] if note not in said],
    }


def _row(one: dict[str, Any], trusted: bool) -> dict[str, Any]:
    """One metric as texts."""
    form = FORMS[one.get("unit") or unit_of(one["name"])]
    return {
        "id": one["name"],
        **name_in_words(one["name"], one["title"])._asdict(),
        "note": one["note"],
        "now": form.value(one["estimate"]),
        "interval": form.interval(one["interval"]),
        "before": form.value(one["source"]) if one["source"] is not None else "",
        "before_interval": form.interval(one["source_interval"]),
        "change": _change(form, one["difference"]),
        "change_interval": form.change_interval(one["difference_interval"]),
        "trusted": one["trusted"],
        "reason": _reason(one, trusted),
    }


def _change(form: Form, difference: float | None) -> str:
    return "" if difference is None else form.change(difference)


def _reason(one: dict[str, Any], trusted: bool) -> str:
    """Why this metric is not trusted, in a few words."""
    if one["trusted"]:
        return ""
    if not trusted:
        return "not trusted"
    return "not trusted: " + ("no interval" if one["interval"] is None else "interval too wide")


def _figures(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The rows that most readers look for."""
    by_name = {one["id"]: one for one in rows}
    names = FIGURES if any(name in by_name for name in FIGURES) else FIGURES_OF_MANY
    return [by_name[name] for name in names if name in by_name]


def _decision(section: dict[str, Any]) -> str:
    """The decision rule as a sentence."""
    rule, two = section["decision"], len(section["confusion"] or ()) == 2
    if rule.startswith("positive at "):
        return f"Predicted {rule}."
    if rule == "most probable class" and two and section["positive"] is not None:
        return BINARY
    return DECISIONS.get(rule, f"Decision rule: {rule}.")


def _outcomes(section: dict[str, Any]) -> list[dict[str, Any]]:
    """Of 1000 cases: found, missed, false alarms, cleared; empty if no class is positive."""
    now, before = section["confusion"], section["confusion_source"]
    if now is None or section["positive"] is None:
        return []
    names = section["classes"] or [str(k) for k in range(len(now))]
    label = names.index(section["positive"])
    shares = [_four_shares(now, label), None if before is None else _four_shares(before, label)]
    words = (
        ("Found", "positive, predicted positive"),
        ("Missed", "positive, predicted negative"),
        ("False alarms", "negative, predicted positive"),
        ("Correctly cleared", "negative, predicted negative"),
    )
    return [
        {
            "name": name,
            "meaning": meaning,
            "now": format_per_1000(shares[0][k]),
            "before": "" if shares[1] is None else format_per_1000(shares[1][k]),
        }
        for k, (name, meaning) in enumerate(words)
    ]


def _four_shares(confusion: list[list[float]], label: int) -> tuple[float, float, float, float]:
    """Shares of found, missed, false alarms and cleared, none below 0."""
    found = confusion[label][label]
    missed = sum(row[label] for row in confusion) - found
    alarms = sum(confusion[label]) - found
    cleared = sum(map(sum, confusion)) - found - missed - alarms
    return max(found, 0.0), max(missed, 0.0), max(alarms, 0.0), max(cleared, 0.0)
