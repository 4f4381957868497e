"""Results about decisions: a threshold or rule with what it achieves, and decision curves."""

from __future__ import annotations

import textwrap
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from calshift._core.convert import plain, to_numpy
from calshift._core.frozen import Frozen
from calshift._core.predictions import as_predictions
from calshift._core.text import note_lines, percent, printable, shorten
from calshift._core.validate import validate_level
from calshift.errors import InvalidInput
from calshift.results.intervals.bounded_mean import normal_quantile

if TYPE_CHECKING:
    from calshift.metrics.decision_rule import DecisionRule
    from calshift.recalibration.base import Recalibrator
    from calshift.results.metrics import MetricsResult

NAME = 24  # characters of the name of a metric in tables
PER_1000 = ("missed_cases", "false_alarms")
ROWS_SHOWN = 25  # of a decision curve


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
        reach, new = normal_quantile(validate_level(level)), self.achieved[name]
        value = new.estimate - self.unchanged[name].estimate
        error = _error_of_change(self.achieved, self.unchanged, name)
        if error is None or not np.isfinite(value + error):
            return value, None
        widest = new.bounds[1] - new.bounds[0]
        return value, (max(value - reach * error, -widest), min(value + reach * error, widest))

    @property
    def description(self) -> str:
        """The rule in a few words."""
        positive = shorten(printable(str(self.achieved.positive)))
        if self.threshold is None:
            return "predict the class of least expected cost, with recalibrated probabilities"
        if self.threshold <= 0:
            return f"always predict class {positive}"
        at = format_threshold(self.threshold)
        return f"predict class {positive} at a probability of at least {at}"

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
        """Metrics with the present rule and the new one, and the change; at most 100 columns."""
        ends = f"{percent(validate_level(level))} interval"
        head = f"{'metric':{NAME}} {'present':>9} {'new rule':>9}  {ends:<20} {'change':>9}  {ends}"
        return "\n".join([head, *(self._line(name, level) for name in self.achieved)])

    def _line(self, name: str, level: float) -> str:
        """One metric; those of a share of few rows are shown per 1000."""
        new, old = self.achieved[name], self.unchanged[name]
        scale = 1000.0 if name in PER_1000 else 1.0
        title = shorten(printable(name) + (" (per 1000)" if scale > 1 else ""), NAME)
        ends = new.confidence_interval(level) if new.has_interval else None
        change, interval = self.change(name, level)
        about = _ends(interval, scale, "+")
        if self.achieved.trusted and not new.trusted:
            about = "not trusted"
        same = change == 0 and interval in (None, (0.0, 0.0))
        line = f"{title:{NAME}} {_number(old.estimate, scale):>9} {_number(new.estimate, scale):>9}"
        line += f"  {_ends(ends, scale):<20} {'same' if same else _number(change, scale, '+'):>9}"
        return f"{line}  {'' if same else about}".rstrip()

    def plot(self, ax: Any = None) -> Any:
        """Draw each metric with the new rule, with its interval; see `MetricsResult.plot`."""
        return self.achieved.plot(ax)

    def __str__(self) -> str:
        trust = [] if self.trusted else ["NOT TRUSTED: keep the present rule until it is known why"]
        if self.achieved.trusted and not self.reached:
            trust = ["NOT REACHED: no threshold achieves what was asked for"]
        head = textwrap.wrap(f"{self.goal}: {self.description}", 98)
        present = textwrap.wrap(f"present rule: {self.unchanged.decision}", 98)
        notes = note_lines(self.warnings)
        return "\n".join([*trust, *head, *present, self.table(), *notes])

    def _repr_html_(self) -> str:
        """What a notebook shows."""
        from calshift.report import threshold_fragment  # late: only when shown

        return threshold_fragment(self)

    def __repr__(self) -> str:
        at = "" if self.threshold is None else f"threshold={self.threshold:.6g}, "
        return f"DecisionThreshold({at}goal={self.goal!r}, trusted={self.trusted})"


def format_threshold(value: float) -> str:
    """Six digits, rounded down, so that rows at the threshold stay at or above it."""
    text = f"{value:.6g}"
    if float(text) <= value:
        return text
    step = 10.0 ** (np.floor(np.log10(value)) - 5)
    return f"{float(text) - step:.6g}"


def _number(value: float, scale: float = 1.0, sign: str = "") -> str:
    """Four decimals, of cases of 1000 two, of large numbers fewer; "unknown" for NaN."""
    scaled = scale * value
    if not np.isfinite(scaled):
        return "unknown"
    if abs(scaled) >= 1e5:
        return f"{scaled:{sign}.3g}"
    decimals = 2 if scale > 1 else 4 if abs(scaled) < 10 else 2
    return f"{scaled:{sign}.{decimals if abs(scaled) < 1000 else 0}f}"


def _ends(interval: tuple[float, float] | None, scale: float = 1.0, sign: str = "") -> str:
    """Both ends of an interval; empty if one is unknown."""
    if interval is None or not np.isfinite(interval).all():
        return ""
    return " to ".join(_number(end, scale, sign) for end in interval)


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

    @property
    def shown(self) -> range:
        """Places of the thresholds in tables: about twenty of many."""
        return range(0, len(self.thresholds), max(1, -(-len(self.thresholds) // ROWS_SHOWN)))

    def table(self, level: float = 0.95) -> str:
        """Net benefit at about twenty of the thresholds; at most 100 columns."""
        low, high = self.band(level)
        ends = f"{percent(level)} interval"
        head = f"{'threshold':>9} {'net benefit':>11}  {ends:<20} {'all positive':>12}"
        lines = [head if self.source is None else f"{head} {'on the source':>13}"]
        for k in self.shown:
            line = f"{self.thresholds[k]:>9.4f} {_number(self.net_benefit[k]):>11}"
            line += f"  {_ends((low[k], high[k])):<20} {_number(self.treat_all[k]):>12}"
            line += "" if self.source is None else f" {_number(self.source[k]):>13}"
            lines.append(line)
        return "\n".join(lines)

    def __str__(self) -> str:
        where = "of labelled rows" if self.source is None else "on the target, without labels"
        positive = shorten(printable(str(self.positive)))
        trust = [] if self.trusted else ["NOT TRUSTED"]
        head = textwrap.wrap(f"Net benefit by threshold {where}; positive: class {positive}", 98)
        return "\n".join([*trust, *head, self.table(), *note_lines(self.warnings)])

    def _repr_html_(self) -> str:
        """What a notebook shows."""
        from calshift.report import curve_fragment  # late: only when shown

        return curve_fragment(self)

    def __repr__(self) -> str:
        return f"DecisionCurve({len(self.thresholds)} thresholds, trusted={self.trusted})"
