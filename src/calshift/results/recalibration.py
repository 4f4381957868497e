"""The answer to "can you mend it?"."""

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
    """Mended probabilities, and what they are worth.

    Attributes
    ----------
    probabilities : (m, K) of the target's rows, or (m,) for scores of two classes
    recalibrator : fitted to all rows; for new ones use its `transform`
    before, after : label-free calibration errors on the target. ``after`` is of probabilities that
        were mended by recalibrators fitted to other rows, a part at a time (cross-fitted)
    change : ``after`` less ``before``
    folds : how many parts there were
    notes, usable : what to know about the mending itself, and whether it can be worth anything
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
        """Whether both errors can be trusted, and the mending."""
        return self.usable and self.before.trusted and self.after.trusted

    @property
    def warnings(self) -> tuple[str, ...]:
        """Of the mending and of both errors, worst first."""
        after, before = self.after.warnings, self.before.warnings
        others = [f"before: {note}" for note in before if note not in after]
        first = self.notes + after if not self.usable or self.after.trusted else after + self.notes
        return (*first, *others)

    def gist(self, level: float = 0.95) -> str:
        """In a few words: did it help?"""
        low, high = self.change.confidence_interval(level, root=True)
        if not self.trusted:
            return "Not to be trusted"
        return "Better" if high < 0 else "Worse" if low > 0 else "No clear change"

    def to_dict(self, level: float = 0.95) -> dict[str, Any]:
        """Plain numbers, lists and texts; the probabilities are left to files."""
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
        for name, one in (("before", self.before), ("after", self.after)):
            low, high = one.confidence_interval(level, root=True)
            lines.append(f"{name:>8} {one.root:>9.4f} {f'{low:.4f} to {high:.4f}':>19}")
        low, high = self.change.confidence_interval(level, root=True)
        lines.append(f"{'change':>8} {self.change.root:>+9.4f} {f'{low:+.4f} to {high:+.4f}':>19}")
        return "\n".join(lines)

    def __str__(self) -> str:
        kept = "keeps" if self.recalibrator.keeps_ranking else "may change"
        head = f"{self.gist()}: {self.recalibrator!r}, which {kept} the ranking of classes"
        note = f"after: mended by fits to other rows, {self.folds} parts in turn"
        return "\n".join([head, self.table(), note, *note_lines(self.warnings)])

    def _repr_html_(self) -> str:
        """What a notebook shows."""
        from html import escape  # late: importing calshift must be fast

        return f"<pre>{escape(str(self))}</pre>"

    def __repr__(self) -> str:
        roots = f"before={self.before.root:.4g}, after={self.after.root:.4g}"
        return f"RecalibrationResult({self.recalibrator!r}, {roots})"
