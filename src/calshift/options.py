"""What may be asked of an estimate, checked once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from calshift.errors import InvalidInput

ESTIMATORS = ("debiased", "plugin", "paper")
PAPER_BINS = 15


@dataclass(frozen=True)
class Options:
    """Kind, norm, estimator and the smoothing: bins, or a kernel with its bandwidth."""

    kind: str
    norm: float
    estimator: str
    bins: Any
    binning: str
    kernel: str | None
    bandwidth: float | str

    def __post_init__(self) -> None:
        if self.estimator not in ESTIMATORS:
            msg = f"estimator must be one of {', '.join(ESTIMATORS)}; got {self.estimator!r}"
            raise InvalidInput(msg)
        if not (_is_number(self.norm) and np.isfinite(self.norm) and self.norm >= 1):
            msg = f"norm must be a number p >= 1; got {self.norm!r}"
            raise InvalidInput(msg)
        if self.bandwidth != "auto" and not (_is_number(self.bandwidth) and self.bandwidth > 0):  # type: ignore[operator]
            msg = f'bandwidth must be "auto" or a positive number; got {self.bandwidth!r}'
            raise InvalidInput(msg)
        if self.estimator == "paper" and isinstance(self.bins, str) and self.bins == "auto":
            object.__setattr__(self, "bins", PAPER_BINS)
        if self.kind == "canonical" and self.kernel is None:
            object.__setattr__(self, "kernel", "triweight")


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float | np.number) and not isinstance(value, bool)
