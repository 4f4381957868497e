"""Result of `monitor`: a calibration error, and metrics if asked for, for each window."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from calshift._core.convert import plain
from calshift._core.frozen import Frozen
from calshift._core.text import percent, printable
from calshift._core.validate import show, validate_level
from calshift.errors import InvalidInput

if TYPE_CHECKING:
    from calshift.results.calibration_error import CalibrationErrorResult
    from calshift.results.metrics import MetricEstimate, MetricsResult

ROWS_SHOWN = 60
COLUMNS = 100  # of a table with metrics
ERROR_WIDTH = 40  # of rows, error and interval
LONGEST = 24  # name of a metric in a table


@dataclass(frozen=True)
class Window:
    """Start and end of a window: times, or row numbers from 0; the end is exclusive."""

    start: Any
    end: Any
    rows: float

    @property
    def name(self) -> str:
        """Its start, without trailing zeros of a time."""
        text = str(_plain_place(self.start))
        if isinstance(self.start, np.datetime64):
            for tail in (".000000", ":00", "T00:00"):
                text = text.removesuffix(tail)
        return text

    def to_dict(self) -> dict[str, Any]:
        """Plain values."""
        ends = {"start": _plain_place(self.start), "end": _plain_place(self.end)}
        return {**ends, "rows": self.rows}


@dataclass(frozen=True)
class Skipped:
    """A window without a result, and the reason."""

    window: Window
    reason: str


@dataclass(frozen=True, eq=False, repr=False)
class MonitoringResult(Frozen):
    """Label-free calibration errors over time.

    Attributes
    ----------
    results : one CalibrationErrorResult a window, in order
    windows : their starts, ends and numbers of rows
    skipped : windows with too few rows for an estimate
    metrics : one MetricsResult a window, in order; None if no metrics were asked for
    """

    results: tuple[CalibrationErrorResult, ...]
    windows: tuple[Window, ...]
    skipped: tuple[Skipped, ...] = ()
    metrics: tuple[MetricsResult, ...] | None = None

    def __len__(self) -> int:
        return len(self.results)

    @property
    def roots(self) -> np.ndarray:
        """(windows,) errors in units of probability."""
        return np.array([result.root for result in self.results])

    @property
    def trusted(self) -> np.ndarray:
        """(windows,) which estimates are reliable."""
        return np.array([result.trusted for result in self.results], dtype=bool)

    @property
    def reasons(self) -> tuple[str, ...]:
        """(windows,) the first condition that failed, with its number and limit; "" if none did."""
        return tuple(_first_failure(result) for result in self.results)

    def band(self, level: float = 0.95) -> tuple[np.ndarray, np.ndarray]:
        """(windows,) lower and upper ends of the intervals of the roots."""
        level = validate_level(level)
        ends = [result.confidence_interval(level, root=True) for result in self.results]
        low, high = np.array(ends).reshape(-1, 2).T
        return low, high

    def series(self, name: str, level: float = 0.95) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """(windows,) estimates of a metric, and lower and upper ends of their intervals.

        Parameters
        ----------
        name : of a metric that was asked for
        level : of the intervals

        Returns
        -------
        estimates, low, high : arrays of one number a window

        Raises
        ------
        InvalidInput
            if the metric was not asked for, or has no intervals
        """
        found, level = self.estimates_of(name), validate_level(level)
        low, high = np.array([one.confidence_interval(level) for one in found]).T
        return np.array([one.estimate for one in found]), low, high

    def estimates_of(self, name: str) -> list[MetricEstimate]:
        """The `MetricEstimate` of each window, of a metric that was asked for."""
        if self.metrics is None:
            msg = f"no metrics were asked for: call monitor with metrics=[{show(name)}]"
            raise InvalidInput(msg)
        if name not in (known := self.metrics[0]):
            msg = f"metric must be one of {', '.join(known)}; got {show(name)}"
            raise InvalidInput(msg)
        return [one[name] for one in self.metrics]

    @property
    def metric_names(self) -> tuple[str, ...]:
        """Of the metrics that were asked for."""
        return () if self.metrics is None else tuple(self.metrics[0])

    def to_dict(self, level: float = 0.95) -> dict[str, Any]:
        """Plain values, one record a window."""
        found = self._windows_dict(validate_level(level))
        if self.metrics is not None:
            first = self.metrics[0]
            found["decision"] = first.decision
            found["positive"] = None if first.positive is None else str(first.positive)
            for record, metrics in zip(found["windows"], self.metrics, strict=True):
                record["metrics"] = [one.to_dict(level) for one in metrics.values()]
        return found

    def _windows_dict(self, level: float) -> dict[str, Any]:
        return {
            "level": level,
            "windows": [
                {
                    **window.to_dict(),
                    "estimate": plain(result.estimate),
                    "root": plain(result.root),
                    "root_interval": _ends(result, level),
                    "p_value": getattr(result.assumption, "joint_p_value", None),
                    "trusted": result.trusted,
                    "diagnostics": [one.to_dict() for one in result.diagnostics],
                    "warnings": list(result.warnings),
                }
                for window, result in zip(self.windows, self.results, strict=True)
            ],
            "skipped": [{**one.window.to_dict(), "reason": one.reason} for one in self.skipped],
        }

    def plot(
        self,
        ax: Any = None,
        *,
        metric: str | None = None,
        level: float = 0.95,
        max_error: float | None = None,
    ) -> Any:
        """Draw errors or a metric with their intervals, beside the value on the source.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            where to draw
        metric : str, optional
            name of a metric that was asked for; by default the calibration error is drawn
        level : float, default 0.95
            of the intervals
        max_error : float, optional
            limit of the calibration error, drawn as a line

        Returns
        -------
        matplotlib Axes
        """
        from calshift.plotting import (  # late: matplotlib only when drawing
            plot_monitored_metric,
            plot_monitoring,
        )

        if metric is None:
            return plot_monitoring(self, ax, level, max_error)
        if max_error is not None:
            msg = "max_error is a limit of the calibration error: leave it out with metric="
            raise InvalidInput(msg)
        return plot_monitored_metric(self, metric, ax, level)

    def __str__(self) -> str:
        return self.table()

    def table(self, level: float = 0.95, notes: Sequence[str] | None = None) -> str:
        """One line a window with a note on each; only the last windows if there are many.

        Metrics are shown as far as 100 columns suffice.
        """
        level = validate_level(level)
        if notes is None:
            notes = list(self.reasons)
        width = max([8, *(len(window.name) for window in self.windows)])
        space = COLUMNS - width - ERROR_WIDTH
        head, columns, hints = self._metric_columns(
            space - max([2 + len(note) for note in notes if note] or [0])
        )
        if self.metrics is not None:
            notes = [_shorten(note, space - len(head) - 2) for note in notes]
        cells = [
            (window, f"{result.root:.4f}", f"{_format_ends(result, level):<18}{column}  {note}")
            for window, result, column, note in zip(
                self.windows, self.results, columns, notes, strict=True
            )
        ]
        cells += [(one.window, "", one.reason) for one in self.skipped]
        cells.sort(key=lambda line: line[0].start)
        lines = [
            f"{window.name:{width}} {window.rows:>9,.10g} {error:>8}   {rest}".rstrip()
            for window, error, rest in cells
        ]
        hidden = max(0, len(lines) - ROWS_SHOWN)
        earlier = [f"... {hidden} earlier windows"] if hidden else []
        interval = f"{percent(level) + ' interval':<18}{head}".rstrip()
        first = f"{'window':{width}} {'rows':>9} {'error':>8}   {interval}"
        return "\n".join([first, *earlier, *lines[hidden:], *hints])

    def _metric_columns(self, space: int) -> tuple[str, list[str], list[str]]:
        """Titles, the cells of each window, and what is not shown."""
        names = _names_that_fit(self.metric_names, space)
        found = [self.estimates_of(name) for name in names]
        cells = ["".join(map(_metric_cell, names, row)) for row in zip(*found, strict=True)]
        head = "".join(
            f"  {_shorten(printable(name), LONGEST):>{_width_of(name)}} " for name in names
        )
        hints = []
        if any("*" in cell for cell in cells):
            hints.append("* not reliable")
        if hidden := len(self.metric_names) - len(names):
            hints.append(f"{hidden} more metric{'s' if hidden > 1 else ''}: --json has all")
        return head, cells or [""] * len(self), hints

    def __repr__(self) -> str:
        return f"MonitoringResult({len(self)} windows, {len(self.skipped)} skipped)"


def _first_failure(result: CalibrationErrorResult) -> str:
    failed = [one for one in result.diagnostics if one.failed]
    failed.sort(key=lambda one: one.value is None)  # what was checked first
    return failed[0].brief if failed else "" if result.trusted else "not checked"


def _names_that_fit(names: Sequence[str], space: int) -> Sequence[str]:
    """The first metrics whose columns have space, and one in any case."""
    ends = np.cumsum([_width_of(name) + 3 for name in names])
    return names[: max(1, int(np.searchsorted(ends, space, side="right")))]


def _shorten(note: str, space: int) -> str:
    return note if len(note) <= space else note[: max(space - 3, 0)] + "..."


def _width_of(name: str) -> int:
    return min(max(len(printable(name)), 7), LONGEST)


def _metric_cell(name: str, one: MetricEstimate) -> str:
    """An estimate, with a star if it is not reliable."""
    number = f"{one.estimate:.4f}" if abs(one.estimate) < 1000 else f"{one.estimate:.3g}"
    return f"  {number:>{_width_of(name)}}{' ' if one.trusted else '*'}"


def _plain_place(place: Any) -> str | int:
    """A time as ISO text, a row as a whole number."""
    return str(place) if isinstance(place, np.datetime64) else int(place)


def _ends(result: CalibrationErrorResult, level: float) -> list[float] | None:
    return list(result.confidence_interval(level, root=True)) if result.has_interval else None


def _format_ends(result: CalibrationErrorResult, level: float) -> str:
    ends = _ends(result, level)
    return "" if ends is None else f"{ends[0]:.4f} to {ends[1]:.4f}"
