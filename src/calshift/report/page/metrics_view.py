"""Metrics as the texts of the page and of notebooks: "How good is the model now"."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from calshift.report.page.metric_names import name_in_words, unit_of
from calshift.report.page.number_texts import FORMS, split_1000

MOST_METRICS = 150  # in the table; JSON has all
FIGURES = ("prevalence", "precision", "missed_cases")  # above the table, where they are known
FIGURES_OF_MANY = ("accuracy", "balanced_accuracy", "f1_macro")
OUTCOMES = (
    ("Found", "positive, predicted positive"),
    ("Missed", "positive, predicted negative"),
    ("False alarms", "negative, predicted positive"),
    ("Correctly cleared", "negative, predicted negative"),
)
DECISIONS = {
    "a function of the probabilities": "Classes are predicted by a function of the probabilities.",
    "least expected cost": "The predicted class is the one of least expected cost.",
    "most probable class": "The predicted class is the most probable one.",
}
STATUSES = {"not shown": "not shown to be met"}


def view_metrics(section: dict[str, Any] | None, known: Iterable[str] = ()) -> Any:
    """Variables of the templates; None without metrics. ``known``: warnings shown elsewhere."""
    if section is None:
        return None
    rows = [view_row(one, section["trusted"]) for one in section["metrics"]]
    return {
        "trusted": section["trusted"],
        "conditions": len(section["diagnostics"]),
        "waived": [one["name"] for one in section["diagnostics"] if one["waived"]],
        "compared": any(one["source"] is not None for one in section["metrics"]),
        "decision": _decision(section),
        "positive": section["positive"],
        "figures": _figures(rows),
        "rows": rows[:MOST_METRICS],
        "hidden": len(rows) - len(rows[:MOST_METRICS]),
        "outcomes": _outcomes(section),
        "requirements": _requirements(section.get("requirements") or [], rows),
        **_reasons(section, set(known)),
    }


def _reasons(section: dict[str, Any], known: set[str]) -> dict[str, Any]:
    """Why nothing is trusted: the first reason, and others that are not shown elsewhere."""
    failed = [one["text"] for one in section["diagnostics"] if one["failed"]]
    shown = failed[:1] + [text for text in failed[1:] if text not in known]
    return {
        "reasons": [one[:1].upper() + one[1:] for one in shown]
        or ["The conditions of trust were not checked"],
        "more_reasons": len(failed) - len(shown),
        "warnings": [note for note in section["warnings"] if note not in {*known, *failed}],
    }


def view_row(one: dict[str, Any], trusted: bool) -> dict[str, Any]:
    """One metric as texts."""
    form = FORMS[unit_of(one["name"], one.get("unit"))]
    return {
        "id": one["name"],
        **name_in_words(one["name"], one["title"])._asdict(),
        "note": one["note"],
        "now": form.value(one["estimate"]),
        "interval": form.interval(one["interval"]),
        "before": "" if one["source"] is None else form.value(one["source"]),
        "before_interval": form.interval(one["source_interval"]),
        "change": form.change(one),
        "change_interval": form.change_interval(one),
        "trusted": one["trusted"],
        "reason": _reason(one, trusted),
    }


def _reason(one: dict[str, Any], trusted: bool) -> str:
    """Why this metric is not trusted, in a few words."""
    if one["trusted"]:
        return ""
    if not trusted:
        return "not trusted"
    return "not trusted: " + ("no interval" if one["interval"] is None else "interval too wide")


def _figures(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The rows that most readers look for, with short names."""
    by_name = {one["id"]: one for one in rows}
    names = FIGURES if any(name in by_name for name in FIGURES) else FIGURES_OF_MANY
    shown = [by_name[name] for name in names if name in by_name]
    return [{**one, "name": one["name"].partition(" (")[0]} for one in shown]


def _decision(section: dict[str, Any]) -> str:
    """The decision rule as a sentence."""
    rule, two = section["decision"], len(section["confusion"] or ()) == 2
    if rule.startswith("positive at "):
        return f"Predicted {rule}."
    if rule == "most probable class" and two and section["positive"] is not None:
        return "Predicted positive if that is the more probable of the two classes."
    return DECISIONS.get(rule, f"Decision rule: {rule}.")


def _requirements(asked: list[dict[str, Any]], rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Each with its status in words, and its metric now where that is known."""
    by_name = {one["id"]: one for one in rows}
    return [
        {
            "text": one["text"],
            "status": STATUSES.get(one["status"], one["status"]),
            "met": one["status"] == "met",
            "row": by_name.get(one.get("metric", "")),
        }
        for one in asked
    ]


def _outcomes(section: dict[str, Any]) -> list[dict[str, Any]]:
    """Of 1000 cases: found, missed, false alarms, cleared; empty if no class is positive."""
    now, before = section["confusion"], section["confusion_source"]
    names = section["classes"] or [str(k) for k in range(len(now or ()))]
    if now is None or section["positive"] not in names or _unknown(now, before):
        return []
    label = names.index(section["positive"])
    texts = split_1000(_four_shares(now, label))
    past = [""] * 4 if before is None else split_1000(_four_shares(before, label))
    return [
        {"name": name, "meaning": meaning, "now": text, "before": old}
        for (name, meaning), text, old in zip(OUTCOMES, texts, past, strict=True)
    ]


def _unknown(*tables: list[list[float | None]] | None) -> bool:
    """Whether a share is, as where the source lacks a class."""
    return any(None in row for table in tables if table is not None for row in table)


def _four_shares(confusion: list[list[float]], label: int) -> tuple[float, float, float, float]:
    """Shares of found, missed, false alarms and cleared, none below 0."""
    found = confusion[label][label]
    missed = sum(row[label] for row in confusion) - found
    alarms = sum(confusion[label]) - found
    cleared = sum(map(sum, confusion)) - found - missed - alarms
    return max(found, 0.0), max(missed, 0.0), max(alarms, 0.0), max(cleared, 0.0)
