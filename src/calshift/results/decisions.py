"""Results about decisions: a threshold or rule with what it achieves, and decision curves."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from calshift._core.convert import plain, to_numpy
from calshift._core.frozen import Frozen
from calshift._core.predictions import as_predictions
from calshift._core.text import note_lines, percent
from calshift._core.validate import validate_level
from calshift.errors import InvalidInput
from calshift.results.intervals.bounded_mean import normal_quantile

if TYPE_CHECKING:
    from calshift.metrics.decision_rule import DecisionRule
    from calshift.recalibration.base import Recalibrator
    from calshift.results.metrics import MetricEstimate, MetricsResult


@dataclass(frozen=True, eq=False, repr=False)
class DecisionThreshold(Frozen):
    """A decision rule for the target, what it achieves, and what happens without it.

    Attributes
    ----------
    threshold : the least predicted probability of the positive class to predict it, on the
        probabilities as they are; None for more than two classes
    recalibrated_threshold : the same on recalibrated probabilities; None unless costs decide
    goal : what was asked for, in words
    reached : whether a threshold that keeps the metric at its value exists
    achieved : metrics on the target with the new rule
    unchanged : metrics on the target with the present rule
    recalibrator : fitted to both samples, for rules of least expected cost; else None
    cost : (K, K) costs by predicted and true class, or None
    warnings : what to know before acting on it, worst first
    """

    threshold: float | None
    recalibrated_threshold: float | None
    goal: str
    reached: bool
    achieved: MetricsResult
    unchanged: MetricsResult
    rule: DecisionRule
    recalibrator: Recalibrator | None = None
    cost: np.ndarray | None = None
    warnings: tuple[str, ...] = ()
    decisive: str = ""  # the metric that was to be kept, or the expected cost

    @property
    def trusted(self) -> bool:
        """Whether the metric that decides is trusted, and a threshold that keeps it exists."""
        known = self.decisive not in self.achieved or self.achieved[self.decisive].trusted
        return self.achieved.trusted and self.reached and known

    def predict(self, p: Any) -> np.ndarray:
        """(n,) the classes that the rule predicts, by name where classes have names."""
        found = self.rule(as_predictions(p, labelled=False))
        classes = self.achieved.classes
        return found if classes is None else to_numpy(list(classes), "classes")[0][found]

    @property
    def changes(self) -> dict[str, tuple[float, tuple[float, float] | None]]:
        """By metric: achieved - unchanged, with its 95% interval where it is known."""
        return {name: self.change(name) for name in self.achieved}

    def change(self, name: str, level: float = 0.95) -> tuple[float, tuple[float, float] | None]:
        """achieved - unchanged of a metric, with its interval from the rows that both share."""
        if name not in self.achieved:
            msg = f"there is no metric {name!r}: one of {', '.join(self.achieved)}"
            raise InvalidInput(msg)
        value = self.achieved[name].estimate - self.unchanged[name].estimate
        error = _error_of_change(self.achieved, self.unchanged, name)
        if error is None:
            return value, None
        reach = normal_quantile(validate_level(level)) * error
        return value, (value - reach, value + reach)

    def to_dict(self, level: float = 0.95) -> dict[str, Any]:
        """Plain numbers, lists and texts."""
        changes = {name: self.change(name, level) for name in self.achieved}
        return {
            "goal": self.goal,
            "reached": self.reached,
            "threshold": plain(self.threshold),
            "recalibrated_threshold": plain(self.recalibrated_threshold),
            "achieved": self.achieved.to_dict(level),
            "unchanged": self.unchanged.to_dict(level),
            "changes": {
                name: {"change": plain(value), "interval": None if ends is None else plain(ends)}
                for name, (value, ends) in changes.items()
            },
            "recalibrator": None if self.recalibrator is None else self.recalibrator.to_dict(),
            "trusted": self.trusted,
            "warnings": list(self.warnings),
        }

    def table(self, level: float = 0.95) -> str:
        """Metrics with the present rule and with the new one."""
        width = max(8, *(len(name) for name in self.achieved))
        head = f"{percent(level)} interval"
        lines = [
            f"{'metric':{width}} {'unchanged':>9}   {head:<18} {'new rule':>9}   {head:<18} change"
        ]
        for name, new in self.achieved.items():
            old = self.unchanged[name]
            both = f"{_cell(old, level)} {_cell(new, level)}"
            lines.append(f"{name:{width}} {both} {new.estimate - old.estimate:+.4f}")
        return "\n".join(lines)

    def plot(self, ax: Any = None) -> Any:
        """Draw each metric with the new rule, with its interval; see `MetricsResult.plot`."""
        return self.achieved.plot(ax)

    def __str__(self) -> str:
        what = "least expected cost on recalibrated probabilities"
        if self.threshold is not None:
            positive = self.achieved.positive
            what = f"predict class {positive} at a probability of at least {self.threshold:.6g}"
        head = f"{self.goal}: {what}"
        trust = [] if self.trusted else ["NOT TRUSTED: keep the present rule until it is known why"]
        return "\n".join([head, *trust, self.table(), *note_lines(self.warnings)])

    def _repr_html_(self) -> str:
        """HTML for notebooks."""
        from html import escape  # late: importing calshift must be fast

        return f"<pre>{escape(str(self))}</pre>"

    def __repr__(self) -> str:
        at = "" if self.threshold is None else f"threshold={self.threshold:.6g}, "
        return f"DecisionThreshold({at}goal={self.goal!r}, trusted={self.trusted})"


def _cell(one: MetricEstimate, level: float) -> str:
    ends = ""
    if one.has_interval:
        ends = "{:.4f} to {:.4f}".format(*one.confidence_interval(level))
    return f"{one.estimate:>9.4f}   {ends:<18}"


def _error_of_change(a: MetricsResult, b: MetricsResult, name: str) -> float | None:
    """Standard error of the difference of a metric under two rules on the same rows."""
    first, second = a._influence, b._influence
    if first is None or second is None or first.target is None or second.target is None:
        return None
    k = list(a).index(name)
    parts = (first.source[:, k] - second.source[:, k], first.target[:, k] - second.target[:, k])
    factor = 1.0 if a.class_weights is None else a.class_weights.error_factor
    return factor * float(np.sqrt(sum(float(part @ part) for part in parts)))


@dataclass(frozen=True, eq=False, repr=False)
class DecisionCurve(Frozen):
    """Net benefit by threshold, on the target and on the labelled source.

    Attributes
    ----------
    thresholds : (T,) of the probability of the positive class
    net_benefit, standard_error : (T,) share of true positives less false positives times the odds
        of the threshold, on the target (or of labelled rows)
    treat_all, treat_all_error : (T,) the same where all rows are predicted positive
    source : (T,) on the source; None for labelled rows
    positive : the positive class
    trusted, warnings : as of the metrics behind it
    """

    thresholds: np.ndarray
    net_benefit: np.ndarray
    standard_error: np.ndarray
    treat_all: np.ndarray
    treat_all_error: np.ndarray
    source: np.ndarray | None = None
    positive: Any = None
    trusted: bool = False
    warnings: tuple[str, ...] = ()

    def band(self, level: float = 0.95) -> tuple[np.ndarray, np.ndarray]:
        """(T,) lower and upper ends, for each threshold by itself."""
        reach = normal_quantile(validate_level(level)) * self.standard_error
        return self.net_benefit - reach, self.net_benefit + reach

    def to_dict(self, level: float = 0.95) -> dict[str, Any]:
        """Plain numbers and lists."""
        low, high = self.band(level)
        columns = {
            "thresholds": self.thresholds, "net_benefit": self.net_benefit, "low": low,
            "high": high, "treat_all": self.treat_all, "source": self.source,
        }  # fmt: skip
        return {
            "level": level,
            **{name: plain(values) for name, values in columns.items()},
            "positive": None if self.positive is None else str(self.positive),
            "trusted": self.trusted,
            "warnings": list(self.warnings),
        }

    def plot(self, ax: Any = None, *, level: float = 0.95) -> Any:
        """Draw the curve with its band, and those of treating all and none."""
        from calshift.plotting import plot_decision_curve  # late: matplotlib only when drawing

        return plot_decision_curve(self, ax, level)

    def __str__(self) -> str:
        low, high = self.band()
        head = f"{'threshold':>9} {'net benefit':>11}   {'95% interval':<18} {'treat all':>9}"
        step = max(1, len(self.thresholds) // 20)
        lines = [
            f"{self.thresholds[k]:>9.4f} {self.net_benefit[k]:>11.4f}   "
            f"{f'{low[k]:.4f} to {high[k]:.4f}':<18} {self.treat_all[k]:>9.4f}"
            for k in range(0, len(self.thresholds), step)
        ]
        trust = [] if self.trusted else ["NOT TRUSTED"]
        return "\n".join([*trust, head, *lines, *note_lines(self.warnings)])

    def _repr_html_(self) -> str:
        """HTML for notebooks."""
        from html import escape  # late: importing calshift must be fast

        return f"<pre>{escape(str(self))}</pre>"

    def __repr__(self) -> str:
        return f"DecisionCurve({len(self.thresholds)} thresholds, trusted={self.trusted})"
