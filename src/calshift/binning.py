"""Bin edges, which side of a bin is closed, and which bins join. (docs/mathematics.md 2)"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from calshift.checks import checked_whole, is_number
from calshift.errors import InvalidInput
from calshift.events import Events
from calshift.frozen import Frozen
from calshift.predictions import Predictions

FINE_BINS = 256  # of bins="auto": fine enough that hats on them stand for hats on the scores
BINNINGS = ("mass", "width")


@dataclass(frozen=True, eq=False, repr=False)
class BinEdges(Frozen):
    """Inner edges of the bins of each event; a sequence of arrays, one an event.

    With ``smooth`` the bins are fine ones, on which the smooth basis of bins="auto" is laid.
    """

    events: Events
    which: tuple[int, ...]
    inner: tuple[np.ndarray, ...]
    smooth: bool
    classes: tuple[Any, ...] | None = None

    @property
    def max_bins(self) -> int:
        """Bins of the event that has most."""
        return max(len(edges) for edges in self.inner) + 1

    def locate(self, k: int, score: np.ndarray) -> np.ndarray:
        """Bin of each score under the k-th event held: a bin holds its lower edge.

        Both are compared in the coarser of their precisions, or equal scores would part.
        """
        inner = self.inner[k]
        coarser = min(inner.dtype, score.dtype, key=lambda dtype: dtype.itemsize)
        inner, score = inner.astype(coarser, copy=False), score.astype(coarser, copy=False)
        return np.searchsorted(inner, score, side="right")

    def only(self, which: np.ndarray) -> BinEdges:
        """The edges of some of the events."""
        chosen = tuple(int(k) for k in which)
        inner = tuple(self.inner[k] for k in chosen)
        events = tuple(self.which[k] for k in chosen)
        return BinEdges(self.events, events, inner, self.smooth, self.classes)

    def split(self, cells: int = 2_000_000) -> Iterator[BinEdges]:
        """Parts with fewer events, so that counts per (event, bin, stratum) stay small."""
        strata = len(self.events.stratum_label)
        step = max(1, cells // (self.max_bins * strata))
        for start in range(0, len(self.which), step):
            part = slice(start, start + step)
            yield BinEdges(
                self.events, self.which[part], self.inner[part], self.smooth, self.classes
            )

    def __len__(self) -> int:
        return len(self.inner)

    def __getitem__(self, k: int) -> np.ndarray:
        return self.inner[k]

    def __repr__(self) -> str:
        shape = f"{len(self)} events, up to {self.max_bins} bins"
        return f"BinEdges({self.events.kind}, {shape}{', smooth' if self.smooth else ''})"


def find_edges(target: Predictions, events: Events, bins: Any, binning: str = "mass") -> BinEdges:
    """Edges for every event, from the target's scores."""
    if binning not in BINNINGS:
        msg = f"binning must be one of {', '.join(BINNINGS)}; got {binning!r}"
        raise InvalidInput(msg)
    smooth = isinstance(bins, str)
    if smooth and bins != "auto":
        msg = f'bins must be "auto", a number of bins or edges; got {bins!r}'
        raise InvalidInput(msg)
    if smooth and binning == "width":
        msg = 'binning="width" needs a number of bins; got bins="auto"'
        raise InvalidInput(msg)
    if smooth or (is_number(bins) and binning == "mass"):
        number = FINE_BINS if smooth else checked_whole(bins, "bins", 1)
        rule = fine_edges if smooth else equal_mass_edges
        inner = [
            rule(events.score(target, event), target.sample_weight, number)
            for event in range(events.count)
        ]
    else:
        inner = _fixed_edges(bins, events.count)
    return BinEdges(events, tuple(range(events.count)), tuple(inner), smooth, target.classes)


def equal_mass_edges(score: np.ndarray, weight: np.ndarray | None, bins: int) -> np.ndarray:
    """unique(s[ceil(k m / B)], k = 1..B-1) above s[0], with s the sorted scores."""
    order, upto = _sorted(score, weight)
    index = _rounded_up(float(upto[-1]), bins)
    # s repeats each score as often as its weight says, so s[r] is the first with upto > r
    edges = np.unique(order[np.searchsorted(upto, index[index < upto[-1]], side="right")])
    return np.asarray(edges[edges > order[0]])


def fine_edges(score: np.ndarray, weight: np.ndarray | None, bins: int) -> np.ndarray:
    """Edges evenly spaced in t, halfway between the target's rank and arcsin sqrt score.

    Rank alone starves the few high scores of a rare class, where its error sits; arcsin sqrt
    alone starves the many scores near 0.
    """
    order, upto = _sorted(score, weight)
    last = np.append(order[1:] > order[:-1], True)  # of the rows of one score
    value, upto = order[last], upto[last]
    rank = (upto - np.diff(upto, prepend=0.0) / 2) / upto[-1]
    t = (rank + unit_arcsin(value)) / 2
    first = np.searchsorted(t, np.arange(1, bins) / bins, side="left")
    first = np.unique(first[(first > 0) & (first < len(value))])
    halfway = (value[first - 1] + value[first]) / 2  # so that 1 - p has the same bins
    return np.asarray(np.where(halfway > value[first - 1], halfway, value[first]))


def _sorted(score: np.ndarray, weight: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
    """Scores in order, and how many rows stand up to each."""
    if weight is None:
        return np.sort(score), np.arange(1.0, len(score) + 1)
    order = np.argsort(score, kind="stable")
    return score[order], np.cumsum(weight[order])


def _rounded_up(total: float, bins: int) -> np.ndarray:
    """ceil(k m / B) for k = 1..B-1, in whole numbers where m is one."""
    k = np.arange(1, bins)
    if total.is_integer() and total < 2**40:
        return np.asarray(-(-k * int(total) // bins))
    return np.asarray(np.ceil(k * (total / bins)))


def unit_arcsin(score: np.ndarray) -> np.ndarray:
    """arcsin sqrt of increasing scores, rescaled to run from 0 to 1 (0 if they are all equal)."""
    angle = np.arcsin(np.sqrt(np.clip(score.astype(float, copy=False), 0.0, 1.0)))
    span = angle[-1] - angle[0]
    return np.asarray((angle - angle[0]) / span) if span > 0 else np.zeros_like(angle)


def _fixed_edges(bins: Any, count: int) -> list[np.ndarray]:
    """Edges k/B, or the given ones: one list for all events, or a list of lists, one an event."""
    if is_number(bins):
        number = checked_whole(bins, "bins", 1)
        return [np.arange(1, number) / number] * count
    if not isinstance(bins, list | tuple | np.ndarray):
        msg = f'bins must be "auto", a number of bins or edges; got {bins!r}'
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
    if edges.ndim != 1 or not np.isfinite(edges).all() or (np.diff(edges) <= 0).any():
        msg = "bins must be increasing, finite edges"
        raise InvalidInput(msg)
    return np.asarray(edges[(edges > 0) & (edges < 1)])


def joined(*counts: np.ndarray, least: float = 2.0) -> np.ndarray:
    """First bins of the groups that remain when thin bins join their neighbours.

    A bin in which any of the counts is below ``least`` joins its left neighbour, the first its
    right one.
    """
    enough = np.min(counts, axis=0) >= least
    so_far = np.min([np.cumsum(count) for count in counts], axis=0) >= least
    return np.concatenate([[0], 1 + np.flatnonzero(enough[1:] & so_far[:-1])])
