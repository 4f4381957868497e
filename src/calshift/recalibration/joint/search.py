"""The maximum of the penalised joint likelihood, by Newton's method.

docs/mathematics.md section 11.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from calshift.recalibration.joint.evidence import (
    MOST_EVALUATIONS,
    QuadraticModel,
    Strengths,
    maximize_evidence,
)
from calshift.recalibration.joint.likelihood import JointLikelihood, Sums
from calshift.recalibration.joint.prior import JointPrior

MOST_ROUNDS = 15  # in which information and strengths are determined again
MOST_STEPS = 15  # of a round
LEAST_GAIN = 1e-11  # of the mean log-likelihood, below which the last Newton step is taken
SAME_INFORMATION = 1e-7, 1e-3  # gain of a distance over which it is nearly the same
PROGRESS = 0.1  # factor by which a step with the same information must lower the next gain
MOST_HALVINGS = 40
EVIDENCE_LEFT = 1e-5, 1e-3  # of the log evidence, below which the last step is taken
MANY_PARAMETERS = 1000  # from which on an information is expensive: the second limits hold
FIRST_EVALUATIONS = 5  # of the evidence, with an information that is far from that of the maximum


class Maximum(NamedTuple):
    """Where a search came to, from which another one may start.

    Attributes
    ----------
    parameters : (N,)
    log_strength : of the forms of the prior
    converged : whether the search came to its end
    """

    parameters: np.ndarray
    log_strength: np.ndarray
    converged: bool = False


@dataclass(frozen=True, eq=False)
class Search:
    """The search for a maximum by Newton's method, with prior strengths of largest evidence."""

    likelihood: JointLikelihood
    prior: JointPrior
    size: float

    def maximize(self, near: Maximum | None = None) -> Maximum:
        """The maximum, searched from the centre of the prior or from that of similar rows.

        A round determines information and strengths, and takes steps with them as long as they
        bring it nearer. It is the last one if all of its steps together were short.
        """
        start = near or Maximum(self.prior.centre, np.zeros(len(self.prior.forms)))
        at, log_strength = start.parameters, start.log_strength
        for k in range(MOST_ROUNDS):
            here = self.likelihood(at, informed=True)
            assert here.information is not None
            pull = here.gradient + here.information @ (at - self.prior.centre)
            model = QuadraticModel(self.prior, here.information, pull)
            far = k == 0 and near is None
            most = FIRST_EVALUATIONS if far else MOST_EVALUATIONS
            strengths = maximize_evidence(model, log_strength, self._pick(EVIDENCE_LEFT), most)
            steps = Steps(self, strengths, strengths.settled and not far)
            at, converged = steps.take(at, here, self._pick(SAME_INFORMATION))
            log_strength = strengths.logs
            if converged:
                break
        return Maximum(at, log_strength, converged)

    def _pick(self, limits: tuple[float, float]) -> float:
        """The limit for this number of parameters."""
        return limits[self.prior.size >= MANY_PARAMETERS]


@dataclass(frozen=True, eq=False)
class Steps:
    """Newton steps with the same second derivative and the same prior."""

    search: Search
    strengths: Strengths
    settled: bool  # whether the strengths would be the same with the information at the maximum

    def take(self, at: np.ndarray, here: Sums, same: float) -> tuple[np.ndarray, bool]:
        """Where they lead, and whether it is the maximum with the strengths of largest evidence."""
        size, far, last = self.search.size, 0.0, np.inf  # gains of the first step, and of the last
        for _ in range(MOST_STEPS):
            gradient = here.gradient - self._pull_back(at)
            step = self.strengths.factor.solve(gradient)
            gain = float(gradient @ step) / (2 * size)
            near = self.settled or far <= same
            if gain <= LEAST_GAIN:
                return at + step, near
            if gain > PROGRESS * last or (gain <= same and not near):
                break
            at, here = self._search_line(at, step, here)
            far, last = far or gain, gain
        return at, False

    def _pull_back(self, at: np.ndarray) -> np.ndarray:
        """(N,) the gradient of the penalty."""
        prior = self.search.prior
        return prior.multiply(np.exp(self.strengths.logs), at - prior.centre)

    def _search_line(self, at: np.ndarray, step: np.ndarray, here: Sums) -> tuple[np.ndarray, Sums]:
        """The first point that does not lower the penalised likelihood, the step halved if so."""
        before = self._penalised(at, here)
        for _ in range(MOST_HALVINGS):
            found = self.search.likelihood(at + step, informed=False)
            if self._penalised(at + step, found) >= before - 1e-12 * abs(before):
                break
            step = step / 2
        return at + step, found

    def _penalised(self, at: np.ndarray, here: Sums) -> float:
        return here.value - float((at - self.search.prior.centre) @ self._pull_back(at)) / 2
