"""Influence functions of the class weights, and the covariances that follow from them.

An influence function phi has  w_hat - w  ~  mean_i phi_i (source) + mean_j phi_j (target); products
of it, summed over rows, are covariances. It is linear in features of the rows (`row_products`). A
method of estimation returns a `WeightFit`; estimators of the error use `ScaledWeights`.
docs/mathematics.md section 7.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations_with_replacement
from typing import Any, Protocol

import numpy as np

from calshift._core.frozen import Frozen
from calshift._core.predictions import Predictions
from calshift.engines.base import Engine
from calshift.weights.prior_draws import draw_prior_ratios
from calshift.weights.row_products import Features, LinearTerms, RowProducts, sum_products


class Influence(Protocol):
    """phi of the weights of the S classes seen, and of the source prior that they multiply."""

    @property
    def seen(self) -> Any:
        """(K,) bool, the S classes of the source."""

    @property
    def source_terms(self) -> LinearTerms:
        """phi_i of the source."""

    @property
    def target_terms(self) -> LinearTerms:
        """phi_j of the target."""

    @property
    def base_terms(self) -> LinearTerms:
        """The influence of each source row on the source prior."""

    def source(self, batch: Predictions) -> np.ndarray:
        """(rows, S) phi_i."""

    def target(self, batch: Predictions) -> np.ndarray:
        """(rows, S) phi_j."""

    def base(self, batch: Predictions) -> np.ndarray:
        """(rows, S) influence of each source row on the source prior."""


class FeatureInfluence(Frozen, ABC):
    """Base of influence functions: rows of phi from its terms."""

    seen: Any  # (K,) bool, the S classes of the source

    @cached_property
    def source_terms(self) -> LinearTerms:
        """phi_i of the source."""
        return self._find_source_terms()

    @cached_property
    def target_terms(self) -> LinearTerms:
        """phi_j of the target."""
        return self._find_target_terms()

    @cached_property
    def base_terms(self) -> LinearTerms:
        """The influence of each source row on the source prior."""
        return self._find_base_terms()

    @abstractmethod
    def _find_source_terms(self) -> LinearTerms: ...

    @abstractmethod
    def _find_target_terms(self) -> LinearTerms: ...

    @abstractmethod
    def _find_base_terms(self) -> LinearTerms: ...

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name not in CACHED}

    def source(self, batch: Predictions) -> np.ndarray:
        """(rows, S) phi_i."""
        return self.source_terms.evaluate(batch, batch.codes(self.seen))

    def target(self, batch: Predictions) -> np.ndarray:
        """(rows, S) phi_j."""
        return self.target_terms.evaluate(batch)

    def base(self, batch: Predictions) -> np.ndarray:
        """(rows, S) influence of each source row on the source prior."""
        return self.base_terms.evaluate(batch, batch.codes(self.seen))


class WeightInfluence(Influence, Protocol):
    """The influence function of weights that may depend on observations outside both samples."""

    @property
    def outside(self) -> np.ndarray:
        """(observations, S) influence of those observations; (0, S) for most methods."""

    @property
    def target_square(self) -> np.ndarray:
        """(S, S) mean of phi_j phi_j' over the target, without a pass over it."""

    @property
    def prior_ratios(self) -> np.ndarray | None:
        """(draws, S) target priors from their sampling distribution, relative to the estimate.

        None where they are known so well that a linear approximation is sufficient.
        """


@dataclass(frozen=True)
class WeightFit:
    """The solution of a method, for the S classes of the source.

    Attributes
    ----------
    weights : (S,)
    base : (S,) the source prior of the method; base * weights is the target prior
    influence : of each row on the weights
    target_covariance : (S, S) of phi_j
    matrix : the matrix that the method inverts, C of linear moments
    held : (S,) bool, classes at the bound w = 0
    beyond : (S,) distance below the bound at which the weight of such a class would be optimal
    converged, iterations : of the search
    notes : warnings, most serious first
    source : the source aggregated to fewer weighted rows, if the method has made them
    outside : (observations, S) influence on the weights of what is not in either sample
    description : of the weights, where the name of the method does not suffice
    consistent : the fit whose agreement with other methods is tested, if it is not this one
    discrimination : information of the calibrated predictions on the labels, relative to their
        entropy; None if the method does not calibrate
    products, target_products : of the features of the influence function over the source and over
        the target, as far as they are known
    square : (S, S) sum of psi psi' over the source, psi the influence on base * weights, if known
    """

    weights: np.ndarray
    base: np.ndarray
    influence: Influence
    target_covariance: np.ndarray
    matrix: np.ndarray
    held: np.ndarray
    beyond: np.ndarray
    converged: bool = True
    iterations: int = 1
    notes: tuple[str, ...] = ()
    source: Engine | None = None
    outside: np.ndarray | None = None
    description: str | None = None
    consistent: WeightFit | None = None
    discrimination: float | None = None
    products: RowProducts | None = None
    target_products: RowProducts | None = None
    square: np.ndarray | None = None

    def __getstate__(self) -> dict[str, Any]:
        """Without the engine: summands that refer to a fit are sent to executors."""
        left = ("source", "consistent", "products", "target_products", "square")
        return self.__dict__ | dict.fromkeys(left)

    @property
    def prior(self) -> np.ndarray:
        """(S,) the target prior."""
        return np.asarray(self.base * self.weights / float(self.base @ self.weights))


Method = Callable[[Engine, Engine, np.ndarray], WeightFit]  # source, target, class counts


CACHED = ("source_terms", "target_terms", "base_terms", "prior_ratios")


def label_terms(prior: np.ndarray) -> LinearTerms:
    """1_{y_i} - pi: the influence of each row on the class shares."""
    return LinearTerms((), (), np.eye(len(prior)) - prior)


def prior_terms(fit: WeightFit) -> LinearTerms:
    """The influence of source rows on base * weights."""
    return fit.influence.source_terms.times(fit.base) + fit.influence.base_terms.times(fit.weights)


@dataclass(frozen=True, eq=False)
class WeightedFeatures(Frozen):
    """Features of a source row times a factor of its label."""

    features: Features
    factor: np.ndarray  # (S,)
    seen: np.ndarray  # (K,)

    def __call__(self, batch: Predictions) -> np.ndarray:
        return np.asarray(self.features(batch) * self.factor[batch.codes(self.seen)][:, None])


@dataclass(frozen=True, eq=False)
class ShrunkInfluence(FeatureInfluence):
    """An influence function times a factor, below 1 where first order overstates the error."""

    inner: Influence
    seen: np.ndarray  # (K,)
    factor: np.ndarray  # (S,)
    covariance: np.ndarray  # (S, S) of phi_j before the factor
    prior: np.ndarray  # (S,) of the target
    prior_covariance: np.ndarray  # (S, S)
    others: np.ndarray  # (observations, S) influence of what is not in either sample

    @cached_property
    def prior_ratios(self) -> np.ndarray | None:
        """(draws, S) of the target prior, relative to the estimate."""
        return draw_prior_ratios(self.prior, self.prior_covariance)

    def _find_source_terms(self) -> LinearTerms:
        return self.inner.source_terms.times(self.factor)

    def _find_target_terms(self) -> LinearTerms:
        return self.inner.target_terms.times(self.factor)

    def _find_base_terms(self) -> LinearTerms:
        return self.inner.base_terms

    @property
    def target_square(self) -> np.ndarray:
        """(S, S) mean of phi_j phi_j'."""
        return np.asarray(self.covariance * np.outer(self.factor, self.factor))

    @property
    def outside(self) -> np.ndarray:
        """(observations, S) of what is not in either sample."""
        return np.asarray(self.others * self.factor)


@dataclass(frozen=True, eq=False)
class LabelCountInfluence(FeatureInfluence):
    """Of weights w = q / pi from class counts; the target's labels are a third sample.

    phi_i = -w (1_{y_i} - pi) / pi on the source; `outside` is the influence of the target's labels.
    """

    weights: np.ndarray  # (K,), NaN for classes that are not in the source
    prior: np.ndarray  # (K,) pi
    shares: np.ndarray  # (K,) q
    labels: float  # number of target labels

    @property
    def prior_ratios(self) -> np.ndarray | None:
        """None: labels determine the shares well."""
        return None

    @property
    def seen(self) -> np.ndarray:
        """(K,) bool, the S classes of the source."""
        return np.asarray(self.prior > 0)

    def _find_source_terms(self) -> LinearTerms:
        seen = self.seen
        return self.base_terms.times(-self.weights[seen] / self.prior[seen])

    def _find_target_terms(self) -> LinearTerms:
        """Zero: the weights do not depend on predictions."""
        return LinearTerms((), (), np.zeros((1, int(self.seen.sum()))))

    def _find_base_terms(self) -> LinearTerms:
        return label_terms(self.prior[self.seen])

    @property
    def target_square(self) -> np.ndarray:
        """(S, S) zero."""
        return np.zeros((int(self.seen.sum()),) * 2)

    @property
    def outside(self) -> np.ndarray:
        """(T, S) by class of the target; squares sum to the variance of w due to its labels."""
        seen, there = self.seen, np.flatnonzero(self.shares)
        phi = (there[:, None] == np.flatnonzero(seen)) - self.shares[seen]
        phi *= np.sqrt(self.shares[there] / self.labels)[:, None]
        return np.asarray(phi / self.prior[seen])

    @property
    def by_label(self) -> np.ndarray:
        """(S + 1, S) influence of a target row on w by its label; the last is not in the source."""
        seen = self.seen
        label = np.vstack([np.eye(int(seen.sum())), np.zeros(int(seen.sum()))])
        return np.asarray((label - self.shares[seen]) / self.prior[seen])

    @property
    def prior_error(self) -> np.ndarray:
        """(K,) standard errors of the shares."""
        return np.asarray(np.sqrt(self.shares * (1 - self.shares) / self.labels))


def source_products(
    terms: LinearTerms, source: Engine, known: RowProducts | None = None
) -> RowProducts:
    """Products over the source of the features of these terms, in one pass if not all are known."""
    pairs = list(combinations_with_replacement(terms.features, 2))
    return sum_products(source, pairs, source.summary.class_counts > 0, known)


def covariances(
    solution: WeightFit, source: Engine, sizes: tuple[float, float]
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Covariance of q = base * weights / sum, standard errors of the weights, and their factors.

    sum_i psi_i psi_i' / n^2 + the target's share / m, with psi_i = base phi_i + w phi_i(base). A
    row of weight below 1 counts by its square. ``sizes``: n, and the effective size of the target.
    """
    base, w, psi = solution.base, solution.weights, prior_terms(solution)
    products = source_products(psi, solution.source or source, solution.products)
    prior = products.product(psi, psi) if solution.square is None else solution.square
    values = products.lengths(solution.influence.source_terms)
    n, m = sizes
    prior = prior / n**2 + solution.target_covariance * np.outer(base, base) / m
    if solution.outside is not None:
        prior = prior + (solution.outside * base).T @ (solution.outside * base)
        values = values + n**2 * (solution.outside**2).sum(axis=0)
    values = values / n**2 + np.diag(solution.target_covariance) / m
    q = base * w
    normalise = (np.eye(len(q)) - np.outer(q / q.sum(), ~solution.held)) / q.sum()
    prior, values = normalise @ prior @ normalise.T, np.sqrt(np.maximum(values, 0.0))
    factor = _bound_factor(np.sqrt(np.maximum(np.diag(prior), 0.0)), base * solution.beyond)
    return prior * np.outer(factor, factor), values * factor, factor


def _bound_factor(error: np.ndarray, beyond: np.ndarray) -> np.ndarray:
    """(S,) factor of the standard error of a share at the bound 0.

    A normal variable with this error and a mean this far below 0, truncated at 0, has a mean of
    about error^2 / distance.
    """
    ratio = np.divide(error, beyond, out=np.ones(len(error)), where=beyond > 0)
    return np.asarray(np.minimum(1.0, ratio))


@dataclass(frozen=True, eq=False)
class ScaledWeights(Frozen):
    """Class weights scaled to a largest of 1, and the influence of each row on them."""

    values: np.ndarray  # (K,), 0 for classes without a weight
    seen: np.ndarray  # (K,) bool
    scale: float  # the largest of the weights given
    influence: WeightInfluence | None
    sizes: tuple[float, float]  # n, m

    @staticmethod
    def of(
        class_weights: np.ndarray, influence: WeightInfluence | None, sizes: tuple[float, float]
    ) -> ScaledWeights:
        """From weights, NaN for classes without one; ``influence`` is None for given weights."""
        seen = ~np.isnan(class_weights)
        values = np.where(seen, class_weights, 0.0)
        scale = float(values.max())
        return ScaledWeights(values / scale, seen, scale, influence, sizes)

    def source_influence(self, batch: Predictions) -> np.ndarray:
        """(rows, S) influence of each source row on the weights; (rows, 0) for given weights."""
        if self.influence is None:
            return np.zeros((len(batch), 0))
        return np.asarray(self.influence.source(batch) / (self.scale * self.sizes[0]))

    def target_influence(self, batch: Predictions) -> np.ndarray:
        """(rows, S) influence of each target row on the weights; (rows, 0) for given weights."""
        if self.influence is None:
            return np.zeros((len(batch), 0))
        return np.asarray(self.influence.target(batch) / (self.scale * self.sizes[1]))

    @property
    def draws(self) -> np.ndarray | None:
        """(draws, S) of the weights, from their sampling distribution; None if not needed."""
        ratios = None if self.influence is None else self.influence.prior_ratios
        return None if ratios is None else np.asarray(ratios * self.values[self.seen])

    @property
    def label_influence(self) -> np.ndarray:
        """(labels, S) influence of a target row by its label, where weights come from these."""
        if not isinstance(self.influence, LabelCountInfluence):
            return np.zeros((1, int(self.seen.sum())))
        return np.asarray(self.influence.by_label / self.scale)

    @property
    def outside_influence(self) -> np.ndarray:
        """(observations, S) of observations outside both samples; (0, 0) for given weights."""
        if self.influence is None:
            return np.zeros((0, 0))
        return np.asarray(self.influence.outside / self.scale)
