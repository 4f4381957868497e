"""A series of errors, one a window."""

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
    """Where a window lies: times, or numbers of rows from 0; the end is not part of it."""

    start: Any
    end: Any
    rows: float

    @property
    def name(self) -> str:
        """Its start, as short as it is exact."""
        return short(self.start)


@dataclass(frozen=True)
class Skipped:
    """A window without a result, and why."""

    window: Window
    reason: str


@dataclass(frozen=True, eq=False, repr=False)
class MonitoringResult(Frozen):
    """Label-free errors over time.

    Attributes
    ----------
    results : one CalibrationErrorResult a window, in order
    windows : where they lie
    skipped : windows that have rows, but too few for an answer
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
        """(windows,) which of them can be trusted."""
        return np.array([result.trusted for result in self.results], dtype=bool)

    def band(self, level: float = 0.95) -> tuple[np.ndarray, np.ndarray]:
        """(windows,) lower and upper ends of the intervals of the roots."""
        validate_level(level)
        ends = [result.confidence_interval(level, root=True) for result in self.results]
        low, high = np.array(ends).reshape(-1, 2).T
        return low, high

    def to_dict(self, level: float = 0.95) -> dict[str, Any]:
        """Plain values, one record a window."""
        return {
            "level": validate_level(level),
            "windows": [
                {
                    "start": written(window.start),
                    "end": written(window.end),
                    "rows": window.rows,
                    "estimate": plain(result.estimate),
                    "root": plain(result.root),
                    "root_interval": _ends(result, level),
                    "p_value": None if result.assumption is None else result.assumption.p_value,
                    "trusted": result.trusted,
                    "warnings": list(result.warnings),
                }
                for window, result in zip(self.windows, self.results, strict=True)
            ],
            "skipped": [
                {
                    "start": written(one.window.start),
                    "end": written(one.window.end),
                    "rows": one.window.rows,
                    "reason": one.reason,
                }
                for one in self.skipped
            ],
        }

    def plot(self, ax: Any = None, *, level: float = 0.95, max_error: float | None = None) -> Any:
        """Draw the errors with their band, the source's, and the largest one allowed."""
        from calshift.plotting import plot_monitoring  # late: matplotlib only when drawing

        return plot_monitoring(self, ax, level, max_error)

    def __str__(self) -> str:
        return self.table()

    def table(self, level: float = 0.95, notes: Sequence[str] | None = None) -> str:
        """One line a window, the last ones if there are many; with a note on each."""
        validate_level(level)
        if notes is None:
            notes = ["" if result.trusted else "not trusted" for result in self.results]
        width = max([8, *(len(window.name) for window in self.windows)])
        lines = [
            (window.start, f"{_row(window, width, result.root)}   {_shown(result, level)}  {note}")
            for window, result, note in zip(self.windows, self.results, notes, strict=True)
        ]
        lines += [
            (one.window.start, f"{_row(one.window, width, None)}   {one.reason}")
            for one in self.skipped
        ]
        lines.sort(key=lambda line: line[0])
        hidden = max(0, len(lines) - ROWS_SHOWN)
        earlier = [f"... {hidden} earlier windows"] if hidden else []
        head = f"{'window':{width}} {'rows':>9} {'error':>8}   {percent(level)} interval"
        return "\n".join([head, *earlier, *(line.rstrip() for _, line in lines[hidden:])])

    def __repr__(self) -> str:
        return f"MonitoringResult({len(self)} windows, {len(self.skipped)} skipped)"


def short(place: Any) -> str:
    """A time without what is zero at its end, or a row's number."""
    text = written(place)
    if not isinstance(text, str):
        return str(text)
    for tail in (".000000", ":00", "T00:00"):
        text = text.removesuffix(tail)
    return text


def written(place: Any) -> Any:
    """A time as ISO text, a row as a whole number."""
    return str(place) if isinstance(place, np.datetime64) else int(place)


def _ends(result: CalibrationErrorResult, level: float) -> list[float] | None:
    if not result.has_interval:
        return None
    return list(result.confidence_interval(level, root=True))


def _row(window: Window, width: int, root: float | None) -> str:
    error = "" if root is None else f"{root:.4f}"
    return f"{window.name:{width}} {window.rows:>9,.10g} {error:>8}"


def _shown(result: CalibrationErrorResult, level: float) -> str:
    ends = _ends(result, level)
    return f"{'' if ends is None else f'{ends[0]:.4f} to {ends[1]:.4f}':<18}"
