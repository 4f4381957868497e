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

from collections.abc import Callable
from itertools import combinations_with_replacement
from typing import NamedTuple

import numpy as np

from calshift.engines.base import Engine
from calshift.results.class_weights import HALF_MEAN_ERROR
from calshift.weights.influence import WeightFit, covariances, prior_terms
from calshift.weights.lack_of_fit import (
    NO_NOISE,
    Deviations,
    deviation_variance,
    feature_means,
    level_table,
)
from calshift.weights.moment_matching import LinearInfluence, release_bounds
from calshift.weights.row_products import Features, LinearTerms, ProductPass, RowProducts


class Comparison(NamedTuple):
    """p-value of equal target priors, and the lack of fit: 0 if there is nothing to compare."""

    p_value: float
    lack_of_fit: float


def plan_comparison(
    fit: WeightFit, reference: WeightFit, source: Engine, target: Engine, sizes: tuple[float, float]
) -> Callable[[], Comparison]:
    """Compare weights with a reference, later: sums are made along with the next passes.

    ``sizes``: n, and the effective size of the target.
    """
    before = _plan_source_sums(fit, reference, source)
    after = _plan_target_sums(fit, reference, target)
    every = *sizes, target.summary.size
    return lambda: _compare(fit, reference, before.total(), after.total(), every)


def _compare(
    fit: WeightFit,
    reference: WeightFit,
    of_source: tuple[Compared, Deviations],
    of_target: tuple[Compared, Deviations],
    sizes: tuple[float, float, float],
) -> Comparison:
    (before, rows), (after, others), (n, m, size) = of_source, of_target, sizes
    of_label, observed = (feature_means(one[0].more) for one in (before, after))
    inside = before[0].product(before[1], before[1]) if fit.square is None else fit.square
    outside = np.outer(fit.base, fit.base) * fit.target_covariance * size
    covariance = _difference(inside, *before) / n**2 + _difference(outside, *after) / (size * m)
    variance = deviation_variance(rows, *before[:2], inside, of_label, of_label) / n**2
    more = deviation_variance(others, *after[:2], outside, observed, of_label)
    variance += more / (size * m)
    gap, known = observed[0] - fit.prior @ of_label, variance > NO_NOISE
    z = np.abs(gap) / np.sqrt(np.where(known, variance, np.inf))
    scores = of_label.shape[1] - level_table(before[0].more["means"]["dense"]).shape[1] - 1
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


Compared = tuple[RowProducts, LinearTerms, LinearTerms]  # of both influence functions


class _ComparedSums:
    """Products over one sample of what influences both priors, and compared features."""

    def __init__(
        self,
        engine: Engine,
        terms: tuple[LinearTerms, LinearTerms],
        noise: np.ndarray,
        seen: np.ndarray | None,
        known: RowProducts | None,
    ) -> None:
        self.engine, self.terms = engine, terms
        self.rows = Deviations(noise, terms[0].features, seen)
        self.products = ProductPass(_pairs(*terms), seen, known, self.rows)
        self.products.plan(engine)

    def total(self) -> tuple[Compared, Deviations]:
        """The sums over the rows."""
        return (self.products.total(self.engine), *self.terms), self.rows


def _plan_source_sums(fit: WeightFit, reference: WeightFit, source: Engine) -> _ComparedSums:
    """Means of a label are over few rows: their noise is that of n_y - 1 of them."""
    counts = source.summary.class_counts
    seen, size = counts > 0, counts[counts > 0]
    noise = -fit.prior * counts.sum() / np.sqrt(size * np.maximum(size - 1, 1))
    terms = prior_terms(fit), prior_terms(reference)
    return _ComparedSums(source, terms, noise, seen, fit.products)


def _plan_target_sums(fit: WeightFit, reference: WeightFit, target: Engine) -> _ComparedSums:
    first, second = (one.influence.target_terms.times(one.base) for one in (fit, reference))
    known = fit.target_products and fit.target_products | reference.target_products
    return _ComparedSums(target, (first, second), np.ones(1), None, known)


def _pairs(first: LinearTerms, second: LinearTerms) -> list[tuple[Features, Features]]:
    return list(combinations_with_replacement((first + second).features, 2))


def _difference(
    square: np.ndarray, products: RowProducts, first: LinearTerms, second: LinearTerms
) -> np.ndarray:
    """(S, S) sum over rows of the squared influence on the difference of both priors.

    ``square`` is that of the first alone.
    """
    both = products.product(first, second)
    return np.asarray(square - both - both.T + products.product(second, second))


def _tail(gap: np.ndarray, covariance: np.ndarray) -> float:
    """P(|z|^2 >= |gap|^2) for a normal z with this covariance (Satterthwaite's approximation)."""
    from scipy.special import chdtrc  # late: importing calshift must be fast

    mean, square = float(np.trace(covariance)), float((covariance**2).sum())
    if not (mean > 0 and square > 0):
        return 1.0
    return float(chdtrc(mean**2 / square, float(gap @ gap) * mean / square))
