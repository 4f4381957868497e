"""Vector scaling and the target's mix of classes, fitted together.

Source: P(y | x) ~ exp(a log p + b); target: the same times exp(s), s_y the log weight of class y.
The labels of the source speak for a and b; which sample a row belongs to speaks for all of them.
docs/mathematics.md section 11.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from calshift._core.addable import Tally
from calshift._core.frozen import Frozen
from calshift._core.predictions import Predictions
from calshift.engines.base import Engine
from calshift.scaling import (
    KINDS,
    LEAST_PROBABILITY,
    LEAST_STRENGTH,
    Maximum,
    Parts,
    Prior,
    Scaling,
    orthogonal_projector,
    penalised_maximum,
    place_block,
    scaling_prior,
    shares_column,
    unfitted,
)

LARGEST_STRENGTH = 1e4  # a spread of .01
PRIOR_STEPS = {"vs": 20, "bcts": 8}  # fewer where there are so many classes that each costs
STRIDE = 1.5  # strengths of forms that meet swing with longer ones
MOST_SLOPES = 200  # classes up to which each has a slope of its own


@dataclass(frozen=True, eq=False)
class ShiftedScaling(Frozen):
    """A calibrator of the source, and log weights that carry it to the target.

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

    def at(self, parameters: np.ndarray) -> ShiftedScaling:
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
        """Of the row's sample: the odds of the target are odds . sum_y p_y exp(s_y).

        The information is the expected one, sum m (1 - m) x x', x the gradient of the log-odds.
        """
        scores, f = batch.p, batch.frequency
        z = self.scaling.slope * scores + self.scaling.bias
        p, total = _normalised(z)
        posterior, shifted = _normalised(z + self.shift)
        log_odds = np.log(self.odds) + shifted - total
        share = (1 + np.tanh(log_odds / 2)) / 2
        value = -f @ np.logaddexp(0.0, log_odds - 2 * inside * log_odds)
        by_bias = posterior - p
        by_slope = by_bias * scores
        if KINDS[self.scaling.kind][0]:
            by_slope = by_slope.sum(axis=1, keepdims=True)
        x = np.hstack([by_slope, by_bias, posterior])
        gradient = (f * (inside - share)) @ x
        x *= np.sqrt(f * share * (1 - share))[:, None]
        return Tally(value=value, gradient=gradient, information=x.T @ x)


def _normalised(z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Rows of softmax(z), and the logarithm of what they were divided by."""
    top = z.max(axis=1, keepdims=True)
    p = np.exp(z - top)
    total = p.sum(axis=1, keepdims=True)
    p /= total
    return p, (np.log(total) + top)[:, 0]


def kind_for(K: int) -> str:
    """The calibrator for so many classes."""
    return "vs" if K <= MOST_SLOPES else "bcts"


def fit_jointly(
    source: Engine,
    target: Engine,
    class_counts: np.ndarray,
    floor: float = LEAST_PROBABILITY,
) -> tuple[ShiftedScaling, Maximum]:
    """The parameters of largest penalised likelihood.

    Every class must have a count: what stands for the rows of a class that the source lacks. A
    probability below the floor counts as that.
    """
    kind = kind_for(len(class_counts))
    sizes = source.summary.size, target.summary.size
    model = ShiftedScaling(
        unfitted(kind, class_counts, floor), np.zeros(len(class_counts)), sizes[1] / sizes[0]
    )
    scored = source.mapped(model.scaling.scores), target.mapped(model.scaling.scores)

    def likelihood(parameters: np.ndarray) -> Parts:
        there = model.at(parameters)
        with np.errstate(over="ignore", invalid="ignore"):  # far steps, which are taken back
            sums = scored[0].total(there.source) + scored[1].total(there.target)
        return sums["value"], sums["gradient"], sums["information"]

    found = penalised_maximum(likelihood, joint_prior(kind, class_counts), sum(sizes))
    return model.at(found.parameters), found


def joint_prior(kind: str, class_counts: np.ndarray) -> Prior:
    """Biases and shifts vary around the law of log class shares, and their sum around a constant.

    The sum is how the target's probabilities depart from the model's own: where it is constant, a
    temperature is all that they need.
    """
    inner = scaling_prior(kind, class_counts)
    d, K = len(inner.centre), len(class_counts)
    N, around_shares, around_one = (
        d + K,
        orthogonal_projector(shares_column(class_counts)),
        orthogonal_projector(np.ones((K, 1))),
    )
    biases, shifts = slice(d - K, d), slice(d, N)
    forms = [place_block(around_one, slice(0, K), slice(0, K), N)] if kind == "vs" else []
    forms += [place_block(around_shares, part, part, N) for part in (biases, shifts)]
    pairs = [(one, two) for one in (biases, shifts) for two in (biases, shifts)]
    forms.append(sum((place_block(around_one, *pair, N) for pair in pairs), np.zeros((N, N))))
    least = LEAST_STRENGTH * np.eye(N)
    least[:d, :d] = inner.least
    rank, ones = round(np.trace(around_shares)), K - 1

    def freedom(strength: np.ndarray) -> np.ndarray:
        """In closed form: where the law has no say biases, shifts and sums compete for two."""
        bias, shift, total = strength[-3:]
        among = rank / (bias * shift + total * (bias + shift))
        shares = [bias * (shift + total), shift * (bias + total), total * (bias + shift)]
        found = among * np.array(shares) + [0, 0, ones - rank]
        return np.concatenate([[float(ones)], found]) if kind == "vs" else found

    centre = np.concatenate([inner.centre, np.zeros(K)])
    return Prior(centre, least, tuple(forms), freedom, LARGEST_STRENGTH, PRIOR_STEPS[kind], STRIDE)
