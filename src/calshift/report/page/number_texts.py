"""Numbers of metrics as texts: percent, cases of 1000, or plain numbers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import floor, log10
from typing import Any, NamedTuple

UNKNOWN = "unknown"
MOST_DECIMALS = 4


class Form(NamedTuple):
    """How numbers of a unit are shown."""

    format: Callable[[float], str]
    scale: float  # of changes
    decimals: int
    points: str = ""  # the unit of a change

    def value(self, value: float | None) -> str:
        """A number; "unknown" for None."""
        return UNKNOWN if value is None else self.format(value)

    def interval(self, ends: Sequence[Any] | None) -> str:
        """Both ends; empty if one is unknown."""
        return "" if ends is None or None in ends else " to ".join(map(self.format, ends))

    def change(self, value: float) -> str:
        """A difference with its sign and unit."""
        return self._signed(value) + self.points

    def change_interval(self, ends: Sequence[Any] | None) -> str:
        """Both ends of a difference, with signs."""
        return "" if ends is None or None in ends else " to ".join(map(self._signed, ends))

    def _signed(self, value: float) -> str:
        """With at least two significant digits, and no sign of what is rounded to 0."""
        scaled = self.scale * value
        text = f"{scaled:+.{_decimals(abs(scaled), self.decimals)}f}"
        return text if float(text) else text[1:]


def format_percent(share: float) -> str:
    """In percent, with two significant digits of what is missing to 0% or 100%."""
    missing = 100 * min(share, 1 - share)
    decimals = _decimals(missing, 1) if 0 < missing < 1 else 1
    return f"{100 * share:.{decimals}f}%" if 0 < share < 1 else f"{100 * share:.6g}%"


def format_per_1000(share: float) -> str:
    """Cases of 1000: whole numbers from 10 on, as people count."""
    cases = 1000 * share
    return f"{cases:,.0f}" if cases == 0 or cases >= 9.95 else f"{cases:.{_decimals(cases, 1)}f}"


def format_number(value: float) -> str:
    """Three decimals, or four significant digits of large numbers."""
    if abs(value) >= 1000:
        return f"{value:,.0f}" if abs(value) < 1e6 else f"{value:.4g}"
    return f"{value:.{_decimals(abs(value), 3)}f}"


def _decimals(size: float, least: int) -> int:
    """Decimals for two significant digits, at least so many and at most four."""
    if size == 0:
        return least
    return min(max(least, 1 - floor(log10(size))), max(least, MOST_DECIMALS))


FORMS = {
    "share": Form(format_percent, 100.0, 1, " points"),
    "per 1000": Form(format_per_1000, 1000.0, 1),
    "number": Form(format_number, 1.0, 3),
}
