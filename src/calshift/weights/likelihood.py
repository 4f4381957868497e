"""Maximum likelihood class weights: em, with or without a calibrator, and map.

docs/mathematics.md section 7; paper, section on importance weights.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np

from calshift._core.addable import Tally
from calshift._core.frozen import Frozen
from calshift._core.linalg import constrained_inverse
from calshift._core.predictions import Predictions
from calshift.engines.base import Engine
from calshift.engines.plan import plan
from calshift.scaling.calibrator import Scaling, Uncalibrated
from calshift.scaling.fit import fit_scaling
from calshift.weights.em_solver import (
    MixtureFit,
    Posterior,
    maximize_mixture,
    select_prior_strength,
)
from calshift.weights.influence import FeatureInfluence, WeightFit, label_terms
from calshift.weights.row_products import Features, LinearTerms

PlanWith = Callable[[np.ndarray, Features], None]  # class weights, features of the target

LEAST_SLOPE = 0.05  # of a calibrator, below which the model does not discriminate
LEAST_FIT = 0.01  # log-likelihood beyond that of the class shares, relative to their entropy
TOLERATED_GAP = 0.1  # between mean prediction and class shares, summed over the classes
TOLERATED_PULL = 0.25  # the prior's share among the target rows


def em(
    source: Engine,
    target: Engine,
    class_counts: np.ndarray,
    *,
    calibrator: str | None = None,
    prior: bool = False,
) -> WeightFit:
    """Maximum likelihood: the q that maximises mean_j log sum_y p_jy q_y / pi_y.

    pi is the mean prediction of the source. With a calibrator both samples are calibrated first.
    With a prior, Dirichlet around pi with the strength of largest evidence, q is the mean of the
    posterior class probabilities of the target's rows.
    """
    seen = class_counts > 0
    calibrate = fit_scaling(calibrator, source, class_counts) if calibrator else Uncalibrated(seen)
    return fit_likelihood(source, target, class_counts, calibrate, prior=prior)


def fit_likelihood(
    source: Engine,
    target: Engine,
    class_counts: np.ndarray,
    calibrate: Scaling | Uncalibrated,
    *,
    prior: bool = False,
    plan_with: PlanWith | None = None,
) -> WeightFit:
    """`em` with a calibrator that has been fitted.

    ``plan_with(weights, z)`` is called before the last pass over the target, for sums with the
    features z of the influence function that are to be made along with it.
    """
    mean = source.total(partial(_sum_probabilities, calibrate)) / class_counts.sum()
    if prior:
        mixture = select_prior_strength(target, calibrate, mean)
    else:
        mixture = maximize_mixture(target, calibrate, mean, np.zeros(len(mean)))
    return _make_fit(source, target, class_counts, calibrate, mean, mixture, plan_with)


def plan_mean(source: Engine, calibrate: Scaling | Uncalibrated) -> None:
    """Make the source's mean prediction along with its next pass, for `fit_likelihood`."""
    plan(source, partial(_sum_probabilities, calibrate))


def _sum_probabilities(calibrate: Scaling | Uncalibrated, batch: Predictions) -> np.ndarray:
    return np.asarray(batch.frequency @ calibrate(batch))


@dataclass(frozen=True, eq=False)
class LikelihoodInfluence(FeatureInfluence):
    """Of em's weights, calibrator included.

        phi_i = X_p (p_i - mean) + X_g (g_i - mean) + X_y (1_{y_i} - pi)
        phi_j = Q (z_j - zbar),        z_j = p_j / (p_j . v)

    with p calibrated and g_i the gradient of the calibrator's log-likelihood by its slopes; that by
    its biases, 1_{y_i} - p_i, is part of X_y and X_p.

    Attributes
    ----------
    calibrate : batch -> p
    seen : (K,) bool
    ratios : batch -> z, (rows, S)
    target_mean : zbar, (S,)
    inverse : Q, (S, S)
    by_probability, by_slope, by_label : X_p (S, S), X_g (S, slopes), X_y (S, S)
    mean, slope_mean, prior : of p, g and 1_y
    base_by_slope : (S, slopes) derivative of the mean prediction by g, None if the weights are
        relative to class shares
    """

    calibrate: Scaling | Uncalibrated
    seen: np.ndarray
    ratios: MixtureRatios
    target_mean: np.ndarray
    inverse: np.ndarray
    by_probability: np.ndarray
    by_slope: np.ndarray
    by_label: np.ndarray
    mean: np.ndarray
    slope_mean: np.ndarray
    prior: np.ndarray
    base_by_slope: np.ndarray | None

    def _find_source_terms(self) -> LinearTerms:
        constant = self.by_label.T - self.by_label @ self.prior
        constant = constant - self.by_probability @ self.mean - self.by_slope @ self.slope_mean
        return self._on_rows(self.by_probability, self.by_slope, constant)

    def _find_target_terms(self) -> LinearTerms:
        constant = -(self.inverse @ self.target_mean)[None]
        return LinearTerms((self.ratios,), (self.inverse,), constant)

    def _find_base_terms(self) -> LinearTerms:
        """Of the source prior: class shares, or mean prediction."""
        if self.base_by_slope is None:
            return label_terms(self.prior)
        constant = np.tile(-self.mean - self.base_by_slope @ self.slope_mean, (len(self.mean), 1))
        return self._on_rows(np.eye(len(self.mean)), self.base_by_slope, constant)

    def _on_rows(
        self, by_probability: np.ndarray, by_slope: np.ndarray, constant: np.ndarray
    ) -> LinearTerms:
        """Terms of p and, if the calibrator has slopes, g."""
        if not by_slope.shape[1]:
            return LinearTerms((self.calibrate,), (by_probability,), constant)
        features = self.calibrate, self._gradients
        return LinearTerms(features, (by_probability, by_slope), constant)

    @cached_property
    def _gradients(self) -> SlopeGradients:
        assert isinstance(self.calibrate, Scaling)
        return SlopeGradients(self.calibrate)

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in super().__getstate__().items() if name[0] != "_"}


@dataclass(frozen=True, eq=False)
class MixtureRatios(Frozen):
    """z = p / (p . v)."""

    calibrate: Posterior
    ratio: np.ndarray

    def __call__(self, batch: Predictions) -> np.ndarray:
        p = self.calibrate(batch)
        return np.asarray(p * (1 / (p @ self.ratio))[:, None])


@dataclass(frozen=True, eq=False)
class SlopeGradients(Frozen):
    """(rows, slopes) gradient of each row's log-likelihood by the slopes of a calibrator."""

    calibrate: Scaling

    def __call__(self, batch: Predictions) -> np.ndarray:
        return self.calibrate.likelihood_gradients(batch)[1]


def _make_fit(
    source: Engine,
    target: Engine,
    class_counts: np.ndarray,
    calibrate: Scaling | Uncalibrated,
    mean: np.ndarray,
    mixture: MixtureFit,
    plan_with: PlanWith | None,
) -> WeightFit:
    """Weights q / pi, relative to the class shares if the calibrator has biases.

    Biases make the mean prediction equal to the class shares up to their prior; without them pi is
    the mean prediction.
    """
    n, v, seen = class_counts.sum(), mixture.ratio, class_counts > 0
    prior = class_counts[seen] / n
    biased = calibrate.biased
    base = prior if biased else mean
    weights = v * mixture.mean / base  # q = v zbar, the mean posterior probability
    ratios = MixtureRatios(calibrate, v)
    if plan_with is not None:
        plan_with(weights, ratios)
    G = constrained_inverse(mixture.curvature, v > 0)
    by_prior = (np.diag(mixture.mean) - v[:, None] * mixture.square) @ G
    by_mean = by_prior / base[:, None]
    by_target = (mixture.share * by_prior + np.diag(v)) / base[:, None]
    on_target, on_mean, slope_mean = _calibrator_influence(source, target, n, calibrate, mixture)
    slopes = len(slope_mean)
    by_parameter = by_target @ on_target - by_mean @ on_mean
    by_label = np.zeros_like(G)
    if biased:
        by_label = by_parameter[:, slopes:] - np.diag(weights / prior)
        by_probability = -by_mean - by_parameter[:, slopes:]
    else:
        by_parameter -= (weights / mean)[:, None] * on_mean
        by_probability = -by_mean - np.diag(weights / mean)
    influence = LikelihoodInfluence(
        calibrate, seen, ratios, mixture.mean, by_target, by_probability, by_parameter[:, :slopes],
        by_label, mean, slope_mean, prior, None if biased else on_mean,
    )  # fmt: skip
    fit = calibrate.fit if isinstance(calibrate, Scaling) else log_likelihood(source, calibrate) / n
    return WeightFit(
        weights,
        base,
        influence,
        by_target @ (mixture.square - np.outer(mixture.mean, mixture.mean)) @ by_target.T,
        mixture.square,
        v == 0,
        np.where(v == 0, np.diag(G) * (mean - mixture.mean) * mean / base, 0.0),
        mixture.converged and calibrate.converged,
        mixture.iterations,
        tuple(_notes(calibrate, mean, prior, mixture.share, fit, n)),
        discrimination=discrimination(calibrate, prior, fit),
    )


def _calibrator_influence(
    source: Engine, target: Engine, n: float, calibrate: Scaling | Uncalibrated, mixture: MixtureFit
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Derivatives of zbar and of the mean prediction by a row's calibrator gradient; its mean.

    The influence of row i on the parameters is n I^-1 g_i, I being the information.
    """
    if not isinstance(calibrate, Scaling):
        nothing = np.zeros((len(mixture.ratio), 0))
        return nothing, nothing, np.zeros(0)
    step = n * calibrate.covariance
    if calibrate.biased:  # sum_i of dp_i / d eta, rows of the information
        on_mean = (calibrate.information - calibrate.precision)[calibrate.slopes :] / n
    else:
        on_mean = source.total(calibrate.sum_derivative) / n
    on_target = _target_derivative(target, calibrate, mixture)
    return on_target @ step, on_mean @ step, calibrate.penalty_gradient[: calibrate.slopes] / n


def log_likelihood(source: Engine, calibrate: Uncalibrated) -> float:
    """Of the source's labels."""
    return float(source.total(partial(_sum_logarithms, calibrate)))


def plan_log_likelihood(source: Engine, calibrate: Uncalibrated) -> None:
    """Make `log_likelihood` along with the next pass."""
    plan(source, partial(_sum_logarithms, calibrate))


def _sum_logarithms(calibrate: Uncalibrated, batch: Predictions) -> float:
    hit = calibrate(batch)[np.arange(len(batch)), batch.codes(calibrate.seen)]
    return float(batch.frequency @ np.log(hit))


def _notes(
    calibrate: Scaling | Uncalibrated,
    mean: np.ndarray,
    prior: np.ndarray,
    share: float,
    fit: float,
    n: float,
) -> Iterator[str]:
    """Reasons for which the maximum likelihood weights may be wrong."""
    yield from discrimination_notes(calibrate, prior, fit)
    gap, noise = np.abs(mean - prior).sum(), np.sqrt(prior * (1 - prior) / n).sum()
    if not calibrate.biased and gap > max(TOLERATED_GAP, 2 * noise):
        yield (
            "the model is not calibrated on the source: its mean prediction and the class shares "
            f"differ by {gap:.2f} in sum; em-bcts calibrates it first"
        )
    if share < 1 - TOLERATED_PULL:
        yield (
            f"map: its prior has the weight of {1 - share:.0%} of the target rows and draws the "
            "weights towards 1; the standard errors do not cover this bias"
        )


def discrimination(calibrate: Scaling | Uncalibrated, prior: np.ndarray, fit: float) -> float:
    """Information of the predictions on the labels, relative to their entropy.

    ``fit`` is the mean log-likelihood; 0 where the predictions contradict the labels.
    """
    entropy = -float(prior @ np.log(prior))
    contradicts = isinstance(calibrate, Scaling) and calibrate.slope.min() < LEAST_SLOPE
    return 0.0 if contradicts or entropy <= 0 else (fit + entropy) / entropy


def discrimination_notes(
    calibrate: Scaling | Uncalibrated, prior: np.ndarray, fit: float
) -> Iterator[str]:
    """Whether the predictions separate the classes at all; ``fit`` is the mean log-likelihood."""
    if isinstance(calibrate, Scaling) and calibrate.slope.min() < LEAST_SLOPE:
        yield (
            "the model does not discriminate: its predictions are unrelated to the source's "
            "labels, or contradict them"
        )
    elif fit - prior @ np.log(prior) < LEAST_FIT * -(prior @ np.log(prior)):
        yield (
            "the model does not discriminate: its predictions fit the source's labels no better "
            "than constant class shares"
        )


def _target_derivative(target: Engine, calibrate: Scaling, mixture: MixtureFit) -> np.ndarray:
    """(S, d) mean_j of dz_j / d eta."""
    v = mixture.ratio

    def kernel(batch: Predictions) -> Tally:
        scores, z = calibrate.scores(batch), calibrate(batch)
        z = z * (1 / (z @ v))[:, None]
        fz = z if batch.sample_weight is None else batch.frequency[:, None] * z
        by_slope = calibrate.slope_derivative(fz, z * v, scores)
        return Tally(size=batch.size, by_slope=by_slope)

    size, by_slope = target.total(kernel).values()
    if not calibrate.biased:
        return np.asarray(by_slope / size)
    return np.hstack([by_slope / size, np.diag(mixture.mean) - mixture.square * v])
