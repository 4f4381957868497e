"""Least squares with shares of at least 0 and sum 1, of many small problems at once.

Block principal pivoting (Kim and Park 2011): all classes with a wrong sign change sides, and when
that does not reduce their number, only the last of them.
"""

from __future__ import annotations

import numpy as np

TOLERANCE = 1e-9  # of signs, relative to the largest number of a problem
PATIENCE = 3  # exchanges of blocks that do not reduce the wrong signs, before single exchanges
MOST_EXCHANGES = 10  # per class; a problem of rounding errors is left as it is then


def solve_shares(
    G: np.ndarray, pull: np.ndarray, size: np.ndarray, more: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """argmin_x x'G x / 2 - pull'x with x >= 0 and sum_y x_y / size_y = 1, for B problems.

    Parameters
    ----------
    G, pull, size : (B, S, S), (B, S), (B, S)
    more : (B, S) another right hand side

    Returns
    -------
    x, the classes that may have a share, and the solution of G for ``more`` among these
    """
    B, S = pull.shape
    found, beside, active = np.zeros((B, S)), np.zeros((B, S)), np.ones((B, S), dtype=bool)
    fewest, patience, left = np.full(B, S + 1), np.full(B, PATIENCE), np.arange(B)
    for _ in range(MOST_EXCHANGES * S):
        some = left if len(left) < B else slice(None)
        x, other, wrong = _solve_active(*(a[some] for a in (G, pull, 1 / size, more, active)))
        found[left], beside[left] = x, other
        count = wrong.sum(axis=1)
        patience[left] = np.where(count < fewest[left], PATIENCE, patience[left] - 1)
        fewest[left] = np.minimum(fewest[left], count)
        last = S - 1 - np.argmax(wrong[:, ::-1], axis=1)
        one = wrong & (np.arange(S) == last[:, None])
        active[left] ^= np.where(patience[left, None] < 0, one, wrong)
        left = left[count > 0]
        if not len(left):
            break
    return np.maximum(found, 0.0), active, beside


def _solve_active(
    G: np.ndarray, pull: np.ndarray, unit: np.ndarray, more: np.ndarray, active: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """x and the solution for ``more`` with all other classes at 0, and where a sign is wrong."""
    whole = bool(active.all())
    among = G if whole else restrict(G, active)
    sides = np.stack([pull, unit, more], axis=2) * active[:, :, None]
    free, share, other = np.moveaxis(np.linalg.solve(among, sides), 2, 0)
    excess = (np.sum(unit * free, axis=1) - 1) / np.sum(unit * share, axis=1)
    x = free - excess[:, None] * share
    wrong = x < -TOLERANCE * np.abs(x).max(axis=1, keepdims=True)
    if not whole:
        slope = (G @ x[:, :, None])[:, :, 0] - pull + excess[:, None] * unit
        least = -TOLERANCE * np.abs(pull).max(axis=1, keepdims=True)
        wrong = np.where(active, wrong, slope < least)
    return x, other, wrong


def restrict(G: np.ndarray, active: np.ndarray) -> np.ndarray:
    """G with the rows and columns of all other classes those of the unit matrix."""
    among = np.where(active[:, :, None] & active[:, None], G, 0.0)
    diagonal = np.arange(G.shape[1])
    among[:, diagonal, diagonal] = np.diagonal(G, axis1=1, axis2=2)
    return among
