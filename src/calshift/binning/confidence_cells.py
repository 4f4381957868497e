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
from calshift.engines.plan import plan

LEAST = 5  # rows of either sample that fill a cell
FINE = 1024  # steps of log-odds between which the quantiles are found
MOST_FINE = 2**20  # steps over all classes
LARGEST_LOG_ODDS = 37.0  # of the largest number below 1
BLOCK = 2**13  # rows whose log-odds are computed at once: their arrays stay in the cache


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
        kinds, steps = self.group.shape
        cell = (self.group + self.count * np.arange(kinds)[:, None]).ravel()
        where = cell[_locate(batch, steps, self.kinds)] * shape[1] + batch.codes(seen)
        return np.bincount(where, batch.sample_weight, shape[0] * shape[1]).reshape(shape)

    def sum_steps(self, rows: np.ndarray) -> np.ndarray:
        """(..., K G) rows by cell, from rows by kind and step, (..., K, F)."""
        (kinds, steps), cells = self.group.shape, self.group.shape[0] * self.count
        order = (self.group + self.count * np.arange(kinds)[:, None]).ravel()
        start = np.searchsorted(order, np.arange(cells + 1))
        filled = start[:-1] < start[1:]
        sums = np.zeros((*rows.shape[:-2], cells))
        whole = rows.reshape(*rows.shape[:-2], kinds * steps)
        sums[..., filled] = np.add.reduceat(whole, start[:-1][filled], axis=-1)
        return sums


class CellCounts(NamedTuple):
    """Source rows by cell and label (K G, S), target rows by cell (K G,), and G.

    ``divided``: whether the cells are not those of predicted classes, because few are predicted.
    """

    source: np.ndarray
    target: np.ndarray
    groups: int
    divided: bool


def tabulate_cells(
    source: Engine, target: Engine, groups: int, seen: np.ndarray, steps: np.ndarray | None = None
) -> CellCounts:
    """The cells of both samples, and of the source by label too, of the classes seen.

    Every predicted class is cut in groups of about equally many rows. A step of log-odds belongs to
    the group of its middle rank, so that equal confidences are never split. If few classes are
    predicted, two more passes over each sample divide their rows, in more groups where needed.
    ``steps`` are those of the source (`count_steps`), if they are known.
    """
    other = _count_rows(target, None)
    rows = count_steps(source, seen) if steps is None else steps
    pooled = rows.sum(axis=0) + other
    kinds = divide_rows(source, target, pooled.sum(axis=1), groups, LEAST)
    if kinds is not None:
        rows, other = count_steps(source, seen, kinds), _count_rows(target, kinds)
        pooled = rows.sum(axis=0) + other
        smaller = min(source.summary.size, target.summary.size)
        groups = increase_groups(pooled.sum(axis=1), smaller, groups, LEAST)
    cells = ConfidenceCells.of_ranks(pooled, groups, kinds)
    if len(rows) == seen.sum():
        counted = cells.sum_steps(rows).T
    else:
        counted = source.total(lambda batch: cells.count_labels(batch, seen)).astype(float)
    return CellCounts(counted, cells.sum_steps(other), groups, kinds is not None)


def count_steps(source: Engine, seen: np.ndarray, kinds: RowKinds | None = None) -> np.ndarray:
    """Source rows by label, kind and step of log-odds (S, K, F), of the classes seen.

    Without labels (1, K, F) where these are too many: a second pass is to count them.
    """
    K, S = source.summary.n_classes, int(seen.sum())
    size = K * _steps(K)
    if size * S > MOST_FINE:
        return _count_rows(source, kinds)[None]

    def by_step_and_label(batch: Predictions) -> np.ndarray:
        where = _locate(batch, _steps(K), kinds) + size * batch.codes(seen)
        return np.bincount(where, batch.sample_weight, S * size)

    return np.asarray(source.total(by_step_and_label).reshape(S, K, -1))


def _count_rows(engine: Engine, kinds: RowKinds | None) -> np.ndarray:
    """Rows by kind and step of log-odds (K, F)."""
    return np.asarray(engine.total(RowsByStep(kinds)).reshape(engine.summary.n_classes, -1))


def plan_cells(target: Engine) -> None:
    """Count the target's rows along with its first pass."""
    plan(target, RowsByStep())


@dataclass(frozen=True)
class RowsByStep:
    """Summand: rows by kind and step of log-odds, (K F,)."""

    kinds: RowKinds | None = None

    def __call__(self, batch: Predictions) -> np.ndarray:
        K, steps = batch.n_classes, _steps(batch.n_classes)
        return np.bincount(_locate(batch, steps, self.kinds), batch.sample_weight, K * steps)


def _steps(K: int) -> int:
    """F, the number of steps of log-odds."""
    return int(np.clip(MOST_FINE // K, 2, FINE))


def _locate(batch: Predictions, steps: int, kinds: RowKinds | None) -> np.ndarray:
    """(n,) kind of row and step of the log-odds of its predicted class, as kind * steps + step."""
    kind = batch.predicted if kinds is None else kinds.of_rows(batch, batch.predicted)
    where, confidence = kind * steps, batch.confidence
    least, lowest = 1 / batch.n_classes, -np.log(batch.n_classes - 1)
    for start in range(0, len(where), BLOCK):
        here = slice(start, start + BLOCK)
        top = np.maximum(confidence[here], least, dtype=float)
        np.minimum(top, 1 - 2**-53, out=top)
        share = np.log(top)
        share -= np.log1p(np.negative(top, out=top), out=top)
        share -= lowest
        share /= LARGEST_LOG_ODDS - lowest
        share *= steps
        where[here] += share.astype(np.intp)  # 0 to steps - 1
    return where
