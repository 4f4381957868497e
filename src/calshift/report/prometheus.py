"""The report as metrics in the text format of Prometheus' textfile collector."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Any

from calshift._core.text import printable

Sample = tuple[dict[str, str], float | None]


def render_prometheus(report: dict[str, Any]) -> str:
    """One gauge for each number; classes are labels."""
    return _render(_metrics(report))


def render_metrics_prometheus(report: dict[str, Any]) -> str:
    """The gauges of `calshift metrics`, whose names are not those of a calibration error."""
    created = datetime.fromisoformat(report["created"]).timestamp()
    totals: tuple[tuple[str, str, float], ...] = (
        ("trusted", "1 if the conditions of all metrics are met, else 0.", report["trusted"]),
        ("exit_code", "0 fine, 1 requirement not met, 3 not reliable.", report["exit_code"]),
        ("timestamp_seconds", "Time of the computation (Unix time).", created),
    )
    found = list(_target_metrics(report, report["level"]))
    for name, about, value in totals:
        found.append((f"metrics_{name}", about, [({}, float(value))]))
    return _render(found)


def _render(metrics: Iterable[tuple[str, str, list[Sample]]]) -> str:
    lines: list[str] = []
    for name, about, samples in metrics:
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
    if report["metrics"] is not None:
        yield from _target_metrics(report["metrics"], report["level"])


def _target_metrics(
    section: dict[str, Any], level: float
) -> Iterator[tuple[str, str, list[Sample]]]:
    """Metrics of the classifier with their intervals, and requirements."""
    metrics = [
        {**one, "name": name}
        for one, name in zip(
            section["metrics"], _printable([one["name"] for one in section["metrics"]]), strict=True
        )
    ]
    kinds = (("target", "estimate", "interval"), ("source", "source", "source_interval"))
    yield "metric", "Metric of the classifier; on the target as estimated.", [
        ({"metric": one["name"], "sample": sample}, one[value])
        for one in metrics
        for sample, value, _ in kinds
    ]  # fmt: skip
    for end, word in enumerate(("lower", "upper")):
        yield f"metric_{word}", f"The {word} end of the interval of a metric.", [
            (
                {"metric": one["name"], "sample": sample, "level": f"{level:g}"},
                (one[ends] or (None, None))[end],
            )
            for one in metrics
            for sample, _, ends in kinds
        ]  # fmt: skip
    yield "metric_trusted", "1 if a metric is reliable on the target, else 0.", [
        ({"metric": one["name"]}, float(one["trusted"])) for one in metrics
    ]  # fmt: skip
    texts = dict.fromkeys(one["text"] for one in section["requirements"])
    statuses = {one["text"]: one["status"] for one in section["requirements"]}
    yield "requirement_met", "1 if a requirement is shown to be met, else 0.", [
        ({"requirement": name}, float(statuses[text] == "met"))
        for text, name in zip(texts, _printable(list(texts)), strict=True)
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
    names = _printable([one["class"] for one in classes])
    return [{**one, "class": name} for one, name in zip(classes, names, strict=True)]


def _printable(names: list[str]) -> list[str]:
    """Names without control characters, which stay different."""
    if all(name.replace("\n", "").isprintable() for name in names):
        return names
    doubled = (name.replace("\\", r"\\") for name in names)
    return ["\n".join(map(printable, name.split("\n"))) for name in doubled]


def _labels(labels: dict[str, str]) -> str:
    if not labels:
        return ""
    shown = ",".join(f'{name}="{_escape(value)}"' for name, value in labels.items())
    return "{" + shown + "}"


def _escape(value: str) -> str:
    return value.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")
