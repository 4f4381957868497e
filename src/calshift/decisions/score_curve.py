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

LEAST_ALARMS = 10.0  # target rows, fewer of which do not determine a precision


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

    def keep(self, metric: str, at: float) -> tuple[float, bool]:
        """The threshold that keeps a metric at a value, and whether there is one.

        Recall: the largest with at least that recall. Precision: the smallest with at least that
        precision. Alarm rate: the smallest with at most that many alarms. Where there is none, the
        threshold that comes nearest.
        """
        if metric == "alarm_rate":
            return self._first(self.alarms <= at, len(self.alarms) - 1)
        if metric == "recall":
            reached = np.flatnonzero(self.recall >= at)
            return (float(self.thresholds[reached[-1]]), True) if len(reached) else (0.0, False)
        known = self.alarms * self.rows >= min(LEAST_ALARMS, self.rows)
        precision = np.where(known, self.precision, -1.0)
        return self._first(precision >= at, int(np.argmax(precision)))

    def _first(self, reached: np.ndarray, otherwise: int) -> tuple[float, bool]:
        if reached.any():
            return float(self.thresholds[int(np.argmax(reached))]), True
        return float(self.thresholds[otherwise]), False


def score_curve(
    source: Predictions, target: Predictions, weights: np.ndarray, positive: int
) -> ScoreCurve:
    """The curve of rows in memory, with class weights of mean 1 over the source."""
    shares = fit_shares(Arrays(source), weights, target.size)
    W = weights[source.labels] * source.frequency / source.size
    inside = (source.labels == positive) - shares(source)[:, positive]
    score = target.matrix[:, positive].astype(float)
    thresholds, place = np.unique(score, return_inverse=True)
    f, T = target.frequency / target.size, len(thresholds)
    alarms = np.bincount(place, f, T)
    hits = np.bincount(place, f * shares(target)[:, positive], T)
    own = np.searchsorted(thresholds, source.matrix[:, positive].astype(float), "right") - 1
    hits += np.bincount(np.maximum(own, 0), np.where(own >= 0, W * inside, 0.0), T)
    whole = float((W * (source.labels == positive)).sum())
    return ScoreCurve(
        thresholds, _upwards(alarms), np.clip(_upwards(hits), 0.0, whole), whole, target.size
    )


def _upwards(values: np.ndarray) -> np.ndarray:
    """Sums from each place to the end."""
    return np.asarray(np.cumsum(values[::-1])[::-1])
