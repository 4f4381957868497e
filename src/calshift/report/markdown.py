"""The report as a Markdown block for a model card."""

from __future__ import annotations

import re
from typing import Any

from calshift._core.text import percent, printable

CLASSES_SHOWN = 20
METRICS_SHOWN = 40
SPECIAL = re.compile(r"([\\`*_\[\]|~$]|^[#+-])")  # the rest is harmless within a line


def render_markdown(report: dict[str, Any]) -> str:
    """The verdict, errors of source and target, class priors, the test and warnings."""
    level = percent(report["level"])
    settings = report["settings"]
    asked = f"{settings['kind']}, L{settings['norm']:g}, {settings['estimator']}"
    lines = [
        "## Calibration under label shift", "", _escape(report["verdict"]), "",
        f"| sample | calibration error ({asked}) | {level} interval | rows |", "|---|---|---|---|",
        *(_error(name, report[name]) for name in ("source", "target") if report[name] is not None),
        "", *_classes(report, level),
    ]  # fmt: skip
    if report["metrics"] is not None:
        lines += ["", *_metrics(report["metrics"], level)]
    if report["assumption"] is not None:
        lines += ["", _escape(report["assumption"]["verdict"])]
    lines += ["", *_conditions(report["diagnostics"])]
    lines += ["", *(f"- **Warning:** {_escape(note)}" for note in report["warnings"])]
    return _end(lines, report)


def render_metrics_markdown(report: dict[str, Any]) -> str:
    """The same of metrics alone."""
    lines = ["## Metrics under label shift", "", _escape(report["verdict"]), ""]
    lines += [*_metrics(report, percent(report["level"])), "", *_conditions(report["diagnostics"])]
    lines += ["", *(f"- **Warning:** {_escape(note)}" for note in report["warnings"])]
    return _end(lines, report)


def _end(lines: list[str], report: dict[str, Any]) -> str:
    made = f"calshift {report['versions'].get('calshift', '')}, {report['created']}"
    return "\n".join([*lines, "", f"*{_escape(made)}*"]).replace("\n\n\n", "\n\n") + "\n"


def _metrics(metrics: dict[str, Any], level: str) -> list[str]:
    """A table of metrics, and a list of requirements."""
    positive = metrics["positive"]
    rule = metrics["decision"] + ("" if positive is None else f"; positive class: {positive}")
    lines = [
        f"Metrics (predicted class: {_escape(rule)})", "",
        f"| metric | target (no labels) | {level} interval | source (labelled) | change |",
        "|---|---|---|---|---|", *map(_metric, metrics["metrics"][:METRICS_SHOWN]),
    ]  # fmt: skip
    hidden = len(metrics["metrics"]) - METRICS_SHOWN
    lines += ["", f"and {hidden} more metrics"] if hidden > 0 else []
    required = [
        f"- Required: {_escape(one['text'])}: **{one['status']}**"
        for one in metrics["requirements"]
    ]
    return [*lines, *(["", *required] if required else [])]


def _metric(one: dict[str, Any]) -> str:
    per, name = one["unit"] == "per 1000", _escape(one["name"])
    name += (" (per 1000 rows)" if per else "") + ("" if one["trusted"] else " (**not trusted**)")
    ends = one["interval"]
    shown = "" if ends is None else " to ".join(_number(end, per) for end in ends)
    before = "" if one["source"] is None else _number(one["source"], per)
    change = "" if one["source"] is None else _number(one["difference"], per, "+")
    return f"| {name} | {_number(one['estimate'], per)} | {shown} | {before} | {change} |"


def _number(value: float | None, per_1000: bool, sign: str = "") -> str:
    if value is None:
        return "unknown"
    return f"{1000 * value:{sign}.2f}" if per_1000 else f"{value:{sign}.4f}"


def _conditions(diagnostics: list[dict[str, Any]]) -> list[str]:
    """A table of the conditions of trust that are not met or waived, in bold what failed."""
    shown = [one for one in diagnostics if not one["passed"] or one["waived"]]
    met = f"{sum(one['passed'] for one in diagnostics)} of {len(diagnostics)} conditions are met."
    lines = [f"Conditions of trust: {met}"] if diagnostics else []
    if shown:
        lines += ["", "| condition | outcome | |", "|---|---|---|"]
    for one in shown:
        outcome = "waived" if one["waived"] else "**not met**"
        lines.append(f"| {one['name']} | {outcome} | {_escape(one['text'])} |")
    return lines


def _error(name: str, one: dict[str, Any]) -> str:
    how = "labelled" if name == "source" else "no labels"
    ends = one["root_interval"]
    shown = "" if ends is None else f"{ends[0]:.4f} to {ends[1]:.4f}"
    return f"| {name} ({how}) | {one['root']:.4f} | {shown} | {one['rows']:,.10g} |"


def _classes(report: dict[str, Any], level: str) -> list[str]:
    classes = sorted(report["classes"], key=lambda one: -(one["prior_target"] or 0.0))
    if not classes:
        return []
    with_error = "root" in classes[0]
    head = f"| class | source prior | target prior | {level} interval |"
    rule = "|---|---|---|---|"
    lines = [head + (" error |" if with_error else ""), rule + ("---|" if with_error else "")]
    for one in classes[:CLASSES_SHOWN]:
        ends = one["prior_target_interval"]
        shown = "" if ends is None else f"{ends[0]:.1%} to {ends[1]:.1%}"
        prior = "unknown" if one["prior_target"] is None else f"{one['prior_target']:.1%}"
        line = f"| {_escape(one['class'])} | {one['prior_source']:.1%} | {prior} | {shown} |"
        if with_error:
            line += " unknown |" if one["root"] is None else f" {one['root']:.4f} |"
        lines.append(line)
    hidden = len(classes) - CLASSES_SHOWN
    return [*lines, "", f"and {hidden} more classes"] if hidden > 0 else lines


def _escape(text: str) -> str:
    """Text that Markdown shows as it is; names of classes are the user's."""
    text = printable(text).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return SPECIAL.sub(r"\\\1", text)
