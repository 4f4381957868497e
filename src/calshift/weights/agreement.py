"""Whether class weights agree with what else is known of the target under label shift.

Agreement: the reference matches the mean predictions as they are (bbse-soft), which assumes nothing
but label shift. The squared distance of the two target priors is a sum of squared normal variables,
with the covariance of the difference from the influence of every row on both; its tail is that of a
chi-square with the same mean and variance.

Lack of fit: the largest difference between target means and those that the weights imply
(`lack_of_fit`).

Expected distance: of the target prior from the true one. A share at its bound 0 has a small
standard error, and makes those of other classes small, though it may be there by chance.
docs/mathematics.md section 7.
"""

from __future__ import annotations

from itertools import combinations_with_replacement
from typing import NamedTuple

import numpy as np

from calshift.engines.base import Engine
from calshift.results.class_weights import HALF_MEAN_ERROR
from calshift.weights.influence import WeightFit, covariances, prior_terms
from calshift.weights.lack_of_fit import (
    NO_NOISE,
    Deviations,
    FeatureMeans,
    deviation_variance,
    feature_means,
)
from calshift.weights.moment_matching import LinearInfluence, release_bounds
from calshift.weights.row_products import LinearTerms, RowProducts, sum_products


class Comparison(NamedTuple):
    """p-value of equal target priors, and the lack of fit: 0 if there is nothing to compare."""

    p_value: float
    lack_of_fit: float


def compare_fits(
    fit: WeightFit, reference: WeightFit, source: Engine, target: Engine, sizes: tuple[float, float]
) -> Comparison:
    """Compare weights with a reference; ``sizes``: n, and the effective size of the target."""
    K, (n, m) = source.summary.n_classes, sizes
    seen, two = source.summary.class_counts > 0, K == 2
    of_label = feature_means(source.total(FeatureMeans(seen)), two)
    observed = feature_means(target.total(FeatureMeans()), two)
    inside = _vary_source(fit, reference, source, of_label)
    others = _vary_target(fit, reference, target, of_label, observed)
    share = n**2, target.summary.size * m
    covariance, variance = (a / share[0] + b / share[1] for a, b in zip(inside, others, strict=True))
    gap, known = observed[0] - fit.prior @ of_label, variance > NO_NOISE
    z = np.abs(gap) / np.sqrt(np.where(known, variance, np.inf))
    scores = 1 if two else K
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


def _one_of_many(z: float, count: int) -> float:
    """The single |z| that is as unlikely as the largest of ``count`` (Sidak)."""
    from scipy.special import ndtr, ndtri  # late: importing calshift must be fast

    if count == 1 or z == 0:
        return z
    p = -np.expm1(count * np.log1p(-2 * ndtr(-z)))
    return float(-ndtri(p / 2)) if p > 0 else z


def _vary_source(
    fit: WeightFit, reference: WeightFit, source: Engine, of_label: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Squared influence of source rows on the difference of the priors, and on those of means.

    Means of a label are over few rows: their noise is that of n_y - 1 of them.
    """
    counts = source.summary.class_counts
    seen, size = counts > 0, counts[counts > 0]
    noise = -fit.prior * counts.sum() / np.sqrt(size * np.maximum(size - 1, 1))
    terms = prior_terms(fit), prior_terms(reference)
    rows = Deviations(noise, terms[0].features, seen)
    return _vary(rows, terms, source, of_label, of_label, fit.products)


def _vary_target(
    fit: WeightFit,
    reference: WeightFit,
    target: Engine,
    of_label: np.ndarray,
    observed: np.ndarray,
) -> tuple[np.ndarray, np.ndarray]:
    """The same of the target's rows."""
    terms = tuple(one.influence.target_terms.times(one.base) for one in (fit, reference))
    rows = Deviations(np.ones(1), terms[0].features)
    return _vary(rows, (terms[0], terms[1]), target, observed, of_label)


def _vary(
    rows: Deviations,
    terms: tuple[LinearTerms, LinearTerms],
    engine: Engine,
    mean: np.ndarray,
    of_label: np.ndarray,
    known: RowProducts | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """Sums over rows of the squared influence on the difference of two priors, and on means."""
    both = terms[0] + terms[1]
    pairs = combinations_with_replacement(both.features, 2)
    products = sum_products(engine, pairs, rows.seen, known)
    variance = deviation_variance(engine.total(rows), rows, terms[0], products, mean, of_label)
    difference = terms[0] + terms[1].times(-1.0)
    return products.product(difference, difference), variance


def _tail(gap: np.ndarray, covariance: np.ndarray) -> float:
    """P(|z|^2 >= |gap|^2) for a normal z with this covariance (Satterthwaite's approximation)."""
    from scipy.special import chdtrc  # late: importing calshift must be fast

    mean, square = float(np.trace(covariance)), float((covariance**2).sum())
    if not (mean > 0 and square > 0):
        return 1.0
    return float(chdtrc(mean**2 / square, float(gap @ gap) * mean / square))
