"""Accuracy and log loss on the target before and after, from labelled source rows.

Under label shift the mean of a score on the target is ``sum_y q_y E_s[score | y]``, q the class
prior of the target. docs/mathematics.md section 11.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from calshift._core.predictions import Predictions
from calshift.results import ClassWeights
from calshift.results.score_change import ScoreChange

LEAST_PROBABILITY = 1e-15  # of a label, in its log loss


class Scores(NamedTuple):
    """(n,) the scores of each row."""

    hit: np.ndarray
    log_loss: np.ndarray

    @staticmethod
    def of(rows: Predictions) -> Scores:
        """Whether the label has the largest probability, and minus the log of its own."""
        p = rows.matrix[np.arange(len(rows)), rows.labels]
        hit = (rows.predicted == rows.labels).astype(float)
        return Scores(hit, -np.log(np.maximum(p, LEAST_PROBABILITY, dtype=float)))


class ScoreChanges(NamedTuple):
    """The changes of both scores."""

    accuracy: ScoreChange
    log_loss: ScoreChange

    @property
    def worse(self) -> bool:
        """Whether either is clearly worse."""
        return self.accuracy.is_worse() or self.log_loss.is_worse()


@dataclass(frozen=True)
class ClassDistribution:
    """Class priors, with the covariance of their estimates, or None if they are known."""

    prior: np.ndarray
    covariance: np.ndarray | None = None

    @staticmethod
    def of(weights: ClassWeights) -> ClassDistribution:
        """Of the target, by estimated or given weights; classes unseen in the source have 0."""
        seen = ~np.isnan(weights.values)
        q, covariance = np.where(seen, weights.prior_target, 0.0), weights.covariance
        if covariance is not None:
            covariance = np.where(np.outer(seen, seen), covariance, 0.0)
        return ClassDistribution(q / q.sum(), covariance)


class Strata:
    """The labels of the source rows and their sample weights."""

    def __init__(self, rows: Predictions) -> None:
        self.labels, self.K = rows.labels, rows.n_classes
        self.frequency, self.squared = rows.frequency, rows.squared_frequency
        self.size = self._sums(self.frequency)

    @property
    def source(self) -> ClassDistribution:
        """The class distribution of the source, as it is."""
        return ClassDistribution(self.size / self.size.sum())

    @property
    def even(self) -> ClassDistribution:
        """All classes of the source alike."""
        seen = self.size > 0
        return ClassDistribution(seen / seen.sum())

    def changes(self, before: Scores, after: Scores, of: ClassDistribution) -> ScoreChanges:
        """The changes of both scores under a class distribution."""
        found = (
            self._change(one, other, of, larger)
            for one, other, larger in zip(before, after, (True, False), strict=True)
        )
        return ScoreChanges(*found)

    def _change(
        self, before: np.ndarray, after: np.ndarray, of: ClassDistribution, larger: bool
    ) -> ScoreChange:
        """With the variance of the means of the classes, and that of the class priors."""
        q, change = of.prior, after - before
        means = self._means(change)
        variance = float(q**2 @ self._variances(change, means))
        if of.covariance is not None:
            offset = means - q @ means
            variance += max(float(offset @ of.covariance @ offset), 0.0)
        ends = (float(q @ self._means(before)), float(q @ self._means(after)))
        return ScoreChange(*ends, float(np.sqrt(variance)), larger)

    def _variances(self, values: np.ndarray, means: np.ndarray) -> np.ndarray:
        """(K,) of the mean of each class, as if one more row had the variance of all classes."""
        square = (values - means[self.labels]) ** 2
        pooled = float(self.frequency @ square) / max(self.size.sum(), 1e-300)
        sums = self._sums(self.squared * square) + pooled
        return self._divide(sums, self.size**2)

    def _means(self, values: np.ndarray) -> np.ndarray:
        """(K,) by class; 0 for a class without rows."""
        sums = self._sums(self.frequency * values)
        return self._divide(sums, self.size)

    def _divide(self, sums: np.ndarray, by: np.ndarray) -> np.ndarray:
        found: np.ndarray = np.divide(sums, by, out=np.zeros(self.K), where=self.size > 0)
        return found

    def _sums(self, values: np.ndarray) -> np.ndarray:
        return np.bincount(self.labels, values, self.K)
