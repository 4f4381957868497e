"""A reliability curve: predicted score against frequency, bin by bin."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from calshift._core.frozen import Frozen
from calshift._core.validate import validate_level


@dataclass(frozen=True, eq=False)
class ReliabilityCurve(Frozen):
    """Mean score, frequency of the event and share of the rows in each bin.

    Attributes
    ----------
    score, frequency, mass : (B,) of the target where one was given, else of the source
    edges : (B - 1,) inner edges
    standard_error : (B,) of the frequency, that of estimated weights included
    worth : (B,) effective number of source rows, for frequencies near 0 and 1
    kind, label : what the score is; label None under "classwise" pools all classes
    shifted : whether it is the target's curve, seen through class weights
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
        """What to call the curve in a plot."""
        place = "target (label-free)" if self.shifted else "with labels"
        return place if self.label is None else f"class {self.label}, {place}"

    def band(self, level: float = 0.95) -> tuple[np.ndarray, np.ndarray]:
        """Lower and upper end of the frequency in each bin, within [0, 1].

        Wilson's interval with as many rows as would have that standard error, or as the bin is
        worth where it has hardly an event, or hardly anything else; each bin holds on its own.
        """
        from scipy.special import ndtri  # late: importing calshift must be fast

        z = ndtri((1 + validate_level(level)) / 2)
        spread = self.frequency * (1 - self.frequency)
        one_sided = np.minimum(self.frequency, 1 - self.frequency) * self.effective_size < 0.5
        one_sided |= (
            self.standard_error**2 * 4 * self.effective_size <= spread
        )  # too good to be true
        square = np.where(one_sided, 1.0, self.standard_error**2)
        n = np.where(one_sided, self.effective_size, spread / square)
        n = np.maximum(n, 1.0)
        middle = (self.frequency + z**2 / (2 * n)) / (1 + z**2 / n)
        inside = self.frequency * (1 - self.frequency) / n + z**2 / (4 * n**2)
        reach = z * np.sqrt(inside) / (1 + z**2 / n)
        low, high = np.clip(middle - reach, 0, 1), np.clip(middle + reach, 0, 1)
        return np.minimum(low, self.frequency), np.maximum(high, self.frequency)

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
        head = (
            f"Reliability, {self.name}\n{'score':>8} {'frequency':>10} {'95% each':>17} {'mass':>7}"
        )
        low, high = self.band()
        rows = zip(self.score, self.frequency, low, high, self.mass, strict=True)
        lines = [f"{s:>8.4f} {f:>10.4f} {a:>7.4f} to {b:.4f} {m:>7.1%}" for s, f, a, b, m in rows]
        return "\n".join([head, *lines])
