"""Scores and metrics on the target before and after recalibration, without target labels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from calshift._core.convert import plain
from calshift._core.frozen import Frozen
from calshift._core.validate import validate_level
from calshift.errors import InvalidInput
from calshift.results.intervals.bounded_mean import normal_quantile

if TYPE_CHECKING:
    from calshift.results.metrics import MetricEstimate, MetricsResult


@dataclass(frozen=True)
class ScoreChange(Frozen):
    """Accuracy or log loss before and after, with the standard error of the change.

    Attributes
    ----------
    before, after : means over the class distribution of the target
    standard_error : of their difference, on the same rows
    larger_is_better : True for accuracy, False for log loss
    """

    before: float
    after: float
    standard_error: float
    larger_is_better: bool

    @property
    def change(self) -> float:
        """after - before."""
        return self.after - self.before

    def confidence_interval(self, level: float = 0.95) -> tuple[float, float]:
        """Lower and upper end of the change, from the normal distribution."""
        reach = normal_quantile(validate_level(level)) * self.standard_error
        return self.change - reach, self.change + reach

    def is_better(self, level: float = 0.95) -> bool:
        """Whether the whole interval is on the better side of 0."""
        low, high = self.confidence_interval(level)
        return low > 0 if self.larger_is_better else high < 0

    def is_worse(self, level: float = 0.95) -> bool:
        """Whether the whole interval is on the worse side of 0."""
        low, high = self.confidence_interval(level)
        return high < 0 if self.larger_is_better else low > 0

    def to_dict(self, level: float = 0.95) -> dict[str, Any]:
        """Plain numbers."""
        return {
            "before": self.before,
            "after": self.after,
            "change": self.change,
            "level": level,
            "interval": list(self.confidence_interval(level)),
        }


@dataclass(frozen=True)
class MetricChange(Frozen):
    """A metric on the target before and after recalibration.

    Attributes
    ----------
    before, after : the estimates; ``after`` is cross-fitted
    correlation : of the two, from the rows they share; None if there are too many to keep their
        influence
    """

    before: MetricEstimate
    after: MetricEstimate
    correlation: float | None

    @property
    def name(self) -> str:
        """Of the metric."""
        return self.before.name

    @property
    def change(self) -> float:
        """after - before."""
        return self.after.estimate - self.before.estimate

    @property
    def has_interval(self) -> bool:
        """Whether the change has an interval."""
        return self.correlation is not None

    @property
    def trusted(self) -> bool:
        """Whether both estimates are reliable."""
        return self.before.trusted and self.after.trusted

    @property
    def standard_error(self) -> float:
        """Of the change, from those of both and their correlation."""
        if self.correlation is None:
            msg = (
                f"the change of {self.name} has no interval: there are too many rows to keep their "
                "influence; ask for fewer metrics or pass fewer rows"
            )
            raise InvalidInput(msg)
        one, other = self.after.standard_error, self.before.standard_error
        square = one**2 + other**2 - 2 * self.correlation * one * other
        return float(np.sqrt(max(square, 0.0)))

    def confidence_interval(self, level: float = 0.95) -> tuple[float, float]:
        """Lower and upper end of the change, from the normal distribution.

        Where no row has an influence on either, as of an accuracy of 1, from both intervals.
        """
        reach = normal_quantile(validate_level(level)) * self.standard_error
        down = up = reach
        if max(self.after.standard_error, self.before.standard_error) == 0:
            down, up = self._distances(level)
        widest = self.before.bounds[1] - self.before.bounds[0]
        return max(self.change - down, -widest), min(self.change + up, widest)

    def _distances(self, level: float) -> tuple[float, float]:
        """Of the ends from the change, as if both intervals were of other rows."""
        after, before = (one.confidence_interval(level) for one in (self.after, self.before))
        a, b = self.after.estimate, self.before.estimate
        down, up = np.hypot(a - after[0], before[1] - b), np.hypot(after[1] - a, b - before[0])
        return float(down), float(up)

    def to_dict(self, level: float = 0.95) -> dict[str, Any]:
        """Plain numbers; None where something was not computed."""
        ends = self.confidence_interval(level) if self.has_interval else None
        return {
            "name": self.name,
            "title": self.before.title,
            "before": self.before.to_dict(level),
            "after": self.after.to_dict(level),
            "change": plain(self.change),
            "interval": None if ends is None else [plain(end) for end in ends],
            "trusted": self.trusted,
        }


def compare_metrics(before: MetricsResult, after: MetricsResult) -> dict[str, MetricChange]:
    """The changes by name, of metrics of the same rows."""
    one, other, every = before._influence, after._influence, list(range(len(before)))
    shared: list[float | None] = [None] * len(before)
    if one is not None and other is not None:
        shared = [*one.correlations(other, every, every)]
    return {
        name: MetricChange(before[name], after[name], r)
        for name, r in zip(before, shared, strict=True)
    }
