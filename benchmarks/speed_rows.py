"""Lines of the tables of benchmarks/run.py."""

from __future__ import annotations

from fractions import Fraction
from math import isinf, isnan
from statistics import median

from speed_children import Series

Row = list[str]
HEAD = [
    "call", "size", "numba", "beside", "CPU, ms", "its", "wall, ms", "its", "ratio", "range",
    "limit", "met", "MB", "its", "answer", "its",
]  # fmt: skip

GROWTH_HEAD = [
    "call", "size", "numba", "CPU, ms", "wall, ms", "ns a row", "ratio", "limit", "met", "MB",
]  # fmt: skip
THREADS_HEAD = [
    "call", "size", "numba", "one, ms", "two, ms", "one / two", "range", "limit", "met", "outside",
]  # fmt: skip


def comparison(
    what: tuple[str, int, int],
    numba: bool,
    beside: str,
    mine: Series,
    its: Series,
    limit: str = "",
    memory: str = "bytes",
    most: float = float("inf"),
) -> Row:
    """Two series, and the ratio of their CPU time; the limits are of it and of our bytes."""
    ratios = mine.ratios(its)
    cells = [shown(median(ratios)), spread(ratios)] if ratios else [mine.failed or its.failed, ""]
    limits = [limit, "" if isinf(most) else f"{most / 1e6:.0f} MB"]
    within = median(ratios) <= Fraction(limit or 10**9) if ratios else False
    return [
        *first_cells(what, numba),
        beside,
        *(milliseconds(series[clock]) for clock in ("cpu", "wall") for series in (mine, its)),
        *cells,
        ", ".join(f"≤ {text}" for text in limits if text),
        said(within and mine[memory] <= most) if any(limits) else "",
        *(f"{series[memory] / 1e6:.1f}" for series in (mine, its)),
        *(answer(series) for series in (mine, its)),
    ]


def alone(
    what: tuple[str, int, int], numba: bool, mine: Series, most: float, parts: int = 1
) -> Row:
    """A series beside a limit in seconds, of each of its parts."""
    times = [milliseconds(mine[clock] / parts) for clock in ("cpu", "wall")]
    limit = f"≤ {milliseconds(most)} ms"
    met = said(mine["cpu"] / parts <= most)
    memory = f"{mine['bytes'] / 1e6:.1f}"
    cells = [times[0], "", times[1], "", mine.failed, "", limit, met, memory, "", answer(mine), ""]
    return [*first_cells(what, numba), "", *cells]


def first_cells(what: tuple[str, int, int], numba: bool) -> Row:
    name, n, K = what
    return [name, f"{n:,} x {K}" if K > 1 else f"{n:,}", said(numba)]


def said(met: bool) -> str:
    return "yes" if met else "no"


def answer(series: Series) -> str:
    return "" if isnan(series["answer"]) else f"{series['answer']:.4f}"


def milliseconds(seconds: float) -> str:
    if isnan(seconds):
        return ""
    value = 1e3 * seconds
    return f"{value:,.0f}" if value >= 100 else f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def spread(ratios: list[float]) -> str:
    """The range of ratios."""
    return f"{shown(min(ratios))} to {shown(max(ratios))}"


def shown(ratio: float) -> str:
    return f"{ratio:.2f}" if ratio >= 0.1 else f"{ratio:.2g}"
