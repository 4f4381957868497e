"""The gain in loss of a cross-fitted recalibration, with its standard error.

    psi_i = loss(f_i, y_i) - loss(g_i, y_i)            g_i recalibrated by a fit to the other folds
    labelled:    T = (1/n) sum_i psi_i
    label-free:  T = sum_k (n_k/n) [ T_k + c_k'(w_k - w) ],   T_k = sum_{i in k} w_i psi_i / W_k
                 c_k = sum_{i in k} 1_{y_i} (psi_i - T_k) / W_k,      W_k = sum_{i in k} w_i
                 w_k - w = mean phi of fold k - mean phi of all rows, in both samples

phi is the influence of a row on the class weights, so that w_k are the weights which the rows of
fold k alone determine, to first order. (docs/mathematics.md 3)
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from calshift._core.predictions import Predictions
from calshift.weights.influence import WeightInfluence

FLOOR = 1e-12  # of the model's probability in a log loss: a lower loss lowers the gain
MIXED = 1e-6  # share of the uniform distribution in g, whose log loss is then finite
BLOCK_CELLS = 2**20  # numbers of a block of rows


@dataclass(frozen=True)
class Gain:
    """The estimated gain and its standard error."""

    value: float
    standard_error: float


@dataclass(frozen=True)
class Folds:
    """The fold of each row, and how many rows each of them stands for."""

    of: np.ndarray
    frequency: np.ndarray
    squared: np.ndarray

    @staticmethod
    def make(rows: Predictions, of: np.ndarray) -> Folds:
        """The folds of these rows."""
        return Folds(of, rows.frequency, rows.squared_frequency)

    def sum(self, values: np.ndarray, more: np.ndarray | None = None) -> np.ndarray:
        """(F, ...) sums of values over the rows of each fold; ``more``: the fold of each value."""
        of, F = (self.of if more is None else more), int(self.of.max()) + 1
        out = np.zeros((F, *values.shape[1:]))
        np.add.at(out, of, values)
        return out

    @property
    def sizes(self) -> np.ndarray:
        """(F,) rows of each fold."""
        return self.sum(self.frequency)


def brier_loss(p: np.ndarray, y: np.ndarray) -> np.ndarray:
    """(n,) |y - p|^2 with one-hot labels."""
    return np.asarray((p**2).sum(axis=1) - 2 * p[np.arange(len(p)), y] + 1)


def log_loss(p: np.ndarray, y: np.ndarray) -> np.ndarray:
    """(n,) -log p_y."""
    return np.asarray(-np.log(np.maximum(p[np.arange(len(p)), y], FLOOR)))


LOSSES: dict[str, Callable[[np.ndarray, np.ndarray], np.ndarray]] = {
    "brier": brier_loss,
    "log": log_loss,
}


def loss_differences(before: Predictions, after: Predictions, loss: str) -> np.ndarray:
    """(n,) psi: what each row's loss decreases by."""
    g = after.matrix.astype(float)
    if loss == "log":
        g = (1 - MIXED) * g + MIXED / g.shape[1]
    f = before.matrix.astype(float)
    return np.asarray(LOSSES[loss](f, before.labels) - LOSSES[loss](g, before.labels))


def labelled_gain(psi: np.ndarray, rows: Predictions) -> Gain:
    """The mean of psi over labelled rows."""
    n = rows.size
    mean = float(rows.frequency @ psi) / n
    return Gain(mean, float(np.sqrt(rows.squared_frequency @ (psi - mean) ** 2)) / n)


def shifted_gain(
    psi: np.ndarray,
    samples: tuple[Predictions, Predictions],
    of: tuple[np.ndarray, np.ndarray],
    class_weights: np.ndarray,
    influence: WeightInfluence | None,
) -> Gain:
    """The mean of psi over the target, from source rows weighted by class."""
    source, target = samples
    seen, n = ~np.isnan(class_weights), source.size
    w, codes = class_weights[source.labels], source.codes(seen)
    folds = Folds.make(source, of[0])
    mass, share = folds.sum(folds.frequency * w), folds.sizes / n
    of_fold = folds.sum(folds.frequency * w * psi) / mass
    centred = psi - of_fold[of[0]]
    linear = w * centred * (folds.sizes / mass)[of[0]]  # influence with the weights held fixed
    value = float(share @ of_fold)
    if influence is None:
        return Gain(value, float(np.sqrt(folds.squared @ linear**2)) / n)
    c = np.zeros((len(mass), int(seen.sum())))
    np.add.at(c, (of[0], codes), folds.frequency * centred)
    c /= mass[:, None]
    here, there = folds, Folds.make(target, of[1])
    mean = FoldMeans.of_rows(source, here, influence.source)
    other = FoldMeans.of_rows(target, there, influence.target)
    value += float(share @ (c * (mean.deviation + other.deviation)).sum(axis=1))
    variance = mean.square(source, here, influence.source, c, linear) / n**2
    scale = share / there.sizes
    variance += other.square(target, there, influence.target, c * scale[:, None])
    variance += float(((influence.outside @ (share @ c)) ** 2).sum())
    return Gain(value, float(np.sqrt(variance)))


@dataclass(frozen=True)
class FoldMeans:
    """Mean influence on the class weights of all rows (S,) and of those of each fold (F, S)."""

    whole: np.ndarray
    folds: np.ndarray

    @property
    def deviation(self) -> np.ndarray:
        """(F, S) of the folds from all rows."""
        return np.asarray(self.folds - self.whole)

    @staticmethod
    def of_rows(
        rows: Predictions, folds: Folds, phi: Callable[[Predictions], np.ndarray]
    ) -> FoldMeans:
        """Means over the rows."""
        total, start = np.zeros(()), 0
        for block in _blocks(rows):
            here = slice(start, start + len(block))
            counted = phi(block) * folds.frequency[here, None]
            total, start = total + folds.sum(counted, folds.of[here]), here.stop
        return FoldMeans(total.sum(axis=0) / rows.size, total / folds.sizes[:, None])

    def square(
        self,
        rows: Predictions,
        folds: Folds,
        phi: Callable[[Predictions], np.ndarray],
        c: np.ndarray,
        linear: np.ndarray | None = None,
    ) -> float:
        """Sum over rows of (linear + c_k' phi)^2, phi taken from its mean."""
        total, start = 0.0, 0
        for block in _blocks(rows):
            here = slice(start, start + len(block))
            value = ((phi(block) - self.whole) * c[folds.of[here]]).sum(axis=1)
            value = value if linear is None else value + linear[here]
            total, start = total + float(folds.squared[here] @ value**2), here.stop
        return total


def _blocks(rows: Predictions) -> list[Predictions]:
    return list(rows.blocks(max(1, BLOCK_CELLS // rows.n_classes)))
