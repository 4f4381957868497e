"""The fit of the target's cells by a mixture of the source's classes.

J is least squares weighted by the sampling noise of both sides, and z the contrast of high against
low confidence in the residuals. docs/mathematics.md, "Is it label shift at all?".
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from calshift.diagnostics.nonnegative_shares import TOGETHER, factorize, restrict, solve_shares

RIDGE = 1e-12  # on a matrix of unit diagonal, for classes that cannot be distinguished
DEPENDENT = 1e-8  # squared distance of a column to those before it, below which it adds no rank
MANY, SPARSE = 300, 0.05  # columns and share of non-zeros that make sparse products faster


@dataclass(frozen=True)
class CellMixture:
    """The mixture nearest to the target, for each of B pairs of tables.

    Attributes
    ----------
    statistic : (B,) J
    df : (B,) cells in use less the rank of the columns of the classes that may have a share
    direction : (B,) z, normal with unit variance for large tables; 0 where it cannot be tested
    shares : (B, S) q, at least 0, with sum 1
    bounded : (B, S) w, the positive shares at which the noise was computed
    residual, noise : (B, L) h - A q, and D
    """

    statistic: np.ndarray
    df: np.ndarray
    direction: np.ndarray
    shares: np.ndarray
    bounded: np.ndarray
    residual: np.ndarray
    noise: np.ndarray

    @property
    def tails(self) -> np.ndarray:
        """(2, B) tails of J and of z, comparable between fits on other cells."""
        from scipy.special import chdtrc

        whole = np.where(self.df > 0, chdtrc(np.maximum(self.df, 1), self.statistic), 1.0)
        return np.stack([whole, chdtrc(1, self.direction**2)])


def nearest_mixture(
    source: np.ndarray,
    target: np.ndarray,
    start: np.ndarray,
    contrast: np.ndarray,
    used: np.ndarray | None = None,
) -> CellMixture:
    """J = min_q sum_l (h - A q)_l^2 / D_l of counts (B, L, S) and (B, L), from shares (S,).

    D = A (w / m + w^2 / (n_y - 1)) is the diagonal of S(w) + A Gamma A', and D lies in the span of
    A: so this q is that of generalised least squares with S(w), and J = g'S^-1 g. A row a class,
    spread like the source's, is added to w = ``start``: no cell is without noise. q has no negative
    shares, and the degrees of freedom are those of a fit of the classes with a share. ``used`` (S,)
    has the classes that are expected to have one.
    """
    n, m = source.sum(axis=1), target.sum(axis=1, keepdims=True)
    h, added = target / m, n.shape[1] / (m + n.shape[1])
    w = (1 - added) / start.sum() * start + added / n.sum(axis=1, keepdims=True) * n
    D = _times(source, (w / m + w**2 / np.maximum(n - 1, 1)) / n)
    root = np.divide(1.0, np.sqrt(D), out=np.zeros_like(D), where=D > 0)
    X = source * root[:, :, None]  # the columns of A / sqrt(D), times n
    G, size = _correlations(X)
    pull = _times(X.transpose(0, 2, 1), h * root) / size
    along = _times(source.transpose(0, 2, 1), contrast) / size
    size = size / n
    x, active, inside = solve_shares(G, pull, size, along, used)
    q = x / size
    gap = h - _times(source, q / n)
    whole = np.sum(contrast**2 * D, axis=1)
    variance = whole - np.sum(along * inside, axis=1)
    known = variance > DEPENDENT * whole
    z = np.sum(contrast * gap, axis=1) / np.sqrt(np.where(known, variance, 1.0))
    df = np.maximum(np.count_nonzero(D, axis=1) - _rank(G, active), 0)
    return CellMixture(
        np.sum((gap * root) ** 2, axis=1), df, np.where(known, z, 0.0), q, w, gap, D
    )  # fmt: skip


def count_restrictions(source: np.ndarray) -> int:
    """Cells in use of one table (L, S) less the rank of all columns: 0 if every mixture fits."""
    X = source / np.sqrt(np.maximum(source.sum(axis=1, keepdims=True), np.finfo(float).tiny))
    G, size = _correlations(X[None])
    everything = np.ones(size.shape, dtype=bool)
    return max(int(np.count_nonzero(X.any(axis=1)) - _rank(G, everything)[0]), 0)


def _correlations(X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """X'X in units of the lengths of X's columns, and these lengths, of each of B matrices."""
    if X.shape[2] >= MANY and np.count_nonzero(X) < SPARSE * X.size:
        from scipy.sparse import csr_array

        G = np.stack([(x.T @ x).toarray() for x in map(csr_array, X)])
    else:
        G = X.transpose(0, 2, 1) @ X
    diagonal = np.arange(G.shape[1])
    size = np.sqrt(G[:, diagonal, diagonal])
    unit = 1 / size
    G *= unit[:, :, None]
    G *= unit[:, None]
    G[:, diagonal, diagonal] += RIDGE
    return G, size


def _rank(G: np.ndarray, active: np.ndarray) -> np.ndarray:
    """Rank of the active columns with these correlations: those outside the span of others."""
    if len(G[0]) > TOGETHER:
        pivots = [factorize(one, here) for one, here in zip(G, active, strict=True)]
        return np.array([np.count_nonzero(one**2 > DEPENDENT) for one in pivots])
    among = G if active.all() else restrict(G, active)
    distance = np.diagonal(np.linalg.cholesky(among), axis1=1, axis2=2) ** 2
    return np.asarray(np.count_nonzero((distance > DEPENDENT) & active, axis=1))


def _times(matrix: np.ndarray, vector: np.ndarray) -> np.ndarray:
    return np.asarray((matrix @ vector[:, :, None])[:, :, 0])
