"""Calibrators softmax(slope log p + bias), their likelihood and its derivatives.

docs/mathematics.md sections 6 and 11.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from calshift._core.addable import Tally
from calshift._core.frozen import Frozen
from calshift._core.linalg import FEW_COLUMNS, inverse, row_max, row_sum
from calshift._core.predictions import Predictions


class Kind(NamedTuple):
    """The parameters of a calibrator: one slope for all classes or one each, biases or none."""

    one_slope: bool
    biased: bool


KINDS = {
    "ts": Kind(one_slope=True, biased=False),
    "bcts": Kind(one_slope=True, biased=True),
    "nbvs": Kind(one_slope=False, biased=False),
    "vs": Kind(one_slope=False, biased=True),
}
LEAST_PROBABILITY = 1e-12  # floor of the probabilities, where they are exactly zero
LARGEST_EXPONENT = 700.0  # of which exp is finite, and exp of its negative is not 0


def temper(
    p: np.ndarray,
    slope: np.ndarray | float,
    bias: np.ndarray | float = 0.0,
    floor: np.ndarray | float = 0.0,
) -> np.ndarray:
    """(n, K) softmax(slope log p + bias), row by row, of probabilities of at least the floor.

    A probability of exactly 0 without a floor stays 0.
    """
    raised = np.maximum(p, floor, dtype=float)
    zero = raised <= 0
    raised[zero] = 1.0
    z: np.ndarray = np.log(raised, out=raised)
    z *= slope
    z += bias
    z[zero] = -np.inf
    z -= z.max(axis=1, keepdims=True)
    np.exp(z, out=z)
    z /= z.sum(axis=1, keepdims=True)
    return z


def reweight(p: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """(n, K) p_y w_y / sum_c p_c w_c; a row with all its mass on weights of 0 is unchanged."""
    tilted = p * (weights / weights.max())
    total = tilted.sum(axis=1, keepdims=True)
    return np.where(total > 0, tilted / np.where(total > 0, total, 1.0), p)


@dataclass(frozen=True, eq=False)
class Uncalibrated(Frozen):
    """The predictions without calibration, restricted to the classes seen; zeros are floored."""

    seen: np.ndarray
    converged: bool = True
    biased: bool = False

    def __call__(self, batch: Predictions) -> np.ndarray:
        """(rows, S) probabilities of the classes seen; not to be written to."""
        return batch.derived((type(self), self.seen.tobytes()), self._restrict)

    def _restrict(self, batch: Predictions) -> np.ndarray:
        p = in_class_order(batch, self.seen)
        np.maximum(p, LEAST_PROBABILITY, out=p)
        p *= (1 / row_sum(p))[:, None]
        return p

    def likelihood_gradients(self, batch: Predictions) -> tuple[np.ndarray, np.ndarray]:
        """(rows, S) probabilities, and (rows, 0) gradients: there are no slopes."""
        return self(batch), np.zeros((len(batch), 0))


@dataclass(frozen=True, eq=False)
class Scaling(Frozen):
    """A calibrator of the S classes of its sample.

    Attributes
    ----------
    kind : one of KINDS
    seen : (K,) bool; the other classes are left out
    parameters : (d,) slopes, then biases
    precision : (d, d) of the normal prior, whose mean is no change: slopes of 1, biases of 0
    information : (d, d) minus the second derivative of the penalised log-likelihood
    converged, iterations : of Newton's method
    fit : mean log-likelihood of the labels
    floor : smaller probabilities are replaced by it
    strength : of the forms of the prior
    """

    kind: str
    seen: np.ndarray
    parameters: np.ndarray
    precision: np.ndarray
    information: np.ndarray
    converged: bool = False
    iterations: int = 0
    fit: float = -np.inf
    floor: float = LEAST_PROBABILITY
    strength: np.ndarray | None = None

    @property
    def one_slope(self) -> bool:
        """Whether all classes have the same slope."""
        return KINDS[self.kind].one_slope

    @property
    def biased(self) -> bool:
        """Whether every class has a bias."""
        return KINDS[self.kind].biased

    @property
    def slope(self) -> np.ndarray:
        """(1,) or (S,): 1 / temperature."""
        return self.parameters[: self.slopes]

    @property
    def bias(self) -> np.ndarray:
        """(S,), or (1,) of 0 for a kind without biases."""
        return self.parameters[self.slopes :] if self.biased else np.zeros(1)

    @property
    def slopes(self) -> int:
        """Number of slopes among the parameters."""
        return 1 if self.one_slope else int(self.seen.sum())

    @property
    def penalty_gradient(self) -> np.ndarray:
        """(d,) gradient of the penalty, equal to that of the likelihood at the optimum."""
        centre = np.where(np.arange(len(self.parameters)) < self.slopes, 1.0, 0.0)
        return np.asarray(self.precision @ (self.parameters - centre))

    @property
    def covariance(self) -> np.ndarray:
        """(d, d) inverse of the information."""
        return inverse(self.information)

    def scores(self, batch: Predictions) -> np.ndarray:
        """(rows, S) logarithms of the predicted probabilities, floored; not to be written to."""
        return log_probabilities(batch, self.seen, self.floor)

    def calibrate(self, scores: np.ndarray) -> np.ndarray:
        """(rows, S) probabilities of the classes seen, softmax(slope scores + bias)."""
        if scores.shape[1] == 2:
            return self._calibrate_two(scores)
        z = np.asarray(scores * self.slope)
        z += self.bias
        largest = np.abs(self.bias).max() - np.log(self.floor) * np.abs(self.slope).max()
        if largest > LARGEST_EXPONENT:
            z -= row_max(z)[:, None]
        np.exp(z, out=z)
        z *= (1 / row_sum(z))[:, None]
        return z

    def _calibrate_two(self, scores: np.ndarray) -> np.ndarray:
        """Softmax of two classes, with one exponential a row."""
        z = self._logits(scores)
        np.exp(np.negative(z, out=z), out=z)  # p_0 / p_1
        p = np.empty((2, len(scores))).T
        np.divide(1.0, z + 1.0, out=p[:, 1])
        np.multiply(z, p[:, 1], out=p[:, 0])
        return p

    def _logits(self, scores: np.ndarray) -> np.ndarray:
        """(rows,) log p_1 / p_0 of two classes."""
        z = scores[:, 0] * -self.slope[0]
        z += scores[:, 1] * self.slope[-1]
        z += self.bias[-1] - self.bias[0]
        return np.asarray(np.maximum(z, -LARGEST_EXPONENT, out=z))

    def __call__(self, batch: Predictions) -> np.ndarray:
        """(rows, S) probabilities of the classes seen; not to be written to."""
        key = self.kind, self.floor, self.seen.tobytes(), self.parameters.tobytes()
        return batch.derived(key, lambda rows: self.calibrate(self.scores(rows)))

    def likelihood_gradients(self, batch: Predictions) -> tuple[np.ndarray, np.ndarray]:
        """(rows, S) probabilities, and (rows, slopes) gradients of each row's log-likelihood.

        The gradient by the biases is 1_y - p.
        """
        scores, rows = self.scores(batch), np.arange(len(batch))
        p, code = self(batch), batch.codes(self.seen)
        hit = scores[rows, code]
        if self.one_slope:
            return p, (hit - row_dot(p, scores))[:, None]
        by_slope = -p * scores
        by_slope[rows, code] += hit
        return p, by_slope

    def slope_derivative(
        self, weight: np.ndarray, share: np.ndarray, scores: np.ndarray
    ) -> np.ndarray:
        """(S, slopes) sum over rows of weight_c (x_c - sum_k share_k x_k), x = d logit / d slope.

        With the probabilities as weight and share, the derivative of their sum by the slopes.
        """
        own = column_dot(weight, scores)
        if self.one_slope:
            return np.asarray(own - row_dot(share, scores) @ weight)[:, None]
        return np.asarray(np.diag(own) - weight.T @ (share * scores))

    def sum_derivative(self, batch: Predictions) -> np.ndarray:
        """Kernel: (S, d), the derivative of the sum of calibrated probabilities."""
        scores = self.scores(batch)
        p = self.calibrate(scores)
        return self._sum_derivative(p, _weighted(p, batch), scores)

    def _sum_derivative(self, p: np.ndarray, fp: np.ndarray, scores: np.ndarray) -> np.ndarray:
        by_slope = self.slope_derivative(fp, p, scores)
        if not self.biased:
            return by_slope
        return np.concatenate([by_slope, np.diag(row_sum(fp.T)) - fp.T @ p], axis=1)

    def likelihood(self, batch: Predictions) -> Tally:
        """Summand: log-likelihood of the labels, gradient, information."""
        if int(self.seen.sum()) == 2:
            second = batch.codes(self.seen) == 1
            return self._likelihood_of_two(self.scores(batch), second, batch.sample_weight)
        found, p, fp, own = self._first_order(batch)
        found["information"] = self._information(p, fp, self.scores(batch), own)
        return found

    def slope_of_likelihood(self, batch: Predictions) -> Tally:
        """Summand: log-likelihood of the labels, gradient; faster for many classes."""
        return self._first_order(batch)[0]

    def _first_order(self, batch: Predictions) -> tuple[Tally, np.ndarray, np.ndarray, np.ndarray]:
        """Log-likelihood and gradient; p, f p and (S,) the sums of f p times scores."""
        scores, code = self.scores(batch), batch.codes(self.seen)
        p, f, S = self.calibrate(scores), batch.sample_weight, scores.shape[1]
        fp, hit = _weighted(p, batch), (np.arange(len(batch)), code)
        own, score = column_dot(fp, scores), np.bincount(code, _times(scores[hit], f), S)
        gradient = np.array([score.sum() - own.sum()]) if self.one_slope else score - own
        if self.biased:
            gradient = np.append(gradient, np.bincount(code, f, S) - row_sum(fp.T))
        value = _times(np.log(np.maximum(p[hit], np.finfo(float).tiny)), f).sum()
        return Tally(value=float(value), gradient=gradient), p, fp, own

    def _likelihood_of_two(
        self, scores: np.ndarray, second: np.ndarray, frequency: np.ndarray | None
    ) -> Tally:
        """`likelihood` of two classes: of a logit, linear in the scores and in 1."""
        logit = self._logits(scores)
        odds = np.exp(-logit)  # p_0 / p_1
        total = odds + 1
        p = 1 / total
        value = -np.log(total, out=total)
        value -= np.where(second, 0.0, logit)
        residual, v = _times(second - p, frequency), _times(odds * p * p, frequency)
        gradient, information = np.empty(3), np.empty((3, 3))
        gradient[:2], gradient[2] = residual @ scores, residual.sum()
        information[:2, :2] = scores.T @ (scores * v[:, None])
        information[2, :2] = information[:2, 2] = v @ scores
        information[2, 2] = v.sum()
        T = self._logit_design
        value = value.sum() if frequency is None else frequency @ value
        return Tally(value=float(value), gradient=gradient @ T, information=T.T @ information @ T)

    @property
    def _logit_design(self) -> np.ndarray:
        """(3, d) by which the parameters enter the logit of two classes: of scores, and of 1."""
        slopes = np.array([[-1.0], [1.0]]) if self.one_slope else np.diag([-1.0, 1.0])
        design = np.zeros((3, len(self.parameters)))
        design[:2, : self.slopes] = slopes
        if self.biased:
            design[2, self.slopes :] = -1.0, 1.0
        return design

    def _information(
        self, p: np.ndarray, fp: np.ndarray, scores: np.ndarray, own: np.ndarray
    ) -> np.ndarray:
        """sum_i f_i [ sum_c p_c x_c x_c' - (sum_c p_c x_c)(sum_c p_c x_c)' ], x_c as above.

        ``own`` (S,) are the sums of p times scores.
        """
        a, information = self.slopes, np.empty((len(self.parameters),) * 2)
        scored = fp * scores
        if self.one_slope:
            mean = row_sum(scored) if fp is p else row_dot(p, scores)
            square, both = column_dot(scored, scores).sum(), mean @ fp
            information[0, 0] = square - mean @ (mean if fp is p else row_sum(scored))
            by_slope = (own - both)[:, None]
        else:
            by_slope = np.diag(own) - fp.T @ (scored if fp is p else p * scores)
            square = np.diag(column_dot(scored, scores))
            information[:a, :a] = square - scored.T @ (scored if fp is p else p * scores)
        if self.biased:
            information[a:, :a], information[:a, a:] = by_slope, by_slope.T
            information[a:, a:] = np.diag(row_sum(fp.T)) - fp.T @ p
        return information


def in_class_order(batch: Predictions, seen: np.ndarray) -> np.ndarray:
    """(rows, S) predictions of the classes seen, class by class in memory if these are few."""
    if batch.p.ndim == 1:
        p = np.empty((2, len(batch)))
        np.subtract(1, batch.p, out=p[0], dtype=batch.p.dtype)
        p[1] = batch.p
        return np.asarray(p[seen].T)
    p = batch.p if seen.all() else batch.p[:, seen]
    if p.shape[1] > FEW_COLUMNS:
        return p.astype(float)
    return np.asarray(p.T.astype(float, order="C").T)


def log_probabilities(batch: Predictions, seen: np.ndarray, floor: float) -> np.ndarray:
    """(rows, S) logarithms of predictions of at least the floor; not to be written to."""

    def find(rows: Predictions) -> np.ndarray:
        scores = in_class_order(rows, seen)
        np.maximum(scores, floor, out=scores)
        return np.asarray(np.log(scores, out=scores))

    return batch.derived(("scores", floor, seen.tobytes()), find)


def row_dot(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """(rows,) sums over the columns of first * second."""
    return row_sum(first * second)


def column_dot(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """(columns,) sums over the rows of first * second."""
    return np.asarray(np.einsum("ic,ic->c", first, second))


def _times(values: np.ndarray, frequency: np.ndarray | None) -> np.ndarray:
    """The values (rows,) times the frequencies of their rows."""
    return values if frequency is None else values * frequency


def _weighted(values: np.ndarray, batch: Predictions) -> np.ndarray:
    """The values (rows, S) times the frequencies of their rows."""
    return values if batch.sample_weight is None else batch.sample_weight[:, None] * values
