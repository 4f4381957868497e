"""A recalibration as the texts of its page."""

from __future__ import annotations

from typing import Any

from calshift._core.text import percent
from calshift.report.page.change_view import as_metric, view_changes
from calshift.report.page.metrics_view import view_metrics
from calshift.report.page.templates import format_share
from calshift.report.svg import reliability_diagram

MOST_CLASSES = 10  # predicted classes in the table; JSON has all
MOST_NAMED = 5  # classes that the rows of one class change to


def view_recalibration(report: dict[str, Any]) -> dict[str, Any]:
    """Variables of the template."""
    return {
        "report": report,
        "metrics": _metrics(report),
        "predicted": _predicted(report["predicted_classes"]),
        "diagrams": [reliability_diagram(_sides(one)) for one in report["curves"]],
        "conditions": _conditions(report["diagnostics"]),
        "notes": [note for note in report["notes"] if not note.startswith("! ")],
        "level": percent(report["level"]),
    }


def _metrics(report: dict[str, Any]) -> dict[str, Any]:
    """In the words of the page of a check; after takes the place of now."""
    trusted = report["trusted"]
    changes = [{**one, "trusted": one["trusted"] and trusted} for one in report["metrics"]]
    section = {
        "trusted": trusted, "decision": report["decision"],
        "positive": report["positive"], "classes": report["classes"],
        "metrics": [as_metric(one, "before", "after") for one in changes],
        "confusion": report["confusion"]["after"],
        "confusion_source": report["confusion"]["before"], "warnings": [], "diagnostics": [],
    }  # fmt: skip
    return {**view_metrics(section), **view_changes(changes, trusted)}


def _sides(curves: dict[str, Any]) -> dict[str, Any]:
    """What is before is drawn as the source is, what is after as the target."""
    return {"of": curves["of"], "source": curves["before"], "target": curves["after"]}


def _predicted(found: dict[str, Any] | None) -> dict[str, Any] | None:
    """How many rows change, and a line for each class, or for those with the most changes."""
    if found is None:
        return None
    changes: dict[str, list[dict[str, Any]]] = {}
    for one in found["pairs"]:
        changes.setdefault(one["from"], []).append(one)
    lines = [
        {**one, "kept": one["before"] - sum(to["rows"] for to in changes.get(one["class"], ())),
         "to": changes.get(one["class"], [])[:MOST_NAMED],
         "others": max(len(changes.get(one["class"], ())) - MOST_NAMED, 0)}
        for one in found["classes"]
    ]  # fmt: skip
    many = len(lines) > MOST_CLASSES
    if many:
        lines = sorted(lines, key=lambda one: one["kept"] - one["before"])[:MOST_CLASSES]
    share = format_share(found["share"])
    return {**found, "share": share, "lines": lines if found["changed"] else [], "many": many}


def _conditions(diagnostics: dict[str, list[dict[str, Any]]]) -> list[dict[str, Any]]:
    """One line a condition with both outcomes, those that are not met first."""
    found: dict[str, dict[str, Any]] = {}
    for side in ("before", "after"):
        for one in diagnostics[side]:
            line = found.setdefault(one["name"], {"name": one["name"], "texts": [], "rank": 2})
            line[side] = _outcome(one)
            line["rank"] = min(line["rank"], 0 if one["failed"] else 1 if one["waived"] else 2)
            line["texts"].append((one["failed"], one["text"]))
    for line in found.values():
        failed = [text for bad, text in line["texts"] if bad]
        line["words"] = list(dict.fromkeys(failed)) or [line["texts"][-1][1]]
    return sorted(found.values(), key=lambda line: int(line["rank"]))


def _outcome(one: dict[str, Any]) -> str:
    if one["failed"]:
        return "not checked" if one["value"] is None else "not met"
    return "waived" if one["waived"] else "met"
