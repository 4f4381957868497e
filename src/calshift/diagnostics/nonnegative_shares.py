"""Least squares with shares of at least 0 and sum 1, of many small problems at once.

Block principal pivoting (Kim and Park 2011): all classes with a wrong sign change sides, and when
that does not reduce their number, only the last of them.
"""

from __future__ import annotations

import numpy as np

TOLERANCE = 1e-9  # of signs, relative to the largest number of a problem
PATIENCE = 3  # exchanges of blocks that do not reduce the wrong signs, before single exchanges
MOST_EXCHANGES = 10  # per class; a problem of rounding errors is left as it is then
TOGETHER = 40  # classes up to which problems are solved together, without leaving any class out


def solve_shares(
    G: np.ndarray,
    pull: np.ndarray,
    size: np.ndarray,
    more: np.ndarray,
    used: np.ndarray | None = None,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """argmin_x x'G x / 2 - pull'x with x >= 0 and sum_y x_y / size_y = 1, for B problems.

    Parameters
    ----------
    G, pull, size : (B, S, S), (B, S), (B, S)
    more : (B, S) another right hand side
    used : (S,) classes that are expected to have a share; by default all

    Returns
    -------
    x, the classes that may have a share, and the solution of G for ``more`` among these
    """
    B, S = pull.shape
    unit, left = 1 / size, np.arange(B)
    active = np.ones((B, S), dtype=bool) if used is None else np.tile(used, (B, 1))
    found, beside, wrong = _solve_active(G, pull, unit, more, active)
    fewest, patience = np.full(B, S + 1), np.full(B, PATIENCE)
    for _ in range(MOST_EXCHANGES * S):
        count = wrong.sum(axis=1)
        if not count.any():
            break
        left, wrong, count = left[count > 0], wrong[count > 0], count[count > 0]
        patience[left] = np.where(count < fewest[left], PATIENCE, patience[left] - 1)
        fewest[left] = np.minimum(fewest[left], count)
        last = S - 1 - np.argmax(wrong[:, ::-1], axis=1)
        one = wrong & (np.arange(S) == last[:, None])
        active[left] ^= np.where(patience[left, None] < 0, one, wrong)
        some = left if len(left) < B else slice(None)
        found[left], beside[left], wrong = _solve_active(
            *(each[some] for each in (G, pull, unit, more, active))
        )
    return np.maximum(found, 0.0), active, beside


def _solve_active(
    G: np.ndarray, pull: np.ndarray, unit: np.ndarray, more: np.ndarray, active: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """x and the solution for ``more`` with all other classes at 0, and where a sign is wrong."""
    whole = bool(active.all())
    sides = np.stack([pull, unit, more], axis=2)
    if len(G[0]) > TOGETHER:
        free, share, other = np.moveaxis(_solve_separately(G, sides, active), 2, 0)
    else:
        sides, among = (sides, G) if whole else (sides * active[:, :, None], restrict(G, active))
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


def _solve_separately(G: np.ndarray, sides: np.ndarray, active: np.ndarray) -> np.ndarray:
    """(B, S, 3) solutions among the active classes, 0 elsewhere: faster where these are many."""
    from scipy.linalg.lapack import dposv  # late: importing calshift must be fast

    found = np.zeros_like(sides)
    for out, matrix, side, here in zip(found, G, sides, active, strict=True):
        among = select(matrix, here)
        _, solution, failed = dposv(among.T, side[here], lower=1)
        out[here] = np.linalg.solve(among, side[here]) if failed else solution
    return found


def factorize(G: np.ndarray, active: np.ndarray) -> np.ndarray:
    """The diagonal of the Cholesky factor of G (S, S) among the active classes."""
    from scipy.linalg.lapack import dpotrf  # late: importing calshift must be fast

    factor, failed = dpotrf(select(G, active).T, lower=1, clean=0)
    if failed:
        msg = "Matrix is not positive definite"
        raise np.linalg.LinAlgError(msg)
    return np.asarray(np.diagonal(factor))


def select(G: np.ndarray, active: np.ndarray) -> np.ndarray:
    """The rows and columns of G of the active classes."""
    return G if active.all() else G[active][:, active]
