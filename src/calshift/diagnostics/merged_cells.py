"""Cells with few rows of either sample, merged with their neighbours.

docs/mathematics.md, "Is it label shift at all?".
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

LEAST = 5  # rows of either sample, below which a cell is merged with its neighbour


@dataclass(frozen=True)
class CellDraws:
    """B pairs of tables.

    Attributes
    ----------
    cell, label : (E,) where the source may have rows
    source : (B, E) its rows there
    target : (B, cells)
    """

    cell: np.ndarray
    label: np.ndarray
    source: np.ndarray
    target: np.ndarray

    @property
    def rows(self) -> np.ndarray:
        """(B, cells) source rows of all labels."""
        return add_up(self.source, self.cell, self.target.shape[1])


@dataclass(frozen=True)
class Merging:
    """Which cells are merged, for each of B pairs of tables.

    Attributes
    ----------
    place : (B, cells) the merged cell, of those in use in any of the pairs
    count : L, the number of these
    some : whether any cells are merged
    """

    place: np.ndarray
    count: int
    some: bool = True

    @staticmethod
    def of_draws(drawn: CellDraws, groups: int) -> Merging:
        """By the rows of both samples."""
        rows, (_, cells) = drawn.rows, drawn.target.shape
        if min(rows.min(), drawn.target.min()) >= LEAST:  # the same as below, at once
            return Merging(np.broadcast_to(np.arange(cells), rows.shape), cells, False)
        place = merge_places(rows, drawn.target, groups)
        used = np.zeros(cells + 1, dtype=bool)
        used[place] = True
        return Merging((np.cumsum(used) - 1)[place], int(used.sum()))

    def of_cells(self, counts: np.ndarray) -> np.ndarray:
        """(B, L) from counts (B, cells)."""
        return add_up(counts, self.place, self.count) if self.some else counts

    def of_labels(self, drawn: CellDraws, labels: int) -> np.ndarray:
        """(B, L, S) source rows by merged cell and label."""
        where = self.place[:, drawn.cell] * labels + drawn.label
        return add_up(drawn.source, where, self.count * labels).reshape(-1, self.count, labels)


def add_up(values: np.ndarray, place: np.ndarray, count: int) -> np.ndarray:
    """(B, count) sums of values (B, E) by their places (E,) or (B, E)."""
    B = len(values)
    where = place + count * np.arange(B)[:, None]
    return np.bincount(where.ravel(), values.ravel(), B * count).reshape(B, count)


def merge_places(rows: np.ndarray, target: np.ndarray, groups: int) -> np.ndarray:
    """(B, cells) the cell into which each cell is merged, from rows of both samples.

    Neighbours with fewer than 5 rows of either sample are merged: first in pairs, then pairs of
    pairs. Predicted classes of fewer than 5 source rows are merged into one more cell, the last,
    and this one, if it has fewer than 5 rows too, into the smallest cell.
    """
    B, cells = target.shape
    shape = B, cells // groups, groups
    kinds, other = rows.reshape(shape), target.reshape(shape)
    place = np.broadcast_to(np.arange(cells).reshape(shape[1:]), shape)
    width = 1
    while width < groups:
        first = np.arange(cells).reshape(shape[1:]) // (2 * width) * (2 * width)
        few = np.minimum(_sum_groups(kinds, width), _sum_groups(other, width)) < LEAST
        either = few.reshape(*few.shape[:2], -1, 2).any(axis=3)
        place = np.where(np.repeat(either, 2 * width, axis=2), first, place)
        width *= 2
    rare = _sum_groups(kinds, groups) < LEAST
    if not rare.any():
        return np.asarray(place.reshape(B, cells))
    place = np.where(rare, cells, place).reshape(B, cells)
    size = add_up(rows, place, cells + 1)
    smallest = np.argmin(np.where(size[:, :-1] > 0, size[:, :-1], np.inf), axis=1)
    isolated = (size[:, -1:] < LEAST) & (size[:, :-1] > 0).any(axis=1, keepdims=True)
    return np.asarray(np.where(isolated & (place == cells), smallest[:, None], place))


def _sum_groups(rows: np.ndarray, width: int) -> np.ndarray:
    """Sums of so many neighbours."""
    if width == 1:
        return rows
    return np.asarray(np.add.reduceat(rows, np.arange(0, rows.shape[2], width), axis=2))
