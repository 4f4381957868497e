"""Calibrators softmax(slope log p + bias), fitted to labelled rows by Newton's method.

docs/mathematics.md section 6 has the likelihood, its derivatives and the prior of the parameters.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from calshift.engines import Arrays, Sums
from calshift.frozen import Frozen
from calshift.predictions import Predictions

KINDS = {  # name -> (one slope for all classes, biases)
    "ts": (True, False),
    "bcts": (True, True),
    "nbvs": (False, False),
    "vs": (False, True),
}
LEAST_PROBABILITY = 1e-12  # what an exact zero counts as
LEAST_PRECISION = 1e-2  # of the prior in every direction: separable classes keep finite slopes
LARGEST_PRECISION = 1e3  # a prior with a standard deviation of .03
MOST_STEPS = 50
PRIOR_STEPS = 10  # in which the precision of the prior may still change
LEAST_GAIN = 1e-10  # of the mean log-likelihood, below which the last Newton step is taken


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
    """

    kind: str
    seen: np.ndarray
    parameters: np.ndarray
    precision: np.ndarray
    information: np.ndarray
    converged: bool = False
    iterations: int = 0

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

    def scores(self, batch: Predictions) -> np.ndarray:
        """(rows, S) logarithms of the predicted probabilities; an exact zero is floored."""
        p = batch.matrix if self.seen.all() else batch.matrix[:, self.seen]
        return np.asarray(np.log(np.maximum(p, LEAST_PROBABILITY, dtype=float)))

    def calibrated(self, scores: np.ndarray) -> np.ndarray:
        """(rows, S) probabilities of the classes seen, softmax(slope scores + bias)."""
        z = np.asarray(self.slope * scores)
        z += self.bias
        z -= z.max(axis=1, keepdims=True)
        np.exp(z, out=z)
        z /= z.sum(axis=1, keepdims=True)
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
        """Kernel: log-likelihood of the labels, its gradient, its information."""
        scores, code, f = self.scores(batch), batch.codes(self.seen), batch.frequency
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


def fit_scaling(kind: str, engine: Arrays, class_counts: np.ndarray) -> Scaling:
    """The calibrator of largest penalised likelihood on the labelled rows of an engine.

    A priori the slopes are normal around a common one and the biases around a multiple of the
    log class shares; the spread is the one of largest evidence, so that few rows a class leave
    little freedom.
    """
    now, centre, blocks = _start(kind, class_counts)
    n, spread = class_counts.sum(), np.ones(len(blocks))
    value, gradient, information = engine.total(now.likelihood)
    for step in range(1, MOST_STEPS + 1):
        if step <= PRIOR_STEPS:
            spread = _precisions(spread, blocks, now, centre, gradient, information)
        precision = _prior(blocks, spread, len(centre))
        penalised = information + precision
        slope = gradient - precision @ (now.parameters - centre)
        move = np.linalg.solve(penalised, slope)
        settled = bool(slope @ move <= 2 * LEAST_GAIN * n)
        if settled:
            break
        value, gradient, information, now = _climb(engine, now, centre, precision, move, value)
    return replace(
        now,
        parameters=now.parameters + move,
        precision=precision,
        information=penalised,
        converged=settled,
        iterations=step,
    )


Block = tuple[slice, np.ndarray]  # a range of parameters; the directions that have freedom


def _start(kind: str, class_counts: np.ndarray) -> tuple[Scaling, np.ndarray, list[Block]]:
    """No change at all, and the parameters that vary around a common law."""
    seen = class_counts > 0
    share = np.log(class_counts[seen] / class_counts.sum())
    one_slope, biased = KINDS[kind]
    S, a = len(share), 1 if one_slope else len(share)
    centre = np.concatenate([np.ones(a), np.zeros(S if biased else 0)])
    blocks = [] if one_slope else [(slice(0, S), _complement(np.ones((S, 1))))]
    if biased:
        laws = np.stack([np.ones(S), share], axis=1)
        blocks.append((slice(a, a + S), _complement(laws)))
    nothing = np.eye(len(centre))
    scaling = Scaling(kind, seen, centre, nothing, nothing)
    return scaling, centre, [block for block in blocks if np.trace(block[1]) > 0.5]


def _complement(laws: np.ndarray) -> np.ndarray:
    """The projection onto what the laws, columns, cannot express."""
    basis, size, _ = np.linalg.svd(laws, full_matrices=False)
    basis = basis[:, size > 1e-6 * size[0]]
    return np.asarray(np.eye(len(laws)) - basis @ basis.T)


def _prior(blocks: list[Block], spread: np.ndarray, d: int) -> np.ndarray:
    precision = LEAST_PRECISION * np.eye(d)
    for (where, projection), strength in zip(blocks, spread, strict=True):
        precision[where, where] += strength * projection
    return precision


def _precisions(
    spread: np.ndarray,
    blocks: list[Block],
    now: Scaling,
    centre: np.ndarray,
    gradient: np.ndarray,
    information: np.ndarray,
) -> np.ndarray:
    """Towards MacKay's fixed point of the evidence, on the quadratic model around the parameters.

    strength = (directions - strength tr(P Sigma)) / |P (eta - centre)|^2
    """
    for _ in range(5 if blocks else 0):
        precision = _prior(blocks, spread, len(centre))
        covariance = np.linalg.inv(information + precision)
        offset = now.parameters - centre
        offset = offset + covariance @ (gradient - precision @ offset)
        found = []
        for (where, projection), strength in zip(blocks, spread, strict=True):
            known = np.trace(projection) - strength * np.sum(projection * covariance[where, where])
            size = offset[where] @ projection @ offset[where]
            ratio = max(known, 0) / max(strength * size, 1e-12)
            found.append(
                strength * ratio**2
            )  # twice MacKay's step, which creeps where all is noise
        before, spread = spread, np.clip(found, LEAST_PRECISION, LARGEST_PRECISION)
        if np.abs(np.log(spread / before)).max() < 0.1:
            break
    return spread


def _climb(
    engine: Arrays,
    now: Scaling,
    centre: np.ndarray,
    precision: np.ndarray,
    move: np.ndarray,
    value: float,
) -> tuple[float, np.ndarray, np.ndarray, Scaling]:
    """The step that does not lower the penalised likelihood, halved until it is one."""

    def penalty(parameters: np.ndarray) -> float:
        offset = parameters - centre
        return float(offset @ precision @ offset) / 2

    before = value - penalty(now.parameters)
    for _ in range(40):
        there = replace(now, parameters=now.parameters + move)
        value, gradient, information = engine.total(there.likelihood)
        if value - penalty(there.parameters) >= before - 1e-12 * abs(before):
            break
        move = move / 2
    return value, gradient, information, there
