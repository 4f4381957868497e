"""Result of `monitor`: a calibration error for each window."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from calshift._core.convert import plain
from calshift._core.frozen import Frozen
from calshift._core.text import percent
from calshift._core.validate import validate_level

if TYPE_CHECKING:
    from calshift.results.calibration_error import CalibrationErrorResult

ROWS_SHOWN = 60


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
    """

    results: tuple[CalibrationErrorResult, ...]
    windows: tuple[Window, ...]
    skipped: tuple[Skipped, ...] = ()

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

    def to_dict(self, level: float = 0.95) -> dict[str, Any]:
        """Plain values, one record a window."""
        return {
            "level": validate_level(level),
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

    def plot(self, ax: Any = None, *, level: float = 0.95, max_error: float | None = None) -> Any:
        """Draw the errors with their intervals, the error on the source, and the limit."""
        from calshift.plotting import plot_monitoring  # late: matplotlib only when drawing

        return plot_monitoring(self, ax, level, max_error)

    def __str__(self) -> str:
        return self.table()

    def table(self, level: float = 0.95, notes: Sequence[str] | None = None) -> str:
        """One line a window with a note on each; only the last windows if there are many."""
        level = validate_level(level)
        if notes is None:
            notes = list(self.reasons)
        cells = [
            (window, f"{result.root:.4f}", f"{_format_ends(result, level):<18}  {note}")
            for window, result, note in zip(self.windows, self.results, notes, strict=True)
        ]
        cells += [(one.window, "", one.reason) for one in self.skipped]
        cells.sort(key=lambda line: line[0].start)
        width = max([8, *(len(window.name) for window in self.windows)])
        lines = [
            f"{window.name:{width}} {window.rows:>9,.10g} {error:>8}   {rest}".rstrip()
            for window, error, rest in cells
        ]
        hidden = max(0, len(lines) - ROWS_SHOWN)
        earlier = [f"... {hidden} earlier windows"] if hidden else []
        head = f"{'window':{width}} {'rows':>9} {'error':>8}   {percent(level)} interval"
        return "\n".join([head, *earlier, *lines[hidden:]])

    def __repr__(self) -> str:
        return f"MonitoringResult({len(self)} windows, {len(self.skipped)} skipped)"


def _first_failure(result: CalibrationErrorResult) -> str:
    failed = [one for one in result.diagnostics if one.failed]
    failed.sort(key=lambda one: one.value is None)  # what was checked first
    return failed[0].brief if failed else "" if result.trusted else "not checked"


def _plain_place(place: Any) -> str | int:
    """A time as ISO text, a row as a whole number."""
    return str(place) if isinstance(place, np.datetime64) else int(place)


def _ends(result: CalibrationErrorResult, level: float) -> list[float] | None:
    return list(result.confidence_interval(level, root=True)) if result.has_interval else None


def _format_ends(result: CalibrationErrorResult, level: float) -> str:
    ends = _ends(result, level)
    return "" if ends is None else f"{ends[0]:.4f} to {ends[1]:.4f}"
