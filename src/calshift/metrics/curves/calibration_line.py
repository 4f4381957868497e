"""Slope and intercept of calibration (Cox, 1958).

Logistic regression of a class on the log-odds x of its probability: logit P(class) = a + b x. The
slope is b; the intercept is a with b = 1. A calibrated model has 1 and 0. As a solution of
mean w (1{class} - mu(x)) z = 0, z = (1, x) or 1, it has the influence H^-1 z (1{class} - mu),
H = mean w mu (1 - mu) z z'.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np

from calshift._core.addable import Tally
from calshift._core.frozen import Frozen
from calshift._core.predictions import Predictions
from calshift.engines.base import Engine
from calshift.metrics.row_scores import DecidedRows, RowScore

EXTREME = 1e-12  # probabilities are kept at least this far from 0 and 1
MOST_STEPS, LEAST_STEP = 50, 1e-10
RIDGE = 1e-9  # of the information, for separable classes
FARTHEST = 1e3  # of a slope or an intercept


def log_odds(batch: Predictions, label: int) -> np.ndarray:
    """(n,) x."""
    p = np.clip(batch.matrix[:, label].astype(float), EXTREME, 1 - EXTREME)
    return np.asarray(np.log(p) - np.log1p(-p))


@dataclass(frozen=True, eq=False)
class CalibrationLine(Frozen):
    """The fitted line of a class; the slope is fixed at 1 where only the intercept is meant."""

    label: int
    sloped: bool
    parameters: np.ndarray  # a, b
    information: np.ndarray  # of a and b
    converged: bool = True

    @property
    def value(self) -> float:
        """The slope, or the intercept."""
        return float(self.parameters[int(self.sloped)])

    def probability(self, x: np.ndarray) -> np.ndarray:
        """mu."""
        a, b = self.parameters
        return np.asarray(1 / (1 + np.exp(-np.clip(a + b * x, -700.0, 700.0))))

    def factor(self, x: np.ndarray) -> np.ndarray:
        """(n,) H^-1 z, of the parameter that is meant."""
        if not self.sloped:
            return np.full(len(x), 1 / self.information[0, 0])
        inverse = np.linalg.inv(self.information)
        return np.asarray(inverse[1, 0] + inverse[1, 1] * x)

    def sums(self, weights: np.ndarray, batch: Predictions) -> Tally:
        """Summand: gradient and information."""
        x, mass = log_odds(batch, self.label), batch.frequency * weights[batch.labels]
        mu = self.probability(x)
        error, spread = mass * ((batch.labels == self.label) - mu), mass * mu * (1 - mu)
        z = np.stack([np.ones(len(x)), x])
        return Tally(gradient=z @ error, information=(z * spread) @ z.T)


def fit_line(source: Engine, label: int, sloped: bool, weights: np.ndarray) -> CalibrationLine:
    """Newton's method on source rows weighted by class, with weights of mean 1."""
    n, at = source.summary.size, np.array([0.0, 1.0])
    for _ in range(MOST_STEPS):
        line = CalibrationLine(label, sloped, at, np.eye(2))
        sums = source.total(partial(line.sums, weights))
        information = sums["information"] / n
        information = information + RIDGE * max(float(np.trace(information)), RIDGE) * np.eye(2)
        gradient = sums["gradient"] / n
        step = np.array([gradient[0] / information[0, 0], 0.0])
        if sloped:
            step = np.linalg.solve(information, gradient)
        step *= min(1.0, 2.0 / max(float(np.abs(step).max()), 1e-300))
        at = at + step
        if np.abs(step).max() < LEAST_STEP:
            return CalibrationLine(label, sloped, at, information)
        if np.abs(at).max() > FARTHEST:
            break
    return CalibrationLine(label, sloped, at, information, converged=False)


@dataclass(frozen=True, eq=False)
class LineTerm(Frozen, RowScore):
    """The influence of rows on the slope or the intercept."""

    line: CalibrationLine

    def at(self, rows: DecidedRows, y: np.ndarray) -> np.ndarray:
        """(n,) the part that depends on the label."""
        return np.asarray(self._factor(rows) * (y == self.line.label))

    def expected(self, rows: DecidedRows, v: np.ndarray) -> np.ndarray:
        """(n,) sum over labels of v times that."""
        return np.asarray(self._factor(rows) * v[:, self.line.label])

    def alone(self, rows: DecidedRows) -> np.ndarray:
        """(n,) the part that does not."""
        x = log_odds(rows.batch, self.line.label)
        return np.asarray(-self.line.factor(x) * self.line.probability(x))

    def _factor(self, rows: DecidedRows) -> np.ndarray:
        return self.line.factor(log_odds(rows.batch, self.line.label))
