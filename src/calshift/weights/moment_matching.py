"""Class weights that match means of features: mean_i a_i w_{y_i} = mean_j a_j.

The reweighted source has the feature means of the target. docs/mathematics.md section 7.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from calshift._core.addable import Tally
from calshift._core.frozen import Frozen
from calshift._core.linalg import RELATIVE_ZERO, constrained_inverse, nonnegative_least_squares
from calshift._core.predictions import Predictions
from calshift.engines.base import Engine
from calshift.weights.influence import WeightFit, label_influence

TIE = 1e-7  # weight of the distance to the centre, which selects among equally good solutions

Features = Callable[[Predictions], np.ndarray]  # batch -> (rows, L)


@dataclass(frozen=True)
class Moments:
    """Means of L features, of the source by label and of the target.

    Attributes
    ----------
    confusion : C, (L, S) mean_i a_i 1_{y_i}'
    target : mu, (L,) mean_j a_j
    size : (L,) root mean square of each feature, over both samples alike
    prior : pi, (S,) class shares of the source
    """

    confusion: np.ndarray
    target: np.ndarray
    size: np.ndarray
    prior: np.ndarray


def linear_moments(
    features: Features, source: Engine, target: Engine, class_counts: np.ndarray
) -> Moments:
    """One pass over each sample."""
    seen = class_counts > 0
    prior = class_counts[seen] / class_counts.sum()

    def by_label(batch: Predictions) -> Tally:
        a = features(batch)
        square = batch.frequency @ a**2
        a = a * batch.frequency[:, None]
        code = batch.codes(seen)
        order = np.argsort(code, kind="stable")
        there, start = np.unique(code[order], return_index=True)
        sums = np.zeros((a.shape[1], len(prior)))
        sums[:, there] = np.add.reduceat(a[order], start, axis=0).T
        return Tally(confusion=sums, square=square)

    def overall(batch: Predictions) -> Tally:
        a, f = features(batch), batch.frequency
        return Tally(size=f.sum(), mean=f @ a, square=f @ a**2)

    n, (confusion, source_square) = class_counts.sum(), source.total(by_label).values()
    m, mean, square = target.total(overall).values()
    size = np.sqrt(source_square / n + square / m)
    return Moments(confusion / n, mean / m, size, prior)


def moment_sizes(moments: Moments) -> np.ndarray:
    """The unit of each moment; that of a moment that is always 0 is arbitrary."""
    largest = moments.size.max() or 1.0
    return np.asarray(np.where(moments.size > RELATIVE_ZERO * largest, moments.size, largest))


def scatter_matrix(features: Features, target: Engine, mean: np.ndarray) -> np.ndarray:
    """(L, L) covariance of the features of the target."""

    def kernel(batch: Predictions) -> Tally:
        a = (features(batch) - mean) * np.sqrt(batch.frequency)[:, None]
        return Tally(size=batch.size, square=a.T @ a)

    m, square = target.total(kernel).values()
    return np.asarray(square / m)


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
class LinearInfluence(Frozen):
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

    def source(self, batch: Predictions) -> np.ndarray:
        """(rows, S) phi_i."""
        a, code = self.features(batch), batch.codes(self.seen)
        w = self.weights[code][:, None]
        phi = (self.confusion @ self.weights - a * w) @ self.inverse.T - (w - 1) * self.scale
        if self.direction is not None and self.by_label is not None:
            mean = self.by_label @ (self.confusion.T @ self.direction)
            phi -= (a @ self.direction)[:, None] * self.by_label.T[code] - mean
        return np.asarray(phi)

    def target(self, batch: Predictions) -> np.ndarray:
        """(rows, S) phi_j."""
        return np.asarray((self.features(batch) - self.target_mean) @ self.inverse.T)

    def base(self, batch: Predictions) -> np.ndarray:
        """(rows, S) 1_{y_i} - pi."""
        return label_influence(batch, self.seen, self.prior)


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
    spread = inverse @ scatter_matrix(at.features, target, at.target_mean) @ inverse.T
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
    scatter = scatter_matrix(features, target, moments.target)
    spread = inverse @ scatter @ inverse.T
    return WeightFit(q / pi, pi, influence, spread, C, held, np.maximum(beyond, 0.0))
