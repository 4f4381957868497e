"""The maximum of the penalised joint likelihood, by Newton's method.

docs/mathematics.md section 11.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from calshift.recalibration.joint.evidence import QuadraticModel, Strengths, maximize_evidence
from calshift.recalibration.joint.likelihood import JointLikelihood, Sums
from calshift.recalibration.joint.prior import JointPrior

MOST_ROUNDS = 50  # in which the information is determined again
EVIDENCE_ROUNDS = 30  # of these, in which the strengths are, too
MOST_STEPS = 15  # of a round
LEAST_GAIN = 1e-11  # of the mean log-likelihood, below which the last Newton step is taken
PROGRESS = 0.1  # factor by which a step with the same information must lower the next gain
MOST_HALVINGS = 40
FAR_EVALUATIONS = 5  # of the evidence, with an information that is far from that of the maximum


class Accuracy(NamedTuple):
    """How exactly strengths are determined.

    Attributes
    ----------
    evidence : of its logarithm, below which the last step of the strengths is taken
    same : gain of a distance, by row, over which the information is nearly the same
    """

    evidence: float
    same: float

    @staticmethod
    def of(parameters: int) -> Accuracy:
        """What so many parameters allow: the cost grows with the cube of their number."""
        return next(found for most, found in ACCURACIES.items() if parameters < most)


ACCURACIES = {100: Accuracy(1e-8, 1e-10), 1000: Accuracy(1e-5, 1e-7), np.inf: Accuracy(1e-3, 1e-3)}


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


class Damping:
    """Shorter changes of strengths where the information makes them go to and fro."""

    def __init__(self) -> None:
        self.factor, self.last = 1.0, np.zeros(1)

    def shorten(self, model: QuadraticModel, before: np.ndarray, found: Strengths) -> Strengths:
        """A part of the change; half of the last part if the direction is opposite."""
        change = found.logs - before
        opposite = float((change * self.last).sum()) < 0
        self.factor = self.factor / 2 if opposite else min(1.0, 1.5 * self.factor)
        self.last = change
        return found if self.factor == 1 else model.fix(before + self.factor * change)


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
        at, log_strength, damping = start.parameters, start.log_strength, Damping()
        accuracy = Accuracy.of(self.prior.size)
        for k in range(MOST_ROUNDS):
            here = self.likelihood(at, informed=True)
            model, far = self._quadratic(at, here), k == 0 and near is None
            if far:
                strengths = self._guess(model, log_strength)
            elif k < EVIDENCE_ROUNDS:
                found = maximize_evidence(model, log_strength, accuracy.evidence)
                strengths = damping.shorten(model, log_strength, found)
            else:
                strengths = model.fix(log_strength, settled=True)
            at, converged = Steps(self, strengths).take(at, here, accuracy.same)
            log_strength = strengths.logs
            if converged:
                break
        return Maximum(at, log_strength, converged)

    def _guess(self, model: QuadraticModel, log_strength: np.ndarray) -> Strengths:
        """Strengths by an information that is far from that of the maximum."""
        evidence = Accuracy.of(self.prior.size).evidence
        found = maximize_evidence(model, log_strength, evidence, FAR_EVALUATIONS)
        return found._replace(settled=False)

    def _quadratic(self, at: np.ndarray, here: Sums) -> QuadraticModel:
        """The log-likelihood near these parameters."""
        assert here.information is not None
        pull = here.gradient + here.information @ (at - self.prior.centre)
        return QuadraticModel(self.prior, here.information, pull)


@dataclass(frozen=True, eq=False)
class Steps:
    """Newton steps with the same second derivative and the same prior."""

    search: Search
    strengths: Strengths

    def take(self, at: np.ndarray, here: Sums, same: float) -> tuple[np.ndarray, bool]:
        """Where they lead, and whether it is the maximum with the strengths of largest evidence."""
        size, far, last = self.search.size, 0.0, np.inf  # gains of the first step, and of the last
        for _ in range(MOST_STEPS):
            gradient = here.gradient - self._pull_back(at)
            step = self.strengths.factor.solve(gradient)
            gain = float(gradient @ step) / (2 * size)
            near = self.strengths.settled or far <= same
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
