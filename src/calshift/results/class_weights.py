"""Class weights w_y = p_t(y) / p_s(y), with the priors they come from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from calshift.frozen import Frozen, noted

ROWS_SHOWN = 20


@dataclass(frozen=True, eq=False)
class ClassWeights(Frozen):
    """Importance weights of the classes.

    Attributes
    ----------
    values : (K,) the weights; NaN for a class the source never showed
    prior_source, prior_target : (K,) class shares before and after
    n_source : size of the source sample
    method : where the weights come from
    warnings : what to know before using them, worst first
    """

    values: np.ndarray
    prior_source: np.ndarray
    prior_target: np.ndarray
    n_source: float
    method: str = "given"
    warnings: tuple[str, ...] = ()

    @property
    def ess(self) -> float:
        """Effective sample size of the source, (sum_i w_i)^2 / sum_i w_i^2: n without shift."""
        w = np.nan_to_num(self.values)
        w = w / (w.max() or 1.0)
        square = float(self.prior_source @ w**2)
        return self.n_source * float(self.prior_source @ w) ** 2 / square if square > 0 else 0.0

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return np.array(self.values, dtype=dtype)

    def __len__(self) -> int:
        return len(self.values)

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers, None in the place of NaN."""
        return {
            "method": self.method,
            "values": [None if np.isnan(value) else float(value) for value in self.values],
            "prior_source": self.prior_source.tolist(),
            "prior_target": self.prior_target.tolist(),
            "ess": self.ess,
            "warnings": list(self.warnings),
        }

    def __str__(self) -> str:
        head = f"{'class':>7} {'source':>8} {'target':>8} {'weight':>8}"
        rows = [self._row(c) for c in range(min(len(self), ROWS_SHOWN))]
        if len(self) > ROWS_SHOWN:
            rows.append(f"{'...':>7} {len(self) - ROWS_SHOWN} more classes")
        size = f"effective sample size {self.ess:.0f} of {self.n_source:g} source rows"
        notes = noted(self.warnings)
        return "\n".join([f"Class weights ({self.method})", head, *rows, size, *notes])

    def _row(self, c: int) -> str:
        weight = "unseen" if np.isnan(self.values[c]) else f"{self.values[c]:.4g}"
        shares = f"{self.prior_source[c]:>8.2%} {self.prior_target[c]:>8.2%}"
        return f"{c:>7} {shares} {weight:>8}"
