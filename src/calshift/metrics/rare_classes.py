"""Variance of residuals in classes of few source rows.

Three rows that are all predicted correctly have no sample variance. To the variance of each class
is added that of one more row, under the posterior class probabilities of the target's rows:

    w_y^2 Var(e | y) / n^2,        Var(e | y): of psi(x, y) - sum_c v_c psi(x, c), weighted by rho_y
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from calshift._core.addable import Tally
from calshift._core.frozen import Frozen
from calshift._core.predictions import Predictions
from calshift.engines import Blocks
from calshift.engines.base import Engine
from calshift.metrics.products import SourceRows
from calshift.metrics.row_scores import DecidedRows

FEW = 50  # source rows of a class, beyond which one more makes no difference


@dataclass(frozen=True, eq=False)
class _Moments(Frozen):
    """Summand: (classes, M) sums of the residuals and their squares by posterior class."""

    classes: np.ndarray
    rows: SourceRows

    def __call__(self, batch: Predictions) -> Tally:
        rows, v = DecidedRows(batch, self.rows.rule), self.rows.shares(batch)
        mass = self.rows.shares.target_posterior(batch)[:, self.classes] * batch.frequency[:, None]
        shape = (len(self.classes), len(self.rows.shifted))
        first, second = np.empty(shape), np.empty(shape)
        for m, term in enumerate(self.rows.shifted):
            expected = term.expected(rows, v)
            for k, label in enumerate(self.classes):
                e = term.at(rows, np.full(len(rows), label)) - expected
                first[k, m], second[k, m] = mass[:, k] @ e, mass[:, k] @ e**2
        return Tally(mass=mass.sum(axis=0), first=first, second=second)


def rare_class_variance(target: Engine, counts: np.ndarray, rows: SourceRows) -> np.ndarray:
    """(M,) what classes of few source rows add to the variance; ``counts`` are their rows."""
    rare = np.flatnonzero((counts > 0) & (counts < FEW) & (rows.weights > 0))
    if not len(rare):
        return np.zeros(len(rows.shifted))
    sums = Blocks(target).total(_Moments(rare, rows))
    mass = np.maximum(sums["mass"], 1e-300)[:, None]
    variance = np.maximum(sums["second"] / mass - (sums["first"] / mass) ** 2, 0.0)
    return np.asarray((rows.weights[rare] ** 2 @ variance) / counts.sum() ** 2)
