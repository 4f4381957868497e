"""Result of `canonical_error_bound`: the gain of a recalibration, and the bound that it implies."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from calshift._core.frozen import Frozen
from calshift._core.text import note_lines, percent
from calshift._core.validate import validate_level
from calshift.errors import InvalidInput

if TYPE_CHECKING:
    from calshift.results.class_weights import ClassWeights
    from calshift.results.label_shift_check import LabelShiftCheck


@dataclass(frozen=True, eq=False, repr=False)
class CanonicalErrorBound(Frozen):
    """A lower confidence bound of the canonical calibration error.

    Attributes
    ----------
    gain : how much smaller the expected loss of recalibrated predictions is; at most the canonical
        error
    standard_error : of the gain
    loss : "brier", whose bound is that of ``E |E[Y | f] - f|^2``, or "log", of the mean
        Kullback-Leibler divergence of f from E[Y | f]
    method : the recalibrator
    folds : number of folds
    n_source, n_target : sample sizes; ``n_target`` is None with labels
    class_weights, assumption : weights and test of label shift of a label-free bound, else None
    warnings, trusted : limitations, most serious first, and whether the bound is reliable
    """

    gain: float
    standard_error: float
    loss: str
    method: str
    folds: int
    n_source: float
    n_target: float | None = None
    class_weights: ClassWeights | None = None
    assumption: LabelShiftCheck | None = None
    warnings: tuple[str, ...] = ()
    trusted: bool = True

    def confidence_interval(self, level: float = 0.95) -> tuple[float, float]:
        """Lower and upper end of the gain; not of the canonical error, which is at least as large.

        The gain is that of the recalibrators fitted to all folds but one, on average.
        """
        reach = self._quantile((1 + validate_level(level)) / 2) * self.standard_error
        return self.gain - reach, self.gain + reach

    def lower_bound(self, level: float = 0.95) -> float:
        """The canonical error is at least this large, at the level of confidence; 0 or more."""
        reach = self._quantile(validate_level(level)) * self.standard_error
        return max(self.gain - reach, 0.0)

    def root_lower_bound(self, level: float = 0.95) -> float:
        """The bound of the root, in units of probability; for the Brier loss only."""
        if self.loss != "brier":
            msg = f'there is a root for loss="brier" only; this bound has loss={self.loss!r}'
            raise InvalidInput(msg)
        return float(self.lower_bound(level) ** 0.5)

    @staticmethod
    def _quantile(probability: float) -> float:
        from scipy.special import ndtri  # late: importing calshift must be fast

        return float(ndtri(probability))

    def to_dict(self, level: float = 0.95) -> dict[str, Any]:
        """Plain numbers and texts, the bound at a level."""
        brier, weights, check = self.loss == "brier", self.class_weights, self.assumption
        return {
            "gain": self.gain,
            "standard_error": self.standard_error,
            "interval": {"level": level, "gain": list(self.confidence_interval(level))},
            "lower_bound": self.lower_bound(level),
            "root_lower_bound": self.root_lower_bound(level) if brier else None,
            "loss": self.loss,
            "method": self.method,
            "folds": self.folds,
            "n_source": self.n_source,
            "n_target": self.n_target,
            "class_weights": None if weights is None else weights.to_dict(),
            "assumption": None if check is None else check.to_dict(),
            "warnings": list(self.warnings),
            "trusted": self.trusted,
        }

    def __str__(self) -> str:
        name = "Brier score" if self.loss == "brier" else "log loss"
        root = f" (root: {self.root_lower_bound():.4f})" if self.loss == "brier" else ""
        reliable = "" if self.trusted else "Not reliable. "
        lines = [
            f"{reliable}Canonical error at least {self.lower_bound():.5f}{root}, "
            f"{percent(0.95)} confidence",
            f"recalibration ({self.method}, {self.folds} folds) lowers the {name} by "
            f"{self.gain:.5f}, standard error {self.standard_error:.5f}",
        ]
        return "\n".join([*lines, *note_lines(self.warnings)])

    def __repr__(self) -> str:
        shown = f"gain={self.gain:.6g}, standard_error={self.standard_error:.3g}"
        return f"CanonicalErrorBound({shown}, loss={self.loss!r})"
