"""Maximum likelihood proportions of a mixture.

docs/mathematics.md section 7, em.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from calshift._core.addable import Tally
from calshift._core.linalg import nonnegative_least_squares
from calshift._core.predictions import Predictions
from calshift.engines import Arrays, Blocks
from calshift.engines.base import Engine
from calshift.engines.subsample import record, start_rows

Posterior = Callable[[Predictions], np.ndarray]  # batch -> (rows, S) class probabilities

LARGEST_GAP = 1e-10  # of the mean log-likelihood to its maximum
MANY = 64  # classes, above which EM steps over rows in memory cost much less than Newton's
MANY_EM_STEPS, FEW_EM_STEPS = 15, 2  # before Newton's method takes over
MOST_STEPS = 200
MOST_REFINED = 12  # steps with the same curvature
LEAST_START = 1e-3  # of a weight, where the search starts
DOMINATED = 1e-3  # by which zbar_y falls short of prior_y for a class without a share
STRENGTHS = np.array([100, 30, 10, 3, 1, 0.3, 0.1])  # of the prior, in rows a class
LENGTHS = 0.5 ** np.arange(12)  # of a Newton step that are tried
RIDGE = 1e-9  # of a Newton step: rounding must not decide where classes are indistinguishable
LEAST_MIXED = 1e-140  # likelihood of a row, so that squares of z stay finite


@dataclass(frozen=True)
class MixtureFit:
    """The maximum of the likelihood, with z_j = p_j / (p_j . v).

    Attributes
    ----------
    ratio : v, (S,) q / pi
    mean, square : zbar (S,) and (S, S) mean_j z_j z_j'
    curvature : A, (S, S) the same with the pseudo-rows of a prior on q
    rows, share : number of target rows, and their share among rows and pseudo-rows
    fit : sum_j log p_j . v
    """

    ratio: np.ndarray
    mean: np.ndarray
    square: np.ndarray
    curvature: np.ndarray
    rows: float
    share: float
    fit: float
    converged: bool
    iterations: int


def maximize_mixture(
    engine: Engine,
    posterior: Posterior,
    prior: np.ndarray,
    pseudo: np.ndarray,
    start: np.ndarray | None = None,
) -> MixtureFit:
    """The v >= 0 that maximises sum_j log p_j . v + pseudo . log v, with prior . v = 1.

    EM steps, more of them for many classes in memory, then Newton's method; each step is a pass
    over the rows. At v the mean log-likelihood is below its maximum by at most
    max_y zbar_y / prior_y - 1. A class whose zbar_y is below its prior_y has a share of 0 at the
    maximum.
    """
    cheap = len(prior) > MANY and engine.in_memory is not None
    first = MANY_EM_STEPS if cheap else FEW_EM_STEPS
    sample = Mixture(engine, posterior, pseudo)
    if start is None:
        start = _fit_few(sample, prior)
    v = _run_em(sample, prior, first) if start is None else start
    here = sample.evaluate(v)
    for step in range(MOST_STEPS):
        z = here.mean(pseudo)
        converged = bool(np.max(z / prior) - 1 <= LARGEST_GAP)
        if converged:
            break
        better = None
        if not (pseudo.any() and step % 2):  # EM steps correct shares near 0
            there = _newton_target(here.v, here.curvature(pseudo), z, prior)
            if first == MANY_EM_STEPS and not pseudo.any():
                there = _refine(sample, here, there, prior)
            better = _line_search(sample, here, there, prior)
        here = better or sample.evaluate(here.v * z / prior)
        here = here.divide(float(prior @ here.v))
    v = here.v
    if converged and not pseudo.any():
        v = np.where(z < (1 - DOMINATED) * prior, 0.0, v)
    rows = here.rows
    return MixtureFit(
        v, here.total / rows, here.square / rows, here.curvature(pseudo), rows, rows / here.size,
        here.fit, converged, first + step,
    )  # fmt: skip


@dataclass(frozen=True)
class Point:
    """The likelihood and its derivatives at v: sums of log p . v, of z = p / (p . v), of z z'."""

    v: np.ndarray
    rows: float
    fit: float
    total: np.ndarray
    square: np.ndarray
    size: float  # rows and pseudo-rows

    def mean(self, pseudo: np.ndarray) -> np.ndarray:
        """zbar, with the pseudo-rows of the prior."""
        return np.asarray((self.total + _ratio(pseudo, self.v)) / self.size)

    def curvature(self, pseudo: np.ndarray) -> np.ndarray:
        """Mean of z z', with the pseudo-rows."""
        return np.asarray((self.square + np.diag(_ratio(pseudo, self.v**2))) / self.size)

    def value(self, prior: np.ndarray, pseudo: np.ndarray) -> float:
        """The penalised log-likelihood; its maximum has prior . v = 1."""
        known = pseudo > 0
        with np.errstate(divide="ignore"):  # a share of 0 is impossible under a prior
            return float(
                self.fit + np.log(self.v[known]) @ pseudo[known] - self.size * float(prior @ self.v)
            )

    def divide(self, by: float) -> Point:
        """The point v / by."""
        return Point(
            self.v / by, self.rows, self.fit - self.rows * float(np.log(by)), self.total * by,
            self.square * by**2, self.size,
        )  # fmt: skip


@dataclass(frozen=True)
class Mixture:
    """The target's rows, their class probabilities, and the pseudo-rows of a prior."""

    engine: Engine
    posterior: Posterior
    pseudo: np.ndarray

    def evaluate(self, v: np.ndarray) -> Point:
        """The point v, in one pass over the rows."""
        sums = self.engine.total(Derivatives(self.posterior, v))
        return Point(v, **sums, size=sums["rows"] + self.pseudo.sum())

    def gradient(self, v: np.ndarray) -> tuple[float, np.ndarray]:
        """Rows, and the sum of z at v, in one pass over the rows."""
        rows, total = self.engine.total(Gradient(self.posterior, v)).values()
        return rows, total


@dataclass(frozen=True)
class Derivatives:
    """Summand: rows, and the sums of a `Point`."""

    posterior: Posterior
    v: np.ndarray

    def __call__(self, batch: Predictions) -> Tally:
        p, f = self.posterior(batch), batch.frequency
        mixed = p @ self.v
        z = p * (1 / np.maximum(mixed, LEAST_MIXED))[:, None]
        weighted = z if batch.sample_weight is None else z * f[:, None]
        fit = float(f @ np.log(np.maximum(mixed, 1e-300)))
        return Tally(rows=batch.size, fit=fit, total=f @ z, square=z.T @ weighted)


@dataclass(frozen=True)
class Gradient:
    """Summand: rows, and the sum of z = p / (p . v)."""

    posterior: Posterior
    v: np.ndarray

    def __call__(self, batch: Predictions) -> Tally:
        p = self.posterior(batch)
        return Tally(rows=batch.size, total=(batch.frequency / (p @ self.v)) @ p)


def _run_em(sample: Mixture, prior: np.ndarray, steps: int) -> np.ndarray:
    """v after this number of EM steps from no shift."""
    v, pseudo = np.ones(len(prior)), sample.pseudo
    for _ in range(steps):
        rows, total = sample.gradient(v)
        v = v * (total + _ratio(pseudo, v)) / ((rows + pseudo.sum()) * prior)
        v = v / (prior @ v)
    return v


def _fit_few(sample: Mixture, prior: np.ndarray) -> np.ndarray | None:
    """v of a part of the rows, where the search may start; None where this takes longer."""

    def fit() -> list[np.ndarray]:
        rows = start_rows(sample.engine)
        if rows is None:
            return []
        found = maximize_mixture(Blocks(Arrays(rows)), sample.posterior, prior, 0 * sample.pseudo)
        v = np.maximum(found.ratio, LEAST_START)
        return [v / (prior @ v)]

    found = record(sample.engine, "weights of a part", fit)
    return found[0] if found else None


def _refine(sample: Mixture, here: Point, there: np.ndarray, prior: np.ndarray) -> np.ndarray:
    """A point nearer to the maximum, by steps with the curvature of ``here`` while they shrink.

    Shares of 0 stay 0.
    """
    free, length = there > 0, np.inf
    curvature = here.curvature(sample.pseudo)[np.ix_(free, free)]
    for _ in range(MOST_REFINED):
        rows, total = sample.gradient(there)
        step = np.zeros(len(there))
        step[free] = np.linalg.solve(curvature, (total / rows - prior)[free])
        shorter = float(np.abs(step).max())
        if shorter > length / 2 or (there + step).min() < 0:
            break
        there, length = there + step, shorter
        if np.max(total / rows / prior) - 1 <= LARGEST_GAP:
            break
    return there


def select_prior_strength(engine: Engine, posterior: Posterior, prior: np.ndarray) -> MixtureFit:
    """The maximum with a Dirichlet prior on q around ``prior``, of largest evidence in strength.

    The evidence integrates q out of the likelihood, by Laplace's method on log q.
    """
    v, found = np.ones(len(prior)), []
    for strength in STRENGTHS * len(prior):
        mixture = maximize_mixture(engine, posterior, prior, strength * prior, v)
        v = mixture.ratio
        found.append((_evidence(mixture, prior, strength), mixture))
    return max(found, key=lambda pair: pair[0])[1]


def _evidence(mixture: MixtureFit, prior: np.ndarray, strength: float) -> float:
    """log of the integral of prod_j (p_j . v) times the Dirichlet density, up to a constant.

    The second derivative by log q is  alpha - (m + s) q q' + m v v' square  on sum log q = 0.
    """
    from scipy.special import gammaln

    v, alpha, rows = mixture.ratio, strength * prior, mixture.rows
    q = v * prior
    H = np.diag(alpha) + rows * np.outer(v, v) * mixture.square - (rows + strength) * np.outer(q, q)
    volume = np.linalg.slogdet(H + rows / len(q) ** 2)[1]
    fit = mixture.fit
    return float(fit + alpha @ np.log(q) + gammaln(strength) - gammaln(alpha).sum() - volume / 2)


def _ratio(pseudo: np.ndarray, v: np.ndarray) -> np.ndarray:
    """pseudo / v, and 0 where there are no pseudo-rows."""
    return np.asarray(np.divide(pseudo, v, out=np.zeros(len(v)), where=pseudo > 0))


def _newton_target(
    v: np.ndarray, curvature: np.ndarray, z: np.ndarray, prior: np.ndarray
) -> np.ndarray:
    """The v >= 0 where the quadratic model is largest: least v'Av / 2 - (2 zbar - prior)'v."""
    A = curvature + RIDGE * np.trace(curvature) / len(v) * np.eye(len(v))
    free = v + np.linalg.solve(A, z - prior)
    if free.min() >= 0:
        return np.asarray(free)
    R = np.linalg.cholesky(A).T
    return nonnegative_least_squares(R, np.linalg.solve(R.T, A @ v + z - prior))


def _line_search(
    sample: Mixture, here: Point, there: np.ndarray, prior: np.ndarray
) -> Point | None:
    """The point nearest to ``there`` that is not lower than ``here``, or None.

    The tolerance is rounding, by which alone points near the maximum differ.
    """
    least = here.value(prior, sample.pseudo) - 1e-13 * here.size
    for length in LENGTHS:
        found = sample.evaluate(here.v + length * (there - here.v))
        if found.value(prior, sample.pseudo) >= least:
            return found
    return None
