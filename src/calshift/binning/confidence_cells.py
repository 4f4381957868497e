"""Cells of predicted class x confidence, in which both samples are counted.

Each predicted class is cut at quantiles of the confidence of both samples together. A cell with
too few rows is merged with its neighbour. docs/mathematics.md, "Is it label shift at all?".
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from calshift._core.frozen import Frozen
from calshift._core.predictions import Predictions
from calshift.engines.base import Engine

LEAST = 5  # rows of either sample, below which a cell is merged with its neighbour
FINE = 1024  # steps of log-odds between which the quantiles are found
MOST_FINE = 2**20  # steps over all classes
LARGEST_LOG_ODDS = 37.0  # of the largest number below 1


@dataclass(frozen=True, eq=False)
class ConfidenceCells(Frozen):
    """The cells before any are merged.

    Attributes
    ----------
    group : (K, F) the group of each step of log-odds, low confidence to high, by predicted class
    count : G, the number of groups of a class
    """

    group: np.ndarray
    count: int

    @staticmethod
    def of_ranks(rows: np.ndarray, groups: int) -> ConfidenceCells:
        """Cells that cut rows (K, F) by predicted class and step at equal ranks."""
        middle = np.cumsum(rows, axis=1) - rows / 2
        rank = middle / np.maximum(rows.sum(axis=1, keepdims=True), np.finfo(float).tiny)
        return ConfidenceCells(np.minimum(groups * rank, groups - 1).astype(np.intp), groups)

    def count_labels(self, batch: Predictions, seen: np.ndarray) -> np.ndarray:
        """(K G, S) rows by cell and label, among the S classes seen."""
        shape = len(self.group) * self.count, int(seen.sum())
        predicted, step = _locate(batch, self.group.shape[1])
        where = (predicted * self.count + self.group[predicted, step]) * shape[1]
        where += batch.codes(seen)
        return np.bincount(where, batch.sample_weight, shape[0] * shape[1]).reshape(shape)

    def sum_steps(self, steps: np.ndarray) -> np.ndarray:
        """(K G, ...) rows by cell, from rows by predicted class and step, (K, F, ...)."""
        cell, size = self.group + np.arange(len(self.group))[:, None] * self.count, steps[0, 0].size
        where = (cell[..., None] * size + np.arange(size)).ravel()
        sums = np.bincount(where, steps.ravel(), len(self.group) * self.count * size)
        return sums.reshape(-1, *steps.shape[2:])


def tabulate_cells(
    source: Engine, target: Engine, groups: int, seen: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Source rows by cell and label (K G, S) of the classes seen, and target rows by cell (K G,).

    Every predicted class is cut in groups of about equally many rows. A step of log-odds belongs to
    the group of its middle rank, so that equal confidences are never split.
    """
    K, S = source.summary.n_classes, int(seen.sum())
    steps = int(np.clip(MOST_FINE // K, 2, FINE))
    once = K * steps * S <= MOST_FINE  # else a second pass over the source counts by label

    def by_step(batch: Predictions) -> np.ndarray:
        predicted, step = _locate(batch, steps)
        return np.bincount(predicted * steps + step, batch.sample_weight, K * steps)

    def by_step_and_label(batch: Predictions) -> np.ndarray:
        predicted, step = _locate(batch, steps)
        where = (predicted * steps + step) * S + batch.codes(seen)
        return np.bincount(where, batch.sample_weight, K * steps * S)

    other = target.total(by_step).reshape(K, steps).astype(float)
    rows = source.total(by_step_and_label if once else by_step).reshape(K, steps, -1)
    cells = ConfidenceCells.of_ranks(rows.sum(axis=2) + other, groups)
    if once:
        return cells.sum_steps(rows.astype(float)), cells.sum_steps(other)
    counted = source.total(lambda batch: cells.count_labels(batch, seen))
    return counted.astype(float), cells.sum_steps(other)


def merge_places(source: np.ndarray, target: np.ndarray, groups: int) -> np.ndarray:
    """(B, K G) the cell into which each cell is merged, for B pairs of tables.

    Neighbours with fewer than 5 rows of either sample are merged: first in pairs, then pairs of
    pairs. Predicted classes of fewer than 5 source rows are merged into cell K G, and this one, if
    it has fewer than 5 rows too, into the smallest cell.
    """
    B, cells = target.shape
    shape = B, cells // groups, groups
    rows, other = source.sum(axis=2).reshape(shape), target.reshape(shape)
    place = np.broadcast_to(np.arange(cells).reshape(shape[1:]), shape)
    width = 1
    while width < groups:
        first = np.arange(cells).reshape(shape[1:]) // (2 * width) * (2 * width)
        few = np.minimum(_sum_groups(rows, width), _sum_groups(other, width)) < LEAST
        either = few.reshape(*few.shape[:2], -1, 2).any(axis=3)
        place = np.where(np.repeat(either, 2 * width, axis=2), first, place)
        width *= 2
    rare = rows.sum(axis=2, keepdims=True) < LEAST
    place = np.where(rare, cells, place).reshape(B, cells)
    size = np.zeros((B, cells + 1))
    np.add.at(size, (np.arange(B)[:, None], place), rows.reshape(B, cells))
    smallest = np.argmin(np.where(size[:, :-1] > 0, size[:, :-1], np.inf), axis=1)
    isolated = (size[:, -1:] < LEAST) & (size[:, :-1] > 0).any(axis=1, keepdims=True)
    return np.asarray(np.where(isolated & (place == cells), smallest[:, None], place))


def merge_counts(counts: np.ndarray, place: np.ndarray) -> np.ndarray:
    """Counts (B, cells + 1, ...) of the merged cells, from counts (B, cells, ...)."""
    out = np.concatenate([counts, np.zeros_like(counts[:, :1])], axis=1)
    draw, cell = np.nonzero(place != np.arange(place.shape[1]))
    out[draw, cell] = 0
    np.add.at(out, (draw, place[draw, cell]), counts[draw, cell])
    return out


def _sum_groups(rows: np.ndarray, width: int) -> np.ndarray:
    return np.asarray(rows.reshape(*rows.shape[:2], -1, width).sum(axis=3))


def _locate(batch: Predictions, steps: int) -> tuple[np.ndarray, np.ndarray]:
    """Predicted class, the first of equals, and the step of the log-odds of its probability."""
    predicted, p = batch.predicted, batch.p
    top = np.where(predicted, p, 1 - p) if p.ndim == 1 else p[np.arange(len(p)), predicted]
    top = np.clip(top, 1 / batch.n_classes, 1 - 2**-53, dtype=float)
    lowest = -np.log(batch.n_classes - 1)
    share = (np.log(top) - np.log1p(-top) - lowest) / (LARGEST_LOG_ODDS - lowest)
    return predicted, np.clip((steps * share).astype(np.intp), 0, steps - 1)
