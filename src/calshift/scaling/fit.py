"""Calibrators fitted to labelled rows by penalised maximum likelihood.

The prior of the parameters is normal, of largest evidence; Newton's method finds the maximum.
docs/mathematics.md section 6.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from calshift._core.addable import Tally
from calshift._core.linalg import inverse
from calshift.engines import Arrays, Blocks
from calshift.engines.arrays import remember
from calshift.engines.base import Engine
from calshift.engines.subsample import few_rows, record
from calshift.scaling.calibrator import KINDS, LEAST_PROBABILITY, Scaling


def fit_scaling(
    kind: str,
    engine: Engine,
    class_counts: np.ndarray,
    floor: float = LEAST_PROBABILITY,
    near: Scaling | None = None,
    relaxation: float = 1.0,
) -> Scaling:
    """The calibrator of largest penalised likelihood on the labelled rows of an engine.

    The search starts from a calibrator ``near`` it, if given, which has one slope and biases. The
    strength of the prior is multiplied by ``relaxation``: with less, there is less bias.

    A priori the slopes are normal around a common one and the biases around a multiple of the
    log class shares; the spread is the one of largest evidence, so that few rows a class leave
    little freedom.
    """
    asked = kind, engine, class_counts, floor, near, relaxation
    if near is not None:
        return _fit(*asked)
    key = kind, class_counts.tobytes(), floor, relaxation
    found: Scaling = remember(engine, key, partial(_fit, *asked))
    return found


def _fit(
    kind: str,
    engine: Engine,
    class_counts: np.ndarray,
    floor: float,
    near: Scaling | None,
    relaxation: float,
) -> Scaling:
    """`fit_scaling`, computed."""
    start = make_identity(kind, class_counts, floor)

    def likelihood(parameters: np.ndarray, whole: bool = True) -> Tally:
        there = replace(start, parameters=parameters)
        sums: Tally = engine.total(there.likelihood if whole else there.slope_of_likelihood)
        return sums

    at = strength = None
    if near is not None:
        at = near_parameters(kind, near)
    else:
        at, strength = _fit_few(kind, engine, class_counts, floor, relaxation)
    n = class_counts.sum()
    prior = replace(make_scaling_prior(kind, class_counts), relaxation=relaxation)
    found = maximize_penalised(likelihood, prior, n, at, strength)
    return replace(
        start,
        parameters=found.parameters,
        precision=found.precision,
        information=found.information,
        converged=found.converged,
        iterations=found.iterations,
        fit=found.value / n,
        strength=found.strength,
    )


def near_parameters(kind: str, near: Scaling) -> np.ndarray:
    """Parameters of this kind of what a calibrator with one slope and biases does."""
    slopes = 1 if KINDS[kind].one_slope else len(near.bias)
    return np.concatenate([np.repeat(near.slope, slopes), near.bias])


def expected_gain(kind: str, engine: Engine, class_counts: np.ndarray, near: Scaling) -> float:
    """The log-likelihood by which this kind exceeds a calibrator ``near``, to second order."""
    start = make_identity(kind, class_counts, near.floor)
    sums = engine.total(replace(start, parameters=near_parameters(kind, near)).likelihood)
    step = inverse(sums["information"]) @ sums["gradient"]
    return float(sums["gradient"] @ step) / 2


def _fit_few(
    kind: str, engine: Engine, class_counts: np.ndarray, floor: float, relaxation: float
) -> tuple[np.ndarray | None, np.ndarray | None]:
    """Parameters and strengths fitted to a part of many rows, where the search may start."""

    def fit() -> list[np.ndarray]:
        rows = few_rows(engine)
        if rows is None:
            return []
        counts = np.where(class_counts > 0, rows.class_counts, 0)
        if np.any((counts < LEAST_START) & (class_counts > 0)):
            return []
        found = fit_scaling(kind, Blocks(Arrays(rows)), counts, floor, relaxation=relaxation)
        return [one for one in (found.parameters, found.strength) if one is not None]

    parameters, strength, *_ = [*record(engine, f"{kind} of a part", fit), None, None]
    return parameters, strength


def make_identity(kind: str, class_counts: np.ndarray, floor: float = LEAST_PROBABILITY) -> Scaling:
    """The calibrator of the classes seen that changes nothing: slopes of 1, biases of 0."""
    seen = class_counts > 0
    S = int(seen.sum())
    slopes, biases = 1 if KINDS[kind].one_slope else S, S if KINDS[kind].biased else 0
    zero = np.zeros((slopes + biases, slopes + biases))
    return Scaling(kind, seen, np.repeat([1.0, 0.0], [slopes, biases]), zero, zero, floor=floor)


def make_scaling_prior(kind: str, class_counts: np.ndarray) -> Prior:
    """The prior of the parameters: slopes around a common one, biases around log class shares."""
    start = make_identity(kind, class_counts)
    a, d = start.slopes, len(start.parameters)
    least = LEAST_STRENGTH * np.eye(d)
    least[a:, a:] += class_counts.sum() / max(d - a, 1)  # a constant in all biases has no effect
    designs = [(slice(0, a), np.ones((a, 1)))]
    if d > a:
        designs.append((slice(a, d), log_share_design(class_counts)))
    found = [(where, complement_projector(design)) for where, design in designs]
    found = [(where, form) for where, form in found if np.trace(form) > 0.5]
    ranks = np.array([np.trace(form) for _, form in found])
    forms = tuple(embed_block(form, where, where, d) for where, form in found)
    return Prior(start.parameters, least, forms, lambda strength: ranks)


def log_share_design(class_counts: np.ndarray) -> np.ndarray:
    """(S, 2) columns on which biases depend a priori: a constant, and the log class shares."""
    counts = class_counts[class_counts > 0]
    return np.stack([np.ones(len(counts)), np.log(counts / counts.sum())], axis=1)


def complement_projector(columns: np.ndarray) -> np.ndarray:
    """The projection onto the orthogonal complement of the span of the columns."""
    basis, size, _ = np.linalg.svd(columns, full_matrices=False)
    basis = basis[:, size > 1e-6 * size[0]]
    return np.asarray(np.eye(len(columns)) - basis @ basis.T)


def embed_block(block: np.ndarray, rows: slice, columns: slice, d: int) -> np.ndarray:
    """A (d, d) matrix of zeros, with the block at these rows and columns."""
    whole = np.zeros((d, d))
    whole[rows, columns] = block
    return whole


LEAST_START = 10  # rows of each class in that part
LEAST_STRENGTH = 1e-2  # of the prior in every direction: separable classes keep finite slopes
MOST_STEPS = 50
MANY, NEAR = 64, 0.01  # parameters, and gain a row, from which on a step is refined
MOST_REFINED = 8
MOST_UPDATES = 8  # of the strengths in a Newton step
SMALLEST_CHANGE, SMALLEST_DIFFERENCE = 1e-3, 1e-9  # of a log strength
FASTEST = 10.0  # step of a log strength, in log ratios
LEAST_GAIN = 1e-10  # of the mean log-likelihood, below which the last Newton step is taken

# parameters -> value, gradient, and unless the second argument is False, information
Likelihood = Callable[..., Tally]


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
    relaxation : by which the strengths of largest evidence are multiplied for the maximum
    """

    centre: np.ndarray
    least: np.ndarray
    forms: tuple[np.ndarray, ...]
    freedom: Callable[[np.ndarray], np.ndarray]
    largest: float = 1e3
    steps: int = 10
    relaxation: float = 1.0

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
        """The strengths at MacKay's fixed point, on the quadratic model around ``at``.

        strength_k = (freedom_k - strength_k tr(form_k Sigma)) / offset' form_k offset

        A step in log strength is the log of the ratio of both sides, times a speed: 1 where the
        data determine the offsets, more where all is noise and the ratio is nearly the same.
        """
        x, speed = np.log(strength), np.ones(len(strength))
        before, gap_before = x, np.zeros(len(x))
        for _ in range(MOST_UPDATES if self.forms else 0):
            gap = self._log_ratio(np.exp(x), at, here)
            apart = np.abs(x - before) > SMALLEST_DIFFERENCE
            slope = np.divide(gap - gap_before, x - before, out=-1 / speed, where=apart)
            speed = 1 / np.clip(-slope, 1 / FASTEST, 1.0)
            before, gap_before = x, gap
            x = np.clip(x + speed * gap, np.log(LEAST_STRENGTH), np.log(self.largest))
            if np.abs(x - before).max() < SMALLEST_CHANGE:
                break
        return np.asarray(np.exp(x))

    def _log_ratio(self, strength: np.ndarray, at: np.ndarray, here: Tally) -> np.ndarray:
        """Logarithms of the right sides of the fixed point over the left ones."""
        precision = self.precision(strength)
        covariance = inverse(here["information"] + precision)
        offset = at - self.centre
        offset = offset + covariance @ (here["gradient"] - precision @ offset)
        trace = np.array([np.vdot(form, covariance) for form in self.forms])
        size = np.array([offset @ form @ offset for form in self.forms])
        determined = np.maximum(self.freedom(strength) - strength * trace, 1e-12)
        return np.asarray(np.log(determined / np.maximum(strength * size, 1e-12)))


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


def maximize_penalised(
    likelihood: Likelihood,
    prior: Prior,
    size: float,
    start: np.ndarray | None = None,
    strength: np.ndarray | None = None,
) -> Maximum:
    """The parameters of largest penalised likelihood of ``size`` rows.

    Searched from the start, or from the centre of the prior; and from these strengths, or from 1.
    """
    at = prior.centre if start is None else start
    strength = np.ones(len(prior.forms)) if strength is None else strength
    here = likelihood(at)
    for iteration in range(1, MOST_STEPS + 1):
        if iteration <= prior.steps:
            strength = prior.update_strength(strength, at, here)
        precision = prior.precision(prior.relaxation * strength)
        gradient = here["gradient"] - precision @ (at - prior.centre)
        covariance = inverse(here["information"] + precision)
        step = covariance @ gradient
        converged = bool(gradient @ step <= 2 * LEAST_GAIN * size)
        if converged:
            at = at + step
            break
        if len(at) > MANY and gradient @ step <= NEAR * size:
            step = _refine(likelihood, prior, precision, covariance, at, step, size)
        at, here = _line_search(likelihood, prior, precision, at, step, here["value"])
    information = here["information"] + precision
    return Maximum(at, precision, information, strength, float(here["value"]), converged, iteration)


def _refine(
    likelihood: Likelihood,
    prior: Prior,
    precision: np.ndarray,
    covariance: np.ndarray,
    at: np.ndarray,
    step: np.ndarray,
    size: float,
) -> np.ndarray:
    """A longer step to the maximum, by steps with the same information while they shrink."""
    last = np.inf
    for _ in range(MOST_REFINED):
        gradient = likelihood(at + step, False)["gradient"] - precision @ (at + step - prior.centre)
        more = covariance @ gradient
        gain = float(gradient @ more)
        if gain > last / 4:
            break
        step, last = step + more, gain
        if gain <= 2 * LEAST_GAIN * size:
            break
    return step


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
