"""The report for a terminal: a compact table of at most 100 columns."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from typing import Any

from calshift._core.text import note_lines, percent, printable

WIDTH = 98
CLASSES_SHOWN = 10
NAME = 16


def text(report: dict[str, Any]) -> str:
    """All but the verdict, which stands alone above it."""
    parts = [_errors(report), _classes(report), list(_notes(report))]
    return "\n\n".join("\n".join(part) for part in parts if part)


def wrap_verdict(report: dict[str, Any]) -> str:
    """The verdict, in lines that fit."""
    return textwrap.fill(printable(report["verdict"]), WIDTH)


def _errors(report: dict[str, Any]) -> list[str]:
    level = percent(report["level"])
    lines = [f"{'':{NAME}} {'error':>8}   {level + ' interval':<18} {'rows':>10}"]
    for name in ("source", "target"):
        one = report[name]
        if one is not None:
            ends = interval(one["root_interval"])
            how = "labelled" if name == "source" else "label-free"
            lines.append(
                f"{name:{NAME}} {error(one['root'])}   {ends:<18} {one['rows']:>10,.10g}  {how}"
            )
    return lines


def _classes(report: dict[str, Any]) -> list[str]:
    """The classes with the largest errors, or shares where there is no error by class."""
    classes = report["classes"]
    if not classes:
        return []
    by = "root" if "root" in classes[0] else "prior_target"
    worst = sorted(classes, key=lambda one: -(one[by] if one[by] is not None else -1))
    level = percent(report["level"])
    head = f"{'class':{NAME}} {'before':>7} {'now':>7}  {level:<15} {'weight':>7}"
    lines = [f"{head} {'error':>8}   {level + ' each'}" if by == "root" else head]
    lines += [_class(one, by == "root") for one in worst[:CLASSES_SHOWN]]
    hidden = len(classes) - CLASSES_SHOWN
    return [*lines, f"... and {hidden} more classes (--json has all)"] if hidden > 0 else lines


def _class(one: dict[str, Any], with_error: bool) -> str:
    now = "?" if one["prior_target"] is None else f"{one['prior_target']:.1%}"
    shares = f"{one['prior_source']:>7.1%} {now:>7}"
    known = one["prior_target_interval"]
    ends = "" if known is None else f"{known[0]:.1%} to {known[1]:.1%}"
    weight = "unseen" if one["weight"] is None else f"{one['weight']:.3g}"
    line = f"{_name(one['class'])} {shares}  {ends:<15} {weight:>7}"
    if with_error and one["root"] is not None:
        line += f" {error(one['root'])}   {interval(one['root_interval'])}"
    return (line + ("  doubtful" if one["doubt"] else "")).rstrip()


def _name(name: str) -> str:
    name = printable(name)
    return f"{name if len(name) <= NAME else name[: NAME - 3] + '...':{NAME}}"


def _notes(report: dict[str, Any]) -> Iterator[str]:
    """Weights, the test of the assumption, warnings, what to do."""
    weights, check = report["weights"], report["assumption"]
    if weights is not None:
        worth = f"{weights['ess']:,.0f} of {weights['n_source']:,.10g} source rows"
        yield f"weights ({weights['method']}): worth {worth}"
    tested = check is not None and check["p_value"] is not None
    if check is not None and tested and not check["rejected"]:
        sign = "no sign that more than the mix of classes changed"
        yield f"{sign} (p = {check['p_value']:.2g}), which is no proof"
    yield from note_lines(tuple(printable(note) for note in report["warnings"]))
    for note in report["advice"]:
        yield from textwrap.wrap(printable(note), 96, initial_indent="> ", subsequent_indent="  ")


def error(value: float) -> str:
    """A root of an error in eight columns."""
    return f"{value:>8.4f}"


def interval(ends: list[float] | None) -> str:
    """Its interval."""
    return "" if ends is None else f"{ends[0]:.4f} to {ends[1]:.4f}"
