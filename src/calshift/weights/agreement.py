"""Whether class weights agree with what else is known of the target under label shift.

Agreement: the reference matches the mean predictions as they are (bbse-soft), which assumes nothing
but label shift. The squared distance of the two target priors is a sum of squared normal variables,
with the covariance of the difference from the influence of every row on both; its tail is that of a
chi-square with the same mean and variance.

Lack of fit: under label shift the target mean of any function f of the predictions is that of the
source's classes, sum_y q_y E_s[f | y]. These differences are standardised, for log predictions,
confidence, and the shares of rows with a confidence above some levels; the largest counts. It is
small under label shift, and more where the samples differ in another way too.

Expected distance: of the target prior from the true one. A share at its bound 0 has a small
standard error, and makes those of other classes small, though it may be there by chance.
docs/mathematics.md section 7.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from calshift._core.addable import Tally
from calshift._core.predictions import Predictions
from calshift.engines.base import Engine
from calshift.results.class_weights import HALF_MEAN_ERROR
from calshift.weights.influence import WeightFit, covariances, prior_influence
from calshift.weights.moment_matching import LinearInfluence, release_bounds

LEAST_PROBABILITY = 1e-4  # of which the logarithm is taken
NO_NOISE = 1e-12  # variance of a mean, below which its function is constant
CONFIDENCES = (0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99)  # shares of rows above them are compared
OF_EACH_CLASS = (0.5, 0.7, 0.8, 0.9, 0.95)  # and, of two classes, shares of predictions above them


class Comparison(NamedTuple):
    """p-value of equal target priors, and the lack of fit: 0 if there is nothing to compare."""

    p_value: float
    lack_of_fit: float


def compare_fits(
    fit: WeightFit, reference: WeightFit, source: Engine, target: Engine, sizes: tuple[float, float]
) -> Comparison:
    """Compare weights with a reference; ``sizes``: n, and the effective size of the target."""
    counts = source.summary.class_counts
    seen, n, m = counts > 0, *sizes
    of_label = source.total(_LabelMeans(seen)) / counts[seen][:, None]
    observed = target.total(_mean_features) / target.summary.size
    rows = _Differences(fit, reference, of_label, observed, counts)
    inside, others = source.total(rows.of_source), target.total(rows.of_target)
    share = n**2, target.summary.size * m
    covariance = inside["priors"] / share[0] + others["priors"] / share[1]
    variance = inside["means"] / share[0] + others["means"] / share[1]
    gap = observed - fit.prior @ of_label
    known = variance > NO_NOISE
    z = np.divide(np.abs(gap), np.sqrt(variance), out=np.zeros_like(gap), where=known)
    scores = 1 if source.summary.n_classes == 2 else source.summary.n_classes
    largest = max(_one_of_many(float(z[:scores].max()), scores), float(z[scores:].max()))
    return Comparison(_tail(fit.prior - reference.prior, covariance), largest)


def expected_distance(
    fit: WeightFit,
    reference: WeightFit,
    source: Engine,
    target: Engine,
    sizes: tuple[float, float],
    predicted: np.ndarray,
) -> float | None:
    """Expected total variation between target priors, where some are at 0; None if none is.

    As if no share were bounded; with the standard errors of ``fit`` if it matches linear moments
    without a penalty, else of ``reference``. No error is larger than that of the label of one row,
    of a class with the larger one of its share and its mean prediction (S,).
    """
    if not fit.held.any():
        return None
    at = fit.influence
    chosen = fit if isinstance(at, LinearInfluence) and at.direction is None else reference
    covariance = covariances(release_bounds(chosen, target), source, sizes)[0]
    q = np.maximum(np.maximum(fit.prior, predicted), 1 / sizes[1])
    most = np.sqrt(q * (1 - np.minimum(fit.prior, 1.0)))
    error = np.sqrt(np.maximum(np.diag(covariance), 0.0))
    return HALF_MEAN_ERROR * float(np.minimum(error, most).sum())


def features(batch: Predictions) -> np.ndarray:
    """(rows, F) log predictions around their mean over the classes, confidence and its levels."""
    p = batch.matrix
    scores = np.maximum(p, LEAST_PROBABILITY, dtype=float)
    np.log(scores, out=scores)
    scores -= scores.mean(axis=1, keepdims=True)
    confidence = p[np.arange(len(p)), batch.predicted]
    columns = [scores, confidence, np.greater.outer(confidence, CONFIDENCES)]
    if batch.n_classes == 2:  # the other score is the negative
        columns[0] = scores[:, 1:]
        columns += [np.greater.outer(column, OF_EACH_CLASS) for column in p.T]
    return np.column_stack(columns)


def _one_of_many(z: float, count: int) -> float:
    """The single |z| that is as unlikely as the largest of ``count`` (Sidak)."""
    from scipy.special import ndtr, ndtri  # late: importing calshift must be fast

    if count == 1 or z == 0:
        return z
    p = -np.expm1(count * np.log1p(-2 * ndtr(-z)))
    return float(-ndtri(p / 2)) if p > 0 else z


def _mean_features(batch: Predictions) -> np.ndarray:
    return np.asarray(batch.frequency @ features(batch))


@dataclass(frozen=True)
class _LabelMeans:
    """Summand: (S, F) features summed over the rows of each label."""

    seen: np.ndarray

    def __call__(self, batch: Predictions) -> np.ndarray:
        from scipy.sparse import csr_array  # late: importing calshift must be fast

        n, shape = len(batch), (len(batch), int(self.seen.sum()))
        hits = csr_array((batch.frequency, batch.codes(self.seen), np.arange(n + 1)), shape=shape)
        return np.asarray(hits.T @ features(batch))


@dataclass(frozen=True)
class _Differences:
    """Summands: squared influence of rows on differences of priors and of mean features.

    Means of a label, ``of_label``, are over few rows: their noise is that of n_y - 1 of them.
    """

    fit: WeightFit
    reference: WeightFit
    of_label: np.ndarray
    observed: np.ndarray
    counts: np.ndarray

    def of_source(self, batch: Predictions) -> Tally:
        phi, seen = prior_influence(self.fit, batch), self.counts > 0
        size, code = self.counts[seen], batch.codes(seen)
        weight = self.fit.prior * self.counts.sum() / np.sqrt(size * np.maximum(size - 1, 1))
        on_means = features(batch) - self.of_label[code]
        on_means *= -weight[code][:, None]
        other = prior_influence(self.reference, batch)
        return self._squares(phi, other, on_means, batch.squared_frequency)

    def of_target(self, batch: Predictions) -> Tally:
        phi = self.fit.base * self.fit.influence.target(batch)
        other = self.reference.base * self.reference.influence.target(batch)
        return self._squares(phi, other, features(batch) - self.observed, batch.frequency)

    def _squares(
        self, phi: np.ndarray, other: np.ndarray, on_means: np.ndarray, frequency: np.ndarray
    ) -> Tally:
        on_means -= phi @ self.of_label
        phi = phi - other
        return Tally(
            priors=(phi * frequency[:, None]).T @ phi,
            means=np.einsum("i,if,if->f", frequency, on_means, on_means),
        )


def _tail(gap: np.ndarray, covariance: np.ndarray) -> float:
    """P(|z|^2 >= |gap|^2) for a normal z with this covariance (Satterthwaite's approximation)."""
    from scipy.special import chdtrc  # late: importing calshift must be fast

    mean, square = float(np.trace(covariance)), float((covariance**2).sum())
    if not (mean > 0 and square > 0):
        return 1.0
    return float(chdtrc(mean**2 / square, float(gap @ gap) * mean / square))
