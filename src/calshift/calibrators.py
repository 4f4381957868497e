"""Calibrators softmax(slope log p + bias) and their derivatives.

docs/mathematics.md section 6 has the likelihood and its derivatives.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from calshift.fast import loops
from calshift.frozen import Frozen
from calshift.linear import inverse, row_max, row_sum
from calshift.predictions import Predictions
from calshift.sums import Sums

KINDS = {  # name -> (one slope for all classes, biases)
    "ts": (True, False),
    "bcts": (True, True),
    "nbvs": (False, False),
    "vs": (False, True),
}
LEAST_PROBABILITY = 1e-12  # what an exact zero counts as


@dataclass(frozen=True, eq=False)
class Uncalibrated(Frozen):
    """The predictions as they are, restricted to the classes seen; an exact zero is floored."""

    seen: np.ndarray
    converged: bool = True

    def __call__(self, batch: Predictions) -> np.ndarray:
        """(rows, S) probabilities of the classes seen."""
        p = np.maximum(batch.matrix[:, self.seen], LEAST_PROBABILITY, dtype=float)
        return np.asarray(p / p.sum(axis=1, keepdims=True))


@dataclass(frozen=True, eq=False)
class Scaling(Frozen):
    """A calibrator of the classes that its sample showed.

    Attributes
    ----------
    kind : one of KINDS
    seen : (K,) bool; the other classes are left out
    parameters : (d,) slopes, then biases
    precision : (d, d) of the normal prior, whose mean is no change: slopes of 1, biases of 0
    information : (d, d) minus the second derivative of the penalised log-likelihood
    converged, iterations : of Newton's method
    fit : mean log-likelihood of the labels
    floor : what a smaller probability counts as
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

    @property
    def slope(self) -> np.ndarray:
        """(1,) or (S,): 1 / temperature."""
        return self.parameters[: self.slopes]

    @property
    def bias(self) -> np.ndarray:
        """(S,), or (1,) of 0 for a kind without."""
        return self.parameters[self.slopes :] if KINDS[self.kind][1] else np.zeros(1)

    @property
    def slopes(self) -> int:
        """How many of the parameters are slopes."""
        return 1 if KINDS[self.kind][0] else int(self.seen.sum())

    @property
    def pull(self) -> np.ndarray:
        """(d,) gradient of the likelihood at the optimum, where the prior balances it."""
        centre = np.where(np.arange(len(self.parameters)) < self.slopes, 1.0, 0.0)
        return np.asarray(self.precision @ (self.parameters - centre))

    @property
    def covariance(self) -> np.ndarray:
        """(d, d) inverse of the information."""
        return inverse(self.information)

    def scores(self, batch: Predictions) -> np.ndarray:
        """(rows, S) logarithms of the predicted probabilities, floored."""
        p = batch.matrix if self.seen.all() else batch.matrix[:, self.seen]
        scores = np.maximum(p, self.floor, dtype=float)
        np.log(scores, out=scores)
        return np.asarray(scores)

    def calibrated(self, scores: np.ndarray) -> np.ndarray:
        """(rows, S) probabilities of the classes seen, softmax(slope scores + bias)."""
        compiled = loops()
        if compiled is not None:
            p = np.empty(scores.shape)
            compiled.scale(scores, self.slope, self.bias, p)
            return p
        z = np.asarray(self.slope * scores)
        z += self.bias
        z -= row_max(z)[:, None]
        np.exp(z, out=z)
        z *= (1 / row_sum(z))[:, None]
        return z

    def __call__(self, batch: Predictions) -> np.ndarray:
        """(rows, S) probabilities of the classes seen."""
        return self.calibrated(self.scores(batch))

    def rows(self, batch: Predictions) -> tuple[np.ndarray, np.ndarray]:
        """(rows, S) probabilities, and (rows, slopes) gradients of each row's log-likelihood.

        The gradient by the biases needs no computing: it is 1_y - p.
        """
        scores = self.scores(batch)
        p, code = self.calibrated(scores), batch.codes(self.seen)
        hit = scores[np.arange(len(p)), code]
        if KINDS[self.kind][0]:
            return p, (hit - np.einsum("ic,ic->i", p, scores))[:, None]
        by_slope = -p * scores
        by_slope[np.arange(len(p)), code] += hit
        return p, by_slope

    def slope_response(
        self, weight: np.ndarray, share: np.ndarray, scores: np.ndarray
    ) -> np.ndarray:
        """(S, slopes) sum over rows of weight_c (x_c - sum_k share_k x_k), x = d logit / d slope.

        With the probabilities as weight and share it is how their sum moves with the slopes.
        """
        own = np.einsum("ic,ic->c", weight, scores)
        if KINDS[self.kind][0]:
            return np.asarray(own - np.einsum("ic,ic->i", share, scores) @ weight)[:, None]
        return np.asarray(np.diag(own) - weight.T @ (share * scores))

    def response(self, batch: Predictions) -> np.ndarray:
        """Kernel: (S, d), the derivative of the sum of calibrated probabilities."""
        scores = self.scores(batch)
        p = self.calibrated(scores)
        fp = p if batch.sample_weight is None else batch.frequency[:, None] * p
        return self._response(p, fp, scores)

    def _response(self, p: np.ndarray, fp: np.ndarray, scores: np.ndarray) -> np.ndarray:
        by_slope = self.slope_response(fp, p, scores)
        if not KINDS[self.kind][1]:
            return by_slope
        return np.hstack([by_slope, np.diag(fp.sum(axis=0)) - fp.T @ p])

    def likelihood(self, batch: Predictions) -> Sums:
        """Kernel over rows of scores: log-likelihood of the labels, gradient, information."""
        scores, code, f = batch.p, batch.codes(self.seen), batch.frequency
        p, rows = self.calibrated(scores), np.arange(len(batch))
        fp = p if batch.sample_weight is None else f[:, None] * p
        S, hit = p.shape[1], np.maximum(p[rows, code], np.finfo(float).tiny)
        by_slope = np.bincount(code, f * scores[rows, code], S) - np.einsum("ic,ic->c", fp, scores)
        by_bias = np.bincount(code, f, S) - fp.sum(axis=0)
        gradient = np.array([by_slope.sum()]) if KINDS[self.kind][0] else by_slope
        if KINDS[self.kind][1]:
            gradient = np.concatenate([gradient, by_bias])
        return Sums((f @ np.log(hit), gradient, self._information(p, fp, f, scores)))

    def _information(
        self, p: np.ndarray, fp: np.ndarray, f: np.ndarray, scores: np.ndarray
    ) -> np.ndarray:
        """sum_i f_i [ sum_c p_c x_c x_c' - (sum_c p_c x_c)(sum_c p_c x_c)' ], x_c as above."""
        if KINDS[self.kind][0]:
            mean, square = (np.einsum("ic,ic->i", p, x) for x in (scores, scores**2))
            top = np.full((1, 1), f @ (square - mean**2))
        else:
            scored = fp * scores
            top = np.diag(np.einsum("ic,ic->c", scored, scores)) - scored.T @ (p * scores)
        if not KINDS[self.kind][1]:
            return top
        biases = self._response(p, fp, scores)
        return np.vstack([np.hstack([top, biases[:, : self.slopes].T]), biases])
