"""Counts of both samples by cell, and tables drawn under label shift.

docs/mathematics.md, "Is it label shift at all?".
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np

from calshift.diagnostics.merged_cells import CellDraws, Merging
from calshift.diagnostics.overidentification_test import CellMixture, nearest_mixture

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

    @cached_property
    def pooled(self) -> np.ndarray:
        """(cells,) rows of both samples."""
        return np.asarray(self.source.sum(axis=1) + self.target)

    @cached_property
    def contrast(self) -> np.ndarray:
        """(cells,) from low to high confidence, with mean 0 over the rows of a predicted class."""
        rows = self.pooled.reshape(-1, self.groups)
        level = np.linspace(-1.0, 1.0, self.groups)
        mean = rows @ level / np.maximum(rows.sum(axis=1), np.finfo(float).tiny)
        return np.asarray((level - mean[:, None]).ravel())

    @property
    def observed(self) -> CellDraws:
        """These tables as the only pair."""
        cell, label = np.nonzero(self.source)
        return CellDraws(cell, label, self.source[cell, label][None], self.target[None])


@dataclass(frozen=True)
class Fit:
    """Mixtures nearest to B pairs of tables, and these by merged cell, (B, L, S) and (B, L)."""

    mixture: CellMixture
    merging: Merging
    source: np.ndarray
    target: np.ndarray


def fit_tables(
    tables: Tables, drawn: CellDraws, start: np.ndarray, used: np.ndarray | None = None
) -> Fit:
    """The nearest mixtures of pairs of tables in the cells of these, merged for each pair.

    ``used`` has the classes that are expected to have a share.
    """
    merging = Merging.of_draws(drawn, tables.groups)
    source = merging.of_labels(drawn, tables.source.shape[1])
    target = merging.of_cells(drawn.target)
    contrast = np.broadcast_to(tables.contrast, drawn.target.shape)
    if merging.some:
        rows = np.broadcast_to(tables.pooled, drawn.target.shape)
        total = merging.of_cells(rows)
        contrast = merging.of_cells(rows * contrast) / np.where(total > 0, total, 1.0)
    return Fit(nearest_mixture(source, target, start, contrast, used), merging, source, target)


def sample_tables(
    tables: Tables, A: np.ndarray, q: np.ndarray
) -> Callable[[int, np.random.Generator], CellDraws]:
    """A function that draws pairs of tables under label shift, with the source's class counts.

    The rows of a class are drawn in the order of its cells' shares, largest first: drawing ends
    when no rows are left. Shares within an octave are equal here, so that rounding does not matter.
    """
    n = np.maximum(np.rint(tables.source.sum(axis=0)), 1).astype(np.int64)
    m = max(round(float(tables.target.sum())), 1)
    prior = A @ q / (A @ q).sum()
    cell, label = _sort_cells(A)
    ends = np.searchsorted(label, np.arange(len(n) + 1))
    there = [cell[first:last] for first, last in pairwise(ends)]
    shares = [A[cells, y] / A[cells, y].sum() for y, cells in enumerate(there)]

    def draw(count: int, rng: np.random.Generator) -> CellDraws:
        rows = [rng.multinomial(size, share, count) for size, share in zip(n, shares, strict=True)]
        target = rng.multinomial(m, prior, count).astype(float)
        return CellDraws(cell, label, np.concatenate(rows, axis=1).astype(float), target)

    return draw


def _sort_cells(A: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Cells in which rows are drawn and their classes: class by class, the most frequent first."""
    label, cell = np.nonzero(A.T > NO_SHARE)
    octaves = -np.rint(np.log2(A[cell, label])).astype(int)  # fewer than 32
    order = np.argsort(
        (32 * label + octaves).astype(np.min_scalar_type(32 * A.shape[1])), kind="stable"
    )
    return cell[order], label
