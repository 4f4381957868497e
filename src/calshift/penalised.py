"""Likelihoods with a normal prior of largest evidence, maximised by Newton's method.

docs/mathematics.md section 6.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from calshift.linear import inverse

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
