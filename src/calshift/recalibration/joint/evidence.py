"""The strengths of a prior that have the largest evidence, by Newton's method.

docs/mathematics.md section 11.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from calshift._core.linalg import RELATIVE_ZERO
from calshift.recalibration.joint.factor import Factor
from calshift.recalibration.joint.prior import LARGEST_STRENGTH, Form, JointPrior
from calshift.scaling.fit import LEAST_STRENGTH

RANGE = np.log([LEAST_STRENGTH, LARGEST_STRENGTH])
MOST_EVALUATIONS = 30
LARGEST_STEP = 3.0  # of the log of a strength
LEAST_SLOPE = 1e-3  # of twice the log evidence, by the log of a strength
LEAST_BEND = 1e-6  # second derivative of a log evidence
PATIENCE = 3  # evaluations before steps of a strength may be longer than those of Newton
MOST_TRIES = 10  # to make a matrix definite
LEAST_CHANGE = 1e-6  # of the log of a strength
TAIL = 1.3  # bend relative to slope, below which the evidence has no maximum nearby


class Evidence(NamedTuple):
    """Twice the log evidence, up to a constant, with its derivatives by the logs of strengths."""

    value: float
    gradient: np.ndarray
    curvature: np.ndarray
    factor: Factor  # of the information with the prior's precision


class Strengths(NamedTuple):
    """Strengths of largest evidence.

    Attributes
    ----------
    logs : of them
    factor : of the information with the prior's precision
    settled : whether all are at the ends of their range, so that a slightly different information
        would not change them
    """

    logs: np.ndarray
    factor: Factor
    settled: bool


@dataclass(frozen=True, eq=False)
class QuadraticModel:
    """A log-likelihood near its maximum, and the prior.

    Attributes
    ----------
    information : (N, N) minus its second derivative
    pull : (N,) its gradient at the centre of the prior
    """

    prior: JointPrior
    information: np.ndarray
    pull: np.ndarray

    def factor(self, log_strength: np.ndarray) -> Factor:
        """Of the information with the prior's precision."""
        more = 0.0
        for _ in range(MOST_TRIES):
            system = self.prior.add_precision(self.information.copy(), np.exp(log_strength))
            np.einsum("ii->i", system)[:] += more
            found = Factor.of(system)
            if found is not None:
                return found
            more = max(100 * more, RELATIVE_ZERO * float(np.abs(np.diag(self.information)).max()))
        raise np.linalg.LinAlgError

    def fix(self, log_strength: np.ndarray, settled: bool = False) -> Strengths:
        """These strengths."""
        return Strengths(log_strength, self.factor(log_strength), settled)

    def evaluate(self, log_strength: np.ndarray) -> Evidence:
        """The evidence of these strengths."""
        volume, factor = self.prior.volume(log_strength), self.factor(log_strength)
        offset = factor.solve(self.pull)
        value = volume.value - factor.log_determinant + self.pull @ offset
        trace, cross = _traces(self.prior, factor.inverse(), offset)
        strength = np.exp(log_strength)
        linear = strength * trace
        curvature = volume.curvature - np.diag(linear) + np.outer(strength, strength) * cross
        return Evidence(float(value), volume.gradient - linear, curvature, factor)


def _traces(
    prior: JointPrior, covariance: np.ndarray, offset: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """tr(F S) + o' F o of each form, and tr(F S G S) + 2 o' F S G o of each pair; S, o given."""
    if prior.dense is not None:
        product, pulled = prior.dense @ covariance, prior.dense @ offset
        trace = np.einsum("jaa->j", product) + pulled @ offset
        cross = np.einsum("jab,kba->jk", product, product) + 2 * pulled @ covariance @ pulled.T
        return trace, cross
    forms = prior.forms
    reduced = [form.reduce(offset) for form in forms]
    trace, cross = np.empty(len(forms)), np.empty((len(forms),) * 2)
    for j, form in enumerate(forms):
        rows = _sum_blocks(covariance, form)
        for k, other in enumerate(forms[: j + 1]):
            part = _sum_blocks(rows.T, other)  # (K, K), of the other by this form
            one, two = other.free.T @ part, part @ form.free
            both = one @ form.free
            square = np.einsum("ij,ij->", part, part) - np.vdot(one, one) - np.vdot(two, two)
            found = square + np.vdot(both, both) + 2 * reduced[k] @ part @ reduced[j]
            cross[j, k] = cross[k, j] = found
        trace[j] = np.trace(part) - np.trace(both) + reduced[j] @ reduced[j]
    return trace, cross


def _sum_blocks(values: np.ndarray, form: Form) -> np.ndarray:
    """(K, ...) the sum of the blocks of a form."""
    first, *rest = (values[block] for block in form.blocks)
    return sum(rest, first)


def maximize_evidence(
    model: QuadraticModel, log_strength: np.ndarray, tolerance: float, most: int = MOST_EVALUATIONS
) -> Strengths:
    """The strengths of largest evidence within `RANGE`, to a tolerance of its log.

    With the most evaluations that are allowed it may be less near.
    """
    at, here, bold = log_strength, model.evaluate(log_strength), True
    for evaluation in range(1, most):
        free = _is_free(model.prior, here, at)
        step = _newton_step(here, free)
        if not step.any():
            steep = np.abs(here.gradient) > LEAST_SLOPE
            return Strengths(at, here.factor, bool(steep[_may_vary(model.prior)].all()))
        if here.gradient @ step <= 4 * tolerance:
            break
        if bold and evaluation >= PATIENCE:
            tail = free & (np.diag(here.curvature) > -TAIL * np.abs(here.gradient))
            step = np.where(tail, np.copysign(LARGEST_STEP, here.gradient), step)
        there, bold = _within_range(at + step), True
        found = model.evaluate(there)
        while found.value < here.value and np.abs(there - at).max() > LEAST_CHANGE:
            there, bold = at + (there - at) / 2, False
            found = model.evaluate(there)
        at, here = there, found
    else:
        return Strengths(at, here.factor, False)
    at = _within_range(at + step)
    return model.fix(at)


def _is_free(prior: JointPrior, here: Evidence, at: np.ndarray) -> np.ndarray:
    """Whether the evidence would be larger with another strength, within its range."""
    low, high = (at <= RANGE[0]) & (here.gradient < 0), (at >= RANGE[1]) & (here.gradient > 0)
    return np.asarray(_may_vary(prior) & ~(low | high))


def _may_vary(prior: JointPrior) -> np.ndarray:
    """Whether a strength matters: the form of two biases has no direction left."""
    return np.array([form.rank > 0 for form in prior.forms])


def _within_range(log_strength: np.ndarray) -> np.ndarray:
    return np.asarray(np.clip(log_strength, *RANGE))


def _newton_step(here: Evidence, free: np.ndarray) -> np.ndarray:
    """Upwards in every direction, also where the evidence is convex."""
    step = np.zeros(len(free))
    bend, basis = np.linalg.eigh(here.curvature[np.ix_(free, free)])
    along = basis.T @ here.gradient[free] / np.maximum(np.abs(bend), LEAST_BEND)
    step[free] = basis @ along
    step *= min(1.0, LARGEST_STEP / max(float(np.abs(step).max()), 1e-300))
    return step
