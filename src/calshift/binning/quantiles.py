"""Exact order statistics of scores that are never held at once.

Non-negative floats are ordered as their bits are. Rows are counted by the leading bits of their
scores, then those in the buckets that hold a wanted rank by the next bits, until the bits are
spent: a few passes, whose counts add up and stay small. (docs/mathematics.md 2)
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from calshift._core.predictions import Predictions
from calshift.binning.edges import edge_ranks
from calshift.binning.events import Events
from calshift.engines.base import Engine

MOST_COUNTS = 2**23  # of a pass, over all events
NOWHERE = np.uint64(2**64 - 1)  # a bucket without scores


def order_statistics(engine: Engine, events: Events, bins: int) -> list[np.ndarray]:
    """unique(s[ceil(k m / B)], k = 1..B-1) above s[0] for each event, s its sorted scores."""
    size = engine.summary.size
    ranks = edge_ranks(size, bins)
    ranks = np.append(0.0, np.unique(ranks[ranks < size]))  # some are equal if bins exceed rows
    double = engine.summary.double > 0
    search = Search.everywhere(events.count, ranks)
    left = 64 if double else 32
    while left:
        step = min(left, search.digits)
        counts = engine.total(DigitCount(events, search.buckets, left - step, step, double))
        search, left = search.narrowed(counts, step), left - step
    values = search.prefix if double else search.prefix.astype(np.uint32)
    scores = values.view(np.float64 if double else np.float32)
    return [_above(row[1:], row[0]) for row in scores]


def _above(edges: np.ndarray, least: float) -> np.ndarray:
    edges = np.unique(edges)
    return np.asarray(edges[edges > least])


@dataclass(frozen=True)
class Search:
    """What is known of each wanted rank: the leading bits of its score, and the rows below those.

    ranks (Q,);  prefix, below (E, Q)
    """

    ranks: np.ndarray
    prefix: np.ndarray
    below: np.ndarray

    @staticmethod
    def everywhere(E: int, ranks: np.ndarray) -> Search:
        """Nothing is known yet."""
        shape = (E, len(ranks))
        return Search(ranks, np.zeros(shape, np.uint64), np.zeros(shape))

    @property
    def buckets(self) -> np.ndarray:
        """(E, U) the different prefixes of each event in order, padded."""
        each = [np.unique(row) for row in self.prefix]
        table = np.full((len(each), max(map(len, each))), NOWHERE)
        for row, one in zip(table, each, strict=True):
            row[: len(one)] = one
        return table

    @property
    def digits(self) -> int:
        """So many bits that the counts of all buckets fit."""
        return max(1, min(16, int(np.log2(MOST_COUNTS / self.buckets.size))))

    def narrowed(self, counts: np.ndarray, step: int) -> Search:
        """With so many more bits, from rows (E, U, 2^step) by them."""
        prefix, below = np.empty_like(self.prefix), np.empty_like(self.below)
        for k, (known, row) in enumerate(zip(self.buckets, counts, strict=True)):
            upto = np.cumsum(row, axis=1)
            for q, rank in enumerate(self.ranks):
                u = int(np.searchsorted(known, self.prefix[k, q]))
                inside = rank - self.below[k, q]
                digit = min(int(np.searchsorted(upto[u], inside, side="right")), len(row[u]) - 1)
                prefix[k, q] = (self.prefix[k, q] << np.uint64(step)) | np.uint64(digit)
                below[k, q] = self.below[k, q] + upto[u, digit] - row[u, digit]
        return Search(self.ranks, prefix, below)


@dataclass(frozen=True)
class DigitCount:
    """Kernel: (E, U, 2^step) rows by their next bits, in each bucket of leading bits.

    ``rest`` bits come after those counted.
    """

    events: Events
    buckets: np.ndarray
    rest: int
    step: int
    double: bool

    def __call__(self, batch: Predictions) -> np.ndarray:
        return np.stack([self._event(batch, k) for k in range(len(self.buckets))])

    def _event(self, batch: Predictions, k: int) -> np.ndarray:
        kind = (np.float64, np.uint64) if self.double else (np.float32, np.uint32)
        score = np.abs(self.events.score(batch, k), dtype=kind[0])  # no negative zeros
        bits = score.view(kind[1]).astype(np.uint64) >> np.uint64(self.rest)
        known, lead = self.buckets[k], bits >> np.uint64(self.step)
        place = np.minimum(np.searchsorted(known, lead), len(known) - 1)
        inside = known[place] == lead
        digit = (bits & np.uint64(2**self.step - 1)).astype(np.intp)
        cell = (place * 2**self.step + digit)[inside]
        weight = None if batch.sample_weight is None else batch.sample_weight[inside]
        counts = np.bincount(cell, weight, len(known) * 2**self.step)
        return counts.astype(float).reshape(len(known), -1)
