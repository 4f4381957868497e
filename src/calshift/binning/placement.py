"""Scores of a batch, event by event, and the bins in which they lie."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from calshift._core.predictions import Predictions
from calshift._core.score_grid import CELLS, cell_of
from calshift.binning.edges import BinEdges
from calshift.binning.events import Events
from calshift.compiled import fastest

BLOCK_EVENTS = 64  # transposed at once, to read whole cache lines
TRANSPOSED_ROWS = 512  # at once, which stay in the cache
PART_SCORES = 2**16  # of a part of a block: temporaries of that size stay in the cache
TILE_SCORES, LEAST_TILE = 2**15, 1024  # of a tile, and its rows
KEPT_SCORES = 2**24  # of a sample in memory whose blocks are kept between passes
MOST_CORRECTIONS = 4  # edges in one cell of the grid, above which a search is faster


@dataclass(frozen=True)
class ScoreBlock:
    """Scores of some events of a batch, and the bins in which they lie.

    Attributes
    ----------
    first : number of the first event
    score : (E, n)
    bins : (E, n), or None where scores were not located
    width : B, bins of the event that has most
    """

    first: int
    score: np.ndarray
    bins: np.ndarray | None = None
    width: int = 0

    @property
    def events(self) -> slice:
        """Numbers of the events."""
        return slice(self.first, self.first + len(self.score))

    @cached_property
    def place(self) -> np.ndarray:
        """(E, n) event * B + bin, counted from the first event of this block."""
        assert self.bins is not None
        return self.bins + (np.arange(len(self.bins)) * self.width)[:, None]

    def by_bin(self, values: np.ndarray | None) -> np.ndarray:
        """(E, B) values (E, n) or (n,) summed in each bin; None counts rows."""
        flat = None if values is None else np.broadcast_to(values, self.score.shape).ravel()
        size = len(self.score) * self.width
        return np.bincount(self.place.ravel(), flat, size).reshape(-1, self.width)

    def at_bins(self, values: np.ndarray) -> np.ndarray:
        """(E, n) values of the bins in which scores lie, from those (., B) of all events."""
        return np.asarray(values[self.events].ravel().take(self.place, mode="clip"))

    def parts(self) -> Iterator[ScoreBlock]:
        """Smaller blocks, whose temporaries stay in the cache."""
        step = max(1, PART_SCORES // max(self.score.shape[1], 1))
        for start in range(0, len(self.score), step):
            here = slice(start, start + step)
            bins = None if self.bins is None else self.bins[here]
            yield ScoreBlock(self.first + start, self.score[here], bins, self.width)

    def tiles(self) -> Iterator[tuple[slice, ScoreBlock]]:
        """Parts of some rows and, unless these are few, some events, which stay in the cache."""
        E, n = self.score.shape
        step = max(LEAST_TILE, TILE_SCORES // E)
        at_once = max(1, TILE_SCORES // min(step, max(n, 1)))
        for start in range(0, n, step):
            rows = slice(start, start + step)
            for first in range(0, E, at_once):
                here = slice(first, first + at_once)
                bins = None if self.bins is None else self.bins[here, rows]
                score = self.score[here, rows]
                yield rows, ScoreBlock(self.first + first, score, bins, self.width)

    def residuals(self, true: np.ndarray) -> np.ndarray:
        """(E, n) u = 1 - score of the event that came true, counted as these are, else -score."""
        u = self.score.astype(float)
        np.negative(u, out=u)
        here = np.flatnonzero((true >= self.first) & (true < self.events.stop))
        u[true[here] - self.first, here] += 1.0
        return u

    def rows(self, start: int, stop: int) -> ScoreBlock:
        """The same events of some of the rows."""
        part, bins = slice(start, stop), self.bins
        bins = None if bins is None else np.ascontiguousarray(bins[:, part])
        return ScoreBlock(self.first, np.ascontiguousarray(self.score[:, part]), bins, self.width)


def score_blocks(
    batch: Predictions, events: Events, which: tuple[int, ...]
) -> Iterator[ScoreBlock]:
    """Scores of the events asked for, in blocks."""
    for first in range(0, len(which), BLOCK_EVENTS):
        yield ScoreBlock(
            first, transpose_scores(batch, events, which[first : first + BLOCK_EVENTS])
        )


def transpose_scores(batch: Predictions, events: Events, which: tuple[int, ...]) -> np.ndarray:
    """(E, n) scores, a copy; a matrix of classes is transposed in blocks of rows."""
    if events.kind != "classwise" or batch.p.ndim == 1:
        return np.stack([events.score(batch, event) for event in which])
    adjacent = which == tuple(range(which[0], which[0] + len(which)))
    columns = slice(which[0], which[-1] + 1) if adjacent else list(which)
    score = np.empty((len(which), len(batch)), dtype=batch.p.dtype)
    step = max(TRANSPOSED_ROWS, TILE_SCORES // len(which))
    for row in range(0, len(batch), step):
        score[:, row : row + step] = batch.p[row : row + step, columns].T
    return score


@fastest
def locate(score: np.ndarray, table: np.ndarray) -> np.ndarray:
    """(E, n) the bin of each score, from the bins (E, CELLS) of the cells of the grid."""
    return np.stack([row.take(cell_of(one)) for row, one in zip(table, score, strict=True)])


def bin_type(bins: int) -> type[np.unsignedinteger[Any]]:
    """The smallest type that can number so many bins."""
    return np.uint8 if bins <= 2**8 else np.uint16 if bins <= 2**16 else np.uint32


class BinLocator:
    """Locates scores in the bins of all events.

    The cell of the grid gives how many edges lie in cells before it; edges within the cell, which
    fine bins do not have, are compared one after the other.
    """

    def __init__(
        self,
        edges: BinEdges,
        table: np.ndarray | None = None,
        samples: tuple[Predictions | None, ...] = (),
        blocks: tuple[ScoreBlock, ...] = (),
    ) -> None:
        """Blocks of small ``samples`` in memory are kept; those of the last may be known."""
        self.edges = edges
        self.width = edges.max_bins
        self._known = table
        small = (one for one in samples if one is not None and one.p.size <= KEPT_SCORES)
        self._samples = {id(one): one for one in small}
        self._kept = {id(samples[-1]): blocks} if blocks else {}

    def __reduce__(self) -> tuple[Any, ...]:
        return BinLocator, (self.edges, self._known)  # a copy elsewhere sees other rows

    def blocks(self, batch: Predictions) -> Iterator[ScoreBlock]:
        """A batch in blocks of events, with the bins of its scores."""
        root, start = batch._origin or (batch, 0)
        if id(root) not in self._samples:
            yield from self._locate_all(batch)
            return
        if id(root) not in self._kept:
            self._kept[id(root)] = tuple(self._locate_all(root))
        for block in self._kept[id(root)]:
            yield block if batch is root else block.rows(start, start + len(batch))

    def _locate_all(self, batch: Predictions) -> Iterator[ScoreBlock]:
        for block in score_blocks(batch, self.edges.events, self.edges.which):
            yield replace(block, bins=self._locate(block), width=self.width)

    def _locate(self, block: ScoreBlock) -> np.ndarray:
        """(E, n) the bin of each score."""
        if self.corrections > MOST_CORRECTIONS:
            each = enumerate(block.score, start=block.first)
            found = np.stack([self.edges.locate(k, score) for k, score in each])
            return found.astype(bin_type(self.width))
        bins = locate(block.score, self.table(block.events))
        above = self._above(block.score.dtype) if self.corrections else np.zeros((0, 0))
        for k, edge in enumerate(above[block.events]):
            score = block.score[k].astype(edge.dtype, copy=False)
            for _ in range(self.corrections):
                bins[k] += score >= edge.take(bins[k])
        return bins

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
        return (self._tables if self._known is None else self._known)[events]

    @cached_property
    def _tables(self) -> np.ndarray:
        table = np.zeros((len(self.edges), CELLS), bin_type(self.width))
        for row, cells in zip(table, self._edge_cells, strict=True):
            np.add.at(row, cells[cells < CELLS - 1] + 1, 1)
        return np.cumsum(table, axis=1, out=table)

    def _above(self, kind: np.dtype) -> np.ndarray:
        """(E, B) the edge above each bin, in the coarser precision of the two."""
        padded = np.full((len(self.edges), self.width), np.inf)
        for row, inner in zip(padded, self.edges.inner, strict=True):
            row[: len(inner)] = inner
        return padded.astype(min(kind, self.edges.inner[0].dtype, key=lambda d: d.itemsize))


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


def labelled_blocks(
    batch: Predictions, locator: BinLocator
) -> Iterator[tuple[ScoreBlock, np.ndarray]]:
    """Parts of blocks of a labelled batch, with the residuals u (E, n) = event - score."""
    true = true_event(batch, locator.edges.events, locator.edges.which)
    for block in locator.blocks(batch):
        for part in block.parts():
            yield part, part.residuals(true)
