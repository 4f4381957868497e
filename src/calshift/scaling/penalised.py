"""Maximum likelihood with a normal prior of largest evidence, by Newton's method.

docs/mathematics.md section 6.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from calshift._core.addable import Tally
from calshift._core.linalg import inverse

LEAST_STRENGTH = 1e-2  # of the prior in every direction: separable classes keep finite slopes
MOST_STEPS = 50
LEAST_GAIN = 1e-10  # of the mean log-likelihood, below which the last Newton step is taken

Likelihood = Callable[[np.ndarray], Tally]  # parameters -> value, gradient, information


@dataclass(frozen=True)
class Prior:
    """A normal prior with precision ``least + sum_k strength_k form_k``.

    Attributes
    ----------
    centre : (d,) its mean
    least : (d, d) the part of the precision that is fixed
    forms : quadratic forms (d, d) whose strengths are those of largest evidence
    freedom : strengths -> (forms,) strength_k tr(form_k A^+) with A the sum of the forms, the
        effective number of directions of each; for forms that do not overlap, their ranks
    largest : upper bound of a strength
    steps : Newton steps in which the strengths may change
    stride : power of MacKay's ratio, above 1 because convergence is slow where all is noise
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

    def update_strength(self, strength: np.ndarray, at: np.ndarray, here: Tally) -> np.ndarray:
        """Strengths nearer to MacKay's fixed point, on the quadratic model around ``at``.

        strength_k = (freedom_k - strength_k tr(form_k Sigma)) / offset' form_k offset
        """
        for _ in range(5 if self.forms else 0):
            precision = self.precision(strength)
            covariance = inverse(here["information"] + precision)
            offset = at - self.centre
            offset = offset + covariance @ (here["gradient"] - precision @ offset)
            trace = np.array([np.sum(form * covariance) for form in self.forms])
            size = np.array([offset @ form @ offset for form in self.forms])
            determined = np.maximum(self.freedom(strength) - strength * trace, 0)
            ratio = determined / np.maximum(strength * size, 1e-12)
            before = strength
            strength = np.clip(strength * ratio**self.stride, LEAST_STRENGTH, self.largest)
            if np.abs(np.log(strength / before)).max() < 0.2:
                break
        return strength


@dataclass(frozen=True)
class Maximum:
    """The maximum of a penalised likelihood.

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


def maximize_penalised(likelihood: Likelihood, prior: Prior, size: float) -> Maximum:
    """The parameters of largest penalised likelihood of ``size`` rows, searched from the centre."""
    at, strength = prior.centre, np.ones(len(prior.forms))
    here = likelihood(at)
    for iteration in range(1, MOST_STEPS + 1):
        if iteration <= prior.steps:
            strength = prior.update_strength(strength, at, here)
        precision = prior.precision(strength)
        gradient = here["gradient"] - precision @ (at - prior.centre)
        step = inverse(here["information"] + precision) @ gradient
        converged = bool(gradient @ step <= 2 * LEAST_GAIN * size)
        if converged:
            at = at + step
            break
        at, here = _line_search(likelihood, prior, precision, at, step, here["value"])
    information = here["information"] + precision
    return Maximum(at, precision, information, strength, float(here["value"]), converged, iteration)


def _line_search(
    likelihood: Likelihood,
    prior: Prior,
    precision: np.ndarray,
    at: np.ndarray,
    step: np.ndarray,
    value: float,
) -> tuple[np.ndarray, Tally]:
    """The first point that does not lower the penalised likelihood, the step halved until then."""
    before = value - prior.penalty(at, precision)
    for _ in range(40):
        there = at + step
        found = likelihood(there)
        if found["value"] - prior.penalty(there, precision) >= before - 1e-12 * abs(before):
            break
        step = step / 2
    return there, found
