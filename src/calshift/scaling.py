"""Calibrators softmax(slope log p + bias) and their derivatives.

docs/mathematics.md section 6 has the likelihood and its derivatives.

Fitting calibrators to labelled rows.

docs/mathematics.md section 6.

Likelihoods with a normal prior of largest evidence, maximised by Newton's method.

docs/mathematics.md section 6.

Probabilities raised to powers, tilted and normalised again, row by row.

    p'_y ~ p_y^slope_y exp(bias_y) weight_y

A probability of exactly 0 stays 0. docs/mathematics.md section 11.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from calshift._core.addable import Tally
from calshift._core.frozen import Frozen
from calshift._core.linalg import inverse, row_max, row_sum
from calshift._core.predictions import Predictions
from calshift.engines.base import Engine

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

    def likelihood(self, batch: Predictions) -> Tally:
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
        information = self._information(p, fp, f, scores)
        return Tally(value=f @ np.log(hit), gradient=gradient, information=information)

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


def fit_scaling(
    kind: str, engine: Engine, class_counts: np.ndarray, floor: float = LEAST_PROBABILITY
) -> Scaling:
    """The calibrator of largest penalised likelihood on the labelled rows of an engine.

    A priori the slopes are normal around a common one and the biases around a multiple of the
    log class shares; the spread is the one of largest evidence, so that few rows a class leave
    little freedom.
    """
    start, prior = unfitted(kind, class_counts, floor), scaling_prior(kind, class_counts)
    engine = engine.mapped(start.scores)

    def likelihood(parameters: np.ndarray) -> Parts:
        sums = engine.total(replace(start, parameters=parameters).likelihood)
        return sums["value"], sums["gradient"], sums["information"]

    n = class_counts.sum()
    found = penalised_maximum(likelihood, prior, n)
    return replace(
        start,
        parameters=found.parameters,
        precision=found.precision,
        information=found.information,
        converged=found.converged,
        iterations=found.iterations,
        fit=found.value / n,
    )


def unfitted(kind: str, class_counts: np.ndarray, floor: float = LEAST_PROBABILITY) -> Scaling:
    """No change at all, of the classes seen."""
    seen = class_counts > 0
    one_slope, biased = KINDS[kind]
    S = int(seen.sum())
    centre = np.concatenate([np.ones(1 if one_slope else S), np.zeros(S if biased else 0)])
    nothing = np.zeros((len(centre), len(centre)))
    return Scaling(kind, seen, centre, nothing, nothing, floor=floor)


def scaling_prior(kind: str, class_counts: np.ndarray) -> Prior:
    """Of the parameters: those that vary do so around a common law."""
    start = unfitted(kind, class_counts)
    a, d = start.slopes, len(start.parameters)
    least = LEAST_STRENGTH * np.eye(d)
    least[a:, a:] += class_counts.sum() / max(d - a, 1)  # a constant in all biases does nothing
    found = [] if a == 1 else [(slice(0, a), orthogonal_projector(np.ones((a, 1))))]
    if d > a:
        found.append((slice(a, d), orthogonal_projector(shares_column(class_counts))))
    found = [(where, form) for where, form in found if np.trace(form) > 0.5]
    ranks = np.array([np.trace(form) for _, form in found])
    forms = tuple(place_block(form, where, where, d) for where, form in found)
    return Prior(start.parameters, least, forms, lambda strength: ranks)


def shares_column(class_counts: np.ndarray) -> np.ndarray:
    """(S, 2) what biases follow: a constant, and the log class shares."""
    counts = class_counts[class_counts > 0]
    return np.stack([np.ones(len(counts)), np.log(counts / counts.sum())], axis=1)


def orthogonal_projector(columns: np.ndarray) -> np.ndarray:
    """The projection onto what the columns cannot express."""
    basis, size, _ = np.linalg.svd(columns, full_matrices=False)
    basis = basis[:, size > 1e-6 * size[0]]
    return np.asarray(np.eye(len(columns)) - basis @ basis.T)


def place_block(form: np.ndarray, rows: slice, columns: slice, d: int) -> np.ndarray:
    """A form of some of the parameters among d of them."""
    whole = np.zeros((d, d))
    whole[rows, columns] = form
    return whole


LEAST_STRENGTH = 1e-2  # of the prior in every direction: separable classes keep finite slopes
MOST_STEPS = 50
LEAST_GAIN = 1e-10  # of the mean log-likelihood, below which the last Newton step is taken

Parts = tuple[float, np.ndarray, np.ndarray]  # log-likelihood, gradient, information
Likelihood = Callable[[np.ndarray], Parts]


@dataclass(frozen=True)
class Prior:
    """Normal, with precision ``least + sum_k strength_k form_k``.

    Attributes
    ----------
    centre : (d,) its mean
    least : (d, d) what is always there
    forms : quadratic forms (d, d) whose strengths are those of largest evidence
    freedom : strengths -> (forms,) strength_k tr(form_k A^+) with A the sum of the forms, the
        directions that each of them rules; for forms that do not meet, their ranks
    largest : strength that a form may have
    steps : of Newton's method in which the strengths may still change
    stride : power of MacKay's ratio; twice the step where it would creep, as all is noise
    """

    centre: np.ndarray
    least: np.ndarray
    forms: tuple[np.ndarray, ...]
    freedom: Callable[[np.ndarray], np.ndarray]
    largest: float = 1e3
    steps: int = 10
    stride: float = 2.0

    def precision(self, strength: np.ndarray) -> np.ndarray:
        """(d, d)."""
        total = self.least.copy()
        for form, size in zip(self.forms, strength, strict=True):
            total += size * form
        return total

    def penalty(self, parameters: np.ndarray, precision: np.ndarray) -> float:
        """Minus the logarithm of the density, up to a constant."""
        offset = parameters - self.centre
        return float(offset @ precision @ offset) / 2

    def evident(self, strength: np.ndarray, at: np.ndarray, parts: Parts) -> np.ndarray:
        """Towards MacKay's fixed point of the evidence, on the quadratic model around ``at``.

        strength_k = (freedom_k - strength_k tr(form_k Sigma)) / offset' form_k offset
        """
        _, gradient, information = parts
        for _ in range(5 if self.forms else 0):
            precision = self.precision(strength)
            covariance = inverse(information + precision)
            offset = at - self.centre
            offset = offset + covariance @ (gradient - precision @ offset)
            loose = np.array([np.sum(form * covariance) for form in self.forms])
            size = np.array([offset @ form @ offset for form in self.forms])
            known = np.maximum(self.freedom(strength) - strength * loose, 0)
            ratio = known / np.maximum(strength * size, 1e-12)
            before = strength
            strength = np.clip(strength * ratio**self.stride, LEAST_STRENGTH, self.largest)
            if np.abs(np.log(strength / before)).max() < 0.2:
                break
        return strength


@dataclass(frozen=True)
class Maximum:
    """Where the penalised likelihood is largest.

    Attributes
    ----------
    parameters : (d,)
    precision, information : (d, d) of the prior; minus the second derivative, prior included
    strength : of the forms of the prior
    value : log-likelihood, without the prior
    """

    parameters: np.ndarray
    precision: np.ndarray
    information: np.ndarray
    strength: np.ndarray
    value: float
    converged: bool
    iterations: int


def penalised_maximum(likelihood: Likelihood, prior: Prior, size: float) -> Maximum:
    """The parameters of largest penalised likelihood of ``size`` rows, searched from the centre."""
    now, strength = prior.centre, np.ones(len(prior.forms))
    parts = likelihood(now)
    for step in range(1, MOST_STEPS + 1):
        if step <= prior.steps:
            strength = prior.evident(strength, now, parts)
        precision = prior.precision(strength)
        slope = parts[1] - precision @ (now - prior.centre)
        move = inverse(parts[2] + precision) @ slope
        settled = bool(slope @ move <= 2 * LEAST_GAIN * size)
        if settled:
            break
        now, parts = _climb(likelihood, prior, precision, now, move, parts[0])
    return Maximum(
        now + (move if settled else 0.0),
        precision,
        parts[2] + precision,
        strength,
        float(parts[0]),
        settled,
        step,
    )


def _climb(
    likelihood: Likelihood,
    prior: Prior,
    precision: np.ndarray,
    now: np.ndarray,
    move: np.ndarray,
    value: float,
) -> tuple[np.ndarray, Parts]:
    """The step that does not lower the penalised likelihood, halved until it is one."""
    before = value - prior.penalty(now, precision)
    for _ in range(40):
        there = now + move
        parts = likelihood(there)
        if parts[0] - prior.penalty(there, precision) >= before - 1e-12 * abs(before):
            break
        move = move / 2
    return there, parts


def tempered(
    p: np.ndarray, slope: np.ndarray | float, bias: np.ndarray | float = 0.0
) -> np.ndarray:
    """(n, K) softmax(slope log p + bias)."""
    none = p <= 0
    z = np.log(np.where(none, 1.0, p), dtype=float)
    z *= slope
    z += bias
    z[none] = -np.inf
    z -= z.max(axis=1, keepdims=True)
    np.exp(z, out=z)
    z /= z.sum(axis=1, keepdims=True)
    return z


def reweighted(p: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """(n, K) p_y weight_y / sum; a row that has all its mass on weights of 0 stays as it is."""
    tilted = p * (weights / weights.max())
    total = tilted.sum(axis=1, keepdims=True)
    lost = total[:, 0] <= 0
    tilted /= np.where(total > 0, total, 1.0)
    tilted[lost] = p[lost]
    return np.asarray(tilted)
