"""A calibration error as text that fits a terminal."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from calshift._core.text import note_lines, printable

if TYPE_CHECKING:
    from calshift.results import CalibrationErrorResult

CLASSES_SHOWN = 10
LEVEL = 0.95


def error_table(result: CalibrationErrorResult) -> str:
    """What was asked, the error with its interval beside the source's, classes, warnings."""
    how = "with labels" if result.n_target is None else "label-free, on the target"
    head = f"Calibration error, {result.kind}, L{result.norm:g}, {result.estimator} ({how})"
    notes = [line for note in _notes(result) for line in textwrap.wrap(note, 98)]
    return "\n".join(
        [head, *_totals(result), *_classes(result), *note_lines(result.warnings), *notes]
    )


def _notes(result: CalibrationErrorResult) -> Iterator[str]:
    """What to know beside the warnings."""
    check = result.assumption
    if check is not None and check.p_value is not None and not check.rejected:
        sign = "no sign of other changes than the mix of classes"
        yield f"{sign} (p = {check.p_value:.2g}), which is no proof"
    if result.has_interval and result.estimator == "paper":
        yield f"the interval is one of {result.interval_of}"
    if result.merged_bins:
        yield f"{result.merged_bins} bins or knots had too few rows and were joined"


def _totals(result: CalibrationErrorResult) -> list[str]:
    power = "CE" if result.norm == 1 else f"CE^{result.norm:g}"
    interval = "" if not result.has_interval else f"{LEVEL:.0%} of root"
    lines = [f"{'':>10} {power:>12} {'root':>9} {interval:>17} {'rows':>10}"]
    samples = [("all" if result.n_target is None else "target", result)]
    if result.source is not None:
        samples.append(("source", result.source))
    for name, one in samples:
        rows = one.n_source if one.n_target is None else one.n_target
        error = f"{_fixed(one.estimate, 6):>12} {_fixed(one.root, 4):>9} {_interval(one):>17}"
        lines.append(f"{name:>10} {error} {rows:>10g}")
    return lines


def _interval(result: CalibrationErrorResult) -> str:
    return "" if not result.has_interval else _ends(*result.confidence_interval(LEVEL, root=True))


def _classes(result: CalibrationErrorResult) -> list[str]:
    """The classes with the largest errors."""
    if result.per_class is None:
        return []
    worst = np.argsort(-np.nan_to_num(result.per_class, nan=-np.inf), kind="stable")
    weight = "" if result.class_weights is None else "weight"
    interval = "" if not result.has_class_intervals else f"{LEVEL:.0%} each"
    lines = [f"{'class':>10} {'error':>12} {'root':>9} {interval:>17} {weight:>10}".rstrip()]
    ends = None
    if result.has_class_intervals:
        ends = np.stack(result.class_intervals(LEVEL, root=True))
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
    root = max(value, 0.0) ** (1 / result.norm)
    interval = "" if ends is None else _ends(*ends)
    error = f"{_fixed(value, 6):>12} {_fixed(root, 4):>9} {interval:>17}"
    return f"{name:>10} {error} {weight:>10}".rstrip()


def _ends(low: float, high: float) -> str:
    return f"{_fixed(low, 4)} to {_fixed(high, 4)}"


def _fixed(value: float, digits: int) -> str:
    """A fixed number of digits, unless the number is absurdly large."""
    return f"{value:.{digits}f}" if abs(value) < 1000 else f"{value:.3g}"
