"""Counts of both samples by cell, and tables drawn under label shift.

docs/mathematics.md, "Is it label shift at all?".
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from calshift.binning.confidence_cells import merge_counts, merge_places
from calshift.diagnostics.overidentification_test import CellMixture, nearest_mixture

EM_STEPS, SETTLED = 300, 1e-4  # at most, and the sum of changes of the shares at which they end
ADDED = 0.05  # rows a class: without them, cells with few rows are missing from the bootstrap
NO_SHARE = 1e-6  # of a class in a cell, below which no row is drawn


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

    @property
    def pooled(self) -> np.ndarray:
        """(cells,) rows of both samples."""
        return np.asarray(self.source.sum(axis=1) + self.target)

    @property
    def contrast(self) -> np.ndarray:
        """(cells,) from low to high confidence, with mean 0 over the rows of a predicted class."""
        rows = self.pooled.reshape(-1, self.groups)
        level = np.linspace(-1.0, 1.0, self.groups)
        mean = rows @ level / np.maximum(rows.sum(axis=1), np.finfo(float).tiny)
        return np.asarray((level - mean[:, None]).ravel())


@dataclass(frozen=True)
class Fit:
    """Mixtures, and (B, cells) the places into which cells were merged before."""

    mixture: CellMixture
    place: np.ndarray


def fit_tables(tables: Tables, source: np.ndarray, target: np.ndarray, start: np.ndarray) -> Fit:
    """The nearest mixtures of B pairs of tables in the cells of these, merged for each pair."""
    place = merge_places(source, target, tables.groups)
    rows = np.broadcast_to(tables.pooled, target.shape)
    total = merge_counts(rows, place)
    contrast = merge_counts(rows * tables.contrast, place) / np.where(total > 0, total, 1.0)
    merged = merge_counts(source, place), merge_counts(target, place)
    return Fit(nearest_mixture(*merged, start, contrast), place)


def likeliest_mixture(tables: Tables) -> tuple[np.ndarray, np.ndarray]:
    """A (cells, S) and q (S,) of about the largest likelihood of both tables under label shift.

    EM, from columns to which a twentieth of a row is added, distributed as both samples together:
    a class may have target rows in cells where it has no source rows.
    """
    source, target = tables.source, tables.target
    n, pooled = source.sum(axis=0), tables.pooled
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


def sample_tables(
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
