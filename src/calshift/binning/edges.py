"""Bin edges, which side of a bin is closed, and which bins join. (docs/mathematics.md 2)"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from calshift._core.convert import to_numpy
from calshift._core.frozen import Frozen, read_only
from calshift._core.predictions import Predictions
from calshift._core.score_grid import ANGLE, CELLS, LOWEST, cell_of, first_nearer
from calshift._core.validate import is_number, show, validate_choice, validate_integer
from calshift.binning.events import Events
from calshift.errors import InvalidInput

FINE_BINS = 256  # of bins="auto" at most: hats on them stand for hats on the scores
BINNINGS = ("mass", "width")
MOST_BINS = 1_000_000


@dataclass(frozen=True, eq=False, repr=False)
class BinEdges(Frozen):
    """Inner edges of the bins of each event; a sequence of arrays, one an event.

    They are given, or lie between cells of the grid: then ``cuts`` has the first cell of all bins
    but one. With ``smooth`` the bins are fine ones, for the smooth basis of bins="auto".
    """

    events: Events
    which: tuple[int, ...]
    given: tuple[np.ndarray, ...]
    smooth: bool
    classes: tuple[Any, ...] | None = None
    cuts: tuple[np.ndarray, ...] | None = None

    @staticmethod
    def between_cells(
        events: Events, cuts: np.ndarray, number: np.ndarray, classes: tuple[Any, ...] | None
    ) -> BinEdges:
        """Fine bins of all events, from the first cells (E, most) of all bins but one of each."""
        kept, ends = read_only(cuts), number.tolist()
        each = tuple([one[:end] for one, end in zip(kept, ends, strict=True)])
        return BinEdges(events, tuple(range(events.count)), (), True, classes, each)

    @property
    def inner(self) -> tuple[np.ndarray, ...]:
        """The edges as scores."""
        if self.cuts is None:
            return self.given
        return tuple(read_only(LOWEST[cut]) for cut in self.cuts)

    @property
    def max_bins(self) -> int:
        """Bins of the event that has most."""
        return 1 + max(map(len, self._held))

    @property
    def bins(self) -> np.ndarray:
        """(E,) bins of each event."""
        return 1 + np.array(list(map(len, self._held)))

    @property
    def _held(self) -> tuple[np.ndarray, ...]:
        return self.given if self.cuts is None else self.cuts

    def locate(self, k: int, score: np.ndarray) -> np.ndarray:
        """Bin of each score under the k-th event held: a bin contains its lower edge.

        Both are compared in the coarser of their precisions, or equal scores would part.
        """
        if self.cuts is not None:
            ends = np.append(self.cuts[k], CELLS)
            table = np.repeat(np.arange(len(ends)), np.diff(ends, prepend=0))
            return np.asarray(table[cell_of(score)])
        inner = self.given[k]
        coarser = min(inner.dtype, score.dtype, key=lambda dtype: dtype.itemsize)
        inner, score = inner.astype(coarser, copy=False), score.astype(coarser, copy=False)
        return np.searchsorted(inner, score, side="right")

    def place(self, k: int, batch: Predictions) -> tuple[np.ndarray, np.ndarray]:
        """Scores of the k-th event held, and the bins in which they lie."""
        score = self.events.score(batch, self.which[k])
        return score, self.locate(k, score)

    def only(self, which: np.ndarray) -> BinEdges:
        """The edges of some of the events."""
        chosen = [int(k) for k in which]

        def of(values: tuple[Any, ...]) -> tuple[Any, ...]:
            return tuple(values[k] for k in chosen)

        if self.cuts is not None:
            return replace(self, which=of(self.which), cuts=of(self.cuts))
        return replace(self, which=of(self.which), given=of(self.given))

    def split(self, cells: int = 2_000_000) -> Iterator[BinEdges]:
        """Parts with fewer events, so that counts per (event, bin, stratum) stay small."""
        strata = len(self.events.stratum_label)
        step = max(1, cells // (self.max_bins * strata))
        for start in range(0, len(self.which), step):
            yield self.only(np.arange(start, min(start + step, len(self.which))))

    def __len__(self) -> int:
        return len(self.which)

    def __getitem__(self, k: Any) -> Any:
        if self.cuts is None or isinstance(k, slice):
            return self.inner[k]
        return read_only(LOWEST[self.cuts[k]])

    def __repr__(self) -> str:
        shape = f"{len(self)} events, up to {self.max_bins} bins"
        return f"BinEdges({self.events.kind}, {shape}{', smooth' if self.smooth else ''})"


def validate_bins(bins: Any, binning: str) -> tuple[str, int]:
    """How edges are found: "auto", "mass" with a number of bins, or "fixed"."""
    validate_choice(binning, "binning", BINNINGS)
    if isinstance(bins, str):
        if bins != "auto":
            msg = f'bins must be "auto", a number of bins or edges; got {show(bins)}'
            raise InvalidInput(msg)
        if binning == "width":
            msg = 'binning="width" needs a number of bins; got bins="auto"'
            raise InvalidInput(msg)
        return "auto", FINE_BINS
    if is_number(bins) and binning == "mass":
        return "mass", validate_integer(bins, "bins", 1, MOST_BINS)
    return "fixed", 0


def equal_mass_edges(score: np.ndarray, weight: np.ndarray | None, bins: int) -> np.ndarray:
    """unique(s[ceil(k m / B)], k = 1..B-1) above s[0], with s the sorted scores."""
    order, upto = _sorted(score, weight)
    index = edge_ranks(float(upto[-1]), bins)
    # s repeats each score as often as its weight says, so s[r] is the first with upto > r
    edges = np.unique(order[np.searchsorted(upto, index[index < upto[-1]], side="right")])
    return np.asarray(edges[edges > order[0]])


def fine_cuts(counts: np.ndarray, bins: int = FINE_BINS) -> list[np.ndarray]:
    """First cells of the fine bins of each event, from rows (E, CELLS) on the grid.

    Cells join whose t, halfway between the rank and arcsin sqrt score, rounds to the same step:
    rank alone starves the few high scores of a rare class, where its error sits, and arcsin sqrt
    alone the many scores near 0. Empty cells between two bins go to the nearer one.
    """
    event, cell = np.divmod(np.flatnonzero(counts != 0), counts.shape[1])
    rows = counts[event, cell]
    first = np.searchsorted(event, np.arange(len(counts)))
    upto = np.cumsum(rows)
    before = (upto - rows)[first]
    total = np.append(before[1:], upto[-1]) - before
    rank = (upto - rows / 2 - before[event]) / total[event]
    t = (rank + rescale_to_unit(ANGLE[cell], first, event)) / 2
    away = t - 0.5
    steps = np.minimum(np.floor(np.abs(away) * (bins - 1) + 0.5), (bins - 1) // 2)
    step = np.copysign(steps, away)
    new = 1 + np.flatnonzero((np.diff(step) != 0) & (np.diff(event) == 0))
    cuts = first_nearer(cell[new - 1], cell[new])
    return np.split(cuts, np.searchsorted(event[new], np.arange(1, len(counts))))


def rescale_to_unit(angle: np.ndarray, first: np.ndarray, event: np.ndarray) -> np.ndarray:
    """Angles that increase within each event, rescaled from 0 to 1 (0 if they are all equal)."""
    low, high = angle[first], angle[np.append(first[1:], len(angle)) - 1]
    span = np.where(high > low, high - low, 1.0)
    return np.asarray((angle - low[event]) / span[event])


def _sorted(score: np.ndarray, weight: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
    """Scores in order, and how many rows stand up to each."""
    if weight is None:
        return np.sort(score), np.arange(1.0, len(score) + 1)
    order = np.argsort(score, kind="stable")
    return score[order], np.cumsum(weight[order])


def edge_ranks(total: float, bins: int) -> np.ndarray:
    """ceil(k m / B) for k = 1..B-1, in whole numbers where m is one."""
    k = np.arange(1, bins)
    if total.is_integer() and total < 2**40:
        return np.asarray(-(-k * int(total) // bins))
    return np.asarray(np.ceil(k * (total / bins)))


def fixed_edges(bins: Any, count: int) -> list[np.ndarray]:
    """Edges k/B, or the given ones: one list for all events, or a list of lists, one an event."""
    if is_number(bins):
        number = validate_integer(bins, "bins", 1, MOST_BINS)
        return [np.arange(1, number) / number] * count
    bins = to_numpy(bins, "bins")[0] if isinstance(bins, np.ndarray) else bins
    if not isinstance(bins, list | tuple | np.ndarray) or getattr(bins, "ndim", 1) == 0:
        msg = f'bins must be "auto", a number of bins or edges; got {show(bins)}'
        raise InvalidInput(msg)
    several = not all(is_number(item) for item in bins)
    if several and len(bins) != count:
        msg = f"bins must be one list of edges, or {count} lists, one an event; got {len(bins)}"
        raise InvalidInput(msg)
    return [_given_edges(item) for item in bins] if several else [_given_edges(bins)] * count


def _given_edges(edges: Any) -> np.ndarray:
    """Inner edges: those at or beyond 0 and 1 only close the range."""
    try:
        edges = np.asarray(edges, dtype=float)
    except (TypeError, ValueError):
        edges = np.array(np.nan)
    if edges.ndim == 1 and len(edges) >= MOST_BINS:
        msg = f"bins must be fewer than {MOST_BINS:,} edges; there are {len(edges):,}"
        raise InvalidInput(msg)
    if edges.ndim != 1 or not np.isfinite(edges).all() or (np.diff(edges) <= 0).any():
        msg = "bins must be increasing, finite edges"
        raise InvalidInput(msg)
    return np.asarray(edges[(edges > 0) & (edges < 1)])


def merge_sparse_bins(*counts: np.ndarray, least: float = 2.0) -> np.ndarray:
    """First bins of the groups that remain when sparse bins are merged with their neighbours.

    A bin in which any of the counts is below ``least`` is merged with its left neighbour, the first
    with its right one.
    """
    enough = np.min(counts, axis=0) >= least
    so_far = np.min([np.cumsum(count) for count in counts], axis=0) >= least
    return np.concatenate([[0], 1 + np.flatnonzero(enough[1:] & so_far[:-1])])
