"""Interval of a proportion."""

from __future__ import annotations

from typing import Any

import numpy as np


def wilson_interval(share: np.ndarray, n: Any, level: float) -> tuple[np.ndarray, np.ndarray]:
    """Wilson's interval of proportions among n observations, within [0, 1]."""
    from scipy.special import ndtri  # late: importing calshift must be fast

    z = ndtri((1 + level) / 2)
    middle = (share + z**2 / (2 * n)) / (1 + z**2 / n)
    reach = z * np.sqrt(share * (1 - share) / n + z**2 / (4 * n**2)) / (1 + z**2 / n)
    return np.clip(middle - reach, 0, 1), np.clip(middle + reach, 0, 1)
