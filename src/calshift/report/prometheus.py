"""The report as metrics, in the text format that Prometheus' node exporter collects from files."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Any

from calshift._core.text import printable

Sample = tuple[dict[str, str], float]


def prometheus(report: dict[str, Any]) -> str:
    """One gauge a number; classes are labels."""
    lines: list[str] = []
    for name, about, samples in _metrics(report):
        known = [(labels, value) for labels, value in samples if value is not None]
        if known:
            lines += [f"# HELP calshift_{name} {about}", f"# TYPE calshift_{name} gauge"]
            lines += [f"calshift_{name}{_labels(labels)} {value!r}" for labels, value in known]
    return "\n".join(lines) + "\n"


def _metrics(report: dict[str, Any]) -> Iterator[tuple[str, str, list[Sample]]]:
    both = [(name, report[name]) for name in ("source", "target") if report[name] is not None]
    yield "error", "Calibration error (root, units of probability).", [
        ({"sample": name}, one["root"]) for name, one in both
    ]  # fmt: skip
    for end, word in ((0, "lower"), (1, "upper")):
        yield f"error_{word}", f"The {word} end of its interval.", [
            ({"sample": name, "level": f"{report['level']:g}"}, one["root_interval"][end])
            for name, one in both
            if one["root_interval"] is not None
        ]  # fmt: skip
    yield "rows", "Rows.", [({"sample": name}, float(one["rows"])) for name, one in both]
    yield "trusted", "1 if the answer can be trusted.", [({}, float(report["trusted"]))]
    yield "exit_code", "0 fine, 1 threshold breached, 3 not to be trusted.", [
        ({}, float(report["exit_code"]))
    ]  # fmt: skip
    if report["threshold"] is not None:
        yield "max_error", "The largest error allowed.", [({}, report["threshold"]["max_error"])]
    check, weights = report["assumption"], report["weights"]
    if check is not None:
        yield "label_shift_p_value", "Of the test that only the mix of classes changed.", [
            ({}, check["p_value"])
        ]  # fmt: skip
    if weights is not None:
        yield "effective_sample_size", "Source rows that the weights leave.", [({}, weights["ess"])]
    yield "class_share", "Share of a class.", [
        ({"sample": name, "class": one["class"]}, one[f"prior_{name}"])
        for one in report["classes"]
        for name in ("source", "target")
    ]  # fmt: skip
    yield "class_error", "Calibration error of a class on the target (root).", [
        ({"class": one["class"]}, one.get("root")) for one in report["classes"]
    ]  # fmt: skip
    yield "timestamp_seconds", "When this was computed.", [
        ({}, datetime.fromisoformat(report["created"]).timestamp())
    ]  # fmt: skip


def _labels(labels: dict[str, str]) -> str:
    if not labels:
        return ""
    shown = ",".join(f'{name}="{_escaped(value)}"' for name, value in labels.items())
    return "{" + shown + "}"


def _escaped(value: str) -> str:
    lines = [printable(line) for line in value.split("\n")]  # no control characters in metrics
    return r"\n".join(line.replace("\\", r"\\").replace('"', r"\"") for line in lines)
