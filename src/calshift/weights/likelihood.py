"""Weights of largest likelihood of the target's predictions: em, with or without calibrator; map.

docs/mathematics.md section 7; paper, section on importance weights.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from calshift.engines import Arrays, Sums
from calshift.frozen import Frozen
from calshift.influence import Solution, freed_inverse, label_influence
from calshift.predictions import Predictions
from calshift.scaling import KINDS, LEAST_PROBABILITY, Scaling, fit_scaling

PRIOR_ROWS = 0.5  # a class, that the prior of map is worth
LARGEST_GAP = 1e-10  # bound on the mean log-likelihood that is still missing
EM_STEPS = 15  # before Newton's method takes over
MOST_STEPS = 200
LEAST_SLOPE = 0.05  # of a calibrator, below which predictions say nothing
TOLERATED_GAP = 0.1  # between mean prediction and class shares, summed over the classes
TOLERATED_PULL = 0.05  # the prior's share among the target rows
LENGTHS = 0.5 ** np.arange(12)  # of a Newton step that are tried


@dataclass(frozen=True, eq=False)
class Uncalibrated(Frozen):
    """The predictions as they are, restricted to the classes seen; an exact zero is floored."""

    seen: np.ndarray
    converged: bool = True

    def __call__(self, batch: Predictions) -> np.ndarray:
        p = np.maximum(batch.matrix[:, self.seen], LEAST_PROBABILITY, dtype=float)
        return np.asarray(p / p.sum(axis=1, keepdims=True))


@dataclass(frozen=True)
class Mixture:
    """Where the likelihood is largest.

    ratio : v, (S,) q / pi;  curvature : A, mean_j z_j z_j' with z_j = p_j / (p_j . v)
    """

    ratio: np.ndarray
    curvature: np.ndarray
    converged: bool
    iterations: int


def em(
    source: Arrays, target: Arrays, class_counts: np.ndarray, *, calibrator: str | None = None
) -> Solution:
    """Maximum likelihood: the q that maximises mean_j log sum_y p_jy q_y / pi_y.

    pi is the mean prediction of the source. With a calibrator both samples are calibrated first.
    """
    seen = class_counts > 0
    calibrate = fit_scaling(calibrator, source, class_counts) if calibrator else Uncalibrated(seen)
    mean = source.total(lambda batch: batch.frequency @ calibrate(batch)) / class_counts.sum()
    mixture = _maximised(target.mapped(calibrate), mean, np.zeros(len(mean)))
    return _solution(source, target, class_counts, calibrate, mean, mixture)


def maximum_a_posteriori(source: Arrays, target: Arrays, class_counts: np.ndarray) -> Solution:
    """As em-bcts, with a Dirichlet prior on q centred on the class shares of the source.

    The prior counts as that many rows of the source's mix, whose labels are known.
    """
    calibrate = fit_scaling("bcts", source, class_counts)
    mean = source.total(lambda batch: batch.frequency @ calibrate(batch)) / class_counts.sum()
    after = target.mapped(calibrate)
    strength = PRIOR_ROWS * len(mean)
    mixture = _maximised(after, mean, strength * mean)
    m = target.total(lambda batch: batch.size)
    return _solution(source, target, class_counts, calibrate, mean, mixture, m / (m + strength))


def _maximised(engine: Arrays, prior: np.ndarray, pseudo: np.ndarray) -> Mixture:
    """The v >= 0 that maximises sum_j log p_j . v + pseudo . log v, with prior . v = 1.

    At v the mean log-likelihood is short of the largest by at most max_y zbar_y / prior_y - 1.
    """
    v, curvature = np.ones(len(prior)), None
    for step in range(MOST_STEPS):
        rows, z = engine.total(_gradient(v))
        size = rows + pseudo.sum()
        z = (z + _over(pseudo, v)) / size
        settled = bool(np.max(z / prior) - 1 <= LARGEST_GAP)
        if (settled and curvature is None) or (not settled and step >= EM_STEPS):
            curvature = (engine.total(_curvature(v)) + np.diag(_over(pseudo, v**2))) / size
        if settled:
            break
        better = None
        if curvature is not None:
            there = _newton_point(v, curvature, z, prior)
            better = _farthest_up(engine, v, there, size * prior, pseudo)
        v = v * z / prior if better is None else better
        v = v / (prior @ v)
    assert curvature is not None
    return Mixture(v, curvature, settled, step)


def _over(pseudo: np.ndarray, v: np.ndarray) -> np.ndarray:
    return np.asarray(np.divide(pseudo, v, out=np.zeros(len(v)), where=pseudo > 0))


def _gradient(v: np.ndarray) -> Callable[[Predictions], Sums]:
    """Kernel: rows, and the sum of z = p / (p . v)."""

    def kernel(batch: Predictions) -> Sums:
        return Sums((batch.size, (batch.frequency / (batch.p @ v)) @ batch.p))

    return kernel


def _curvature(v: np.ndarray) -> Callable[[Predictions], np.ndarray]:
    """Kernel: sum of z z'."""

    def kernel(batch: Predictions) -> np.ndarray:
        z = batch.p * (np.sqrt(batch.frequency) / (batch.p @ v))[:, None]
        return np.asarray(z.T @ z)

    return kernel


def _newton_point(
    v: np.ndarray, curvature: np.ndarray, z: np.ndarray, prior: np.ndarray
) -> np.ndarray:
    """The v >= 0 where the quadratic model is largest: least v'Av / 2 - (2 zbar - prior)'v."""
    from scipy.optimize import nnls

    ridge = 1e-12 * np.trace(curvature) / len(v)
    R = np.linalg.cholesky(curvature + ridge * np.eye(len(v))).T
    pull = np.linalg.solve(R.T, curvature @ v + z - prior + ridge * v)
    return np.asarray(nnls(R, pull, maxiter=100 * len(v) + 1000)[0])


def _farthest_up(
    engine: Arrays, v: np.ndarray, there: np.ndarray, cost: np.ndarray, pseudo: np.ndarray
) -> np.ndarray | None:
    """The point between v and there of largest likelihood among a few, None if all are lower."""
    lengths = np.append(LENGTHS, 0.0)

    def kernel(batch: Predictions) -> np.ndarray:
        here, step = batch.p @ v, batch.p @ (there - v)
        return np.array([batch.frequency @ _log(here + t * step) for t in lengths])

    points = v + lengths[:, None] * (there - v)
    value = engine.total(kernel) + _log(points[:, pseudo > 0]) @ pseudo[pseudo > 0] - points @ cost
    best = int(np.argmax(value))
    return points[best] if best < len(LENGTHS) else None


def _log(x: np.ndarray) -> np.ndarray:
    """Logarithm, of 0 a very low value rather than an infinite one."""
    return np.asarray(np.log(np.maximum(x, 1e-300)))


@dataclass(frozen=True, eq=False)
class LikelihoodInfluence(Frozen):
    """Of em's weights, calibrator included.

        phi_i = X_p (p_i - mean) + X_g (g_i - mean) + X_y (1_{y_i} - pi)
        phi_j = Q (z_j - zbar),        z_j = p_j / (p_j . v)

    with p calibrated and g_i the gradient of the calibrator's log-likelihood by its slopes; that by
    its biases, 1_{y_i} - p_i, is part of X_y and X_p.

    Attributes
    ----------
    calibrate : batch -> p
    seen : (K,) bool
    ratio, target_mean : v and zbar, (S,)
    inverse : Q, (S, S)
    by_probability, by_slope, by_label : X_p (S, S), X_g (S, slopes), X_y (S, S)
    mean, slope_mean, prior : of p, g and 1_y
    base_by_slope : (S, slopes) how the mean prediction moves with g, None if the weights are
        relative to class shares
    """

    calibrate: Scaling | Uncalibrated
    seen: np.ndarray
    ratio: np.ndarray
    target_mean: np.ndarray
    inverse: np.ndarray
    by_probability: np.ndarray
    by_slope: np.ndarray
    by_label: np.ndarray
    mean: np.ndarray
    slope_mean: np.ndarray
    prior: np.ndarray
    base_by_slope: np.ndarray | None

    def source(self, batch: Predictions) -> np.ndarray:
        """(rows, S) phi_i."""
        p, g = self._rows(batch)
        phi = p @ self.by_probability.T + g @ self.by_slope.T
        phi += (self.by_label.T - self.by_label @ self.prior)[batch.codes(self.seen)]
        return np.asarray(phi)

    def target(self, batch: Predictions) -> np.ndarray:
        """(rows, S) phi_j."""
        p = self.calibrate(batch)
        return np.asarray((p / (p @ self.ratio)[:, None] - self.target_mean) @ self.inverse.T)

    def base(self, batch: Predictions) -> np.ndarray:
        """(rows, S) how each row moved the source prior: class shares, or the mean prediction."""
        if self.base_by_slope is None:
            return label_influence(batch, self.seen, self.prior)
        p, g = self._rows(batch)
        return np.asarray(p + g @ self.base_by_slope.T)

    def _rows(self, batch: Predictions) -> tuple[np.ndarray, np.ndarray]:
        if isinstance(self.calibrate, Scaling):
            p, g = self.calibrate.rows(batch)
            return p - self.mean, g - self.slope_mean
        return self.calibrate(batch) - self.mean, np.zeros((len(batch), 0))


def _solution(
    source: Arrays,
    target: Arrays,
    class_counts: np.ndarray,
    calibrate: Scaling | Uncalibrated,
    mean: np.ndarray,
    mixture: Mixture,
    shrinkage: float = 1.0,
) -> Solution:
    """Weights q / pi, relative to the class shares if the calibrator has biases.

    Biases make the mean prediction follow the class shares up to their prior; without them it is
    the mean prediction that says what the predictor takes for no shift.
    """
    n, v, A = class_counts.sum(), mixture.ratio, mixture.curvature
    seen = class_counts > 0
    prior = class_counts[seen] / n
    biased = isinstance(calibrate, Scaling) and KINDS[calibrate.kind][1]
    base = prior if biased else mean
    G = freed_inverse(A, v > 0)
    moved, moved_mean, slope_mean = _by_parameters(source, target, n, calibrate, v, A, shrinkage)
    slopes = len(slope_mean)
    scale = (mean / base)[:, None]
    by_probability, by_parameter = -scale * G, scale * (G @ (moved - moved_mean))
    by_label = np.zeros_like(G)
    if biased:
        by_parameter += (v / prior)[:, None] * moved_mean
        by_label = by_parameter[:, slopes:] - np.diag(v * mean / prior**2)
        by_probability += np.diag(v / prior) - by_parameter[:, slopes:]
    inverse = shrinkage * scale * G
    influence = LikelihoodInfluence(
        calibrate, seen, v, A @ v, inverse, by_probability, by_parameter[:, :slopes], by_label,
        mean, slope_mean, prior, None if biased else moved_mean,
    )  # fmt: skip
    return Solution(
        v * mean / base,
        base,
        influence,
        inverse @ (A - np.outer(A @ v, A @ v)) @ inverse.T,
        A,
        v == 0,
        mixture.converged and calibrate.converged,
        mixture.iterations,
        _notes(calibrate, mean, prior, biased, shrinkage),
    )


def _by_parameters(
    source: Arrays,
    target: Arrays,
    n: float,
    calibrate: Scaling | Uncalibrated,
    v: np.ndarray,
    A: np.ndarray,
    shrinkage: float,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """How zbar and the mean prediction move with a row's calibrator gradient, and its mean.

    The parameters move by n I^-1 g_i / n, I being the information.
    """
    if not isinstance(calibrate, Scaling):
        return np.zeros((len(v), 0)), np.zeros((len(v), 0)), np.zeros(0)
    step = n * np.linalg.inv(calibrate.information)
    on_mean = _source_response(source, calibrate) / n
    on_target = shrinkage * _target_response(target, calibrate, v, A)
    return on_target @ step, on_mean @ step, calibrate.pull[: calibrate.slopes] / n


def _notes(
    calibrate: Scaling | Uncalibrated,
    mean: np.ndarray,
    prior: np.ndarray,
    biased: bool,
    shrinkage: float,
) -> tuple[str, ...]:
    """Why the likelihood may mislead."""
    notes = []
    if isinstance(calibrate, Scaling) and calibrate.slope.min() < LEAST_SLOPE:
        notes.append("the predictions hardly speak for the labels of the source, or against them")
    gap = np.abs(mean - prior).sum()
    if not biased and gap > TOLERATED_GAP:
        notes.append(
            f"the mean prediction misses the class shares of the source by {gap:.2f} in sum: "
            "the model is not calibrated, and em-bcts would be"
        )
    if shrinkage < 1 - TOLERATED_PULL:
        notes.append(
            f"map: its prior counts for {1 - shrinkage:.0%} of the target rows and draws the "
            "weights towards 1; the standard errors do not cover this bias"
        )
    return tuple(notes)


def _source_response(source: Arrays, calibrate: Scaling) -> np.ndarray:
    """(S, d) sum_i of dp_i / d eta: with biases these are rows of the information."""
    if KINDS[calibrate.kind][1]:
        return np.asarray((calibrate.information - calibrate.precision)[calibrate.slopes :])
    return np.asarray(source.total(calibrate.response))


def _target_response(
    target: Arrays, calibrate: Scaling, v: np.ndarray, A: np.ndarray
) -> np.ndarray:
    """(S, d) mean_j of dz_j / d eta."""

    def kernel(batch: Predictions) -> Sums:
        scores = calibrate.scores(batch)
        p = calibrate.calibrated(scores)
        z = p / (p @ v)[:, None]
        return Sums(
            (batch.size, calibrate.slope_response(batch.frequency[:, None] * z, z * v, scores))
        )

    size, by_slope = target.total(kernel)
    if not KINDS[calibrate.kind][1]:
        return np.asarray(by_slope / size)
    return np.hstack([by_slope / size, np.diag(A @ v) - A * v])
