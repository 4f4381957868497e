"""A score of the target's predictions before and after recalibration, without target labels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from calshift._core.frozen import Frozen
from calshift._core.validate import validate_level


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
        from scipy.special import ndtri  # late: importing calshift must be fast

        reach = float(ndtri((1 + validate_level(level)) / 2)) * self.standard_error
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
