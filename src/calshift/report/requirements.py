"""Requirements of metrics, such as "accuracy>=0.9", judged by the interval's end."""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from calshift._core.text import percent
from calshift._core.validate import show
from calshift.errors import InvalidInput
from calshift.results import MetricEstimate

COMPARISONS: dict[str, Callable[[float, float], bool]] = {
    ">=": operator.ge, ">": operator.gt, "<=": operator.le, "<": operator.lt,
}  # fmt: skip
PATTERN = re.compile(r"\s*(\S.*?)(?<![=<>!\s])\s*(>=|<=|>|<)\s*([^<>=\s]+)\s*", re.DOTALL)
MET, OPEN, VIOLATED, UNTRUSTED = STATUSES = ("met", "not shown", "violated", "not trusted")
REPORTED = {MET: "fine", OPEN: "breached", VIOLATED: "breached", UNTRUSTED: "untrusted"}
MOST_NAMED = 5  # in a sentence
WORDS = {VIOLATED: "Violated", OPEN: "Not shown to be met", UNTRUSTED: "Not reliable", MET: "Met"}


@dataclass(frozen=True)
class Outcome:
    """A requirement of one metric, and whether it is met.

    Attributes
    ----------
    text, metric : the requirement, and the name of its metric
    status : "met" if the end of the interval satisfies it, "violated" if the other end does not,
        "not shown" between, "not trusted" if the metric is not
    interval : lower and upper end at the level, or None
    """

    text: str
    metric: str
    status: str
    interval: tuple[float, float] | None

    def to_dict(self) -> dict[str, Any]:
        """Plain values."""
        ends = None if self.interval is None else list(self.interval)
        return {
            "text": self.text, "status": self.status, "metric": self.metric, "interval": ends,
        }  # fmt: skip


@dataclass(frozen=True)
class Requirement:
    """A metric, a comparison and its limit."""

    metric: str
    comparison: str
    limit: float

    @staticmethod
    def parse(text: str) -> Requirement:
        """From text such as "accuracy>=0.9"."""
        found = PATTERN.fullmatch(text)
        limit = math.nan if found is None else _number(found[3])
        if found is None or not math.isfinite(limit):
            allowed = f"one of {', '.join(COMPARISONS)}, and a number, such as 'accuracy>=0.9'"
            msg = f"require must be the name of a metric, {allowed}; got {show(text)}"
            raise InvalidInput(msg)
        return Requirement(found[1], found[2], limit)

    def names(self, among: Iterable[str]) -> list[str]:
        """The metrics that it is about: of "..._per_class" one for each class."""
        stem = self.metric.removesuffix("_per_class")
        if stem == self.metric:
            return [name for name in among if name == self.metric]
        return [name for name in among if name.startswith(f"{stem}[")]

    def check_limit(self, bounds: Mapping[str, tuple[float, float]]) -> None:
        """Refuse a limit that its metric cannot have, such as a percentage."""
        for name in self.names(bounds):
            low, high = bounds[name]
            if not low <= self.limit <= high:
                msg = (
                    f"require must have a limit that its metric can have: {name} is from {low:g} "
                    f"to {high:g}; got {self.text(name)!r}"
                )
                raise InvalidInput(msg)

    def text(self, name: str) -> str:
        """The requirement of one metric in short."""
        return f"{name}{self.comparison}{self.limit:g}"

    def outcomes(self, metrics: Mapping[str, MetricEstimate], level: float) -> list[Outcome]:
        """One for each metric that it is about."""
        return [self._judge(metrics[name], level) for name in self.names(metrics)]

    def _judge(self, one: MetricEstimate, level: float) -> Outcome:
        ends = one.confidence_interval(level) if one.has_interval else None
        status = self._place(ends) if one.trusted else UNTRUSTED
        return Outcome(self.text(one.name), one.name, status, ends)

    def _place(self, ends: tuple[float, float] | None) -> str:
        """By both ends of the interval; without one nothing is shown."""
        if ends is None or not all(map(math.isfinite, ends)):
            return OPEN
        satisfied = [COMPARISONS[self.comparison](end, self.limit) for end in ends]
        if all(satisfied):
            return MET
        return OPEN if any(satisfied) else VIOLATED


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return math.nan


def judge(
    requirements: Iterable[Requirement], metrics: Mapping[str, MetricEstimate] | None, level: float
) -> list[Outcome]:
    """The outcomes of all requirements, in their order."""
    return [
        one
        for each in requirements
        for one in each.outcomes({} if metrics is None else metrics, level)
    ]


def outcome_sentence(outcomes: Sequence[Outcome], level: float) -> str:
    """What is not met, with intervals, and what is; empty without requirements."""
    parts = []
    for status, words in WORDS.items():
        named = [_named(one) for one in outcomes if one.status == status]
        if named:
            more = f" and {len(named) - MOST_NAMED} more" if len(named) > MOST_NAMED else ""
            parts.append(f"{words}: {', '.join(named[:MOST_NAMED])}{more}.")
    if any(one.interval is not None for one in outcomes):
        parts.append(f"In brackets: {percent(level)} intervals.")
    return " ".join(parts)


def _named(one: Outcome) -> str:
    if one.interval is None:
        return f"{one.text} (no interval)"
    return f"{one.text} ({one.interval[0]:.4g} to {one.interval[1]:.4g})"
