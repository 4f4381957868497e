"""The report for a terminal: tables of at most 100 columns."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from typing import Any

from calshift._core.text import note_lines, percent, printable

CLASSES_SHOWN = 10
METRICS_SHOWN = 40
REQUIREMENTS_SHOWN = 20
NAME = 16
METRIC = 29


def render_text(report: dict[str, Any]) -> str:
    """Tables, notes, warnings and advice; the verdict is printed above them."""
    metrics = report["metrics"]
    parts = [_errors(report), _classes(report)]
    if metrics is not None:
        parts.append([*metric_lines(metrics, report["level"]), *_notes_of_metrics(report)])
    return _join([*parts, list(_notes(report))])


def render_metrics_text(report: dict[str, Any]) -> str:
    """The same of metrics alone."""
    notes = [*condition_lines(report["diagnostics"]), *note_lines(tuple(report["warnings"]))]
    return _join([list(metric_lines(report, report["level"])), notes])


def _join(parts: list[list[str]]) -> str:
    return "\n\n".join("\n".join(part) for part in parts if part)


def _notes_of_metrics(report: dict[str, Any]) -> list[str]:
    """Warnings of the metrics that are not those of the error too."""
    return note_lines(
        tuple(one for one in report["metrics"]["warnings"] if one not in report["warnings"])
    )


def metric_lines(metrics: dict[str, Any], level: float) -> Iterator[str]:
    """A table of metrics, the decision rule, and the outcomes of requirements."""
    interval, shown = f"{percent(level)} interval", metrics["metrics"][:METRICS_SHOWN]
    yield f"{'metric':{METRIC}} {'target':>9}   {interval:<20} {'source':>9} {'change':>9}"
    for one in shown:
        yield _metric(one)
    if hidden := len(metrics["metrics"]) - len(shown):
        yield f"... and {hidden} more metrics (--json has all)"
    rule = f"predicted class: {metrics['decision']}"
    rule += "" if metrics["positive"] is None else f"; positive: {metrics['positive']}"
    yield from textwrap.wrap(printable(rule), 98)
    if any(_is_clear(one) for one in shown):
        yield f"* the {interval} of the change does not contain 0"
    yield from _requirements(metrics["requirements"])


def _requirements(outcomes: list[dict[str, Any]]) -> Iterator[str]:
    """One line each, those that are not met first."""
    shown = sorted(outcomes, key=lambda one: one["status"] == "met")[:REQUIREMENTS_SHOWN]
    for one in shown:
        yield from textwrap.wrap(f"required: {printable(one['text'])}: {one['status']}", 98)
    if hidden := len(outcomes) - len(shown):
        yield f"... and {hidden} more requirements (--json has all)"


def _metric(one: dict[str, Any]) -> str:
    scale = 1000.0 if one["unit"] == "per 1000" else 1.0
    ends = one["interval"]
    shown = "" if ends is None else " to ".join(format_number(end, scale) for end in ends)
    name = format_name(one["name"], scale)
    line = f"{name:{METRIC}} {format_number(one['estimate'], scale):>9}   {shown:<20}"
    if one["source"] is not None:
        change = format_number(one["difference"], scale, "+") + ("*" if _is_clear(one) else " ")
        line += f" {format_number(one['source'], scale):>9} {change:>10}"
    return (line if one["trusted"] else f"{line} not trusted").rstrip()


def _is_clear(one: dict[str, Any]) -> bool:
    """Whether the interval of the change is on one side of 0."""
    ends = one["difference_interval"]
    return ends is not None and None not in ends and not ends[0] <= 0 <= ends[1]


def format_name(name: str, scale: float) -> str:
    """The name of a metric that fits its column, with its unit."""
    text = printable(name) + (" (per 1000 rows)" if scale > 1 else "")
    return text if len(text) <= METRIC else text[: METRIC - 3] + "..."


def format_number(value: float | None, scale: float = 1.0, sign: str = "") -> str:
    """Four decimals, of cases of 1000 two; "unknown" for None."""
    if value is None:
        return "unknown"
    scaled, decimals = scale * value, 4 if scale == 1 else 2
    if abs(scaled) < 1000:
        return f"{scaled:{sign}.{decimals}f}"
    return f"{scaled:{sign}.4g}"


def _errors(report: dict[str, Any]) -> list[str]:
    level = percent(report["level"])
    lines = [f"{'':{NAME}} {'error':>8}   {level + ' interval':<18} {'rows':>10}"]
    for name, how in (("source", "with labels"), ("target", "without labels")):
        one = report[name]
        if one is not None:
            error = f"{one['root']:>8.4f}   {_interval(one['root_interval']):<18}"
            lines.append(f"{name:{NAME}} {error} {one['rows']:>10,.10g}  {how}")
    return lines


def _classes(report: dict[str, Any]) -> list[str]:
    """The classes with the largest errors, or priors where there is no error by class."""
    classes = report["classes"]
    if not classes:
        return []
    by = "root" if "root" in classes[0] else "prior_target"
    worst = sorted(classes, key=lambda one: -(one[by] if one[by] is not None else -1))
    interval = f"{percent(report['level'])} interval"
    over = f"{'':{NAME}} class prior (prevalence){'':17}"
    head = f"{'class':{NAME}} {'source':>7} {'target':>7}  {interval:<15} {'weight':>7}"
    lines = [f"{over} calibration error", f"{head} {'target':>8}   {interval}"]
    if by != "root":
        lines = [over.rstrip(), head]
    lines += [_class(one, by == "root") for one in worst[:CLASSES_SHOWN]]
    hidden = len(classes) - CLASSES_SHOWN
    return [*lines, f"... and {hidden} more classes (--json has all)"] if hidden > 0 else lines


def _class(one: dict[str, Any], with_error: bool) -> str:
    prior = "?" if one["prior_target"] is None else f"{one['prior_target']:.1%}"
    known = one["prior_target_interval"]
    ends = "" if known is None else f"{known[0]:.1%} to {known[1]:.1%}"
    weight = "unseen" if one["weight"] is None else f"{one['weight']:.3g}"
    name = printable(one["class"])
    name = name if len(name) <= NAME else name[: NAME - 3] + "..."
    line = f"{name:{NAME}} {one['prior_source']:>7.1%} {prior:>7}  {ends:<15} {weight:>7}"
    if with_error and one["root"] is not None:
        line += f" {one['root']:>8.4f}   {_interval(one['root_interval'])}"
    return (line + ("  unreliable" if one["doubt"] else "")).rstrip()


def _notes(report: dict[str, Any]) -> Iterator[str]:
    """Effective sample size, the test of label shift, warnings, advice."""
    weights, check = report["weights"], report["assumption"]
    if weights is not None:
        size = f"{weights['ess']:,.0f} of {weights['n_source']:,.10g}"
        yield f"class weights ({weights['method']}): effective sample size {size}"
    if check is not None and check["joint_p_value"] is not None and not check["rejected"]:
        p = check["joint_p_value"]
        yield f"label shift is not rejected (p = {p:.2g}), which is no proof of it"
    yield from condition_lines(report["diagnostics"])
    yield from note_lines(tuple(report["warnings"]))
    for note in report["advice"]:
        yield from textwrap.wrap(printable(note), 96, initial_indent="> ", subsequent_indent="  ")


def condition_lines(diagnostics: list[dict[str, Any]]) -> Iterator[str]:
    """How many conditions of trust are met, which are not, and which are waived."""
    if not diagnostics:
        return
    met = sum(one["passed"] for one in diagnostics)
    line = f"conditions of trust: {met} of {len(diagnostics)} are met"
    failed = [one["name"] for one in diagnostics if not one["passed"] and not one["waived"]]
    waived = [one["name"] for one in diagnostics if one["waived"]]
    for words, names in (("not met", failed), ("waived", waived)):
        line += f"; {words}: {', '.join(names)}" if names else ""
    yield from textwrap.wrap(line, 98)


def _interval(ends: list[float] | None) -> str:
    return "" if ends is None else f"{ends[0]:.4f} to {ends[1]:.4f}"
