"""The answer to "how miscalibrated is it?"."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from calshift.frozen import Frozen
from calshift.wording import noted

if TYPE_CHECKING:
    from calshift.results.class_weights import ClassWeights

CLASSES_SHOWN = 10


@dataclass(frozen=True, eq=False, repr=False)
class CalibrationErrorResult(Frozen):
    """A calibration error.

    Attributes
    ----------
    estimate : CE_p^p, the p-th power; a debiased one keeps its sign, so that averages stay unbiased
    per_class : (K,) the same for each class under "classwise" (NaN: unseen in the source), or None
    class_weights : the weights used, or None for an error with labels
    source : the labelled error on the source beside a label-free one, or None
    warnings : what to know before acting on the number, worst first
    merged_bins : bins (or knots of the smooth basis) joined to a neighbour for lack of rows
    kind, norm, estimator, n_source, n_target, classes : what was asked, of how much data
    """

    estimate: float
    kind: str
    norm: float
    estimator: str
    n_source: float
    n_target: float | None = None
    per_class: np.ndarray | None = None
    class_weights: ClassWeights | None = None
    source: CalibrationErrorResult | None = None
    warnings: tuple[str, ...] = ()
    merged_bins: int = 0
    classes: tuple[Any, ...] | None = None

    @property
    def root(self) -> float:
        """CE_p, in units of probability: the p-th root of the estimate, 0 where it is negative."""
        return float(max(self.estimate, 0.0) ** (1 / self.norm))

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers, lists and texts; None in the place of NaN."""
        return {
            "estimate": self.estimate,
            "root": self.root,
            "kind": self.kind,
            "norm": self.norm,
            "estimator": self.estimator,
            "n_source": self.n_source,
            "n_target": self.n_target,
            "per_class": None if self.per_class is None else _numbers(self.per_class),
            "classes": None if self.classes is None else [str(name) for name in self.classes],
            "class_weights": None if self.class_weights is None else self.class_weights.to_dict(),
            "source": None if self.source is None else self.source.to_dict(),
            "merged_bins": self.merged_bins,
            "warnings": list(self.warnings),
        }

    def plot(self, ax: Any = None) -> Any:
        """Draw the error, class by class where there are classes, beside the source's."""
        from calshift.plotting import plot_error  # late: matplotlib only when drawing

        return plot_error(self, ax=ax)

    def __str__(self) -> str:
        notes = noted(self.warnings)
        if self.merged_bins:
            notes.append(f"{self.merged_bins} bins or knots had too few rows and were joined")
        return "\n".join([self._head(), *self._totals(), *self._class_table(), *notes])

    def __repr__(self) -> str:
        asked = f"kind={self.kind!r}, norm={self.norm:g}, estimator={self.estimator!r}"
        return (
            f"CalibrationErrorResult(estimate={self.estimate:.6g}, root={self.root:.4g}, {asked})"
        )

    def _head(self) -> str:
        how = "with labels" if self.n_target is None else "label-free, on the target"
        return f"Calibration error, {self.kind}, L{self.norm:g}, {self.estimator} ({how})"

    def _totals(self) -> list[str]:
        power = "CE" if self.norm == 1 else f"CE^{self.norm:g}"
        lines = [f"{'':>10} {power:>12} {'root':>9} {'rows':>10}"]
        for name, result in self._samples():
            rows = result.n_source if result.n_target is None else result.n_target
            error = f"{_fixed(result.estimate, 6):>12} {_fixed(result.root, 4):>9}"
            lines.append(f"{name:>10} {error} {rows:>10g}")
        return lines

    def _samples(self) -> list[tuple[str, CalibrationErrorResult]]:
        here = ("all" if self.n_target is None else "target", self)
        return [here] if self.source is None else [here, ("source", self.source)]

    def _class_table(self) -> list[str]:
        if self.per_class is None:
            return []
        worst = np.argsort(-np.nan_to_num(self.per_class, nan=-np.inf), kind="stable")
        weight = "" if self.class_weights is None else "weight"
        lines = [f"{'class':>10} {'error':>12} {'root':>9} {weight:>10}".rstrip()]
        lines += [self._class_row(int(c)) for c in worst[:CLASSES_SHOWN]]
        hidden = len(worst) - CLASSES_SHOWN
        return [*lines, f"{'...':>10} {hidden} more classes"] if hidden > 0 else lines

    def _class_row(self, c: int) -> str:
        assert self.per_class is not None
        name = str(c if self.classes is None else self.classes[c])[:10]
        value = float(self.per_class[c])
        if np.isnan(value):
            return f"{name:>10} {'unseen':>12}"
        weight = "" if self.class_weights is None else f"{self.class_weights.values[c]:.4g}"
        root = max(value, 0.0) ** (1 / self.norm)
        return f"{name:>10} {_fixed(value, 6):>12} {_fixed(root, 4):>9} {weight:>10}".rstrip()


def _fixed(value: float, digits: int) -> str:
    """A fixed number of digits, unless the number is absurdly large."""
    return f"{value:.{digits}f}" if abs(value) < 1000 else f"{value:.3g}"


def _numbers(values: np.ndarray) -> list[float | None]:
    return [None if np.isnan(value) else float(value) for value in values]
