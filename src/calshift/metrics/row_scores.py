"""Scores of one row, psi(x, y), whose mean is a metric.

A score has two parts: ``at`` depends on the label, ``alone`` on the predictions only. ``expected``
is the mean of the first part over labels, with the shares v of a row.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple, Protocol

import numpy as np

from calshift._core.convert import to_numpy
from calshift._core.frozen import Frozen
from calshift._core.predictions import Predictions
from calshift.errors import InvalidInput
from calshift.metrics.decision_rule import DecisionRule


class DecidedRows:
    """A batch of rows with the classes that a rule predicts."""

    def __init__(self, batch: Predictions, rule: DecisionRule) -> None:
        self.batch = batch
        self.predicted = rule(batch)
        self.index = np.arange(len(batch))
        self.kept: dict[int, np.ndarray] = {}  # what terms have computed of these rows

    def __len__(self) -> int:
        return len(self.batch)

    @cached_property
    def p(self) -> np.ndarray:
        """(n, K) probabilities as they are."""
        return self.batch.matrix

    @cached_property
    def squares(self) -> np.ndarray:
        """(n,) sum of the squared probabilities."""
        return np.asarray(np.einsum("nk,nk->n", self.p, self.p, dtype=float))

    @cached_property
    def log_p(self) -> np.ndarray:
        """(n, K) logarithms, of probabilities that are not nearer to 0 or 1 than rounding."""
        eps = np.finfo(self.p.dtype).eps
        return np.asarray(np.log(np.clip(self.p, eps, 1 - eps).astype(float)))

    @cached_property
    def rank(self) -> np.ndarray:
        """(n, K) rank of each class, 0 for the most probable; of equal ones the last is first."""
        order = np.argsort(self.p, axis=1, kind="stable")[:, ::-1]
        rank = np.empty(order.shape, np.intp)
        np.put_along_axis(rank, order, np.arange(order.shape[1])[None], axis=1)
        return rank


class RowScore(Protocol):
    """A score of one row."""

    def at(self, rows: DecidedRows, y: np.ndarray) -> np.ndarray:
        """(n,) the part that depends on the label, for these labels."""

    def expected(self, rows: DecidedRows, v: np.ndarray) -> np.ndarray:
        """(n,) sum over the labels of v times that part."""
        K = v.shape[1]
        every = (v[:, c] * self.at(rows, np.full(len(rows), c)) for c in range(K))
        return np.asarray(sum(every))

    def alone(self, rows: DecidedRows) -> np.ndarray | float:
        """(n,) the part that does not depend on the label."""
        return 0.0


class Margins(NamedTuple):
    """(K,) shares of predicted and of actual classes, by which scores of cells are centred."""

    predicted: np.ndarray
    actual: np.ndarray

    @staticmethod
    def even(n_classes: int) -> Margins:
        """The same for all classes."""
        return Margins(*(np.full(n_classes, 1 / n_classes) for _ in range(2)))


@dataclass(frozen=True, eq=False)
class CellScore(Frozen, RowScore):
    """A linear function of the confusion matrix: of hits, predicted and actual rows by class.

    With the margins r and c, the score h_k of a hit of class k is divided into a part by predicted
    class, h_k c_k, one by label, h_k r_k, and the remainder, of mean 0 where both are independent:
    only the remainder is estimated from the shares v. The shares of predicted classes are those of
    the target's rows, and those of labels those of the class weights. Any margins give a consistent
    estimate; even ones let the noise of common classes enter the hits of rare ones.
    """

    hits: np.ndarray  # (K,)
    predicted: np.ndarray
    actual: np.ndarray
    margins: Margins | None = None

    @staticmethod
    def make(n_classes: int, **labels: float) -> CellScore:
        """Zero but for ``hits``, ``predicted`` or ``actual``, the same for all classes."""
        return CellScore._of(np.ones(n_classes), labels)

    @staticmethod
    def of_class(label: int, n_classes: int, **values: float) -> CellScore:
        """Zero but for values of one class."""
        return CellScore._of(np.eye(n_classes)[label], values)

    @staticmethod
    def _of(ones: np.ndarray, values: dict[str, float]) -> CellScore:
        hits, predicted, actual = (
            ones * values.get(name, 0.0) for name in ("hits", "predicted", "actual")
        )
        return CellScore(hits, predicted, actual)

    def centred(self, margins: Margins) -> CellScore:
        """The same score, divided by these margins."""
        return replace(self, margins=margins)

    @cached_property
    def parts(self) -> tuple[np.ndarray, np.ndarray, float]:
        """(K,) parts by predicted class and by label, and their common mean."""
        r, c = self.margins or Margins.even(len(self.hits))
        return self.hits * c, self.hits * r, float(self.hits @ (r * c))

    def at(self, rows: DecidedRows, y: np.ndarray) -> np.ndarray:
        """(n,) for these labels."""
        by_predicted, _, mean = self.parts
        hit = self.hits[y] * (rows.predicted == y)
        return np.asarray(hit + self.actual[y] - by_predicted[rows.predicted] + mean)

    def expected(self, rows: DecidedRows, v: np.ndarray) -> np.ndarray:
        """(n,) sum over labels of v times the remainder."""
        by_predicted, by_label, mean = self.parts
        own = v[rows.index, rows.predicted] * self.hits[rows.predicted]
        whole = v.sum(axis=1) * (by_predicted[rows.predicted] - mean)
        return np.asarray(own - v @ by_label - whole)

    def alone(self, rows: DecidedRows) -> np.ndarray:
        """(n,) of the predicted class."""
        by_predicted, _, mean = self.parts
        return np.asarray((self.predicted + by_predicted - mean)[rows.predicted])


class NoScore(RowScore):
    """0 for every row: of what is undefined."""

    def at(self, rows: DecidedRows, y: np.ndarray) -> np.ndarray:
        """(n,) 0."""
        return np.zeros(len(rows))

    def alone(self, rows: DecidedRows) -> np.ndarray:
        """(n,) 0."""
        return np.zeros(len(rows))


class LogLoss(RowScore):
    """Minus the logarithm of the label's probability."""

    def at(self, rows: DecidedRows, y: np.ndarray) -> np.ndarray:
        """(n,)."""
        return np.asarray(-rows.log_p[rows.index, y])

    def expected(self, rows: DecidedRows, v: np.ndarray) -> np.ndarray:
        """(n,)."""
        return np.asarray(-np.einsum("nk,nk->n", v, rows.log_p))


@dataclass(frozen=True)
class BrierScore(RowScore):
    """Squared distance of the probabilities from the label; half of it for two classes."""

    factor: float

    def at(self, rows: DecidedRows, y: np.ndarray) -> np.ndarray:
        """(n,)."""
        return np.asarray(-2.0 * self.factor * rows.p[rows.index, y].astype(float))

    def expected(self, rows: DecidedRows, v: np.ndarray) -> np.ndarray:
        """(n,)."""
        return np.asarray(-2.0 * self.factor * np.einsum("nk,nk->n", v, rows.p))

    def alone(self, rows: DecidedRows) -> np.ndarray:
        """(n,)."""
        return self.factor * (rows.squares + 1)


@dataclass(frozen=True)
class TopHit(RowScore):
    """1 where the label is among the k most probable classes."""

    k: int

    def at(self, rows: DecidedRows, y: np.ndarray) -> np.ndarray:
        """(n,)."""
        return np.asarray(rows.rank[rows.index, y] < self.k, dtype=float)

    def expected(self, rows: DecidedRows, v: np.ndarray) -> np.ndarray:
        """(n,)."""
        return np.asarray((v * (rows.rank < self.k)).sum(axis=1))


@dataclass(frozen=True, eq=False)
class Cost(Frozen, RowScore):
    """The cost of predicting a class where the label is another, divided as in `CellScore`."""

    matrix: np.ndarray  # (K, K) by predicted and true class
    margins: Margins | None = None

    def centred(self, margins: Margins) -> Cost:
        """The same score, divided by these margins."""
        return replace(self, margins=margins)

    @cached_property
    def parts(self) -> tuple[np.ndarray, np.ndarray]:
        """(K,) the part by predicted class alone, and (K, K) the remainder."""
        r, c = self.margins or Margins.even(len(self.matrix))
        by_predicted = self.matrix @ c - float(r @ self.matrix @ c)
        return by_predicted, self.matrix - by_predicted[:, None] - r @ self.matrix

    def at(self, rows: DecidedRows, y: np.ndarray) -> np.ndarray:
        """(n,) for these labels."""
        return np.asarray((self.matrix - self.parts[0][:, None])[rows.predicted, y])

    def expected(self, rows: DecidedRows, v: np.ndarray) -> np.ndarray:
        """(n,) sum over labels of v times the remainder."""
        return np.asarray(np.einsum("nk,nk->n", v, self.parts[1][rows.predicted]))

    def alone(self, rows: DecidedRows) -> np.ndarray:
        """(n,) of the predicted class."""
        return np.asarray(self.parts[0][rows.predicted])


@dataclass(frozen=True)
class Custom(RowScore):
    """A function of probabilities (n, K) and labels (n,) that a user gave."""

    name: str
    function: Callable[[np.ndarray, np.ndarray], Any]

    def at(self, rows: DecidedRows, y: np.ndarray) -> np.ndarray:
        """(n,)."""
        found = np.asarray(to_numpy(self.function(rows.p, y), self.name)[0])
        usable = found.shape == (len(rows),) and found.dtype.kind in "fiub"
        if not usable or not np.isfinite(found).all():
            msg = (
                f"metric {self.name!r} must return one finite number a row, {len(rows)} in all; "
                f"got {found.dtype} {found.shape}"
            )
            raise InvalidInput(msg)
        return found.astype(float)
