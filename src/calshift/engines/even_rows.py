"""A bounded number of rows, spread evenly over a sample that is read batch by batch."""

from __future__ import annotations

import zlib
from typing import Any

import numpy as np

from calshift._core.predictions import Predictions, concatenate_rows

MOST_ROWS, MOST_CELLS = 2**15, 2**22
GOLDEN = np.uint64(0x9E3779B97F4A7C15)  # 2^64 divided by the golden ratio
BITS = 64


class EvenRows:
    """Rows of a sample, a share 2^-level of them; two add up as if read one after the other.

    Row i is kept while the first ``level`` bits of the fractional part of i / golden ratio are 0.
    Such rows have nearly equal distances, and no period that the sample may have too.
    """

    def __init__(self) -> None:
        self.level = 0
        self.offered = 0  # rows they were chosen from
        self.kept: list[tuple[Predictions, np.ndarray]] = []  # rows, fractional parts as 64 bits
        self.count = 0  # of rows kept

    @staticmethod
    def of(batch: Predictions, level: int = 0) -> EvenRows:
        """Rows of one batch, of this level or higher.

        Above level 0 numbers start anywhere, by the contents: small batches would have none else.
        """
        found = EvenRows()
        if level:
            found.level, found.offered = level, zlib.crc32(batch.p[:1].tobytes())
        found.include(batch)
        return found

    def __len__(self) -> int:
        return self.count

    @property
    def rows(self) -> Predictions:
        """The rows kept."""
        return concatenate_rows([rows for rows, _ in self.kept])

    def include(self, batch: Predictions, level: int = 0) -> None:
        """Copy some of the next rows; of a ``level`` if each stands for 2^level rows."""
        first = (self.offered >> level) + 1
        places = np.arange(first, first + len(batch), dtype=np.uint64) * GOLDEN
        places >>= np.uint64(level)
        self.offered += len(batch) << level
        while self.level < level:
            self._raise_level()
        self._keep(batch, places)
        while len(self) > most_rows(batch.n_classes):
            self._raise_level()

    def _keep(self, rows: Predictions, places: np.ndarray) -> None:
        """Append those of the level."""
        which = np.flatnonzero(places >> np.uint64(BITS - self.level) == 0)
        if len(which):
            self.kept.append((rows.take(which), places[which]))
            self.count += len(which)

    def _raise_level(self) -> None:
        """Leave out every second row."""
        kept, self.kept, self.count = self.kept, [], 0
        self.level += 1
        if kept:
            places = np.concatenate([places for _, places in kept])
            self._keep(concatenate_rows([rows for rows, _ in kept]), places)

    def __add__(self, other: Any) -> Any:
        if not isinstance(other, EvenRows):
            return self if isinstance(other, int) and other == 0 else NotImplemented
        found = EvenRows()
        for one in (self, other):
            if one.kept:
                found.include(one.rows, one.level)
        return found

    __radd__ = __add__


def even_rows_of(rows: Predictions) -> Predictions:
    """Those of a sample in memory: itself where it is small."""
    if len(rows) <= most_rows(rows.n_classes):
        return rows
    found = EvenRows()
    for block in rows.blocks(MOST_ROWS):
        found.include(block)
    return found.rows


def most_rows(K: int) -> int:
    """Rows that are kept at most: fewer of many classes."""
    return max(1, min(MOST_ROWS, MOST_CELLS // K))


def level_for(rows: int, K: int) -> int:
    """The level at which so many rows leave no more than are wanted."""
    return max(0, (-(-rows // most_rows(K)) - 1).bit_length())
