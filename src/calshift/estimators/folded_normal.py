"""Removing noise from |g|^p: the inverse of the folded normal's moments. (docs/mathematics.md 4)"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

FARTHEST = 30.0  # in standard deviations; beyond it the noise no longer shows


def absolute_moment(d: np.ndarray, norm: float) -> np.ndarray:
    """E |N(d, 1)|^p = 2^(p/2) Gamma((p+1)/2) / sqrt(pi) * 1F1(-p/2; 1/2; -d^2/2)."""
    from scipy.special import gamma, hyp1f1  # late: importing calshift must be fast

    scale = 2 ** (norm / 2) * gamma((norm + 1) / 2) / np.sqrt(np.pi)
    return np.asarray(scale * hyp1f1(-norm / 2, 0.5, -(np.asarray(d) ** 2) / 2))


@lru_cache(maxsize=8)
def _table(norm: float) -> tuple[np.ndarray, np.ndarray]:
    """d, and the p-th root of the moment at it; dense near 0, where the root is flat."""
    d = FARTHEST * np.linspace(0, 1, 6001) ** 2
    return d, absolute_moment(d, norm) ** (1 / norm)


def unfold(value: np.ndarray, variance: np.ndarray, norm: float) -> np.ndarray:
    """|d|^p for the d >= 0 with E |N(d, variance)|^p = |value|^p, and 0 where there is none.

    For p = 2 the estimate value^2 - variance has no bias and keeps its sign.
    """
    if norm == 2:
        return np.asarray(value**2 - variance)
    size, spread = np.abs(value), np.sqrt(np.maximum(variance, 0.0))
    d, root = _table(float(norm))
    noisy = spread > size / root[-1]
    near = np.interp(size / np.where(noisy, spread, 1.0), root, d, left=0.0) * spread
    # far from 0 the p-th root of the moment is d + (p - 1) / 2d
    far = size - (norm - 1) * spread**2 / (2 * np.where(noisy | (size == 0), 1.0, size))
    return np.asarray(np.where(noisy, near, far) ** norm)
