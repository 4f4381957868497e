"""The report as metrics in the text format of Prometheus' textfile collector."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Any

from calshift._core.text import printable

Sample = tuple[dict[str, str], float | None]


def render_prometheus(report: dict[str, Any]) -> str:
    """One gauge for each number; classes are labels."""
    lines: list[str] = []
    for name, about, samples in _metrics(report):
        known = [(labels, value) for labels, value in samples if value is not None]
        if known:
            lines += [f"# HELP calshift_{name} {about}", f"# TYPE calshift_{name} gauge"]
            lines += [f"calshift_{name}{_labels(labels)} {value!r}" for labels, value in known]
    return "\n".join(lines) + "\n"


def _metrics(report: dict[str, Any]) -> Iterator[tuple[str, str, list[Sample]]]:
    """Name, help text and samples of each metric; those without a value are left out."""
    both = [(name, report[name]) for name in ("source", "target") if report[name] is not None]
    classes, level = _printable_classes(report["classes"]), f"{report['level']:g}"
    yield "error", "Calibration error (p-th root), in units of probability.", [
        ({"sample": name}, one["root"]) for name, one in both
    ]  # fmt: skip
    for end, word in enumerate(("lower", "upper")):
        yield f"error_{word}", f"The {word} end of the interval of the calibration error.", [
            ({"sample": name, "level": level}, (one["root_interval"] or (None, None))[end])
            for name, one in both
        ]  # fmt: skip
    yield "rows", "Number of rows.", [({"sample": name}, float(one["rows"])) for name, one in both]
    for name, about, value in _totals(report):
        yield name, about, [({}, value)]
    conditions = report["diagnostics"]
    for state, about in (("passed", "checked and met"), ("waived", "waived by the user")):
        yield f"condition_{state}", f"1 if a condition of trust is {about}, else 0.", [
            ({"condition": one["name"]}, float(one[state])) for one in conditions
        ]  # fmt: skip
    yield "class_share", "Class prior (prevalence); on the target as estimated.", [
        ({"sample": name, "class": one["class"]}, one[f"prior_{name}"])
        for one in classes
        for name in ("source", "target")
    ]  # fmt: skip
    yield "class_error", "Calibration error of a class on the target (p-th root).", [
        ({"class": one["class"]}, one.get("root")) for one in classes
    ]  # fmt: skip


def _totals(report: dict[str, Any]) -> list[tuple[str, str, float | None]]:
    """Metrics that are one number each."""
    created = datetime.fromisoformat(report["created"]).timestamp()
    limit, check, weights = (report[name] or {} for name in ("threshold", "assumption", "weights"))
    return [
        ("trusted", "1 if the estimate is reliable, else 0.", float(report["trusted"])),
        ("exit_code", "0 fine, 1 limit exceeded, 3 not reliable.", float(report["exit_code"])),
        ("max_error", "The largest calibration error allowed.", limit.get("max_error")),
        ("label_shift_p_value", "p-value of the test of label shift.", check.get("joint_p_value")),
        ("effective_sample_size", "Effective size of the weighted source.", weights.get("ess")),
        ("timestamp_seconds", "Time of the computation (Unix time).", created),
    ]


def _printable_classes(classes: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The classes without control characters in their names, which stay different.

    Where one has a control character, which becomes such as \\x1b, backslashes of all are doubled.
    Line breaks stay: metrics have their own notation for them.
    """
    if all(one["class"].replace("\n", "").isprintable() for one in classes):
        return classes
    doubled = (one["class"].replace("\\", r"\\") for one in classes)
    names = ["\n".join(map(printable, name.split("\n"))) for name in doubled]
    return [{**one, "class": name} for one, name in zip(classes, names, strict=True)]


def _labels(labels: dict[str, str]) -> str:
    if not labels:
        return ""
    shown = ",".join(f'{name}="{_escape(value)}"' for name, value in labels.items())
    return "{" + shown + "}"


def _escape(value: str) -> str:
    return value.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")
