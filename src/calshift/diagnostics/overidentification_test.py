"""The fit of the target's cells by a mixture of the source's classes, and its p-value.

J is least squares weighted by the sampling noise of both sides, and its p-value comes from tables
drawn under the fitted mixture. docs/mathematics.md, "Is it label shift at all?".
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from calshift.binning.confidence_cells import merge_counts, merge_places

STEPS = 2  # of least squares, each with the noise at the shares of the step before
RIDGE = 1e-12  # on a matrix of unit diagonal, for classes that cannot be distinguished
DEPENDENT = 1e-8  # squared distance of a column to those before it, below which it adds no rank
MANY, SPARSE = 300, 0.05  # columns and share of non-zeros that make sparse products faster
EM_STEPS, SETTLED = 100, 1e-4  # at most, and the sum of changes of the shares at which they end
ADDED = 0.05  # rows a class: without them, cells with few rows are missing from the bootstrap
NO_SHARE = 1e-6  # of a class in a cell, below which no row is drawn
STOP = 20  # draws as extreme as the data, at which the bootstrap ends
MOST_DRAWN = 2_000_000  # counts drawn at once
DRAWN_AT_ONCE = 50  # pairs of tables: under label shift, few more are needed


@dataclass(frozen=True)
class Tables:
    """Counts by cell.

    Attributes
    ----------
    source : (cells, S) rows by cell and label
    target : (cells,)
    groups : cells of a predicted class, neighbours in confidence
    """

    source: np.ndarray
    target: np.ndarray
    groups: int


@dataclass(frozen=True)
class CellMixture:
    """The mixture nearest to the target, for each of B pairs of tables.

    Attributes
    ----------
    statistic : (B,) J
    df : (B,) cells in use less the rank of the class columns
    shares : (B, S) q, of any sign, with sum 1
    bounded : (B, S) w, the positive shares at which the noise was computed
    """

    statistic: np.ndarray
    df: np.ndarray
    shares: np.ndarray
    bounded: np.ndarray

    @property
    def tail(self) -> np.ndarray:
        """(B,) the chi-square tail of J, comparable between fits on different cells."""
        from scipy.special import chdtrc

        return np.where(self.df > 0, chdtrc(np.maximum(self.df, 1), self.statistic), 1.0)


def nearest_mixture(source: np.ndarray, target: np.ndarray, start: np.ndarray) -> CellMixture:
    """J = min_q sum_l (h - A q)_l^2 / D_l of counts (B, L, S) and (B, L), from shares (S,).

    D = A (w / m + w^2 / (n_y - 1)) is the diagonal of S(w) + A Gamma A', and D lies in the span of
    A: so this q is that of generalised least squares with S(w), it sums to 1, and J = g'S^-1 g.
    A row a class, spread like the source's, is added to w: no cell is without noise.
    """
    n, m = source.sum(axis=1), target.sum(axis=1, keepdims=True)
    A, h, prior = source / n[:, None], target / m, n / n.sum(axis=1, keepdims=True)
    added = n.shape[1] / (m + n.shape[1])
    q = np.broadcast_to(start, n.shape)
    for _ in range(STEPS):
        positive = np.maximum(q, 0.0)
        w = (1 - added) * positive / positive.sum(axis=1, keepdims=True) + added * prior
        D = _times(A, w / m + w**2 / np.maximum(n - 1, 1))
        root = np.divide(1.0, np.sqrt(D), out=np.zeros_like(D), where=D > 0)
        X = A * root[:, :, None]
        G, size = _correlations(X)
        pull = _times(X.transpose(0, 2, 1), h * root) / size
        q = np.linalg.solve(G, pull[:, :, None])[:, :, 0] / size
    gap = h - _times(A, q)
    J = np.sum((gap * root) ** 2, axis=1)
    df = np.maximum(np.count_nonzero(D, axis=1) - _rank(G), 0)
    return CellMixture(J, df, q, w)


def _correlations(X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """X'X in units of the lengths of X's columns, and these lengths, of each of B matrices."""
    if X.shape[2] >= MANY and np.count_nonzero(X) < SPARSE * X.size:
        from scipy.sparse import csr_array

        G = np.stack([(x.T @ x).toarray() for x in map(csr_array, X)])
    else:
        G = X.transpose(0, 2, 1) @ X
    size = np.sqrt(np.diagonal(G, axis1=1, axis2=2))
    G /= size[:, :, None]
    G /= size[:, None]
    G += RIDGE * np.eye(size.shape[1])
    return G, size


def _rank(G: np.ndarray) -> np.ndarray:
    """Rank of columns with these correlations: those outside the span of the columns before."""
    distance = np.diagonal(np.linalg.cholesky(G), axis1=1, axis2=2) ** 2
    return np.asarray(np.count_nonzero(distance > DEPENDENT, axis=1))


def _times(matrix: np.ndarray, vector: np.ndarray) -> np.ndarray:
    return np.asarray((matrix @ vector[:, :, None])[:, :, 0])


def likeliest_mixture(tables: Tables) -> tuple[np.ndarray, np.ndarray]:
    """A (cells, S) and q (S,) of about the largest likelihood of both tables under label shift.

    EM, from columns to which a twentieth of a row is added, distributed as both samples together:
    a class may have target rows in cells where it has no source rows.
    """
    source, target = tables.source, tables.target
    n, pooled = source.sum(axis=0), source.sum(axis=1) + target
    A = source + ADDED * (pooled / pooled.sum())[:, None]
    A, q = A / A.sum(axis=0), n / n.sum()
    for _ in range(EM_STEPS):
        prior = A @ q
        ratio = np.divide(target, prior, out=np.zeros_like(prior), where=prior > 0)
        of_class = A * (ratio[:, None] * q)
        A = source + of_class
        A /= A.sum(axis=0)
        q, before = of_class.sum(axis=0) / of_class.sum(), q
        if np.abs(q - before).sum() < SETTLED:
            break
    return A, q


def p_value(
    tables: Tables,
    tail: float,
    null: tuple[np.ndarray, np.ndarray],
    draws: int,
    rng: np.random.Generator,
) -> tuple[float, int]:
    """The p-value of a chi-square tail by the parametric bootstrap, and the number of draws.

    (1 + those as extreme) / (1 + draws); or 20 / l, if the l-th is the 20th as extreme (Besag and
    Clifford's sequential test: a p-value of the same validity). Cells are merged anew in every
    draw, because those of the data were merged by their counts.
    """
    draw = _sampler(tables, *null)
    at_once = int(np.clip(MOST_DRAWN // tables.source.size, 1, DRAWN_AT_ONCE))
    extreme = np.zeros(0, dtype=bool)
    while len(extreme) < draws and extreme.sum() < STOP:
        source, target = draw(min(at_once, draws - len(extreme)), rng)
        place = merge_places(source, target, tables.groups)
        fit = nearest_mixture(merge_counts(source, place), merge_counts(target, place), null[1])
        extreme = np.append(extreme, fit.tail <= tail)
    if extreme.sum() >= STOP:
        stopped = int(np.flatnonzero(extreme)[STOP - 1]) + 1
        return STOP / stopped, stopped
    return (1 + int(extreme.sum())) / (1 + draws), draws


def _sampler(
    tables: Tables, A: np.ndarray, q: np.ndarray
) -> Callable[[int, np.random.Generator], tuple[np.ndarray, np.ndarray]]:
    """A function that draws pairs of tables under label shift, with the source's class counts."""
    n = np.maximum(np.rint(tables.source.sum(axis=0)), 1).astype(np.int64)
    m = max(round(float(tables.target.sum())), 1)
    prior = A @ q / (A @ q).sum()
    there = [np.flatnonzero(column) for column in np.ascontiguousarray(A.T) > NO_SHARE]
    shares = [A[cells, y] / A[cells, y].sum() for y, cells in enumerate(there)]

    def draw(count: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        source = np.zeros((count, *A.shape))
        for y, cells in enumerate(there):
            source[:, cells, y] = rng.multinomial(n[y], shares[y], count)
        return source, rng.multinomial(m, prior, count).astype(float)

    return draw
