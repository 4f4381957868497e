"""Probabilities raised to powers, tilted and normalised again, row by row.

    p'_y ~ p_y^slope_y exp(bias_y) weight_y

A probability of exactly 0 stays 0. docs/mathematics.md section 11.
"""

from __future__ import annotations

import numpy as np


def tempered(
    p: np.ndarray, slope: np.ndarray | float, bias: np.ndarray | float = 0.0
) -> np.ndarray:
    """(n, K) softmax(slope log p + bias)."""
    none = p <= 0
    z = np.log(np.where(none, 1.0, p), dtype=float)
    z *= slope
    z += bias
    z[none] = -np.inf
    z -= z.max(axis=1, keepdims=True)
    np.exp(z, out=z)
    z /= z.sum(axis=1, keepdims=True)
    return z


def reweighted(p: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """(n, K) p_y weight_y / sum; a row that has all its mass on weights of 0 stays as it is."""
    tilted = p * (weights / weights.max())
    total = tilted.sum(axis=1, keepdims=True)
    lost = total[:, 0] <= 0
    tilted /= np.where(total > 0, total, 1.0)
    tilted[lost] = p[lost]
    return np.asarray(tilted)
