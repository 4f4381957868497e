"""Result of `recalibrate`: recalibrated probabilities and the errors before and after."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from calshift._core.frozen import Frozen
from calshift._core.text import note_lines, percent

if TYPE_CHECKING:
    from calshift.recalibration.base import Recalibrator
    from calshift.results.calibration_error import CalibrationErrorResult
    from calshift.results.difference import Difference
    from calshift.results.score_change import ScoreChange


@dataclass(frozen=True, eq=False, repr=False)
class RecalibrationResult(Frozen):
    """Recalibrated probabilities, with the calibration error before and after.

    The errors and scores after recalibration are those of the recalibration that was asked for. If
    they are not trusted, or one of them is clearly worse than before, it is not applied: see
    ``fallback``.

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
    accuracy, log_loss : on the target before and after, from the source's rows under the class
        distribution of the target, cross-fitted
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
            "folds": self.folds,
            "warnings": list(self.warnings),
            "trusted": self.trusted,
        }

    def table(self, level: float = 0.95) -> str:
        """Errors, in units of probability, accuracy and log loss before and after."""
        head = f"{percent(level)} interval"
        lines = [f"{'':>8} {'error':>9} {head:>19} {'accuracy':>9} {'log loss':>9}"]
        errors = (
            ("before", self.before, ""),
            ("after", self.after, ""),
            ("change", self.change, "+"),
        )
        for name, one, sign in errors:
            low, high = one.confidence_interval(level, root=True)
            ends = f"{low:{sign}.4f} to {high:{sign}.4f}"
            scores = (
                f" {getattr(score, name):>{sign}9.4f}" for score in (self.accuracy, self.log_loss)
            )
            lines.append(f"{name:>8} {one.root:>{sign}9.4f} {ends:>19}{''.join(scores)}")
        for name, score in (("accuracy", self.accuracy), ("log loss", self.log_loss)):
            low, high = score.confidence_interval(level)
            lines.append(f"change of {name}, {head}: {low:+.4f} to {high:+.4f}")
        return "\n".join(lines)

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
