"""Class weights that match means of features: mean_i a_i w_{y_i} = mean_j a_j.

The reweighted source has the feature means of the target. docs/mathematics.md section 7.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from calshift._core.addable import Tally
from calshift._core.frozen import Frozen
from calshift._core.linalg import (
    RELATIVE_ZERO,
    constrained_inverse,
    nonnegative_least_squares,
    sum_groups,
)
from calshift._core.predictions import Predictions
from calshift.engines.base import Engine
from calshift.engines.plan import plan
from calshift.weights.influence import FeatureInfluence, WeightedFeatures, WeightFit, label_terms
from calshift.weights.row_products import (
    Features,
    LinearTerms,
    ProductPass,
    RowProducts,
    sum_products,
)

TIE = 1e-7  # weight of the distance to the centre, which selects among equally good solutions


@dataclass(frozen=True)
class Moments:
    """Means of L features, of the source by label and of the target.

    Attributes
    ----------
    confusion : C, (L, S) mean_i a_i 1_{y_i}'
    target : mu, (L,) mean_j a_j
    size : (L,) root mean square of each feature, over both samples alike
    prior : pi, (S,) class shares of the source
    products : of the features over the target, None if only the means were asked for
    """

    confusion: np.ndarray
    target: np.ndarray
    size: np.ndarray
    prior: np.ndarray
    products: RowProducts | None = None


def linear_moments(
    features: Features,
    source: Engine,
    target: Engine,
    class_counts: np.ndarray,
    *,
    products: bool = True,
    other: Features | None = None,
) -> Moments:
    """One pass over each sample; with the ``products`` of the features over the target, or without.

    ``other`` features of the target are multiplied with them too.
    """
    return MomentPass(features, class_counts, products=products, other=other).total(source, target)


class MomentPass:
    """`linear_moments`, whose passes can be planned along with others."""

    def __init__(
        self,
        features: Features,
        class_counts: np.ndarray,
        *,
        products: bool = True,
        other: Features | None = None,
    ) -> None:
        self.features, self.counts = features, class_counts
        self.by_label = partial(_sum_by_label, features, class_counts > 0)
        self.squares = partial(_sum_squares, features)
        pairs = [(features, features)] + ([] if other is None else [(features, other)])
        self.products = ProductPass(pairs) if products else None

    def plan(self, source: Engine | None, target: Engine) -> None:
        """Make the sums along with the next passes over files or Spark tables."""
        if source is not None:
            plan(source, self.by_label)
        if self.products is None:
            plan(target, self.squares)
        else:
            self.products.plan(target)

    def total(self, source: Engine, target: Engine) -> Moments:
        """The moments of both samples."""
        n, (confusion, source_square) = self.counts.sum(), source.total(self.by_label).values()
        if self.products is None:
            known, (m, mean, square) = None, target.total(self.squares).values()
        else:
            known = self.products.total(target)
            m, mean = float(known.rows[0]), known.sums[id(self.features)][0]
            square = np.diag(known.pair(self.features, self.features))
        size = np.sqrt(source_square / n + square / m)
        return Moments(confusion / n, mean / m, size, self.counts[self.counts > 0] / n, known)


def _sum_by_label(features: Features, seen: np.ndarray, batch: Predictions) -> Tally:
    """Features by label, and the sums of their squares."""
    a, f = features(batch), batch.sample_weight
    square = (np.ones(len(a)) if f is None else f) @ a**2
    sums = sum_groups(batch.codes(seen), a, int(seen.sum()), f).T
    return Tally(confusion=sums, square=square)


def _sum_squares(features: Features, batch: Predictions) -> Tally:
    """Sums over rows of 1, a and a^2."""
    a, f = features(batch), batch.frequency
    return Tally(size=f.sum(), mean=f @ a, square=f @ a**2)


def moment_sizes(moments: Moments) -> np.ndarray:
    """The unit of each moment; that of a moment that is always 0 is arbitrary."""
    largest = moments.size.max() or 1.0
    return np.asarray(np.where(moments.size > RELATIVE_ZERO * largest, moments.size, largest))


def scatter_matrix(features: Features, products: RowProducts) -> np.ndarray:
    """(L, L) covariance of the features."""
    m, mean = products.rows[0], products.sums[id(features)][0]
    return np.asarray(products.pair(features, features) / m - np.outer(mean / m, mean / m))


def simplex_least_squares(columns: np.ndarray, mean: np.ndarray, centre: np.ndarray) -> np.ndarray:
    """The q >= 0 with sum 1 that minimises |columns q - mean|, the one nearest to the centre.

    With D = columns - mean, q = v / sum v for the v >= 0 that minimises |D v|^2 + (sum v - 1)^2:
    along a ray v = s q the least value is |D q|^2 / (1 + |D q|^2), which grows with |D q|.
    """
    size = np.abs(columns).max() or 1.0
    columns, mean = columns / size, mean / size
    ones = np.ones((1, columns.shape[1]))
    v = nonnegative_least_squares(
        np.vstack([columns - mean[:, None], ones]), np.append(0 * mean, 1.0)
    )
    q = v / v.sum()
    if np.linalg.matrix_rank(np.vstack([columns, ones]), RELATIVE_ZERO) == len(q):
        return np.asarray(q)
    among = np.vstack([columns, ones, TIE * np.eye(len(q))])
    v = nonnegative_least_squares(among, np.concatenate([columns @ q, [1.0], TIE * centre]))
    return np.asarray(v / v.sum())


@dataclass(frozen=True, eq=False)
class LinearInfluence(FeatureInfluence):
    """The influence function of weights from linear moments, with bounds or a penalty.

        phi_i = -Q (a_i w_{y_i} - C w) - s (w_{y_i} - 1) - [ (a_i . r) J_{y_i} - its mean ]
        phi_j =  Q (a_j - mu)

    Attributes
    ----------
    features : batch -> a, (rows, L)
    seen : (K,) bool
    weights : w, (S,)
    prior : pi, (S,)
    confusion, target_mean : C, (L, S) and mu, (L,)
    inverse : Q, (S, L)
    scale : s, (S,) derivative of the weights by their sum, where it is constrained to 1
    direction, by_label : r (L,) and J (S, S), where a penalty leaves a residual
    """

    features: Features
    seen: np.ndarray
    weights: np.ndarray
    prior: np.ndarray
    confusion: np.ndarray
    target_mean: np.ndarray
    inverse: np.ndarray
    scale: np.ndarray
    direction: np.ndarray | None = None
    by_label: np.ndarray | None = None

    def _find_source_terms(self) -> LinearTerms:
        w, mean = self.weights, self.inverse @ (self.confusion @ self.weights)
        features: tuple[Features, ...] = (WeightedFeatures(self.features, w, self.seen),)
        matrices: tuple[np.ndarray, ...] = (-self.inverse,)
        constant = mean - (w - 1)[:, None] * self.scale
        if self.direction is not None and self.by_label is not None:
            features += (ResidualByLabel(self.features, self.direction, self.by_label, self.seen),)
            matrices += (-np.eye(len(w)),)
            constant = constant + self.by_label @ (self.confusion.T @ self.direction)
        return LinearTerms(features, matrices, constant)

    def _find_target_terms(self) -> LinearTerms:
        constant = -(self.inverse @ self.target_mean)[None]
        return LinearTerms((self.features,), (self.inverse,), constant)

    def _find_base_terms(self) -> LinearTerms:
        return label_terms(self.prior)


@dataclass(frozen=True, eq=False)
class ResidualByLabel(Frozen):
    """(a_i . r) J_{y_i}."""

    features: Features
    direction: np.ndarray
    by_label: np.ndarray
    seen: np.ndarray

    def __call__(self, batch: Predictions) -> np.ndarray:
        residual = self.features(batch) @ self.direction
        return np.asarray(residual[:, None] * self.by_label.T[batch.codes(self.seen)])


def solve_matched_prior(moments: Moments, scale: np.ndarray | float = 1.0) -> np.ndarray:
    """The target prior q = pi w, q >= 0 with sum 1, that matches the means best, by scale."""
    columns = (moments.confusion / moments.prior).T / scale
    return simplex_least_squares(columns.T, moments.target / scale, moments.prior)


def _solve_bordered(columns: np.ndarray, free: np.ndarray) -> np.ndarray:
    """[G s], (S, S + 1), for the classes that are not at their bound."""
    S = len(columns)
    bordered = np.ones((S + 1, S + 1))
    bordered[:S, :S] = columns @ columns.T
    bordered[S, S] = 0
    return constrained_inverse(bordered, np.append(free, True))[:S]


def release_bounds(fit: WeightFit, target: Engine) -> WeightFit:
    """The same weights, with the noise that they would have without the bound w >= 0.

    Only for weights from linear moments without a penalty.
    """
    at = fit.influence
    assert isinstance(at, LinearInfluence)
    columns = (at.confusion / at.prior).T
    solution = _solve_bordered(columns, np.ones(len(columns), dtype=bool)) / at.prior[:, None]
    inverse = solution[:, :-1] @ columns
    products = sum_products(target, [(at.features, at.features)], known=fit.target_products)
    spread = inverse @ scatter_matrix(at.features, products) @ inverse.T
    nowhere = np.zeros(len(columns))
    return replace(
        fit, influence=replace(at, inverse=inverse, scale=solution[:, -1]),
        target_covariance=spread, held=nowhere > 0, beyond=nowhere,
    )  # fmt: skip


def solve_moment_matching(
    features: Features,
    moments: Moments,
    target: Engine,
    seen: np.ndarray,
    scale: np.ndarray | float = 1.0,
) -> WeightFit:
    """The weights w >= 0 with sum_y pi_y w_y = 1 that match the means best, with their influence.

    On the classes that are not at the bound 0, with N = C'C,  [N pi; pi' 0]^-1 = [G s; s' .]  and
    Q = G C'; rows of C and mu divided by scale.
    """
    C, pi = moments.confusion, moments.prior
    q = solve_matched_prior(moments, scale)
    S, held = len(pi), q == 0
    columns = (C / pi).T / scale
    solution = _solve_bordered(columns, ~held)
    slope = columns @ (moments.target / scale - q @ columns)
    beyond = np.where(held, np.diag(solution) * (slope[~held].mean() - slope), 0.0) / pi
    solution = solution / pi[:, None]
    inverse = solution[:, :S] @ columns / scale
    influence = LinearInfluence(
        features, seen, q / pi, pi, C, moments.target, inverse, solution[:, S]
    )
    products = sum_products(target, [(features, features)], known=moments.products)
    spread = inverse @ scatter_matrix(features, products) @ inverse.T
    beyond = np.maximum(beyond, 0.0)
    return WeightFit(q / pi, pi, influence, spread, C, held, beyond, target_products=products)
