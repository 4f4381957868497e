"""Edges of the bins from the order of a sample's scores, wherever its rows are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from calshift._core.addable import Tally
from calshift._core.predictions import Predictions
from calshift._core.score_grid import CELLS, cell_of
from calshift.binning.edges import (
    FINE_BINS,
    BinEdges,
    equal_mass_edges,
    fine_cuts,
    fixed_edges,
    validate_bins,
)
from calshift.binning.events import Events
from calshift.binning.placement import KEPT_SCORES, BinLocator, Lot, bin_type, lots, tiles
from calshift.binning.quantiles import order_statistics
from calshift.compiled import loops
from calshift.engines.base import Engine
from calshift.errors import InvalidInput

MOST_CELLS = 200 * CELLS  # of the grid, counted at once where rows are in memory
AT_ONCE = 2**18  # rows in memory that are laid on it event by event


@dataclass(frozen=True)
class BinnedSample:
    """Edges, and the sample's rows and scores in each bin where these were counted on the way."""

    edges: BinEdges
    count: np.ndarray | None = None  # (E, B)
    score: np.ndarray | None = None
    table: np.ndarray | None = None  # (E, CELLS) the bin of each cell of the grid
    lots: tuple[Lot, ...] = ()  # the rows in their bins, if they are in memory and few

    def places(self, source: Engine, target: Engine | None) -> BinLocator:
        """Where scores lie among the bins, which are those of the target, or of the source."""
        samples = source.in_memory, source.in_memory if target is None else target.in_memory
        return BinLocator(self.edges, self.table, samples, self.lots)

    def only(self, which: np.ndarray) -> BinnedSample:
        """Those of some of the events."""
        if len(which) == len(self.edges):
            return self
        edges = self.edges.only(which)
        if self.count is None or self.score is None:
            return BinnedSample(edges)
        width = edges.max_bins
        table = None if self.table is None else self.table[which]
        return BinnedSample(edges, self.count[which, :width], self.score[which, :width], table)


def find_edges(engine: Engine, events: Events, bins: Any, binning: str = "mass") -> BinEdges:
    """Edges for every event, from the sample's scores."""
    return bin_sample(engine, events, bins, binning).edges


def bin_sample(engine: Engine, events: Events, bins: Any, binning: str = "mass") -> BinnedSample:
    """Edges for every event, with what was counted to find them."""
    if isinstance(bins, BinEdges):
        return BinnedSample(_fitting(bins, events))
    rule, number = validate_bins(bins, binning)
    classes = engine.summary.classes
    if rule == "auto":
        return _fine(engine, events, classes)
    if rule == "mass":
        inner = _equal_mass(engine, events, number)
    else:
        inner = fixed_edges(bins, events.count)
    return BinnedSample(BinEdges(events, tuple(range(events.count)), tuple(inner), False, classes))


def _fitting(edges: BinEdges, events: Events) -> BinEdges:
    if edges.events != events:
        msg = f"bins must be edges of the same kind and classes; got {edges!r}"
        raise InvalidInput(msg)
    return edges


def _fine(engine: Engine, events: Events, classes: tuple[Any, ...] | None) -> BinnedSample:
    """Fine bins between cells of the grid."""
    bins = FineBins.of(events.count)
    in_bins: list[Lot] = []
    rows, compiled = engine.in_memory, loops()
    if rows is not None and len(rows) <= AT_ONCE and compiled is not None:
        f, all_ = rows.sample_weight, tuple(range(events.count))
        for lot in lots(rows, events, all_, bins.table.dtype):
            room = bins.part(lot.events)
            compiled.lay(lot.p, lot.columns, f, FINE_BINS, lot.bins, *room)
            if rows.p.size <= KEPT_SCORES:
                in_bins.append(lot)
    else:
        _count_and_cut(engine, events, bins)
    edges = BinEdges.between_cells(events, bins.cuts, bins.number, classes)
    count, score = bins.sums[:, :, : edges.max_bins]
    return BinnedSample(edges, count, score, bins.table, tuple(in_bins))


@dataclass(frozen=True)
class FineBins:
    """Room for the fine bins of E events.

    cuts (E, bins) : first cells; sums (2, E, bins) : rows and scores; number (E,) of cuts;
    table (E, CELLS) : the bin of each cell.
    """

    cuts: np.ndarray
    sums: np.ndarray
    number: np.ndarray
    table: np.ndarray

    @staticmethod
    def of(E: int) -> FineBins:
        """Empty room."""
        cuts, number = np.zeros((E, FINE_BINS), np.int64), np.zeros(E, np.int64)
        return FineBins(
            cuts, np.zeros((2, E, FINE_BINS)), number, np.empty((E, CELLS), bin_type(FINE_BINS))
        )

    def part(self, events: slice) -> tuple[np.ndarray, ...]:
        """That of some events."""
        return self.cuts[events], self.sums[:, events], self.number[events], self.table[events]


def _count_and_cut(engine: Engine, events: Events, bins: FineBins) -> None:
    """One pass over the rows, or over each lot of columns where they are in memory."""
    at_once = events.count if engine.in_memory is None else max(1, MOST_CELLS // CELLS)
    for start in range(0, events.count, at_once):
        here = slice(start, min(start + at_once, events.count))
        counted = engine.total(GridCount(events, tuple(range(here.start, here.stop))))
        _cut(counted["rows"], counted["score"], *bins.part(here))


def _cut(
    rows: np.ndarray,
    score: np.ndarray,
    cuts: np.ndarray,
    sums: np.ndarray,
    number: np.ndarray,
    table: np.ndarray,
) -> None:
    """Fine bins from counts on the grid."""
    compiled = loops()
    if compiled is not None:
        compiled.cut_cells(rows, score, FINE_BINS, cuts, sums, number, table)
        return
    for k, cut in enumerate(fine_cuts(rows)):
        starts = np.append(0, cut)
        cuts[k, : len(cut)], number[k] = cut, len(cut)
        sums[:, k, : len(starts)] = np.add.reduceat([rows[k], score[k]], starts, axis=1)
        table[k] = np.repeat(np.arange(len(starts)), np.diff(np.append(starts, CELLS)))


def pooled_cells(engine: Engine, events: Events, which: tuple[int, ...]) -> np.ndarray:
    """(CELLS,) rows on the grid, the scores of several events taken together."""
    at_once = len(which) if engine.in_memory is None else max(1, MOST_CELLS // CELLS)
    lots = (which[start : start + at_once] for start in range(0, len(which), at_once))
    counts = [engine.total(GridCount(events, lot))["rows"].sum(axis=0) for lot in lots]
    return np.asarray(np.sum(counts, axis=0))


@dataclass(frozen=True)
class GridCount:
    """Kernel: (E, CELLS) rows and sums of scores in each cell of the grid."""

    events: Events
    which: tuple[int, ...]

    def __call__(self, batch: Predictions) -> Tally:
        compiled = loops()
        if compiled is None:
            return self._counted(batch)
        rows, score = np.zeros((2, len(self.which), CELLS))
        for lot in lots(batch, self.events, self.which):
            here, f = lot.events, batch.sample_weight
            compiled.count(lot.p, lot.columns, f, rows[here], score[here])
        return Tally(rows=rows, score=score)

    def _counted(self, batch: Predictions) -> Tally:
        size, weight = len(self.which) * CELLS, batch.sample_weight
        rows, score = np.zeros(size), np.zeros(size)
        for tile in tiles(batch, self.events, self.which):
            cell = cell_of(tile.score).ravel()
            f = tile.score.astype(float)
            part = slice(tile.first * CELLS, (tile.first + len(f)) * CELLS)
            cell += np.repeat(np.arange(len(f)) * CELLS, len(batch))
            count = len(f) * CELLS
            each = None if weight is None else np.tile(weight, len(f))
            rows[part] = np.bincount(cell, each, count)
            score[part] = np.bincount(cell, f.ravel() if each is None else f.ravel() * each, count)
        shape = len(self.which), CELLS
        return Tally(rows=rows.reshape(shape), score=score.reshape(shape))


def _equal_mass(engine: Engine, events: Events, bins: int) -> list[np.ndarray]:
    """unique(s[ceil(k m / B)], k = 1..B-1) above s[0] for each event."""
    if engine.in_memory is not None:
        rows = engine.in_memory
        return [
            equal_mass_edges(events.score(rows, event), rows.sample_weight, bins)
            for event in range(events.count)
        ]
    return order_statistics(engine, events, bins)
