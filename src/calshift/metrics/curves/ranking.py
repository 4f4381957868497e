"""Areas under ROC curves, one class against the rest.

    A_k = P(s > s') + P(s = s') / 2,        s of a row of class k, s' of another row

with the other rows weighted by their class weights. The influence of a row of class k on A_k is
(P(s' < s) + P(s' = s) / 2 - A_k) / q_k, that of another row (P(s > s') + P(s = s') / 2 - A_k) /
(1 - q_k). Rows in memory are ranked exactly; others in the cells of a fixed grid of scores, 128 to
an octave, where scores in the same cell count as equal.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from calshift._core.frozen import Frozen
from calshift._core.predictions import Predictions
from calshift._core.score_grid import CELLS, cell_of
from calshift.engines.base import Engine
from calshift.metrics.row_scores import DecidedRows

RESOLUTION = "rows are read in passes: scores in the same of {cells:,} cells count as equal in AUC"


@dataclass(frozen=True, eq=False)
class ScoreRanks(Frozen):
    """Masses of the rows of a class and of the others, by score.

    Attributes
    ----------
    scores : (G,) the different scores in order, or None: cells of the grid
    inside, outside : (G,) mass of the rows of the class, and of the others, each summing to 1
    prior : share of the class
    """

    scores: np.ndarray | None
    inside: np.ndarray
    outside: np.ndarray
    prior: float

    @cached_property
    def below(self) -> np.ndarray:
        """(G,) mass of the others below each score, half of it at the score."""
        return np.asarray(np.cumsum(self.outside) - self.outside / 2)

    @cached_property
    def above(self) -> np.ndarray:
        """(G,) mass of the class above each score, half of it at the score."""
        return np.asarray(1.0 - np.cumsum(self.inside) + self.inside / 2)

    @cached_property
    def area(self) -> float:
        """A_k."""
        return float(self.inside @ self.below)

    def influence(self, score: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(n,) influence of a row of this score if it is of the class, and if it is not."""
        if self.scores is None:
            cell = cell_of(score)
            below, above = self.below[cell], self.above[cell]
        else:
            first = np.searchsorted(self.scores, score, "left")
            last = np.searchsorted(self.scores, score, "right")
            inside, outside = self._upto
            below = (outside[first] + outside[last]) / 2
            above = 1.0 - (inside[first] + inside[last]) / 2
        return (below - self.area) / self.prior, (above - self.area) / (1 - self.prior)

    @cached_property
    def _upto(self) -> tuple[np.ndarray, np.ndarray]:
        """(G + 1,) mass of the class, and of the others, below each place among the scores."""
        inside, outside = np.cumsum(self.inside), np.cumsum(self.outside)
        return np.append(0.0, inside), np.append(0.0, outside)


def ranked_score(rows: Predictions, label: int) -> np.ndarray:
    """(n,) by which rows are ranked; where p is one column, 1 - p would make small ones equal."""
    if rows.p.ndim == 1:
        return rows.p if label == 1 else -rows.p
    return np.ascontiguousarray(rows.p[:, label])


def rank_scores(source: Engine, labels: tuple[int, ...], weights: np.ndarray) -> list[ScoreRanks]:
    """The ranks of the source's scores of these classes, rows weighted by label."""
    rows = source.in_memory
    counts = source.summary.class_counts * weights
    if rows is None:
        kernel = _GridCounts(labels, weights)
        table = source.total(kernel)
        inside, outside = table[:, 0], table[:, 1]
        return [
            _make_ranks(None, inside[k], outside[k], counts, label)
            for k, label in enumerate(labels)
        ]
    return [_rank_rows(rows, label, weights, counts) for label in labels]


@dataclass(frozen=True, eq=False)
class _GridCounts:
    """Summand: (classes, 2, CELLS) mass of the rows of each class, and of the others."""

    labels: tuple[int, ...]
    weights: np.ndarray

    def __call__(self, batch: Predictions) -> np.ndarray:
        p, y = batch.matrix, batch.labels
        mass = batch.frequency * self.weights[y]
        found = np.empty((len(self.labels), 2, CELLS))
        for k, label in enumerate(self.labels):
            cell = cell_of(np.ascontiguousarray(p[:, label]))
            here = y == label
            found[k, 0] = np.bincount(cell, mass * here, CELLS)
            found[k, 1] = np.bincount(cell, mass * ~here, CELLS)
        return found


def _rank_rows(
    rows: Predictions, label: int, weights: np.ndarray, counts: np.ndarray
) -> ScoreRanks:
    """Of rows in memory."""
    scores, place = np.unique(ranked_score(rows, label), return_inverse=True)
    mass, here = rows.frequency * weights[rows.labels], rows.labels == label
    G = len(scores)
    inside, outside = (np.bincount(place, mass * one, G) for one in (here, ~here))
    return _make_ranks(scores, inside, outside, counts, label)


def _make_ranks(
    scores: np.ndarray | None,
    inside: np.ndarray,
    outside: np.ndarray,
    counts: np.ndarray,
    label: int,
) -> ScoreRanks:
    ones, others = float(inside.sum()), float(outside.sum())
    prior = float(counts[label] / counts.sum())
    if ones <= 0 or others <= 0:
        return ScoreRanks(scores, inside * 0, outside * 0, prior)
    return ScoreRanks(scores, inside / ones, outside / others, prior)


@dataclass(frozen=True, eq=False)
class RankTerm(Frozen):
    """The influence on a mean of areas; ``share`` are their weights in it."""

    labels: tuple[int, ...]
    ranks: tuple[ScoreRanks, ...]
    share: np.ndarray
    by_prior: bool  # whether the shares are class priors
    value: float
    n_classes: int

    def at(self, rows: DecidedRows, y: np.ndarray) -> np.ndarray:
        """(n,) for these labels."""
        found = self._every_label(rows)[rows.index, y]
        return np.asarray(found + self._areas[y] - self.value if self.by_prior else found)

    def expected(self, rows: DecidedRows, v: np.ndarray) -> np.ndarray:
        """(n,) sum over the labels of v times that, less what depends on the label alone."""
        return np.asarray(np.einsum("nk,nk->n", v, self._every_label(rows)))

    def alone(self, rows: DecidedRows) -> float:
        """0."""
        return 0.0

    def _every_label(self, rows: DecidedRows) -> np.ndarray:
        """(n, K) influence of the rows, by label; kept with the rows."""
        if id(self) not in rows.kept:
            found, others = np.zeros((len(rows), rows.p.shape[1])), np.zeros(len(rows))
            for label, share, one in zip(self.labels, self.share, self.ranks, strict=True):
                exact = one.scores is not None
                score = ranked_score(rows.batch, label) if exact else rows.p[:, label].copy()
                own, other = one.influence(score)
                found[:, label] = share * (own - other)
                others += share * other
            rows.kept[id(self)] = found + others[:, None]
        return rows.kept[id(self)]

    @cached_property
    def _areas(self) -> np.ndarray:
        areas = np.zeros(self.n_classes)
        areas[list(self.labels)] = [one.area for one in self.ranks]
        return areas
