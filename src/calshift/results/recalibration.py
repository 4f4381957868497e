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


@dataclass(frozen=True, eq=False, repr=False)
class RecalibrationResult(Frozen):
    """Recalibrated probabilities, with the calibration error before and after.

    Attributes
    ----------
    probabilities : (m, K) of the target's rows, or (m,) for scores of two classes
    recalibrator : fitted to all rows; its `transform` recalibrates new rows
    before, after : label-free calibration errors on the target; ``after`` is cross-fitted: each
        fold is recalibrated by a fit to the other folds
    change : the difference ``after - before``
    folds : number of folds
    notes, usable : limitations of the recalibration, and whether it can be used at all
    """

    probabilities: np.ndarray
    recalibrator: Recalibrator
    before: CalibrationErrorResult
    after: CalibrationErrorResult
    change: Difference
    folds: int
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
        """In a few words, whether the error became smaller."""
        low, high = self.change.confidence_interval(level, root=True)
        if not self.trusted:
            return "Not reliable"
        return "Better" if high < 0 else "Worse" if low > 0 else "No clear change"

    def to_dict(self, level: float = 0.95) -> dict[str, Any]:
        """Plain numbers, lists and texts, without the probabilities."""
        low, high = self.change.confidence_interval(level, root=True)
        return {
            "gist": self.gist(level),
            "recalibrator": self.recalibrator.to_dict(),
            "keeps_ranking": self.recalibrator.keeps_ranking,
            "before": self.before.to_dict(level),
            "after": self.after.to_dict(level),
            "change": {"root": self.change.root, "level": level, "interval": [low, high]},
            "folds": self.folds,
            "warnings": list(self.warnings),
            "trusted": self.trusted,
        }

    def table(self, level: float = 0.95) -> str:
        """Errors before and after, in units of probability."""
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
        return "\n".join(lines)

    def __str__(self) -> str:
        kept = "keeps" if self.recalibrator.keeps_ranking else "may change"
        head = f"{self.gist()}: {self.recalibrator!r}, which {kept} the ranking of classes"
        note = f"after: cross-fitted ({self.folds} folds)"
        return "\n".join([head, self.table(), note, *note_lines(self.warnings)])

    def _repr_html_(self) -> str:
        """HTML for notebooks."""
        from html import escape  # late: importing calshift must be fast

        return f"<pre>{escape(str(self))}</pre>"

    def __repr__(self) -> str:
        roots = f"before={self.before.root:.4g}, after={self.after.root:.4g}"
        return f"RecalibrationResult({self.recalibrator!r}, {roots})"
