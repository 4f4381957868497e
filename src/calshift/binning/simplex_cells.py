"""Cells of the simplex in which the whole vector lies: the bins of the canonical error.

The partition of Vaicenavicius et al. (2019): cells are split again and again, at a quantile of the
coordinate that varies most, into cells with equally many rows. Each cell is a bin of every class.
(docs/mathematics.md 3)
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from calshift._core.frozen import Frozen
from calshift._core.predictions import Predictions
from calshift.binning.edges import BinEdges, edge_ranks
from calshift.binning.events import Events
from calshift.binning.placement import BinLocator, ScoreBlock, bin_type, score_blocks

ROUNDING = 1e-9  # of a variance
ROWS_A_CELL = 20  # benchmarks/canonical.py
LEAF = -1  # in the place of a coordinate


@dataclass(frozen=True, eq=False)
class CellTree(Frozen):
    """Splits of the simplex: rows with x[coordinate] >= threshold go to the upper node.

    Attributes
    ----------
    coordinate : (N,) of each node, -1 for a cell
    threshold : (N,)
    child : (N, 2) the lower and the upper node
    cell : (N,) numbers of the cells from left to right, -1 for nodes that are split
    """

    coordinate: np.ndarray
    threshold: np.ndarray
    child: np.ndarray
    cell: np.ndarray

    @property
    def cells(self) -> int:
        """How many cells there are."""
        return int(self.cell.max()) + 1

    def locate(self, points: np.ndarray) -> np.ndarray:
        """(n,) the cell of each point (n, K), in the coarser precision of both."""
        coarser = min(self.threshold.dtype, points.dtype, key=lambda dtype: dtype.itemsize)
        threshold = self.threshold.astype(coarser, copy=False)
        node, rows = np.zeros(len(points), np.intp), np.arange(len(points))
        while len(rows):
            at = node[rows]
            rows, at = rows[self.coordinate[at] != LEAF], at[self.coordinate[at] != LEAF]
            x = points[rows, self.coordinate[at]].astype(coarser, copy=False)
            node[rows] = self.child[at, (x >= threshold[at]).astype(np.intp)]
        return np.asarray(self.cell[node])


@dataclass(frozen=True, eq=False, repr=False)
class SimplexCells(BinEdges):
    """Cells as bins of every class; the edges held lie between the numbers of the cells."""

    tree: CellTree | None = None

    def place(self, k: int, batch: Predictions) -> tuple[np.ndarray, np.ndarray]:
        """Scores of the k-th event held, and the cells of the rows."""
        return self.events.score(batch, self.which[k]), self.cell_of(batch)

    def cell_of(self, batch: Predictions) -> np.ndarray:
        """(n,) the cell of each row."""
        assert self.tree is not None
        return self.tree.locate(batch.matrix)

    def __repr__(self) -> str:
        return f"SimplexCells({len(self)} classes, {self.max_bins} cells)"


class CellLocator(BinLocator):
    """Locates rows in the cells, which are the same for all classes."""

    edges: SimplexCells

    def __reduce__(self) -> tuple[Any, ...]:
        return CellLocator, (self.edges,)

    def _locate_all(self, batch: Predictions) -> Iterator[ScoreBlock]:
        cell = self.edges.cell_of(batch).astype(bin_type(self.width))
        for block in score_blocks(batch, self.edges.events, self.edges.which):
            bins = np.tile(cell, (len(block.score), 1))
            yield replace(block, bins=bins, width=self.width)


def planned_cells(rows: float) -> int:
    """Cells for so many rows of the smaller sample."""
    return max(2, round(rows / ROWS_A_CELL))


def split_simplex(rows: Predictions, number: int) -> SimplexCells:
    """That many cells with equally many of these rows; equal coordinates are never split."""
    tree = _Splits(rows, number).tree()
    events = Events("classwise", rows.n_classes)
    between = tuple(np.arange(1.0, tree.cells) for _ in range(events.count))
    which = tuple(range(events.count))
    return SimplexCells(events, which, between, False, rows.classes, None, tree)


class _Splits:
    """The nodes of a tree, in the order of their making.

    Splits are at ranks ceil(k m / B) counted from left to right, so that two classes have the
    bins of section 2.
    """

    def __init__(self, rows: Predictions, number: int) -> None:
        self.points, self.weight = rows.matrix, rows.frequency
        self.ranks = edge_ranks(float(self.weight.sum()), number)
        self.coordinate: list[int] = []
        self.threshold: list[float] = []
        self.child: list[tuple[int, int]] = []
        self.cell: list[int] = []
        self.cells = 0
        self._grow(np.arange(len(self.points)), 0.0, 0, len(self.ranks))

    def tree(self) -> CellTree:
        return CellTree(
            np.array(self.coordinate),
            np.array(self.threshold, self.points.dtype),
            np.array(self.child),
            np.array(self.cell),
        )

    def _grow(self, rows: np.ndarray, before: float, first: int, last: int) -> int:
        """The node of these rows, with ranks first to last to split at; its number."""
        here = len(self.cell)
        self.coordinate.append(LEAF)
        self.threshold.append(0.0)
        self.child.append((here, here))
        self.cell.append(LEAF)
        found = self._find_split(rows, before, first, last) if first < last else None
        if found is None:
            self.cell[here] = self.cells
            self.cells += 1
            return here
        coordinate, value, rank = found
        above = self.points[rows, coordinate] >= value
        lower, upper = rows[~above], rows[above]
        left = self._grow(lower, before, first, rank)
        right = self._grow(upper, before + float(self.weight[lower].sum()), rank + 1, last)
        self.coordinate[here], self.threshold[here] = coordinate, value
        self.child[here] = left, right
        return here

    def _find_split(
        self, rows: np.ndarray, before: float, first: int, last: int
    ) -> tuple[int, float, int] | None:
        """Coordinate, threshold and the rank used; None where ties leave nothing to split."""
        coordinate = self._widest(rows)
        x, f = self.points[rows, coordinate], self.weight[rows]
        order = np.argsort(x, kind="stable")
        x, upto = x[order], np.cumsum(f[order])
        while first < last:
            rank = (first + last) // 2
            place = int(np.searchsorted(upto, self.ranks[rank] - before, side="right"))
            if place >= len(x):
                last = rank
            elif x[place] <= x[0]:
                first = rank + 1
            else:
                return coordinate, x[place], rank
        return None

    def _widest(self, rows: np.ndarray) -> int:
        """The last of the coordinates of largest variance, up to rounding."""
        points, f = self.points[rows].astype(float), self.weight[rows]
        centred = points - np.average(points, axis=0, weights=f)
        variance = f @ centred**2
        return int(np.flatnonzero(variance >= variance.max() * (1 - ROUNDING))[-1])
