"""Numbers of metrics as texts: percent, cases of 1000, or plain numbers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import floor, log10
from typing import Any, NamedTuple

UNKNOWN = "unknown"
MOST_DECIMALS = 4
LEAST = 10.0**-MOST_DECIMALS


class Form(NamedTuple):
    """How numbers of a unit are shown."""

    format: Callable[[float], str]
    decimals: Callable[[float], int]
    scale: float = 1.0
    points: str = ""  # the unit of a change

    def value(self, value: float | None) -> str:
        """A number; "unknown" for None."""
        return UNKNOWN if value is None else self.format(value)

    def interval(self, ends: Sequence[Any] | None) -> str:
        """Both ends, the unit once; empty if one is unknown."""
        if ends is None or None in ends:
            return ""
        low, high = map(self.format, ends)
        both = low.endswith("%") and high.endswith("%") and low[0] not in "<>"
        return f"{low.removesuffix('%') if both else low} to {high}"

    def change(self, one: dict[str, Any]) -> str:
        """The difference with its sign and unit; empty if it is unknown."""
        value = one["difference"]
        return "" if value is None else self._signed(value, one) + self.points

    def change_interval(self, one: dict[str, Any]) -> str:
        """Both ends of the difference, with signs."""
        ends = one["difference_interval"]
        if ends is None or None in ends:
            return ""
        return " to ".join(self._signed(end, one) for end in ends)

    def _signed(self, value: float, one: dict[str, Any]) -> str:
        """As many decimals as both numbers have; no sign of what is rounded to 0."""
        decimals = min(self.decimals(one["estimate"]), self.decimals(one["source"]))
        if self.points:
            decimals = 1 if abs(self.scale * one["difference"]) >= 1 else max(decimals, 1)
        text = f"{self.scale * value:+.{decimals}f}"
        return text if float(text) else text[1:]


def format_percent(share: float) -> str:
    """In percent, with two significant digits of what is missing to 0% or 100%."""
    if 0 < 100 * share < LEAST:
        return f"<{LEAST:.{MOST_DECIMALS}f}%"
    if 0 < 1 - share < 1e-4:
        return ">99.99%"
    return f"{100 * share:.{percent_decimals(share)}f}%"


def percent_decimals(share: float) -> int:
    """Decimals of a share in percent: 1 from 1% to 99%, none of 0 and 1."""
    if share in (0, 1):
        return 0
    if share > 0.99:
        return min(_decimals(100 * (1 - share), 1), 2)
    return _decimals(100 * share, 1)


def format_per_1000(share: float) -> str:
    """Cases of 1000: whole numbers from 10 on, as people count."""
    if 0 < 1000 * share < LEAST:
        return f"<{LEAST:.{MOST_DECIMALS}f}"
    return f"{1000 * share:.{case_decimals(share)}f}"


def case_decimals(share: float) -> int:
    """Decimals of cases of 1000."""
    cases = 1000 * abs(share)
    return 0 if cases == 0 or cases >= 9.95 else _decimals(cases, 1)


def split_1000(shares: Sequence[float]) -> list[str]:
    """Cases of 1000 in several groups; the largest is what the others leave."""
    total = sum(shares)
    parts = [share / total for share in shares]
    rounded = [round(1000 * part, case_decimals(part)) for part in parts]
    largest = parts.index(max(parts))
    parts[largest] = (1000 - sum(rounded) + rounded[largest]) / 1000
    return [format_per_1000(part) for part in parts]


def format_number(value: float) -> str:
    """Three decimals, more of small numbers, fewer of large ones."""
    if abs(value) >= 1e6 or 0 < abs(value) < LEAST:
        return f"{value:.4g}" if abs(value) >= 1 else f"{value:.2g}"
    return f"{value:,.{number_decimals(value)}f}"


def number_decimals(value: float) -> int:
    """Decimals of a plain number."""
    return 0 if abs(value) >= 1000 else _decimals(abs(value), 3)


def _decimals(size: float, least: int) -> int:
    """Decimals for two significant digits, at least so many and at most four."""
    return least if size == 0 else min(max(least, 1 - floor(log10(size))), MOST_DECIMALS)


FORMS = {
    "share": Form(format_percent, percent_decimals, 100.0, " points"),
    "per 1000": Form(format_per_1000, case_decimals, 1000.0),
    "number": Form(format_number, number_decimals),
}
