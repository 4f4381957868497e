"""Edges of the bins from the order of a sample's scores, wherever its rows are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from calshift._core.addable import Tally
from calshift._core.predictions import Predictions
from calshift._core.score_grid import ANGLE, CELLS, MIDDLE, cell_of
from calshift.binning.edges import (
    FINE_BINS,
    BinEdges,
    equal_mass_edges,
    fine_cuts,
    fixed_edges,
    validate_bins,
)
from calshift.binning.events import Events
from calshift.binning.placement import KEPT_SCORES, BinLocator, ScoreBlock, score_blocks
from calshift.binning.quantiles import order_statistics
from calshift.binning.simplex_cells import CellLocator, SimplexCells, planned_cells, split_simplex
from calshift.compiled import fastest
from calshift.engines.base import Engine
from calshift.engines.plan import plan
from calshift.errors import InvalidInput

MOST_STRATA_CELLS = 20_000_000  # bins x strata of an event
MOST_PLANNED = 2**21  # cells of the grid that are kept until the bins are found
MOST_CELLS = 200 * CELLS  # of the grid, counted at once where rows are in memory


@dataclass(frozen=True)
class BinnedSample:
    """Edges, and the sample's rows and scores in each bin where these were counted on the way."""

    edges: BinEdges
    count: np.ndarray | None = None  # (E, B)
    score: np.ndarray | None = None
    table: np.ndarray | None = None  # (E, CELLS) the bin of each cell of the grid
    blocks: tuple[ScoreBlock, ...] = ()  # the rows in their bins, if they are in memory and few

    def locator(self, source: Engine, target: Engine | None) -> BinLocator:
        """Locates scores of both samples; the bins are those of the target, or of the source."""
        samples = source.in_memory, source.in_memory if target is None else target.in_memory
        if isinstance(self.edges, SimplexCells):
            return CellLocator(self.edges, None, samples)
        return BinLocator(self.edges, self.table, samples, self.blocks)

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
        return BinnedSample(_check_edges(bins, events))
    rule, number = validate_bins(bins, binning)
    classes = engine.summary.classes
    if rule == "auto":
        return _find_fine_bins(engine, events, classes)
    if rule == "mass":
        inner = _equal_mass(engine, events, number)
    else:
        inner = fixed_edges(bins, events.count)
    edges = BinEdges(events, tuple(range(events.count)), tuple(inner), False, classes)
    return BinnedSample(_check_cells(edges))


def plan_bins(engine: Engine, events: Events, bins: Any) -> None:
    """Count the sample for ``bins="auto"`` in the next pass over its files or its table."""
    if isinstance(bins, str) and bins == "auto" and events.count * CELLS <= MOST_PLANNED:
        plan(engine, GridCount(events, tuple(range(events.count))))


def cut_simplex(rows: Predictions, bins: Any, n: float) -> BinnedSample:
    """Cells of the simplex for these rows: a number of them, or "auto" for n source rows."""
    number = planned_cells(min(n, rows.size)) if bins == "auto" else bins
    return BinnedSample(_check_cells(split_simplex(rows, number)))


def _check_cells(edges: BinEdges) -> BinEdges:
    """Refuse bins whose counts by stratum do not fit in memory."""
    strata = len(edges.events.stratum_label)
    if edges.max_bins * strata > MOST_STRATA_CELLS:
        most, K = MOST_STRATA_CELLS // strata, edges.events.n_classes
        msg = f"bins must be at most {most:,} for {K:,} classes; there are {edges.max_bins:,}"
        raise InvalidInput(msg)
    return edges


def _check_edges(edges: BinEdges, events: Events) -> BinEdges:
    if edges.events != events:
        msg = f"bins must be edges of the same kind and classes; got {edges!r}"
        raise InvalidInput(msg)
    return edges


def _find_fine_bins(
    engine: Engine, events: Events, classes: tuple[Any, ...] | None
) -> BinnedSample:
    """Fine bins, whose edges lie between cells of the grid."""
    rows, blocks = engine.in_memory, []
    parts: list[tuple[np.ndarray, ...]] = []
    if rows is not None and rows.p.size <= KEPT_SCORES:
        for block in score_blocks(rows, events, tuple(range(events.count))):
            parts.append(cut_scores(block.score, rows.sample_weight, MIDDLE, ANGLE, FINE_BINS))
            blocks.append((block.first, block.score, parts[-1][4]))
    else:
        at_once = events.count if rows is None else max(1, MOST_CELLS // CELLS)
        for start in range(0, events.count, at_once):
            which = tuple(range(start, min(start + at_once, events.count)))
            cells = engine.total(GridCount(events, which))["cells"]
            parts.append(cut_cells(cells, MIDDLE, ANGLE, FINE_BINS))
    cuts, number, table = (np.concatenate([part[k] for part in parts]) for k in (0, 1, 3))
    edges = BinEdges.between_cells(events, cuts, number, classes)
    width = edges.max_bins
    count, score = np.concatenate([part[2][:, :, :width] for part in parts], axis=1)
    kept = tuple(ScoreBlock(*block, width) for block in blocks)
    return BinnedSample(edges, count, score, table, kept)


@fastest
def cut_cells(
    cells: np.ndarray, middle: np.ndarray, angle: np.ndarray, most: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Fine bins from rows and scores (2, E, CELLS) on the grid.

    Returns the first cells (E, most) of all bins but one and their number (E,), the sums
    (2, E, most) in each bin, and the bin (E, CELLS) of each cell.
    """
    E = cells.shape[1]
    cuts, number = np.zeros((E, most), np.int64), np.zeros(E, np.int64)
    sums, table = np.zeros((2, E, most)), np.empty((E, CELLS), np.uint8)
    for k, cut in enumerate(fine_cuts(cells[0], most)):
        starts = np.append(0, cut)
        cuts[k, : len(cut)], number[k] = cut, len(cut)
        sums[:, k, : len(starts)] = np.add.reduceat(cells[:, k], starts, axis=1)
        table[k] = np.repeat(np.arange(len(starts)), np.diff(np.append(starts, CELLS)))
    return cuts, number, sums, table


@fastest
def count_cells(score: np.ndarray, frequency: np.ndarray | None) -> np.ndarray:
    """(2, E, CELLS) rows and sums of scores (E, n) in each cell of the grid."""
    out = np.empty((2, len(score), CELLS))
    for k, one in enumerate(score):
        cell = cell_of(one)
        out[0, k] = np.bincount(cell, frequency, CELLS)
        out[1, k] = np.bincount(cell, one if frequency is None else one * frequency, CELLS)
    return out


@fastest
def cut_scores(
    score: np.ndarray, frequency: np.ndarray | None, middle: np.ndarray, angle: np.ndarray,
    most: int,
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray]:  # fmt: skip
    """What `cut_cells` returns, from scores (E, n), and the bin (E, n) of each score."""
    counts, cells = np.empty((2, len(score), CELLS)), np.empty(score.shape, np.uint16)
    for k, one in enumerate(score):
        cells[k] = cell = cell_of(one)
        counts[0, k] = np.bincount(cell, frequency, CELLS)
        counts[1, k] = np.bincount(cell, one if frequency is None else one * frequency, CELLS)
    found = cut_cells(counts, middle, angle, most)
    bins = np.empty(score.shape, np.uint8)
    for k, table in enumerate(found[3]):
        table.take(cells[k], mode="clip", out=bins[k])
    return *found, bins


def pooled_cells(engine: Engine, events: Events, which: tuple[int, ...]) -> np.ndarray:
    """(CELLS,) rows on the grid, the scores of several events taken together."""
    at_once = len(which) if engine.in_memory is None else max(1, MOST_CELLS // CELLS)
    groups = (which[start : start + at_once] for start in range(0, len(which), at_once))
    counts = [engine.total(GridCount(events, one))["cells"][0].sum(axis=0) for one in groups]
    return np.asarray(np.sum(counts, axis=0))


@dataclass(frozen=True)
class GridCount:
    """Summand: rows and sums of scores in each cell of the grid, (2, E, CELLS)."""

    events: Events
    which: tuple[int, ...]

    def __call__(self, batch: Predictions) -> Tally:
        cells, f = np.empty((2, len(self.which), CELLS)), batch.sample_weight
        for block in score_blocks(batch, self.events, self.which):
            cells[:, block.events] = count_cells(block.score, f)
        return Tally(cells=cells)


def _equal_mass(engine: Engine, events: Events, bins: int) -> list[np.ndarray]:
    """unique(s[ceil(k m / B)], k = 1..B-1) above s[0] for each event."""
    if engine.in_memory is not None:
        rows = engine.in_memory
        return [
            equal_mass_edges(events.score(rows, event), rows.sample_weight, bins)
            for event in range(events.count)
        ]
    return order_statistics(engine, events, bins)
