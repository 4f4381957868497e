"""The class by which a row is placed in a cell: the predicted one, unless few are predicted.

docs/mathematics.md, "Is it label shift at all?".
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from calshift._core.frozen import Frozen
from calshift._core.predictions import Predictions
from calshift.engines.base import Engine

UNIT = 2.0**-20  # in which logarithms are summed: sums of whole numbers, in any order
LOWEST = -37.0  # logarithm of a probability
MOST_GROUPS = 16  # of a kind of row by confidence
FEWEST_CELLS = 1.5  # of a class on average, below which rows are divided further


@dataclass(frozen=True, eq=False)
class RowKinds(Frozen):
    """Rows of a class that is often predicted are divided among it and those that are not.

    Of these classes, a row's is the one whose logarithm of the probability is farthest above its
    mean.

    Attributes
    ----------
    often : (K,) the classes that fill all their cells
    typical : (K,) mean logarithm of the probability of a class: over the rows of which it is
        predicted if it is often predicted, and otherwise over the rows of all those classes
    """

    often: np.ndarray
    typical: np.ndarray

    def of_rows(self, batch: Predictions, predicted: np.ndarray) -> np.ndarray:
        """The kinds of the rows of a batch."""
        where = np.flatnonzero(self.often[predicted])
        own, score = predicted[where], _logarithms(batch.matrix[where]) - self.typical
        rows, kinds = np.arange(len(where)), predicted.copy()
        score[:, self.often] = -np.inf
        best = score.argmax(axis=1)
        mine = _logarithms(batch.matrix[where, own]) - self.typical[own]
        kinds[where] = np.where(score[rows, best] > mine, best, own)
        return kinds


def divide_rows(
    source: Engine, target: Engine, predicted: np.ndarray, groups: int, least: int
) -> RowKinds | None:
    """How rows are divided, if too few classes are predicted; None otherwise.

    ``predicted`` has the rows of both samples by predicted class. A class has as many cells as
    its share of the smaller sample fills with ``least`` rows, up to ``groups``.
    """
    K, smaller = len(predicted), min(source.summary.size, target.summary.size)
    cells = count_filled(predicted, smaller, groups, least)
    often = cells == groups
    if K == 2 or cells.sum() >= FEWEST_CELLS * K or not often.any():
        return None
    sums = source.total(lambda batch: _sum_logarithms(batch, often))
    sums = sums + target.total(lambda batch: _sum_logarithms(batch, often))
    rows = np.where(often, predicted, predicted[often].sum())
    return RowKinds(often, np.where(often, sums[1], sums[0]) * (UNIT / rows))


def increase_groups(rows: np.ndarray, smaller: float, groups: int, least: int) -> int:
    """Groups of every kind, twice as many as long as too few cells are filled by all kinds."""
    while groups < MOST_GROUPS:
        if count_filled(rows, smaller, groups, least).sum() >= FEWEST_CELLS * len(rows):
            break
        groups *= 2
    return groups


def count_filled(rows: np.ndarray, smaller: float, groups: int, least: int) -> np.ndarray:
    """(K,) cells that the rows of a kind fill, of groups, in the smaller of the samples."""
    return np.asarray(np.minimum(np.floor(rows * (smaller / rows.sum()) / least), groups))


def _sum_logarithms(batch: Predictions, often: np.ndarray) -> np.ndarray:
    """(2, K) of rows with an often predicted class: of all classes, and of the predicted one."""
    predicted = batch.predicted
    where = np.flatnonzero(often[predicted])
    own, f = predicted[where], batch.frequency[where]
    units = np.rint(_logarithms(batch.matrix[where]) / UNIT)
    mine = np.bincount(own, f * units[np.arange(len(where)), own], len(often))
    return np.stack([f @ units, mine])


def _logarithms(p: np.ndarray) -> np.ndarray:
    logarithms = np.log(np.maximum(p, np.finfo(float).tiny, dtype=float))
    return np.asarray(np.maximum(logarithms, LOWEST))
