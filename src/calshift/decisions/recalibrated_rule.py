"""The decision of least expected cost on recalibrated probabilities."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from calshift._core.frozen import Frozen
from calshift.decisions.score_curve import ScoredRows, mean_of_odds
from calshift.metrics.decision_rule import DecisionRule
from calshift.recalibration.base import Recalibrator

STEPS = 80  # of a bisection


@dataclass(frozen=True, eq=False)
class RecalibratedRule(Frozen):
    """Probabilities (n, K) -> the classes of least expected cost after recalibration."""

    recalibrator: Recalibrator
    cost: np.ndarray

    def __call__(self, p: np.ndarray) -> np.ndarray:
        """(n,) classes."""
        recalibrated = np.asarray(self.recalibrator.transform(np.asarray(p)))
        return np.asarray((recalibrated @ self.cost.T).argmin(axis=1))


def make_threshold(
    recalibrator: Recalibrator, cost: np.ndarray, positive: int, rows: ScoredRows, least: float
) -> DecisionRule:
    """A threshold of the scores as they are.

    Two estimates are averaged, as log-odds: the score whose recalibrated probability is the
    break-even of the costs, precise but biased where the recalibrator does not fit, and the
    threshold of least estimated cost, which assumes nothing but varies much
    (benchmarks/decision_thresholds.py). A break-even below ``least`` is not known from the rows:
    all are then predicted positive.
    """
    negative = 1 - positive
    alarm = cost[positive, negative] - cost[negative, negative]
    miss = cost[negative, positive] - cost[positive, positive]
    if break_even(cost, positive) < least:
        return DecisionRule("threshold", 0.0, positive)
    score = original_score(recalibrator, break_even(cost, positive), positive)
    if min(alarm, miss) > 0 and score < 1:
        score = mean_of_odds([score, rows.least_cost(float(alarm), float(miss))])
    return DecisionRule("threshold", score, positive)


def break_even(cost: np.ndarray, positive: int) -> float:
    """The probability of the positive class at which both decisions cost the same.

    0 if it is always better to predict it; just above 1 if never.
    """
    negative = 1 - positive
    alarm = cost[positive, negative] - cost[negative, negative]  # of a false alarm
    miss = cost[negative, positive] - cost[positive, positive]
    if miss <= 0:
        return float(np.nextafter(1.0, 2.0)) if alarm > 0 else 0.0
    return float(alarm / (alarm + miss)) if alarm > 0 else 0.0


def original_score(recalibrator: Recalibrator, probability: float, positive: int) -> float:
    """The least score as predicted whose recalibrated probability reaches this one.

    Recalibrators of two classes increase with the score. 1 if no score reaches it: scores of
    exactly 1 are then still predicted positive.
    """
    low, high = 0.0, 1.0
    if recalibrated_score(recalibrator, 0.0, positive) >= probability:
        return 0.0
    for _ in range(STEPS):
        middle = (low + high) / 2
        above = recalibrated_score(recalibrator, middle, positive) >= probability
        low, high = (low, middle) if above else (middle, high)
    return high


def recalibrated_score(recalibrator: Recalibrator, score: float, positive: int) -> float:
    """The recalibrated probability of the positive class at a score."""
    row = np.array([[1 - score, score]])
    found = recalibrator.transform(row if positive == 1 else row[:, ::-1].copy())
    return float(found[0, positive])
