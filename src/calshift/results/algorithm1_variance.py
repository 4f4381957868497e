"""Result of `variance_algorithm1`: the variance of the paper's estimate."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from calshift._core.convert import plain
from calshift._core.frozen import Frozen
from calshift._core.text import note_lines

if TYPE_CHECKING:
    from calshift.results.class_weights import ClassWeights

CLASSES_SHOWN = 10


@dataclass(frozen=True, eq=False, repr=False)
class AlgorithmVariance(Frozen):
    """Variance of ``estimator="paper"`` by the paper's Algorithm 1, and corrected under shift.

    ``float()`` gives the paper's variance.

    Attributes
    ----------
    variance : of CE_p^p, by Algorithm 1; of a mean over classes as if these were independent
    corrected : the same with the variance of class counts that Algorithm 1 leaves out; None with
        labels, where no correction is needed
    per_class, corrected_per_class : (K,) of each class's error under "classwise" (NaN: unseen in
        the source), or None
    class_weights : the weights, taken as fixed by both, or None with labels
    stratified : whether the corrected variance takes the source's class counts as fixed
    sampled : whether the variances were sampled, as printed in the paper, or computed
    warnings : limitations, worst first
    merged_bins : bins merged with a neighbour because they had too few rows
    kind, norm, n_source, n_target, classes : settings and data
    """

    variance: float
    kind: str
    norm: float
    n_source: float
    n_target: float | None = None
    corrected: float | None = None
    per_class: np.ndarray | None = None
    corrected_per_class: np.ndarray | None = None
    class_weights: ClassWeights | None = None
    stratified: bool = False
    sampled: bool = False
    warnings: tuple[str, ...] = ()
    merged_bins: int = 0
    classes: tuple[Any, ...] | None = None

    @property
    def standard_error(self) -> float:
        """Root of the paper's variance; 0 where sampling left it negative."""
        return float(max(self.variance, 0.0) ** 0.5)

    @property
    def corrected_standard_error(self) -> float | None:
        """Root of the corrected variance, or None with labels."""
        return None if self.corrected is None else float(max(self.corrected, 0.0) ** 0.5)

    @property
    def largest(self) -> float:
        """The paper's variance under perfect correlation of the classes, ``(mean_c sd_c)^2``: the
        largest possible variance of their mean.
        """
        if self.per_class is None:
            return self.variance
        return float(np.nanmean(np.sqrt(np.maximum(self.per_class, 0.0))) ** 2)

    def __float__(self) -> float:
        return self.variance

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers, lists and texts; NaN is None."""
        copied = (
            "variance", "standard_error", "largest", "corrected", "corrected_standard_error",
            "kind", "norm", "n_source", "n_target", "stratified", "sampled", "merged_bins",
        )  # fmt: skip
        return {
            **{name: getattr(self, name) for name in copied},
            "per_class": plain(self.per_class),
            "corrected_per_class": plain(self.corrected_per_class),
            "classes": None if self.classes is None else [str(name) for name in self.classes],
            "class_weights": None if self.class_weights is None else self.class_weights.to_dict(),
            "warnings": list(self.warnings),
        }

    def __repr__(self) -> str:
        both = f"{self.variance:.6g}"
        both += "" if self.corrected is None else f", corrected={self.corrected:.6g}"
        return f"AlgorithmVariance({both}, kind={self.kind!r}, norm={self.norm:g})"

    def __str__(self) -> str:
        how = "with labels" if self.n_target is None else "label-free, on the target"
        head = f"Variance of the paper's estimate, {self.kind}, L{self.norm:g} ({how})"
        notes = note_lines(self.warnings)
        if self.merged_bins:
            notes.append(f"{self.merged_bins} bins had too few rows and were merged")
        return "\n".join([head, *self._totals(), *self._class_table(), *notes])

    def _totals(self) -> list[str]:
        lines = [f"{'':>12} {'variance':>11} {'s.e.':>9}", _line("Algorithm 1", self.variance)]
        return lines if self.corrected is None else [*lines, _line("corrected", self.corrected)]

    def _class_table(self) -> list[str]:
        if self.per_class is None:
            return []
        corrected = self.corrected_per_class
        largest = np.argsort(-np.nan_to_num(self.per_class, nan=-np.inf), kind="stable")
        lines = [
            f"{'class':>12} {'Algorithm 1':>11} {'' if corrected is None else 'corrected':>11}"
        ]
        for c in largest[:CLASSES_SHOWN]:
            beside = "" if corrected is None else _short(corrected[c])
            name = str(int(c) if self.classes is None else self.classes[c])[:12]
            lines.append(f"{name:>12} {_short(self.per_class[c]):>11} {beside:>11}")
        hidden = len(largest) - CLASSES_SHOWN
        lines += [f"{'...':>12} {hidden} more classes"] if hidden > 0 else []
        return [line.rstrip() for line in lines]


def _line(name: str, variance: float) -> str:
    return f"{name:>12} {_short(variance):>11} {max(variance, 0.0) ** 0.5:>9.3g}"


def _short(variance: float) -> str:
    return "unseen" if np.isnan(variance) else f"{variance:.3g}"
