"""The report for a terminal: tables of at most 100 columns."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from typing import Any

from calshift._core.text import note_lines, percent, printable

CLASSES_SHOWN = 10
NAME = 16


def render_text(report: dict[str, Any]) -> str:
    """Tables, notes, warnings and advice; the verdict is printed above them."""
    parts = [_errors(report), _classes(report), list(_notes(report))]
    return "\n\n".join("\n".join(part) for part in parts if part)


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
