"""A reliability curve: predicted score against frequency, bin by bin."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from calshift.frozen import Frozen


@dataclass(frozen=True, eq=False)
class ReliabilityCurve(Frozen):
    """Mean score, frequency of the event and share of the rows in each bin.

    Attributes
    ----------
    score, frequency, mass : (B,) of the target where one was given, else of the source
    edges : (B - 1,) inner edges
    kind, label : what the score is; label None under "classwise" pools all classes
    shifted : whether it is the target's curve, seen through class weights
    """

    score: np.ndarray
    frequency: np.ndarray
    mass: np.ndarray
    edges: np.ndarray
    kind: str
    label: int | None = None
    shifted: bool = False

    @property
    def name(self) -> str:
        """What to call the curve in a plot."""
        place = "target (label-free)" if self.shifted else "with labels"
        return place if self.label is None else f"class {self.label}, {place}"

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers and lists."""
        arrays = {
            name: getattr(self, name).tolist() for name in ("score", "frequency", "mass", "edges")
        }
        return {**arrays, "kind": self.kind, "label": self.label, "shifted": self.shifted}

    def plot(self, ax: Any = None) -> Any:
        """Draw it; see `plot_reliability`."""
        from calshift.plotting import plot_reliability  # late: matplotlib only when drawing

        return plot_reliability(self, ax=ax)

    def __str__(self) -> str:
        head = f"Reliability, {self.name}\n{'score':>8} {'frequency':>10} {'mass':>7}"
        rows = zip(self.score, self.frequency, self.mass, strict=True)
        return "\n".join([head, *(f"{s:>8.4f} {f:>10.4f} {m:>7.1%}" for s, f, m in rows)])
