"""Plots of results; matplotlib is imported here only, and only when something is drawn."""

from __future__ import annotations

from typing import Any

import numpy as np

from calshift.errors import InvalidInput
from calshift.results import (
    CalibrationErrorResult,
    ClassWeights,
    DecisionCurve,
    MetricEstimate,
    MetricsResult,
    MonitoringResult,
    ReliabilityCurve,
)

FAINT, TARGET, SOURCE = "#9a9a9a", "#0b5fa5", "#c05a00"
MOST_NAMES = 30


def plot_reliability(curve: ReliabilityCurve, ax: Any = None) -> Any:
    """Draw a reliability curve with its 95% band; the area of markers grows with the rows.

    Parameters
    ----------
    curve : ReliabilityCurve
        of `reliability_curve`
    ax : matplotlib Axes, optional
        where to draw; pass the same axes again to draw source and target in one diagram

    Returns
    -------
    matplotlib Axes

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
    _draw_band(ax, curve.score, *curve.band(), color)
    ax.plot(curve.score, curve.frequency, color=color, linewidth=1.4, zorder=2)
    ax.scatter(
        curve.score, curve.frequency, s=area, color=color, marker=marker, label=curve.name,
        edgecolor="white", linewidth=0.8, zorder=3,
    )  # fmt: skip
    ax.set(xlim=(-0.02, 1.02), ylim=(-0.02, 1.02), aspect="equal")
    ax.set(xlabel="predicted probability", ylabel="frequency")
    ax.legend(loc="lower right", frameon=False, markerscale=0.8)
    return ax


def plot_error(result: CalibrationErrorResult, ax: Any = None) -> Any:
    """Draw the root of the error with 95% intervals, by class, on source and target."""
    ax = _axes(ax)
    shown = [("source", SOURCE, result.source), ("target", TARGET, result)]
    if result.n_target is None:
        shown = [("with labels", SOURCE, result)]
    bars = [(name, color, part) for name, color, part in shown if part is not None]
    classes, width = len(_roots(result)), 0.8 / len(bars)
    for k, (name, color, part) in enumerate(bars):
        heights, ends = _roots(part), _root_ends(part)
        at = np.arange(classes) + (k - (len(bars) - 1) / 2) * width
        seen = ~np.isnan(heights)  # an unseen class has no bar; one of height 0 would mean no error
        ax.bar(at[seen], heights[seen], width, color=color, label=name)
        if ends is not None:
            ax.vlines(at[seen], *ends[:, seen], color="black", linewidth=1)
    ax.set(ylabel=f"calibration error (L{result.norm:g})", xlim=(-0.6, classes - 0.4))
    if result.per_class is None:
        ax.set_xticks([])
    else:
        _name_classes(ax, classes, result.classes)
    ax.legend(frameon=False)
    return ax


def plot_weights(class_weights: ClassWeights, ax: Any = None) -> Any:
    """Draw the weight of each class with its 95% interval; 1 means an unchanged class prior.

    Unreliable weights are hollow; a class without source rows has a cross on the axis.

    Parameters
    ----------
    class_weights : ClassWeights
        of `label_shift_weights`, or ``result.class_weights``
    ax : matplotlib Axes, optional
        where to draw

    Returns
    -------
    matplotlib Axes

    Examples
    --------
    >>> import calshift
    >>> simulation = calshift.simulate.GaussianSimulation(n_classes=3)
    >>> p_target, _ = simulation.target(500, rng=1)
    >>> weights = calshift.label_shift_weights(*simulation.source(500, rng=0), p_target)
    >>> calshift.plot_weights(weights).get_ylabel()
    'weight, target prior / source prior'
    """
    if not isinstance(class_weights, ClassWeights):
        msg = f"class_weights must be a ClassWeights; got {type(class_weights)!r}"
        raise InvalidInput(msg)
    ax, K = _axes(ax), len(class_weights)
    at, w, error = np.arange(K), class_weights.values, class_weights.values_error
    unseen, reliable = np.isnan(w), ~np.isin(at, list(class_weights.untrusted))
    ax.axhline(1, color=FAINT, linewidth=1, linestyle=(0, (4, 3)), zorder=1)
    if error is not None:
        low, high = np.maximum(w - 1.96 * error, 0), w + 1.96 * error
        ax.vlines(at[~unseen], low[~unseen], high[~unseen], color=TARGET, linewidth=1.4, zorder=2)
    size = 40 if K <= MOST_NAMES else 14
    label = "weight, 95% interval" if error is not None else "weight"
    _draw_points(ax, at[~unseen], w[~unseen], reliable[~unseen], label, size)
    ax.set_ylim(bottom=0)
    if unseen.any():
        ax.scatter(at[unseen], np.zeros(unseen.sum()), marker="x", s=size, color=SOURCE,
                   label="not in the source", clip_on=False, zorder=3)  # fmt: skip
    ax.set(ylabel="weight, target prior / source prior", xlim=(-0.6, K - 0.4))
    _name_classes(ax, K, class_weights.classes)
    ax.legend(frameon=False, loc="lower left", bbox_to_anchor=(0, 1))
    return ax


def plot_monitoring(found: MonitoringResult, ax: Any, level: float, max_error: float | None) -> Any:
    """Draw the error of each window with its interval; unreliable ones are hollow."""
    ax = _wide_axes(ax)
    has_interval = all(result.has_interval for result in found.results)
    band = found.band(level) if has_interval else None
    _draw_series(ax, found, found.roots, band, found.trusted)
    before = found.results[-1].source
    if before is not None:
        _draw_source(ax, before.root)
    if max_error is not None:
        ax.axhline(max_error, color="#a3221a", linewidth=1.2, label="limit")
    norm = found.results[-1].norm
    ax.set(ylabel=f"calibration error (L{norm:g})", ylim=(0, None))
    ax.legend(frameon=False, loc="lower left", bbox_to_anchor=(0, 1), ncols=4)
    return ax


def plot_monitored_metric(found: MonitoringResult, name: str, ax: Any, level: float) -> Any:
    """Draw a metric of each window with its interval; unreliable ones are hollow."""
    estimates = found.estimates_of(name)
    ax = _wide_axes(ax)
    has_interval = all(one.has_interval for one in estimates)
    band = found.series(name, level)[1:] if has_interval else None
    trusted = np.array([one.trusted for one in estimates], dtype=bool)
    _draw_series(ax, found, np.array([one.estimate for one in estimates]), band, trusted)
    if estimates[-1].source is not None:
        _draw_source(ax, estimates[-1].source)
    ax.set_ylabel(estimates[-1].title, parse_math=False)
    ax.legend(frameon=False, loc="lower left", bbox_to_anchor=(0, 1), ncols=4)
    return ax


def plot_monitoring_panels(found: MonitoringResult, level: float, max_error: float | None) -> Any:
    """A figure of the error, and of the first metric below it if there are metrics."""
    if not found.metric_names:
        return plot_monitoring(found, None, level, max_error).figure
    upper = _wide_axes(None)
    figure = upper.figure
    figure.set_size_inches(8, 7)
    upper.set_subplotspec(figure.add_gridspec(2, 1)[0])
    plot_monitoring(found, upper, level, max_error)
    plot_monitored_metric(found, found.metric_names[0], figure.add_subplot(2, 1, 2), level)
    return figure


def _wide_axes(ax: Any) -> Any:
    """The axes given, or wide ones."""
    if ax is None:
        ax = _axes(None)
        ax.figure.set_size_inches(8, 4)
    return ax


def _draw_series(
    ax: Any, found: MonitoringResult, values: np.ndarray, band: Any, trusted: np.ndarray
) -> None:
    """One point a window with its interval, over time or rows."""
    at = _middles(found)
    if band is not None:
        low, high = band
        _draw_band(ax, at, low, high, TARGET)
    ax.plot(at, values, color=TARGET, linewidth=1.4, zorder=2)
    _draw_points(ax, at, values, trusted, "target", 30)
    if isinstance(found.windows[0].start, np.datetime64):
        from matplotlib.dates import AutoDateLocator, ConciseDateFormatter

        ax.xaxis.set_major_locator(locator := AutoDateLocator())
        ax.xaxis.set_major_formatter(ConciseDateFormatter(locator))
    else:
        ax.set(xlabel="row")


def _draw_source(ax: Any, value: float) -> None:
    ax.axhline(value, color=SOURCE, linestyle=(0, (4, 3)), linewidth=1, label="source")


def plot_metrics(found: MetricsResult, ax: Any, level: float) -> Any:
    """Each metric on the target with its interval, and on the source.

    Metrics without an upper bound are left out where others have one.
    """
    shares = [one for one in found.values() if np.isfinite(one.bounds).all()]
    shown = (shares or list(found.values()))[:MOST_NAMES]
    ax = _axes(ax)
    place = np.arange(len(shown), dtype=float)
    if found.n_target is not None:
        _draw_estimates(ax, place + 0.18, shown, "source", level)
    _draw_estimates(ax, place - 0.18, shown, "target", level)
    ax.set_yticks(place, [one.name for one in shown], parse_math=False)
    ax.invert_yaxis()
    ax.grid(axis="x", color=FAINT, alpha=0.3, linewidth=0.6)
    ax.legend(frameon=False, loc="lower left", bbox_to_anchor=(0, 1), ncols=2)
    return ax


def plot_decision_curve(curve: DecisionCurve, ax: Any, level: float) -> Any:
    """Net benefit with its band, on the source, and of predicting all rows positive, or none."""
    ax = _axes(ax)
    t = curve.thresholds
    if len(t) > MOST_NAMES:
        ax.fill_between(t, *curve.band(level), color=TARGET, alpha=0.18, linewidth=0, zorder=1.5)
    else:
        _draw_band(ax, t, *curve.band(level), TARGET)
    if not curve.trusted:
        ax.text(0.98, 0.97, "not trusted", transform=ax.transAxes, ha="right", va="top")
    ax.plot(t, curve.net_benefit, color=TARGET, linewidth=1.6, label="model", zorder=3)
    if curve.source is not None:
        style = {"color": SOURCE, "linewidth": 1.2, "linestyle": (0, (5, 2))}
        ax.plot(t, curve.source, label="model, on the source", **style)
    ax.plot(t, curve.treat_all, color=FAINT, linewidth=1.2, label="all positive")
    ax.axhline(0.0, color="black", linewidth=0.8, label="none positive")
    top = max(float(curve.net_benefit.max()), float(curve.treat_all.max()), 1e-3)
    ax.set(xlabel="threshold of the probability", ylabel="net benefit", xlim=(0, 1))
    ax.set_ylim(-0.25 * top, 1.15 * top)
    ax.legend(frameon=False, loc="lower left", bbox_to_anchor=(0, 1), ncols=2)
    return ax


def _draw_estimates(
    ax: Any, place: np.ndarray, shown: list[MetricEstimate], sample: str, level: float
) -> None:
    """Points and intervals of one sample, one below the other."""
    target = sample == "target"
    color, marker = (TARGET, "o") if target else (SOURCE, "s")
    value = [one.estimate if target else one.source for one in shown]
    for at, one in zip(place, shown, strict=True):
        if one.has_interval:
            ends = one.confidence_interval(level) if target else one.source_interval(level)
            ax.hlines(at, *ends, color=color, linewidth=1.6, zorder=2)
    ax.scatter(value, place, s=24, color=color, marker=marker, label=sample, zorder=3)


def _draw_band(ax: Any, x: np.ndarray, low: np.ndarray, high: np.ndarray, color: str) -> None:
    """An area between both ends, and a line at each point, which shows a single one too."""
    ax.fill_between(x, low, high, color=color, alpha=0.18, linewidth=0, zorder=1.5)
    ax.vlines(x, low, high, color=color, linewidth=0.8, zorder=2)


def _draw_points(
    ax: Any, x: np.ndarray, y: np.ndarray, reliable: np.ndarray, label: str, size: int
) -> None:
    """Points of the target, hollow where they are not reliable."""
    for which, fill, name in ((reliable, TARGET, label), (~reliable, "white", "not reliable")):
        if which.any():
            ax.scatter(
                x[which], y[which], s=size, color=fill, edgecolor=TARGET, label=name, zorder=3
            )


def _middles(found: MonitoringResult) -> np.ndarray:
    """(windows,) midpoints on the axis."""
    start = np.array([window.start for window in found.windows])
    end = np.array([window.end for window in found.windows])
    return np.asarray(start + (end - start) / 2)


def _name_classes(ax: Any, count: int, classes: tuple[Any, ...] | None) -> None:
    if classes is not None and count <= MOST_NAMES:
        ax.set_xticks(
            range(count), [str(name) for name in classes], rotation=45, ha="right", parse_math=False
        )  # a dollar in a name is a dollar
    else:
        ax.set(xlabel="class")
        ax.locator_params(axis="x", integer=True)  # there is no class 0.5


def _roots(result: CalibrationErrorResult) -> np.ndarray:
    values = np.array([result.estimate]) if result.per_class is None else result.per_class
    return np.asarray(np.maximum(values, 0.0) ** (1 / result.norm))


def _root_ends(result: CalibrationErrorResult) -> np.ndarray | None:
    """(2, bars) ends of the intervals, or None."""
    if not result.has_interval:
        return None
    if result.per_class is None:
        return np.array(result.confidence_interval(root=True))[:, None]
    return np.stack(result.class_intervals(root=True))


def _axes(ax: Any) -> Any:
    if ax is not None:
        return ax
    try:
        from matplotlib.figure import Figure
    except ImportError:
        msg = "drawing needs matplotlib: pip install 'calshift[plot]'"
        raise ModuleNotFoundError(msg, name="matplotlib") from None
    return Figure(figsize=(5, 5), layout="constrained").add_subplot()
