"""Scores of a batch event by event, a cacheful at a time, and the bins they lie in."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from calshift._core.frozen import read_only
from calshift._core.predictions import Predictions
from calshift._core.score_grid import CELLS, cell_of
from calshift.binning.edges import BinEdges
from calshift.binning.events import Events

TILE = 2**16  # scores worked on at once: their temporaries stay in the cache
TURNED_COLUMNS, TURNED_ROWS = 64, 512  # of a matrix turned at once, to read whole cache lines
LOT_EVENTS = 64  # worked on at once by compiled loops: their tables stay in the cache
MOST_CORRECTIONS = 4  # edges in one cell, beyond which a search is faster
KEPT_TABLES = 64  # events whose tables are kept between batches
KEPT_SCORES = 2**22  # of a sample in memory whose bins are kept between passes


@dataclass(frozen=True)
class Tile:
    """Some events of a batch: ``score`` (E, n), of the events from ``first`` on."""

    first: int
    score: np.ndarray

    @property
    def events(self) -> slice:
        """Their numbers."""
        return slice(self.first, self.first + len(self.score))


@dataclass(frozen=True)
class Lot:
    """The same for compiled loops: columns of a matrix, and the bins (E, n) of their scores."""

    first: int
    p: np.ndarray
    columns: np.ndarray
    bins: np.ndarray

    @property
    def events(self) -> slice:
        """Their numbers."""
        return slice(self.first, self.first + len(self.columns))


def tiles(batch: Predictions, events: Events, which: tuple[int, ...]) -> Iterator[Tile]:
    """The scores of the events asked for, in groups whose temporaries fit the cache."""
    step = max(1, TILE // max(len(batch), 1))
    for start in range(0, len(which), TURNED_COLUMNS):
        wide = _turned(batch, events, which[start : start + TURNED_COLUMNS])
        for first in range(0, len(wide), step):
            yield Tile(start + first, wide[first : first + step])


def lots(
    batch: Predictions, events: Events, which: tuple[int, ...], bins: Any = None
) -> Iterator[Lot]:
    """The scores of the events asked for, in larger groups, with room for bins of some dtype."""
    for first in range(0, len(which), LOT_EVENTS):
        p, columns = _columns(batch, events, which[first : first + LOT_EVENTS])
        lying = np.empty((len(columns) if bins else 0, len(p)), bins)
        yield Lot(first, p, columns, lying)


def _columns(
    batch: Predictions, events: Events, which: tuple[int, ...]
) -> tuple[np.ndarray, np.ndarray]:
    """A matrix in C order, read-only, and the columns of it in which the events' scores are.

    Always so: loops are compiled anew for every other kind of array.
    """
    columns = events.columns(batch, which)
    if columns is None:
        p = np.stack([events.score(batch, event) for event in which], axis=1)
    elif batch.p.flags.c_contiguous:
        return read_only(batch.p), np.array(columns, np.uint64)
    else:
        p = np.ascontiguousarray(batch.p[:, list(columns)])
    return read_only(p), np.arange(len(which), dtype=np.uint64)


def _turned(batch: Predictions, events: Events, which: tuple[int, ...]) -> np.ndarray:
    """(E, n) scores; a matrix of classes is turned in blocks."""
    if events.kind != "classwise" or batch.p.ndim == 1:
        return np.stack([events.score(batch, event) for event in which])
    whole = which[-1] - which[0] + 1 == len(which)
    columns = slice(which[0], which[-1] + 1) if whole else list(which)
    turned = np.empty((len(which), len(batch)), dtype=batch.p.dtype)
    for row in range(0, len(batch), TURNED_ROWS):
        turned[:, row : row + TURNED_ROWS] = batch.p[row : row + TURNED_ROWS, columns].T
    return turned


def bin_type(bins: int) -> type[np.unsignedinteger[Any]]:
    """What numbers of so many bins are kept in; unsigned, as compiled loops want them."""
    return np.uint8 if bins <= 2**8 else np.uint16 if bins <= 2**16 else np.uint64


class BinLocator:
    """Where scores lie among the bins of all events, counted through: event * B + bin.

    The cell of the grid tells how many edges lie in cells before it; edges within the cell, which
    fine bins never have, are compared one after the other.
    """

    def __init__(
        self,
        edges: BinEdges,
        table: np.ndarray | None = None,
        samples: tuple[Predictions | None, ...] = (),
        laid: tuple[Lot, ...] = (),
    ) -> None:
        """Of ``samples`` in memory, if small, the bins are kept; those of the last are ``laid``."""
        self.edges = edges
        self.width = edges.max_bins
        self._known = table
        self._samples = [one for one in samples if one is not None and one.p.size <= KEPT_SCORES]
        self._laid = {id(self._samples[-1]): laid} if laid else {}

    def __reduce__(self) -> tuple[Any, ...]:
        return BinLocator, (self.edges, self._known)  # where it travels the rows are others

    def lots(self, batch: Predictions, compiled: Any) -> Iterable[Lot]:
        """A batch in large groups of events, with the bins of its scores."""
        if id(batch) in self._laid:
            return self._laid[id(batch)]
        found = self._placed(batch, compiled)
        if all(batch is not one for one in self._samples):
            return found
        self._laid[id(batch)] = tuple(found)
        return self._laid[id(batch)]

    def _placed(self, batch: Predictions, compiled: Any) -> Iterator[Lot]:
        for lot in lots(batch, self.edges.events, self.edges.which, bin_type(self.width)):
            compiled.place(lot.p, lot.columns, self.table(lot.events), lot.bins)
            yield lot

    def of(self, tile: Tile) -> np.ndarray:
        """(E, n) the place of each score."""
        if self.corrections > MOST_CORRECTIONS:
            return self._searched(tile)
        cell = cell_of(tile.score)
        cell += (np.arange(len(cell)) * CELLS)[:, None]
        place = self.table(tile.events).ravel().take(cell, mode="clip").astype(np.intp)
        place += (np.arange(tile.first, tile.events.stop) * self.width)[:, None]
        if self.corrections:
            above = self._above(tile.score.dtype)
            score = tile.score.astype(above.dtype, copy=False)
            for _ in range(self.corrections):
                place += score >= above.take(place, mode="clip")
        return place

    def spread(self, values: np.ndarray, tile: Tile) -> np.ndarray:
        """(E, n) values (E, B) of all events where the scores of a tile lie."""
        return np.asarray(values.ravel().take(self.of(tile), mode="clip"))

    @cached_property
    def corrections(self) -> int:
        """Most edges in one cell; 0 for fine bins, which begin where cells do."""
        if self.edges.cuts is not None:
            return 0
        most = (np.bincount(cells).max(initial=0) for cells in self._edge_cells)
        return int(max(most, default=0))

    @cached_property
    def _edge_cells(self) -> list[np.ndarray]:
        if self.edges.cuts is not None:
            return [cuts - 1 for cuts in self.edges.cuts]  # cells from the cut on lie above
        return [cell_of(inner) for inner in self.edges.inner]

    def table(self, events: slice) -> np.ndarray:
        """(E, CELLS) the bin of each cell: how many edges lie in cells before it."""
        if self._known is not None:
            return self._known[events]
        if len(self.edges) <= KEPT_TABLES:
            return self._tables[events]
        return self._made(range(len(self.edges))[events])

    @cached_property
    def _tables(self) -> np.ndarray:
        return self._made(range(len(self.edges)))

    def _made(self, events: range) -> np.ndarray:
        table = np.zeros((len(events), CELLS), bin_type(self.width))
        for row, k in zip(table, events, strict=True):
            after = self._edge_cells[k] + 1
            np.add.at(row, after[after < CELLS], 1)
        return np.cumsum(table, axis=1, out=table)

    def _above(self, kind: np.dtype) -> np.ndarray:
        """(E B,) the edge above each bin, in the coarser precision of the two."""
        padded = np.full((len(self.edges), self.width), np.inf)
        for row, inner in zip(padded, self.edges.inner, strict=True):
            row[: len(inner)] = inner
        return padded.astype(min(kind, self.edges.inner[0].dtype, key=lambda d: d.itemsize)).ravel()

    def _searched(self, tile: Tile) -> np.ndarray:
        found = [
            self.edges.locate(k, score) + k * self.width
            for k, score in enumerate(tile.score, start=tile.first)
        ]
        return np.stack(found)


def true_event(batch: Predictions, events: Events, which: tuple[int, ...]) -> np.ndarray:
    """(n,) which of the events, counted among those asked for, came true in each row, or -1."""
    if events.count == 1:
        true = events.stratum_outcome(which[0])[events.stratum(batch)]
        return np.asarray(true.astype(np.int64) - 1)
    if which == tuple(range(events.n_classes)):
        return batch.labels
    place = np.full(events.n_classes, -1)
    place[list(which)] = np.arange(len(which))
    return np.asarray(place[batch.labels])
