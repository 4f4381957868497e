"""Drawing results. matplotlib is imported here alone, and only when something is drawn."""

from __future__ import annotations

from typing import Any

import numpy as np

from calshift.errors import InvalidInput
from calshift.results import CalibrationErrorResult, ReliabilityCurve

FAINT, TARGET, SOURCE = "#9a9a9a", "#0b5fa5", "#c05a00"
MOST_NAMES = 30


def plot_reliability(curve: ReliabilityCurve, ax: Any = None) -> Any:
    """Draw a reliability curve against the diagonal; markers grow with the rows of their bin.

    Call it again with the same axes to lay the target's curve over the source's.

    Examples
    --------
    >>> import calshift
    >>> curve = calshift.reliability_curve([0.1, 0.2, 0.8, 0.9], [0, 0, 1, 0], bins=2)
    >>> ax = calshift.plot_reliability(curve)
    >>> ax.get_xlabel()
    'predicted probability'
    """
    if not isinstance(curve, ReliabilityCurve):
        msg = f"curve must be a ReliabilityCurve; got {type(curve)!r}"
        raise InvalidInput(msg)
    ax = _axes(ax)
    if not ax.lines:
        ax.plot([0, 1], [0, 1], color=FAINT, linewidth=1, linestyle=(0, (4, 3)), zorder=1)
    color, marker = (TARGET, "o") if curve.shifted else (SOURCE, "s")
    area = 16 + 110 * curve.mass / curve.mass.max()
    ax.plot(curve.score, curve.frequency, color=color, linewidth=1.4, zorder=2)
    ax.scatter(
        curve.score, curve.frequency, s=area, color=color, marker=marker, label=curve.name,
        edgecolor="white", linewidth=0.8, zorder=3,
    )  # fmt: skip
    ax.set(xlim=(-0.02, 1.02), ylim=(-0.02, 1.02), aspect="equal")
    ax.set(xlabel="predicted probability", ylabel="frequency")
    ax.legend(loc="upper left", frameon=False, markerscale=0.8)
    return ax


def plot_error(result: CalibrationErrorResult, ax: Any = None) -> Any:
    """Draw the root of the error: one bar, or one a class, with the source's beside it."""
    ax = _axes(ax)
    shown = [("source", SOURCE, result.source), ("target", TARGET, result)]
    if result.n_target is None:
        shown = [("with labels", SOURCE, result)]
    bars = [(name, color, _roots(part)) for name, color, part in shown if part is not None]
    classes, width = len(bars[0][2]), 0.8 / len(bars)
    for k, (name, color, heights) in enumerate(bars):
        at = np.arange(classes) + (k - (len(bars) - 1) / 2) * width
        seen = ~np.isnan(heights)  # an unseen class has no bar; one of 0 would say "no error"
        ax.bar(at[seen], heights[seen], width, color=color, label=name)
    ax.set(ylabel=f"calibration error (L{result.norm:g})", xlim=(-0.6, classes - 0.4))
    if result.per_class is None:
        ax.set_xticks([])
    elif result.classes is not None and classes <= MOST_NAMES:
        ax.set_xticks(
            range(classes), [str(name) for name in result.classes], rotation=45, ha="right"
        )
    else:
        ax.set(xlabel="class")
    ax.legend(frameon=False)
    return ax


def _roots(result: CalibrationErrorResult) -> np.ndarray:
    values = np.array([result.estimate]) if result.per_class is None else result.per_class
    return np.asarray(np.maximum(values, 0.0) ** (1 / result.norm))


def _axes(ax: Any) -> Any:
    if ax is not None:
        return ax
    try:
        from matplotlib.figure import Figure
    except ImportError:
        msg = "drawing needs matplotlib: pip install 'calshift[plot]'"
        raise ImportError(msg) from None
    return Figure(figsize=(5, 5), layout="constrained").add_subplot()
