"""A calibration error as text that fits a terminal."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from calshift._core.text import note_lines, percent, printable

if TYPE_CHECKING:
    from calshift.results import CalibrationErrorResult

CLASSES_SHOWN = 10
LEVEL = 0.95
ROOT_NAMES = {1.0: "ECE", 2.0: "RMS error"}


def error_table(result: CalibrationErrorResult) -> str:
    """Settings, errors of target and source with intervals, errors by class, warnings."""
    how = "with labels" if result.n_target is None else "label-free, on the target"
    head = f"Calibration error, {result.kind}, L{result.norm:g}, {result.estimator} ({how})"
    notes = [line for note in _notes(result) for line in textwrap.wrap(note, 98)]
    return "\n".join(
        [head, *_totals(result), *_classes(result), *note_lines(result.warnings), *notes]
    )


def _notes(result: CalibrationErrorResult) -> Iterator[str]:
    """Notes besides the warnings."""
    check = result.assumption
    if check is not None and check.joint_p_value is not None and not check.rejected:
        p = check.joint_p_value
        yield f"label shift is not rejected (p = {p:.2g}), which is no proof of it"
    if result.has_interval and result.estimator == "paper":
        yield f"the interval is for {result.interval_of}"
    if result.drift > 0:
        share = percent(result.drift)
        yield f"the interval allows for {share} of the target rows outside label shift"
    if result.merged_bins:
        yield f"{result.merged_bins} bins or knots had too few rows and were merged"


def _head(result: CalibrationErrorResult, first: str, has_interval: bool, last: str) -> str:
    power = "CE" if result.norm == 1 else f"CE^{result.norm:g}"
    root = ROOT_NAMES.get(result.norm, "CE")
    interval = f"{LEVEL:.0%} interval" if has_interval else ""
    return f"{first:>10} {power:>12} {root:>9} {interval:>17} {last:>10}".rstrip()


def _totals(result: CalibrationErrorResult) -> list[str]:
    lines = [_head(result, "", result.has_interval, "rows")]
    samples = [("all" if result.n_target is None else "target", result)]
    if result.source is not None:
        samples.append(("source", result.source))
    for name, one in samples:
        rows = one.n_source if one.n_target is None else one.n_target
        ends = one.confidence_interval(LEVEL, root=True) if one.has_interval else None
        lines.append(_row(name, one.estimate, one.root, ends, f"{rows:g}"))
    return lines


def _classes(result: CalibrationErrorResult) -> list[str]:
    """The classes with the largest errors."""
    if result.per_class is None:
        return []
    worst = np.argsort(-np.nan_to_num(result.per_class, nan=-np.inf), kind="stable")
    weight, has_intervals = result.class_weights is not None, result.has_class_intervals
    lines = [_head(result, "class", has_intervals, "weight" if weight else "")]
    ends = np.stack(result.class_intervals(LEVEL, root=True)) if has_intervals else None
    for c in worst[:CLASSES_SHOWN]:
        lines.append(_class_row(result, int(c), None if ends is None else ends[:, c]))
    hidden = len(worst) - CLASSES_SHOWN
    return [*lines, f"{'...':>10} {hidden} more classes"] if hidden > 0 else lines


def _class_row(result: CalibrationErrorResult, c: int, ends: np.ndarray | None) -> str:
    assert result.per_class is not None
    name = printable(str(c if result.classes is None else result.classes[c]))[:10]
    value = float(result.per_class[c])
    if np.isnan(value):
        return f"{name:>10} {'unseen':>12}"
    weight = "" if result.class_weights is None else f"{result.class_weights.values[c]:.4g}"
    return _row(name, value, max(value, 0.0) ** (1 / result.norm), ends, weight)


def _row(name: str, power: float, root: float, ends: Any, last: str) -> str:
    interval = "" if ends is None else f"{_fixed(ends[0], 4)} to {_fixed(ends[1], 4)}"
    error = f"{_fixed(power, 6):>12} {_fixed(root, 4):>9} {interval:>17}"
    return f"{name:>10} {error} {last:>10}".rstrip()


def _fixed(value: float, digits: int) -> str:
    """A fixed number of decimals, or three significant digits of a very large number."""
    return f"{value:.{digits}f}" if abs(value) < 1000 else f"{value:.3g}"
