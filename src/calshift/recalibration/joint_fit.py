"""Vector scaling and the class weights of the target, fitted jointly.

Source: P(y | x) ~ exp(a log p + b); target: the same times exp(s), s_y the log weight of class y.
The labels of the source determine a and b; the sample that a row belongs to determines all three.
docs/mathematics.md section 11.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from calshift._core.addable import Tally
from calshift._core.frozen import Frozen
from calshift._core.predictions import Predictions
from calshift.engines.base import Engine
from calshift.scaling.calibrator import LEAST_PROBABILITY, Scaling
from calshift.scaling.fit import (
    LEAST_STRENGTH,
    Maximum,
    Prior,
    complement_projector,
    embed_block,
    log_share_design,
    make_identity,
    make_scaling_prior,
    maximize_penalised,
)

LARGEST_STRENGTH = 1e4  # a standard deviation of .01
PRIOR_STEPS = {"vs": 20, "bcts": 8}  # fewer for many classes, where a step is expensive
STRIDE = 1.5  # strengths of forms that overlap oscillate with larger ones
MOST_SLOPES = 200  # classes up to which each has a slope of its own


@dataclass(frozen=True, eq=False)
class ShiftedScaling(Frozen):
    """A calibrator of the source, and the log class weights of the target.

    Attributes
    ----------
    scaling : of all K classes
    shift : (K,) s
    odds : target rows for each source row
    """

    scaling: Scaling
    shift: np.ndarray
    odds: float

    @property
    def parameters(self) -> np.ndarray:
        """(N,) slopes, biases, shifts."""
        return np.concatenate([self.scaling.parameters, self.shift])

    def with_parameters(self, parameters: np.ndarray) -> ShiftedScaling:
        """The same with other parameters."""
        d = len(self.scaling.parameters)
        scaling = replace(self.scaling, parameters=parameters[:d])
        return replace(self, scaling=scaling, shift=parameters[d:])

    def source(self, batch: Predictions) -> Tally:
        """Kernel over source rows of scores: log-likelihood, gradient, information."""
        d = len(self.scaling.parameters)
        labels, sums = self.scaling.likelihood(batch), self._membership(batch, 0.0)
        sums["value"] += labels["value"]
        sums["gradient"][:d] += labels["gradient"]
        sums["information"][:d, :d] += labels["information"]
        return sums

    def target(self, batch: Predictions) -> Tally:
        """Kernel over target rows of scores."""
        return self._membership(batch, 1.0)

    def _membership(self, batch: Predictions, inside: float) -> Tally:
        """Likelihood of the row's sample: the odds of the target are odds . sum_y p_y exp(s_y).

        The information is the expected one, sum m (1 - m) x x', x the gradient of the log-odds.
        """
        scores, f = batch.p, batch.frequency
        z = self.scaling.slope * scores + self.scaling.bias
        p, total = _softmax(z)
        posterior, shifted = _softmax(z + self.shift)
        log_odds = np.log(self.odds) + shifted - total
        share = (1 + np.tanh(log_odds / 2)) / 2
        value = -f @ np.logaddexp(0.0, log_odds - 2 * inside * log_odds)
        by_bias = np.subtract(posterior, p, out=p)
        by_slope = np.multiply(by_bias, scores, out=z)  # no more memory for a batch than needed
        if self.scaling.one_slope:
            by_slope = by_slope.sum(axis=1, keepdims=True)
        x = np.hstack([by_slope, by_bias, posterior])
        gradient = (f * (inside - share)) @ x
        x *= np.sqrt(f * share * (1 - share))[:, None]
        return Tally(value=value, gradient=gradient, information=x.T @ x)


def _softmax(z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """softmax(z) by row, and log sum_y exp(z_y)."""
    top = z.max(axis=1, keepdims=True)
    p = np.exp(z - top)
    total = p.sum(axis=1, keepdims=True)
    p /= total
    return p, (np.log(total) + top)[:, 0]


def choose_kind(K: int) -> str:
    """The kind of calibrator for K classes."""
    return "vs" if K <= MOST_SLOPES else "bcts"


def fit_jointly(
    source: Engine, target: Engine, class_counts: np.ndarray, floor: float = LEAST_PROBABILITY
) -> tuple[ShiftedScaling, Maximum]:
    """The parameters of largest penalised likelihood.

    Every class count must be positive, also of a class that is not in the source. Probabilities
    below the floor are replaced by it.
    """
    kind = choose_kind(len(class_counts))
    sizes = source.summary.size, target.summary.size
    model = ShiftedScaling(
        make_identity(kind, class_counts, floor), np.zeros(len(class_counts)), sizes[1] / sizes[0]
    )
    scored = source.mapped(model.scaling.scores), target.mapped(model.scaling.scores)

    def likelihood(parameters: np.ndarray) -> Tally:
        there = model.with_parameters(parameters)
        with np.errstate(over="ignore", invalid="ignore"):  # long steps, which are then halved
            sums: Tally = scored[0].total(there.source) + scored[1].total(there.target)
        return sums

    found = maximize_penalised(likelihood, make_joint_prior(kind, class_counts), sum(sizes))
    return model.with_parameters(found.parameters), found


def make_joint_prior(kind: str, class_counts: np.ndarray) -> Prior:
    """Biases and shifts vary around multiples of the log class shares, their sum around a constant.

    The sum is the difference between the target's probabilities and those of the model: where it is
    constant, a temperature corrects them.
    """
    inner = make_scaling_prior(kind, class_counts)
    d, K = len(inner.centre), len(class_counts)
    N, around_one = d + K, complement_projector(np.ones((K, 1)))
    around_shares = complement_projector(log_share_design(class_counts))
    slopes, biases, shifts = slice(0, K), slice(d - K, d), slice(d, N)
    forms = [embed_block(around_one, slopes, slopes, N)] if kind == "vs" else []
    forms += [embed_block(around_shares, part, part, N) for part in (biases, shifts)]
    difference = np.hstack([np.zeros((K, d - K)), np.eye(K), np.eye(K)])
    forms.append(difference.T @ around_one @ difference)
    least = LEAST_STRENGTH * np.eye(N)
    least[:d, :d] = inner.least
    rank, ones = round(np.trace(around_shares)), K - 1

    def freedom(strength: np.ndarray) -> np.ndarray:
        """In closed form: off the log shares, biases, shifts and sums share two directions."""
        bias, shift, total = strength[-3:]
        among = rank / (bias * shift + total * (bias + shift))
        shares = [bias * (shift + total), shift * (bias + total), total * (bias + shift)]
        found = among * np.array(shares) + [0, 0, ones - rank]
        return np.concatenate([[float(ones)], found]) if kind == "vs" else found

    centre = np.concatenate([inner.centre, np.zeros(K)])
    return Prior(centre, least, tuple(forms), freedom, LARGEST_STRENGTH, PRIOR_STEPS[kind], STRIDE)
