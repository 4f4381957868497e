"""A reliability curve: predicted score and frequency of the event in each bin."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from calshift._core.frozen import Frozen
from calshift._core.validate import validate_level
from calshift.results.class_weights import wilson_interval


@dataclass(frozen=True, eq=False)
class ReliabilityCurve(Frozen):
    """Mean score, frequency of the event and share of the rows in each bin.

    Attributes
    ----------
    score, frequency, mass : (B,) of the target where one was given, else of the source
    edges : (B - 1,) inner edges
    standard_error : (B,) of the frequency, including that of estimated weights
    effective_size : (B,) effective number of source rows, for frequencies near 0 and 1
    kind, label : what the score is; label None under "classwise" pools all classes
    shifted : whether it is the target's curve, estimated with class weights
    """

    score: np.ndarray
    frequency: np.ndarray
    mass: np.ndarray
    edges: np.ndarray
    standard_error: np.ndarray
    effective_size: np.ndarray
    kind: str
    label: int | None = None
    shifted: bool = False

    @property
    def name(self) -> str:
        """Label of the curve in a plot."""
        place = "target (label-free)" if self.shifted else "with labels"
        return place if self.label is None else f"class {self.label}, {place}"

    def band(self, level: float = 0.95) -> tuple[np.ndarray, np.ndarray]:
        """Lower and upper end of the frequency in each bin, within [0, 1]; pointwise.

        Wilson's interval for the number of rows that has this standard error, or for the effective
        number of source rows in bins with almost no events or almost nothing else.
        """
        f, n = self.frequency, self.effective_size
        spread, square = f * (1 - f), self.standard_error**2
        one_sided = np.minimum(f, 1 - f) * n < 0.5
        one_sided |= square * 4 * n <= spread  # a standard error that is implausibly small
        n = np.where(one_sided, n, spread / np.where(one_sided, 1.0, square))
        low, high = wilson_interval(f, np.maximum(n, 1.0), validate_level(level))
        return np.minimum(low, f), np.maximum(high, f)

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers and lists."""
        shown = ("score", "frequency", "mass", "edges", "standard_error")
        arrays = {name: getattr(self, name).tolist() for name in shown}
        low, high = self.band()
        arrays["band"] = {"level": 0.95, "low": low.tolist(), "high": high.tolist()}
        return {**arrays, "kind": self.kind, "label": self.label, "shifted": self.shifted}

    def plot(self, ax: Any = None) -> Any:
        """Draw it; see `plot_reliability`."""
        from calshift.plotting import plot_reliability  # late: matplotlib only when drawing

        return plot_reliability(self, ax=ax)

    def __str__(self) -> str:
        head = f"{'score':>8} {'frequency':>10} {'95% interval':>17} {'mass':>7}"
        low, high = self.band()
        rows = zip(self.score, self.frequency, low, high, self.mass, strict=True)
        lines = [f"{s:>8.4f} {f:>10.4f} {a:>7.4f} to {b:.4f} {m:>7.1%}" for s, f, a, b, m in rows]
        return "\n".join([f"Reliability curve, {self.name}", head, *lines])
