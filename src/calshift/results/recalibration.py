"""Result of `recalibrate`: recalibrated probabilities, errors and metrics before and after."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from calshift._core.frozen import Frozen
from calshift._core.text import note_lines, percent, printable
from calshift.results.score_change import MetricChange, compare_metrics

if TYPE_CHECKING:
    from calshift.recalibration.base import Recalibrator
    from calshift.results.calibration_error import CalibrationErrorResult
    from calshift.results.difference import Difference
    from calshift.results.metrics import MetricsResult
    from calshift.results.score_change import ScoreChange

METRICS_SHOWN = 60


@dataclass(frozen=True, eq=False, repr=False)
class RecalibrationResult(Frozen):
    """Recalibrated probabilities, with the calibration error and metrics before and after.

    The errors, metrics and scores after recalibration are those of the recalibration that was asked
    for. If the errors are not trusted, or an error or a score is clearly worse than before, it is
    not applied: see ``fallback``.

    Attributes
    ----------
    probabilities : (m, K) of the target's rows, or (m,) for scores of two classes
    recalibrator : the one applied, fitted to all rows; its `transform` recalibrates new rows
    requested : the one that was asked for, fitted to all rows
    fallback : what was applied instead of it: "source" (a calibration fitted to the source, which
        does not follow the class distribution of the target), "unchanged", or None
    before, after : label-free calibration errors on the target; ``after`` is cross-fitted: each
        fold is recalibrated by a fit to the other folds
    change : the difference ``after - before``
    accuracy, log_loss : by which a recalibration is judged: on the target before and after, from
        the source's rows under the class priors of ``before``, of the most probable class,
        cross-fitted
    metrics_before, metrics_after : the metrics asked for on the target, with the class weights of
        ``before`` and ``after``; the latter are cross-fitted
    folds : number of folds
    notes, usable : limitations of the recalibration, and whether it can be used at all
    """

    probabilities: np.ndarray
    recalibrator: Recalibrator
    requested: Recalibrator
    before: CalibrationErrorResult
    after: CalibrationErrorResult
    change: Difference
    accuracy: ScoreChange
    log_loss: ScoreChange
    metrics_before: MetricsResult
    metrics_after: MetricsResult
    folds: int
    fallback: str | None = None
    notes: tuple[str, ...] = ()
    usable: bool = True

    @property
    def trusted(self) -> bool:
        """Whether both errors and the recalibration are reliable."""
        return self.usable and self.before.trusted and self.after.trusted

    @property
    def warnings(self) -> tuple[str, ...]:
        """Of the recalibration and of both errors, worst first."""
        after, before = self.after.warnings, self.before.warnings
        others = [f"before: {note}" for note in before if note not in after]
        first = self.notes + after if not self.usable or self.after.trusted else after + self.notes
        return (*first, *others)

    @property
    def metric_changes(self) -> dict[str, MetricChange]:
        """Each metric before and after, by name, with the interval of the change.

        The interval follows from the influence of the rows that both share, and assumes the
        recalibration as it is. Without these (too many rows) there is none.
        """
        return compare_metrics(self.metrics_before, self.metrics_after)

    def gist(self, level: float = 0.95) -> str:
        """In a few words, whether the error became smaller, and neither score worse."""
        if not self.trusted:
            return "Not reliable"
        if self.fallback is not None or self.worse(level):
            return "Worse"
        better = self.change.confidence_interval(level, root=True)[1] < 0
        return "Better" if better else "No clear change"

    def worse(self, level: float = 0.95) -> tuple[str, ...]:
        """Which of calibration error, accuracy and log loss are clearly worse after."""
        clear = {
            "calibration error": self.change.confidence_interval(level, root=True)[0] > 0,
            "accuracy": self.accuracy.is_worse(level),
            "log loss": self.log_loss.is_worse(level),
        }
        return tuple(name for name, found in clear.items() if found)

    @property
    def applied(self) -> str:
        """One sentence on what was applied instead of what was asked for, or ""."""
        asked = type(self.requested).__name__
        if self.fallback == "source":
            name = type(self.recalibrator).__name__
            return (
                f"Instead of {asked}, {name} fitted to the source was applied, which does not "
                "follow the class distribution of the target."
            )
        if self.fallback == "unchanged":
            return f"{asked} was not applied: the probabilities are unchanged."
        return ""

    def to_dict(self, level: float = 0.95) -> dict[str, Any]:
        """Plain numbers, lists and texts, without the probabilities."""
        low, high = self.change.confidence_interval(level, root=True)
        return {
            "gist": self.gist(level),
            "fallback": self.fallback,
            "recalibrator": self.recalibrator.to_dict(),
            "keeps_ranking": self.recalibrator.keeps_ranking,
            "before": self.before.to_dict(level),
            "after": self.after.to_dict(level),
            "change": {"root": self.change.root, "level": level, "interval": [low, high]},
            "accuracy": self.accuracy.to_dict(level),
            "log_loss": self.log_loss.to_dict(level),
            "metrics": [one.to_dict(level) for one in self.metric_changes.values()],
            "decision": self.metrics_before.decision,
            "positive": _text(self.metrics_before.positive),
            "folds": self.folds,
            "warnings": list(self.warnings),
            "trusted": self.trusted,
        }

    def table(self, level: float = 0.95) -> str:
        """Errors, in units of probability, and metrics before and after."""
        head = f"{percent(level)} interval"
        lines = [f"{'':>8} {'error':>9} {head:>19}"]
        errors = (
            ("before", self.before, ""),
            ("after", self.after, ""),
            ("change", self.change, "+"),
        )
        for name, one, sign in errors:
            low, high = one.confidence_interval(level, root=True)
            ends = f"{low:{sign}.4f} to {high:{sign}.4f}"
            lines.append(f"{name:>8} {one.root:>{sign}9.4f} {ends:>19}")
        lines += ["", *self._metric_lines(level), ""]
        scores = (
            "{} {:+.4f} to {:+.4f}".format(name, *one.confidence_interval(level))
            for name, one in (
                ("accuracy of the most probable class", self.accuracy),
                ("log loss", self.log_loss),
            )
        )
        judged = f"judged by the change with the class priors before ({head}):"
        return "\n".join([*lines, judged, f"  {', '.join(scores)}"])

    def _metric_lines(self, level: float) -> Iterator[str]:
        """One line a metric."""
        shown = list(self.metric_changes.values())
        names = [_shorten(printable(one.name)) for one in shown[:METRICS_SHOWN]]
        width = max(map(len, ["metric", *names]))
        columns = f"{'before':>9} {'after':>9} {'change':>9}  {percent(level)} interval of change"
        yield f"{'metric':{width}} {columns}"
        for name, one in zip(names, shown, strict=False):
            numbers = f"{_number(one.before.estimate):>9} {_number(one.after.estimate):>9}"
            ends = map(_signed, one.confidence_interval(level)) if one.has_interval else ()
            note = "" if one.trusted or not self.trusted else "not trusted"
            line = (
                f"{name:{width}} {numbers} {_signed(one.change):>9}  {' to '.join(ends):<22} {note}"
            )
            yield line.rstrip()
        if hidden := len(shown) - len(names):
            yield f"... {hidden} more metrics"

    def __str__(self) -> str:
        kept = "keeps" if self.requested.keeps_ranking else "may change"
        head = f"{self.gist()}: {self.requested!r}, which {kept} the ranking of classes"
        lines = [head, *([self.applied] if self.fallback else []), self.table()]
        note = f"after: cross-fitted ({self.folds} folds)"
        return "\n".join([*lines, note, *note_lines(self.warnings)])

    def _repr_html_(self) -> str:
        """HTML for notebooks."""
        from html import escape  # late: importing calshift must be fast

        return f"<pre>{escape(str(self))}</pre>"

    def __repr__(self) -> str:
        roots = f"before={self.before.root:.4g}, after={self.after.root:.4g}"
        return f"RecalibrationResult({self.recalibrator!r}, {roots}, fallback={self.fallback!r})"


def _text(value: Any) -> str | None:
    return None if value is None else str(value)


def _shorten(name: str) -> str:
    return name if len(name) <= 30 else name[:27] + "..."


def _number(value: float) -> str:
    return f"{value:.4f}" if abs(value) < 1000 else f"{value:.4g}"


def _signed(value: float) -> str:
    return f"{value:+.4f}" if abs(value) < 1000 else f"{value:+.4g}"
