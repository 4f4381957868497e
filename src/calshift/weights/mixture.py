"""Mixing proportions of largest likelihood.

docs/mathematics.md section 7, em.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from calshift._core.addable import Tally
from calshift._core.linalg import nonnegative_least_squares
from calshift._core.predictions import Predictions
from calshift.engines.base import Engine

LARGEST_GAP = 1e-10  # bound on the mean log-likelihood that is still missing
MANY = 64  # classes, from which a step of EM costs much less than one of Newton's method
MANY_EM_STEPS, FEW_EM_STEPS = 15, 2  # before Newton's method takes over
MOST_STEPS = 200
DOMINATED = 1e-3  # by which zbar_y falls short of prior_y for a class without a share
STRENGTHS = np.array([100, 30, 10, 3, 1, 0.3, 0.1])  # rows a class that a prior may be worth
LENGTHS = 0.5 ** np.arange(12)  # of a Newton step that are tried
RIDGE = 1e-9  # of a Newton step: rounding must not walk where predictions cannot tell classes apart
LEAST_MIXED = 1e-140  # of a row, so that squares of z stay finite where a step makes it impossible


@dataclass(frozen=True)
class MixtureFit:
    """Where the likelihood is largest, with z_j = p_j / (p_j . v).

    Attributes
    ----------
    ratio : v, (S,) q / pi
    mean, square : zbar (S,) and (S, S) mean_j z_j z_j'
    curvature : A, (S, S) the same with the rows that stand for a prior on q
    share : of the target's rows among all
    """

    ratio: np.ndarray
    mean: np.ndarray
    square: np.ndarray
    curvature: np.ndarray
    share: float
    converged: bool
    iterations: int


def maximize_mixture(
    engine: Engine, prior: np.ndarray, pseudo: np.ndarray, start: np.ndarray | None = None
) -> MixtureFit:
    """The v >= 0 that maximises sum_j log p_j . v + pseudo . log v, with prior . v = 1.

    EM steps where classes are many, since they cost little, then Newton's method, a pass over the
    rows each. At v the mean log-likelihood is short of the largest by at most
    max_y zbar_y / prior_y - 1. A class whose zbar_y is below its prior_y has no share there: what
    is left of it is rounding.
    """
    first = MANY_EM_STEPS if len(prior) > MANY else FEW_EM_STEPS
    v = _after_em(engine, prior, pseudo, first) if start is None else start
    here = Point.at(engine, v, pseudo)
    for step in range(MOST_STEPS):
        z = here.mean(pseudo)
        settled = bool(np.max(z / prior) - 1 <= LARGEST_GAP)
        if settled:
            break
        better = None
        if not (pseudo.any() and step % 2):  # EM steps mend what is near 0
            there = _newton_point(here.v, here.curvature(pseudo), z, prior)
            better = _farthest_up(engine, here, there, prior, pseudo)
        here = better or Point.at(engine, here.v * z / prior, pseudo)
        here = here.scaled(float(prior @ here.v))
    v = here.v
    if settled and not pseudo.any():
        v = np.where(z < (1 - DOMINATED) * prior, 0.0, v)
    rows = here.rows
    return MixtureFit(
        v, here.total / rows, here.square / rows, here.curvature(pseudo), rows / here.size,
        settled, first + step,
    )  # fmt: skip


@dataclass(frozen=True)
class Point:
    """The likelihood and its derivatives at v: sums of log p . v, of z = p / (p . v), of z z'."""

    v: np.ndarray
    rows: float
    fit: float
    total: np.ndarray
    square: np.ndarray
    size: float  # rows, and those that stand for a prior

    @staticmethod
    def at(engine: Engine, v: np.ndarray, pseudo: np.ndarray) -> Point:
        """One pass."""
        sums = engine.total(Derivatives(v))
        return Point(v, **sums, size=sums["rows"] + pseudo.sum())

    def mean(self, pseudo: np.ndarray) -> np.ndarray:
        """zbar, with the rows that stand for a prior."""
        return np.asarray((self.total + _over(pseudo, self.v)) / self.size)

    def curvature(self, pseudo: np.ndarray) -> np.ndarray:
        """Mean of z z', with these rows."""
        return np.asarray((self.square + np.diag(_over(pseudo, self.v**2))) / self.size)

    def value(self, prior: np.ndarray, pseudo: np.ndarray) -> float:
        """What is maximised; its maximum has prior . v = 1."""
        known = pseudo > 0
        with np.errstate(divide="ignore"):  # no share at all is impossible under a prior
            return float(
                self.fit + np.log(self.v[known]) @ pseudo[known] - self.size * float(prior @ self.v)
            )

    def scaled(self, by: float) -> Point:
        """The same at v / by."""
        return Point(
            self.v / by, self.rows, self.fit - self.rows * float(np.log(by)), self.total * by,
            self.square * by**2, self.size,
        )  # fmt: skip


@dataclass(frozen=True)
class Derivatives:
    """Kernel: rows, and the sums of a `Point`."""

    v: np.ndarray

    def __call__(self, batch: Predictions) -> Tally:
        mixed = batch.p @ self.v
        z = batch.p * (1 / np.maximum(mixed, LEAST_MIXED))[:, None]
        f = batch.frequency
        weighed = z if batch.sample_weight is None else z * f[:, None]
        fit = float(f @ _log(mixed))
        return Tally(rows=batch.size, fit=fit, total=f @ z, square=z.T @ weighed)


def _after_em(engine: Engine, prior: np.ndarray, pseudo: np.ndarray, steps: int) -> np.ndarray:
    """v after so many steps of EM from no shift."""
    v = np.ones(len(prior))
    for _ in range(steps):
        rows, total = engine.total(_gradient(v)).values()
        v = v * (total + _over(pseudo, v)) / ((rows + pseudo.sum()) * prior)
        v = v / (prior @ v)
    return v


def select_prior_strength(engine: Engine, prior: np.ndarray) -> MixtureFit:
    """With a Dirichlet prior around ``prior`` on q, of the strength of largest evidence.

    The evidence integrates q out of the likelihood, by Laplace's method on log q.
    """
    v, best, most = np.ones(len(prior)), None, -np.inf
    for strength in STRENGTHS * len(prior):
        mixture = maximize_mixture(engine, prior, strength * prior, v)
        v, evidence = mixture.ratio, _evidence(engine, mixture, prior, strength)
        if evidence > most:
            best, most = mixture, evidence
    assert best is not None
    return best


def _evidence(engine: Engine, mixture: MixtureFit, prior: np.ndarray, strength: float) -> float:
    """log of the integral of prod_j (p_j . v) times the Dirichlet density, up to a constant.

    The second derivative by log q is  alpha - (m + s) q q' + m v v' square  on sum log q = 0.
    """
    from scipy.special import gammaln

    v, alpha = mixture.ratio, strength * prior
    sums = engine.total(lambda batch: Tally(rows=batch.size, fit=_fit(batch, v)))
    rows, fit = sums["rows"], sums["fit"]
    q = v * prior
    H = np.diag(alpha) + rows * np.outer(v, v) * mixture.square - (rows + strength) * np.outer(q, q)
    volume = np.linalg.slogdet(H + rows / len(q) ** 2)[1]
    return float(fit + alpha @ np.log(q) + gammaln(strength) - gammaln(alpha).sum() - volume / 2)


def _fit(batch: Predictions, v: np.ndarray) -> float:
    return float(batch.frequency @ np.log(batch.p @ v))


def _over(pseudo: np.ndarray, v: np.ndarray) -> np.ndarray:
    return np.asarray(np.divide(pseudo, v, out=np.zeros(len(v)), where=pseudo > 0))


def _gradient(v: np.ndarray) -> Callable[[Predictions], Tally]:
    """Kernel: rows, and the sum of z = p / (p . v)."""

    def kernel(batch: Predictions) -> Tally:
        return Tally(rows=batch.size, total=(batch.frequency / (batch.p @ v)) @ batch.p)

    return kernel


def _newton_point(
    v: np.ndarray, curvature: np.ndarray, z: np.ndarray, prior: np.ndarray
) -> np.ndarray:
    """The v >= 0 where the quadratic model is largest: least v'Av / 2 - (2 zbar - prior)'v."""
    A = curvature + RIDGE * np.trace(curvature) / len(v) * np.eye(len(v))
    free = v + np.linalg.solve(A, z - prior)
    if free.min() >= 0:
        return np.asarray(free)
    R = np.linalg.cholesky(A).T
    return nonnegative_least_squares(R, np.linalg.solve(R.T, A @ v + z - prior))


def _farthest_up(
    engine: Engine, here: Point, there: np.ndarray, prior: np.ndarray, pseudo: np.ndarray
) -> Point | None:
    """The first point on the way back from there that is no lower than here, None if all are.

    Near the top they differ by rounding only, and the longest step is as good as any.
    """
    least = here.value(prior, pseudo) - 1e-13 * here.size
    for length in LENGTHS:
        found = Point.at(engine, here.v + length * (there - here.v), pseudo)
        if found.value(prior, pseudo) >= least:
            return found
    return None


def _log(x: np.ndarray) -> np.ndarray:
    """Logarithm, of 0 a very low value rather than an infinite one."""
    return np.asarray(np.log(np.maximum(x, 1e-300)))
