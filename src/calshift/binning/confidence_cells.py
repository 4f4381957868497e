"""Cells of predicted class x confidence, in which both samples are counted.

Each predicted class is cut at quantiles of the confidence of both samples together. A cell with
too few rows is merged with its neighbour. Where few classes are predicted, `row_kinds` divides
their rows further. docs/mathematics.md, "Is it label shift at all?".
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from calshift._core.frozen import Frozen
from calshift._core.predictions import Predictions
from calshift.binning.row_kinds import RowKinds, divide_rows, increase_groups
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
    group : (K, F) the group of each step of log-odds, low confidence to high, by kind of row
    count : G, the number of groups of a kind
    kinds : of rows, where these are not the predicted classes
    """

    group: np.ndarray
    count: int
    kinds: RowKinds | None = None

    @staticmethod
    def of_ranks(rows: np.ndarray, groups: int, kinds: RowKinds | None = None) -> ConfidenceCells:
        """Cells that cut rows (K, F) by kind and step at equal ranks."""
        middle = np.cumsum(rows, axis=1) - rows / 2
        rank = middle / np.maximum(rows.sum(axis=1, keepdims=True), np.finfo(float).tiny)
        return ConfidenceCells(np.minimum(groups * rank, groups - 1).astype(np.intp), groups, kinds)

    def count_labels(self, batch: Predictions, seen: np.ndarray) -> np.ndarray:
        """(K G, S) rows by cell and label, among the S classes seen."""
        shape = len(self.group) * self.count, int(seen.sum())
        kind, step = _locate(batch, self.group.shape[1], self.kinds)
        where = (kind * self.count + self.group[kind, step]) * shape[1]
        where += batch.codes(seen)
        return np.bincount(where, batch.sample_weight, shape[0] * shape[1]).reshape(shape)

    def sum_steps(self, steps: np.ndarray) -> np.ndarray:
        """(K G, ...) rows by cell, from rows by kind and step, (K, F, ...)."""
        inside = np.stack([self.group == g for g in range(self.count)], axis=1).astype(float)
        K, F = self.group.shape
        sums = inside @ steps.reshape(K, F, -1)
        return np.asarray(sums.reshape(K * self.count, *steps.shape[2:]))


class CellCounts(NamedTuple):
    """Source rows by cell and label (K G, S), target rows by cell (K G,), and G.

    ``divided``: whether the cells are not those of predicted classes, because few are predicted.
    """

    source: np.ndarray
    target: np.ndarray
    groups: int
    divided: bool


def tabulate_cells(source: Engine, target: Engine, groups: int, seen: np.ndarray) -> CellCounts:
    """The cells of both samples, and of the source by label too, of the classes seen.

    Every predicted class is cut in groups of about equally many rows. A step of log-odds belongs to
    the group of its middle rank, so that equal confidences are never split. If few classes are
    predicted, two more passes over each sample divide their rows, in more groups where needed.
    """
    rows, other = _count_steps(source, target, seen, None)
    predicted = (rows.sum(axis=2) + other).sum(axis=1)
    kinds = divide_rows(source, target, predicted, groups, LEAST)
    if kinds is not None:
        rows, other = _count_steps(source, target, seen, kinds)
        filled = (rows.sum(axis=2) + other).sum(axis=1)
        smaller = min(source.summary.size, target.summary.size)
        groups = increase_groups(filled, smaller, groups, LEAST)
    cells = ConfidenceCells.of_ranks(rows.sum(axis=2) + other, groups, kinds)
    if rows.shape[2] == seen.sum():
        counted = cells.sum_steps(rows)
    else:
        counted = source.total(lambda batch: cells.count_labels(batch, seen)).astype(float)
    return CellCounts(counted, cells.sum_steps(other), groups, kinds is not None)


def _count_steps(
    source: Engine, target: Engine, seen: np.ndarray, kinds: RowKinds | None
) -> tuple[np.ndarray, np.ndarray]:
    """Source rows by kind, step of log-odds and label (K, F, S), or without label (K, F, 1) where
    a second pass is to count the labels; and target rows (K, F).
    """
    K, S = source.summary.n_classes, int(seen.sum())
    steps = int(np.clip(MOST_FINE // K, 2, FINE))
    once = K * steps * S <= MOST_FINE

    def by_step(batch: Predictions) -> np.ndarray:
        kind, step = _locate(batch, steps, kinds)
        return np.bincount(kind * steps + step, batch.sample_weight, K * steps)

    def by_step_and_label(batch: Predictions) -> np.ndarray:
        kind, step = _locate(batch, steps, kinds)
        where = (kind * steps + step) * S + batch.codes(seen)
        return np.bincount(where, batch.sample_weight, K * steps * S)

    other = target.total(by_step).reshape(K, steps).astype(float)
    rows = source.total(by_step_and_label if once else by_step).reshape(K, steps, -1)
    return rows.astype(float), other


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


def _locate(
    batch: Predictions, steps: int, kinds: RowKinds | None
) -> tuple[np.ndarray, np.ndarray]:
    """Kind of row, and the step of the log-odds of the predicted class, the first of equals."""
    predicted, p = batch.predicted, batch.p
    top = np.where(predicted, p, 1 - p) if p.ndim == 1 else p[np.arange(len(p)), predicted]
    top = np.clip(top, 1 / batch.n_classes, 1 - 2**-53, dtype=float)
    lowest = -np.log(batch.n_classes - 1)
    share = (np.log(top) - np.log1p(-top) - lowest) / (LARGEST_LOG_ODDS - lowest)
    step = np.clip((steps * share).astype(np.intp), 0, steps - 1)
    return predicted if kinds is None else kinds.of_rows(batch, predicted), step
