"""Isotonic regression, class by class."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from calshift._core.predictions import Predictions
from calshift.errors import InvalidInput
from calshift.recalibration.base import Recalibrator
from calshift.recalibration.serialization import read_corners
from calshift.recalibration.source_weights import weight_for_target

TIE = 1e-9  # difference of two frequencies that is rounding
PSEUDO_ROWS = 1.0  # in every block, at its mean score: no frequency is exactly 0 or 1


class IsotonicScaling(Recalibrator):
    """Each class's frequency as an increasing function of its score, rows then normalised.

    One pseudo-row in every block of the regression, at the block's mean score, keeps frequencies
    away from 0 and 1; with few rows a class it still fits noise. A probability of exactly 0 stays
    0; a class that is not in the source keeps its scores, and so does a row left without mass.

    Parameters
    ----------
    weights : class weights for `fit`, unless it is given others

    Attributes
    ----------
    scores_, frequencies_ : K arrays each, the corners of the piecewise linear functions
    """

    _learned: ClassVar = {"scores_": read_corners, "frequencies_": read_corners}
    scores_: list[np.ndarray]
    frequencies_: list[np.ndarray]

    def _fit(self, source: Predictions, target: Predictions | None, weights: Any) -> dict[str, Any]:
        rows = weight_for_target(source, target, weights)
        p, seen = rows.matrix.astype(float), rows.class_counts > 0
        corners = [
            _fit_corners(p[:, c], rows.labels == c, rows.frequency)
            if seen[c]
            else (np.zeros(0),) * 2
            for c in range(rows.n_classes)
        ]
        return {"scores_": [x for x, _ in corners], "frequencies_": [y for _, y in corners]}

    def _transform(self, p: np.ndarray) -> np.ndarray:
        q = p.copy()
        for c, (x, y) in enumerate(zip(self.scores_, self.frequencies_, strict=True)):
            if len(x):
                q[:, c] = np.interp(p[:, c], x, y)
        q[p <= 0] = 0.0
        total = q.sum(axis=1, keepdims=True)
        return np.where(total > 0, q / np.where(total > 0, total, 1.0), p)

    @classmethod
    def _restore(cls, saved: dict[str, Any]) -> IsotonicScaling:
        made = super()._restore(saved)
        if [len(x) for x in made.scores_] != [len(y) for y in made.frequencies_]:
            msg = "saved must have as many frequencies as scores for every class"
            raise InvalidInput(msg)
        return made


def _fit_corners(score: np.ndarray, hit: np.ndarray, frequency: np.ndarray) -> tuple[Any, Any]:
    """First and last score of each block, with its frequency."""
    order = np.argsort(score, kind="stable")
    score, weight = score[order], frequency[order]
    value = hit[order].astype(float)
    ties = np.flatnonzero(np.diff(score, prepend=-1.0) > 0)
    weight_tie = np.add.reduceat(weight, ties)
    value_tie = np.add.reduceat(weight * value, ties) / weight_tie
    starts = _pool_blocks(value_tie, weight_tie)
    mass = np.add.reduceat(weight_tie, starts)
    mean = np.add.reduceat(weight_tie * score[ties], starts) / mass
    found = np.add.reduceat(weight_tie * value_tie, starts) / mass
    found = (mass * found + PSEUDO_ROWS * mean) / (mass + PSEUDO_ROWS)
    mass = mass + PSEUDO_ROWS
    again = _pool_blocks(found, mass)  # the pseudo-rows may have reversed the order of neighbours
    mass_again = np.add.reduceat(mass, again)
    found = np.add.reduceat(mass * found, again) / mass_again
    starts = starts[again]
    last = np.append(starts[1:], len(ties)) - 1
    x = np.stack([score[ties][starts], score[ties][last]], axis=1).ravel()
    y = np.repeat(found, 2)
    kept = np.append(np.diff(x) > 0, True)  # a block of one score is one corner
    return x[kept], y[kept]


def _pool_blocks(value: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """First index of each block of the increasing least-squares fit (pool adjacent violators)."""
    blocks: list[tuple[int, float, float]] = []  # first index, mean, mass
    for k, (mean, mass) in enumerate(zip(value.tolist(), weight.tolist(), strict=True)):
        start = k
        while blocks and blocks[-1][1] > mean - TIE:
            start, other, other_mass = blocks.pop()
            mean = (mean * mass + other * other_mass) / (mass + other_mass)
            mass += other_mass
        blocks.append((start, mean, mass))
    return np.array([start for start, _, _ in blocks])
