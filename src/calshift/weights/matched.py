"""Class weights that match efficient features of the predictions: matched.

The weights solve  mean_i a_i w_{y_i} = mean_j a_j  with the features

    a = r / [ (r . w0^2) / rho + (r . w0) / (1 - rho) ],        rho = n / (n + m)

r being posterior class probabilities of the source and w0 the weights of maximum likelihood. Both
only tune the features: the weights are consistent under label shift whatever they are, and
efficient where r is right. r is the likeliest candidate, by Akaike's criterion: the predictions, or
their calibration by biases and one slope or, for few classes, a slope each. Where predictions are
far off, they are tried beside it, and the prior with the least variance counts.
docs/mathematics.md section 7; Tian, Zhang and Zhao (2023).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from calshift._core.frozen import Frozen
from calshift._core.predictions import Predictions
from calshift.engines.arrays import remember
from calshift.engines.base import Engine
from calshift.scaling.calibrator import Scaling, Uncalibrated
from calshift.scaling.fit import expected_gain, fit_scaling
from calshift.weights.influence import WeightFit, covariances, prior_terms, source_products
from calshift.weights.likelihood import (
    fit_likelihood,
    log_likelihood,
    plan_log_likelihood,
    plan_mean,
)
from calshift.weights.moment_matching import MomentPass, moment_sizes, solve_moment_matching
from calshift.weights.row_products import Features

LEAST_RATIO = 0.05  # of a weight in the features: a smaller one would dominate the moments
MOST_SLOPES = 30  # classes, up to which each may have a slope of its own
LIKELY = 0.7  # expected gain of more slopes relative to their number, from which they are fitted
FAR_OFF = 0.1  # of the log-likelihood a row, that predictions lose by not being calibrated


@dataclass(frozen=True, eq=False)
class EfficientPosterior(Frozen):
    """The features a of posterior probabilities."""

    posterior: Scaling | Uncalibrated
    weights: np.ndarray
    rho: float

    def __call__(self, batch: Predictions) -> np.ndarray:
        r = self.posterior(batch)
        noise = r @ (self.weights**2 / self.rho + self.weights / (1 - self.rho))
        return np.asarray(r * (1 / noise)[:, None])


def matched(source: Engine, target: Engine, class_counts: np.ndarray) -> WeightFit:
    """Matching of efficient features, tuned by the weights of em-bcts."""
    matching = EfficientMatching(source, target, class_counts)
    calibrate = fit_scaling("bcts", source, class_counts)
    found, likelihood = fit_both(matching, calibrate)
    return replace(
        found,
        iterations=likelihood.iterations,
        notes=likelihood.notes,
        discrimination=likelihood.discrimination,
    )


class EfficientMatching:
    """Matching of the features with the most precise prior, tuned by weights of the likelihood.

    Step by step, as soon as something is known: what it needs later is then summed along with
    passes of others over files or Spark tables.
    """

    def __init__(self, source: Engine, target: Engine, class_counts: np.ndarray) -> None:
        self.source, self.target, self.counts = source, target, class_counts
        self.plain = Uncalibrated(class_counts > 0)
        self.candidates: list[Scaling | Uncalibrated] = []
        self.passes: list[MomentPass] = []
        plan_log_likelihood(source, self.plain)

    def choose(self, calibrate: Scaling) -> None:
        """Find the candidates for the posterior, the calibrated predictions among them."""
        key = "candidates", self.counts.tobytes(), calibrate.parameters.tobytes()
        find = partial(_candidates, self.source, self.counts, calibrate, self.plain)
        self.candidates = remember(self.source, key, find)

    def plan(self, weights: np.ndarray, ratios: Features) -> None:
        """Plan the sums for these weights, and for products with the features of their method."""
        n, m = self.counts.sum(), self.target.summary.size
        weights, rho = np.maximum(weights, LEAST_RATIO), float(n / (n + m))
        other = ratios if len(self.candidates) == 1 else None
        for posterior in self.candidates:
            features = EfficientPosterior(posterior, weights, rho)
            self.passes.append(MomentPass(features, self.counts, other=other))
            self.passes[-1].plan(self.source, self.target)

    def fit(self) -> WeightFit:
        """The weights of the most precise candidate."""
        found = [self._solve(one) for one in self.passes]
        if len(found) == 1:
            return found[0]
        sizes, source = (self.counts.sum(), self.target.summary.effective_size), self.source
        found = [replace(fit, products=source_products(prior_terms(fit), source)) for fit in found]
        return min(found, key=lambda fit: float(np.trace(covariances(fit, source, sizes)[0])))

    def _solve(self, one: MomentPass) -> WeightFit:
        moments = one.total(self.source, self.target)
        asked = self.target, self.counts > 0, moment_sizes(moments)
        return solve_moment_matching(one.features, moments, *asked)


def fit_both(matching: EfficientMatching, calibrate: Scaling) -> tuple[WeightFit, WeightFit]:
    """The matched weights, and those of the likelihood by which they are tuned."""
    source, asked = matching.source, (matching.source, matching.target, matching.counts)
    plan_mean(source, calibrate)
    matching.choose(calibrate)
    likelihood = fit_likelihood(*asked, calibrate, plan_with=matching.plan)
    return matching.fit(), likelihood


def _candidates(
    source: Engine, class_counts: np.ndarray, calibrate: Scaling, plain: Uncalibrated
) -> list[Scaling | Uncalibrated]:
    """The likeliest posterior by Akaike's criterion, and plain predictions where they are far off.

    Where labels have a predicted probability of 0, logarithms of predictions are poor features.
    """
    n, raw = float(class_counts.sum()), log_likelihood(source, plain)
    criterion = n * calibrate.fit - len(calibrate.parameters)
    best = calibrate
    more = int(np.count_nonzero(class_counts)) - 1
    if more < MOST_SLOPES and expected_gain("vs", source, class_counts, calibrate) > LIKELY * more:
        slopes = fit_scaling("vs", source, class_counts, near=calibrate)
        if n * slopes.fit - len(slopes.parameters) > criterion:
            best, criterion = slopes, n * slopes.fit - len(slopes.parameters)
    if raw >= criterion:
        return [plain]
    return [best, plain] if criterion - raw > FAR_OFF * n else [best]
