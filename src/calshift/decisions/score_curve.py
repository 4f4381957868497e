"""Shares of alarms and of hits on the target for every threshold of the positive class.

    alarms(t) = mean_j 1[s_j >= t]
    hits(t)   = mean_j v(x_j) 1[s_j >= t] + mean_i w_{y_i} (1[y_i = 1] - v(x_i)) 1[s_i >= t]

over target rows j and source rows i, with the shares v of metrics/efficient_shares.py.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from calshift._core.frozen import Frozen
from calshift._core.predictions import Predictions
from calshift.engines import Arrays
from calshift.metrics.efficient_shares import fit_shares

DRAWS = 40  # of the bootstrap of a threshold
ENDS = 1e-9  # of probabilities whose log-odds are averaged
LEAST_ALARMS = 30.0  # target rows, fewer of which do not determine a precision


@dataclass(frozen=True, eq=False)
class ScoreCurve(Frozen):
    """By threshold, in increasing order: each score of the target, and what is at or above it.

    Attributes
    ----------
    thresholds : (T,)
    alarms, hits : (T,) shares of all rows of the target
    prevalence : share of the positive class
    rows : rows of the target
    """

    thresholds: np.ndarray
    alarms: np.ndarray
    hits: np.ndarray
    prevalence: float
    rows: float

    @property
    def recall(self) -> np.ndarray:
        """(T,) hits among positive rows."""
        return self.hits / max(self.prevalence, 1e-300)

    @property
    def precision(self) -> np.ndarray:
        """(T,) hits among alarms."""
        return np.asarray(self.hits / np.maximum(self.alarms, 1e-300))

    @property
    def specificity(self) -> np.ndarray:
        """(T,) rows that raise no alarm among negative rows."""
        false_alarms = np.maximum(self.alarms - self.hits, 0.0)
        return np.asarray(1 - false_alarms / max(1 - self.prevalence, 1e-300))

    def keep(self, metric: str, at: float) -> tuple[float, bool]:
        """The threshold that keeps a metric at a value, and whether there is one.

        Recall: the largest with at least that recall. Precision and specificity: the smallest with
        at least that value. Alarm rate: the smallest with at most that many alarms. Where there is
        none, the threshold that comes nearest.
        """
        if metric == "alarm_rate":
            return self._first(self.alarms <= at, len(self.alarms) - 1)
        if metric == "recall":
            reached = np.flatnonzero(self.recall >= at)
            return (float(self.thresholds[reached[-1]]), True) if len(reached) else (0.0, False)
        if metric == "specificity":
            return self._first(self.specificity >= at, len(self.alarms) - 1)
        known = self.alarms * self.rows >= min(LEAST_ALARMS, self.rows)
        precision = np.where(known, self.precision, -1.0)
        return self._first(precision >= at, int(np.argmax(precision)))

    def _first(self, reached: np.ndarray, otherwise: int) -> tuple[float, bool]:
        if reached.any():
            return float(self.thresholds[int(np.argmax(reached))]), True
        return float(self.thresholds[otherwise]), False


@dataclass(frozen=True, eq=False)
class ScoredRows(Frozen):
    """Rows of both samples by threshold, from which curves are summed.

    Attributes
    ----------
    thresholds : (T,) different scores of the target, in increasing order
    target_place, source_place : the last threshold that a row reaches; -1 for none
    target_share : (m,) shares v of the positive class
    residual : (n,) w (1[y = 1] - v)
    positive : (n,) w 1[y = 1]
    frequency : of source and target rows
    """

    thresholds: np.ndarray
    target_place: np.ndarray
    source_place: np.ndarray
    target_share: np.ndarray
    residual: np.ndarray
    positive: np.ndarray
    frequency: tuple[np.ndarray, np.ndarray]

    @staticmethod
    def of(
        source: Predictions, target: Predictions, weights: np.ndarray, positive: int
    ) -> ScoredRows:
        """Of rows in memory, with class weights of mean 1 over the source."""
        shares = fit_shares(Arrays(source), weights, target.size)
        W, here = weights[source.labels], source.labels == positive
        scores = (one.matrix[:, positive].astype(float) for one in (source, target))
        first, second = scores
        thresholds, place = np.unique(second, return_inverse=True)
        return ScoredRows(
            thresholds, place, np.searchsorted(thresholds, first, "right") - 1,
            shares(target)[:, positive], W * (here - shares(source)[:, positive]), W * here,
            (source.frequency, target.frequency),
        )  # fmt: skip

    def curve(self, frequency: tuple[np.ndarray, np.ndarray] | None = None) -> ScoreCurve:
        """The curve of rows that count so many times, as they do by themselves if None."""
        before, after = self.frequency if frequency is None else frequency
        n, m, T = before.sum(), after.sum(), len(self.thresholds)
        reached = self.source_place >= 0
        alarms = np.bincount(self.target_place, after, T) / m
        hits = np.bincount(self.target_place, after * self.target_share, T) / m
        more = np.where(reached, before * self.residual, 0.0)
        hits += np.bincount(np.maximum(self.source_place, 0), more, T) / n
        whole = float(before @ self.positive / n)
        hits = np.clip(_upwards(hits), 0.0, whole)
        return ScoreCurve(self.thresholds, _upwards(alarms), hits, whole, float(m))

    def least_cost(self, alarm: float, miss: float) -> float:
        """The threshold of least cost: the mean, of log-odds, over bootstrap draws.

        The least of a noisy curve varies far more than its mean over draws.
        """
        rng, found = np.random.default_rng(0), []
        for _ in range(DRAWS):
            drawn = [frequency * rng.poisson(1.0, len(frequency)) for frequency in self.frequency]
            if min(one.sum() for one in drawn) <= 0:
                continue
            curve = self.curve((drawn[0], drawn[1]))
            cost = alarm * curve.alarms - (alarm + miss) * curve.hits
            least = int(np.argmin(cost))
            never = cost[least] >= 0  # no alarm at all costs less
            found.append(1.0 if never else float(curve.thresholds[least]))
        return mean_of_odds(found)


def mean_of_odds(probabilities: list[float]) -> float:
    """The probability whose log-odds are the mean of those of others."""
    p = np.clip(probabilities, ENDS, 1 - ENDS)
    mean = float(np.mean(np.log(p) - np.log1p(-p)))
    return float(1 / (1 + np.exp(-mean)))


def _upwards(values: np.ndarray) -> np.ndarray:
    """Sums from each place to the end."""
    return np.asarray(np.cumsum(values[::-1])[::-1])
