"""Metrics that are functions of the confusion matrix, with their derivatives.

They depend on three shares of each class k: h_k of rows with label k that are predicted as k
(hits), a_k of rows with label k (actual), and b_k of rows predicted as k. Most are ratios N / D

    N, D = c . (h_k, b_k, a_k, 1)

with coefficients c, and their averages over the classes, as in scikit-learn: "macro" over the
classes that occur, "weighted" by a_k, "micro" as the ratio of sums. A ratio with D = 0 counts as 0.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from calshift._core.frozen import Frozen

RATIOS = {  # numerator, denominator: coefficients of hits, predicted, actual, 1
    "precision": ((1, 0, 0, 0), (0, 1, 0, 0)),
    "recall": ((1, 0, 0, 0), (0, 0, 1, 0)),
    "f1": ((2, 0, 0, 0), (0, 1, 1, 0)),
    "specificity": ((1, -1, -1, 1), (0, 0, -1, 1)),
    "npv": ((1, -1, -1, 1), (0, -1, 0, 1)),
}
AVERAGES = ("macro", "micro", "weighted")
ROUNDING = 1e-9  # of a share, below which a class does not occur
TINY = 1e-14  # of a denominator, below which a ratio is undefined


@dataclass(frozen=True, eq=False)
class ClassShares(Frozen):
    """(K,) shares of hits, of predicted and of actual rows of each class.

    Classes that are not ``known``, because the source lacks them, have no ratios: averages leave
    them out.
    """

    hits: np.ndarray
    predicted: np.ndarray
    actual: np.ndarray
    known: np.ndarray | None = None  # (K,) bool; None for all

    @staticmethod
    def of(
        hits: np.ndarray, predicted: np.ndarray, actual: np.ndarray, known: np.ndarray | None = None
    ) -> ClassShares:
        """Of estimates, which are kept within their possible range."""
        most = np.minimum(predicted, actual)
        return ClassShares(np.clip(hits, 0.0, np.maximum(most, 0.0)), predicted, actual, known)

    @property
    def stacked(self) -> np.ndarray:
        """(4, K) hits, predicted, actual and 1."""
        ones = np.ones(len(self.hits))
        return np.stack([self.hits, self.predicted, self.actual, ones])

    @property
    def occurring(self) -> np.ndarray:
        """(K,) bool, known classes that are predicted or actual."""
        found = np.maximum(self.predicted, self.actual) > ROUNDING
        return np.asarray(found if self.known is None else found & self.known)


class Value(NamedTuple):
    """A metric, its derivative by hits, predicted and actual shares, and undefined classes."""

    value: float
    gradient: np.ndarray  # (3, K)
    undefined: np.ndarray  # numbers of classes whose ratio counts as 0


CountFunction = Callable[[ClassShares], Value]


@dataclass(frozen=True)
class ClassRatio:
    """A ratio of one class, or an average of all."""

    name: str
    label: int | None = None
    average: str | None = None

    def __call__(self, shares: ClassShares) -> Value:
        """The metric with its derivative."""
        if self.average == "micro":
            return self._pool(shares)
        ratio, gradient, undefined = self._by_class(shares)
        if self.label is not None:
            which = np.arange(len(ratio)) == self.label
            return Value(ratio[self.label], gradient * which, np.flatnonzero(undefined & which))
        used = shares.occurring
        missing = np.flatnonzero(undefined & used)
        if self.average == "weighted":
            weight = shares.actual / shares.actual.sum()
            gradient = gradient * weight
            gradient[2] += ratio * used - float(weight @ ratio)
            return Value(float(weight @ ratio), gradient, missing)
        count = max(int(np.count_nonzero(used)), 1)
        return Value(float(ratio[used].sum()) / count, gradient * used / count, missing)

    def _by_class(self, shares: ClassShares) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """(K,) ratios, (3, K) their derivatives, and (K,) bool where they are undefined."""
        top, bottom = (np.asarray(one, dtype=float) for one in RATIOS[self.name])
        whole = shares.stacked
        above, below = top @ whole, bottom @ whole
        undefined = below <= TINY
        if shares.known is not None:
            undefined |= ~shares.known
        below = np.where(undefined, 1.0, below)
        ratio = np.where(undefined, 0.0, above / below)
        gradient = (top[:3, None] - ratio * bottom[:3, None]) / below
        return ratio, np.where(undefined, 0.0, gradient), undefined

    def _pool(self, shares: ClassShares) -> Value:
        top, bottom = (np.asarray(one, dtype=float) for one in RATIOS[self.name])
        whole = shares.stacked * shares.occurring
        above, below = float((top @ whole).sum()), float((bottom @ whole).sum())
        if below <= ROUNDING:
            return Value(0.0, np.zeros((3, len(shares.hits))), np.arange(len(shares.hits)))
        gradient = (top[:3] - above / below * bottom[:3]) / below
        return Value(above / below, gradient[:, None] * shares.occurring, np.zeros(0, int))


def balanced_accuracy(shares: ClassShares) -> Value:
    """The mean recall of the classes that exist."""
    used = shares.actual > ROUNDING
    actual = np.where(used, shares.actual, 1.0)
    recall = np.where(used, shares.hits / actual, 0.0)
    count = max(int(np.count_nonzero(used)), 1)
    gradient = np.stack([1 / actual, np.zeros(len(used)), -recall / actual]) * used / count
    return Value(float(recall.sum()) / count, gradient, np.zeros(0, int))


def cohen_kappa(shares: ClassShares) -> Value:
    """Agreement beyond chance: (sum h - sum a b) / (1 - sum a b)."""
    a, b = shares.actual, shares.predicted
    agreed, chance = float(shares.hits.sum()), float(a @ b)
    if 1 - chance <= ROUNDING:
        return Value(0.0, np.zeros((3, len(a))), np.arange(len(a)))
    by_chance = (agreed - 1) / (1 - chance) ** 2
    gradient = np.stack([np.full(len(a), 1 / (1 - chance)), by_chance * a, by_chance * b])
    return Value((agreed - chance) / (1 - chance), gradient, np.zeros(0, int))


def matthews_corrcoef(shares: ClassShares) -> Value:
    """(sum h - sum a b) / sqrt((1 - sum b^2) (1 - sum a^2))."""
    a, b = shares.actual, shares.predicted
    above = float(shares.hits.sum() - a @ b)
    free_a, free_b = 1 - float(a @ a), 1 - float(b @ b)
    if min(free_a, free_b) <= ROUNDING:
        return Value(0.0, np.zeros((3, len(a))), np.arange(len(a)))
    root = np.sqrt(free_a * free_b)
    value = above / root
    by_hit = np.full(len(a), 1 / root)
    gradient = np.stack([by_hit, -a / root + value * b / free_b, -b / root + value * a / free_a])
    return Value(value, gradient, np.zeros(0, int))
