"""The default class weights: matched ones, combined with maximum likelihood.

Matched weights M are consistent under label shift, whatever the calibrator. Those of em-bcts, E,
are more precise where biases and a temperature calibrate the model, and biased where they do not.
With the difference D = E - M of the target priors,

    q = M + a D,        a = [tr Var(M) - tr Cov(M, E)] / max(|D|^2, tr Var(D)),    0 <= a <= 1

minimises an estimate of the expected squared distance from the true priors: |D|^2 estimates the
square of the bias of E plus Var(D). The bias that a D may have is unknown, so that a D counts as
noise too. docs/mathematics.md section 7.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from calshift.engines.base import Engine
from calshift.scaling.fit import fit_scaling
from calshift.weights.influence import (
    FeatureInfluence,
    Influence,
    WeightFit,
    prior_terms,
    source_products,
)
from calshift.weights.matched import EfficientMatching, fit_both
from calshift.weights.row_products import LinearTerms, sum_products

RELAXATION = (0.01, 0.1)  # of the prior of the calibrator's biases: at least, at most
MANY_CLASSES = 10.0  # about which it decreases


def auto(source: Engine, target: Engine, class_counts: np.ndarray) -> WeightFit:
    """Matched weights, drawn towards those of em-bcts as far as the data warrant."""
    relaxation = relaxation_of_prior(int(np.count_nonzero(class_counts)))
    matching = EfficientMatching(source, target, class_counts)
    calibrate = fit_scaling("bcts", source, class_counts, relaxation=relaxation)
    matched, likelihood = fit_both(matching, calibrate)
    n, m = float(class_counts.sum()), target.summary.effective_size
    first, second = prior_terms(matched), prior_terms(likelihood)
    products = source_products(first + second, source, matched.products)
    of_target = _target_products(target, matched, likelihood)
    pairs = ((first, first), (first, second), (second, second))
    of_source = np.stack([products.product(*pair) for pair in pairs])
    traces = np.trace(of_source, axis1=1, axis2=2) / n**2 + [
        float(matched.base**2 @ np.diag(one)) / m for one in of_target
    ]
    gap = likelihood.prior - matched.prior
    distance = max(float(gap @ gap), float(traces @ [1.0, -2.0, 1.0]))
    share = float(np.clip((traces[0] - traces[1]) / distance, 0.0, 1.0)) if distance > 0 else 1.0
    matched = replace(matched, products=products, square=of_source[0])
    return _combine(matched, likelihood, share, of_source, of_target)


def relaxation_of_prior(classes: int) -> float:
    """Part of the strength of the prior of biases: shrunk biases are a bias of the class priors.

    It adds up over the classes.
    """
    least, most = RELAXATION
    return float(np.clip(MANY_CLASSES / classes**2, least, most))


@dataclass(frozen=True, eq=False)
class CombinedInfluence(FeatureInfluence):
    """Of (1 - a) times one method's weights plus a times another's, for a known a.

    Both have the same source prior.
    """

    first: Influence
    second: Influence
    share: float  # a

    @property
    def seen(self) -> np.ndarray:
        """(K,) bool, the S classes of the source."""
        return np.asarray(self.first.seen)

    def _find_source_terms(self) -> LinearTerms:
        return self._combine(self.first.source_terms, self.second.source_terms)

    def _find_target_terms(self) -> LinearTerms:
        return self._combine(self.first.target_terms, self.second.target_terms)

    def _find_base_terms(self) -> LinearTerms:
        return self.first.base_terms

    def _combine(self, first: LinearTerms, second: LinearTerms) -> LinearTerms:
        return first.times(1 - self.share) + second.times(self.share)


def _add_parts(parts: np.ndarray, products: np.ndarray) -> np.ndarray:
    """(S, S) square of a weighted sum, from the squares and products of its terms (3, S, S)."""
    first, both, second = parts[:, None, None] * products
    return np.asarray(first + both + both.T + second)


def _target_products(target: Engine, matched: WeightFit, likelihood: WeightFit) -> np.ndarray:
    """(3, S, S) mean of phi phi' over the target: of the first fit, of both, and of the second."""
    terms = matched.influence.target_terms, likelihood.influence.target_terms
    pair = terms[0].features[0], terms[1].features[0]
    products = sum_products(target, [pair], known=matched.target_products)
    both = products.product(*terms) / target.summary.size
    return np.stack([matched.target_covariance, both, likelihood.target_covariance])


def _combine(
    matched: WeightFit,
    likelihood: WeightFit,
    share: float,
    of_source: np.ndarray,
    of_target: np.ndarray,
) -> WeightFit:
    """From (3, S, S): squares of the first fit, products of both, squares of the second.

    Of the influence of source rows on the prior, and of target rows on the weights.
    """
    weights = (1 - share) * matched.weights + share * likelihood.weights
    parts = np.array([(1 - share) ** 2, share * (1 - share), share**2])
    square, spread = (_add_parts(parts, one) for one in (of_source, of_target))
    held = weights == 0
    return replace(
        matched,
        weights=weights,
        influence=CombinedInfluence(matched.influence, likelihood.influence, share),
        target_covariance=spread,
        square=square,
        held=held,
        beyond=np.where(held, matched.beyond, 0.0),
        converged=matched.converged and (likelihood.converged or share == 0),
        iterations=likelihood.iterations,
        notes=likelihood.notes,
        consistent=matched,
        discrimination=likelihood.discrimination,
        outside=share * (likelihood.weights - matched.weights)[None],
        description=f"auto: {1 - share:.0%} matched, {share:.0%} em-bcts",
    )
