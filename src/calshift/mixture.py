"""Mixing proportions of largest likelihood.

docs/mathematics.md section 7, em.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from calshift.engines import Arrays, Sums
from calshift.linear import non_negative
from calshift.predictions import Predictions

LARGEST_GAP = 1e-10  # bound on the mean log-likelihood that is still missing
EM_STEPS = 15  # before Newton's method takes over
MOST_STEPS = 200
DOMINATED = 1e-3  # by which zbar_y falls short of prior_y for a class without a share
STRENGTHS = np.array([100, 30, 10, 3, 1, 0.3, 0.1])  # rows a class that a prior may be worth
LENGTHS = 0.5 ** np.arange(12)  # of a Newton step that are tried


@dataclass(frozen=True)
class Mixture:
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


def maximised(
    engine: Arrays, prior: np.ndarray, pseudo: np.ndarray, start: np.ndarray | None = None
) -> Mixture:
    """The v >= 0 that maximises sum_j log p_j . v + pseudo . log v, with prior . v = 1.

    At v the mean log-likelihood is short of the largest by at most max_y zbar_y / prior_y - 1. A
    class whose zbar_y is below its prior_y has no share there: what is left of it is rounding.
    """
    v, square = np.ones(len(prior)) if start is None else start, None
    first_newton = EM_STEPS if start is None else 1
    for step in range(MOST_STEPS):
        rows, total = engine.total(_gradient(v))
        size = rows + pseudo.sum()
        z = (total + _over(pseudo, v)) / size
        settled = bool(np.max(z / prior) - 1 <= LARGEST_GAP)
        if (settled and square is None) or (not settled and step >= first_newton):
            square = engine.total(_square(v))
            curvature = (square + np.diag(_over(pseudo, v**2))) / size
        if settled:
            break
        better = None
        if square is not None and not (pseudo.any() and step % 2):  # EM steps mend what is near 0
            there = _newton_point(v, curvature, z, prior)
            better = _farthest_up(engine, v, there, size * prior, pseudo)
        v = v * z / prior if better is None else better
        v = v / (prior @ v)
    assert square is not None
    if settled and not pseudo.any():
        v = np.where(z < (1 - DOMINATED) * prior, 0.0, v)
    return Mixture(v, total / rows, square / rows, curvature, rows / size, settled, step)


def most_evident(engine: Arrays, prior: np.ndarray) -> Mixture:
    """With a Dirichlet prior around ``prior`` on q, of the strength of largest evidence.

    The evidence integrates q out of the likelihood, by Laplace's method on log q.
    """
    v, best, most = np.ones(len(prior)), None, -np.inf
    for strength in STRENGTHS * len(prior):
        mixture = maximised(engine, prior, strength * prior, v)
        v, evidence = mixture.ratio, _evidence(engine, mixture, prior, strength)
        if evidence > most:
            best, most = mixture, evidence
    assert best is not None
    return best


def _evidence(engine: Arrays, mixture: Mixture, prior: np.ndarray, strength: float) -> float:
    """log of the integral of prod_j (p_j . v) times the Dirichlet density, up to a constant.

    The second derivative by log q is  alpha - (m + s) q q' + m v v' square  on sum log q = 0.
    """
    from scipy.special import gammaln

    v, alpha = mixture.ratio, strength * prior
    rows, fit = engine.total(lambda batch: Sums((batch.size, _fit(batch, v))))
    q = v * prior
    H = np.diag(alpha) + rows * np.outer(v, v) * mixture.square - (rows + strength) * np.outer(q, q)
    volume = np.linalg.slogdet(H + rows / len(q) ** 2)[1]
    return float(fit + alpha @ np.log(q) + gammaln(strength) - gammaln(alpha).sum() - volume / 2)


def _fit(batch: Predictions, v: np.ndarray) -> float:
    return float(batch.frequency @ np.log(batch.p @ v))


def _over(pseudo: np.ndarray, v: np.ndarray) -> np.ndarray:
    return np.asarray(np.divide(pseudo, v, out=np.zeros(len(v)), where=pseudo > 0))


def _gradient(v: np.ndarray) -> Callable[[Predictions], Sums]:
    """Kernel: rows, and the sum of z = p / (p . v)."""

    def kernel(batch: Predictions) -> Sums:
        return Sums((batch.size, (batch.frequency / (batch.p @ v)) @ batch.p))

    return kernel


def _square(v: np.ndarray) -> Callable[[Predictions], np.ndarray]:
    """Kernel: sum of z z'."""

    def kernel(batch: Predictions) -> np.ndarray:
        z = batch.p * (np.sqrt(batch.frequency) / (batch.p @ v))[:, None]
        return np.asarray(z.T @ z)

    return kernel


def _newton_point(
    v: np.ndarray, curvature: np.ndarray, z: np.ndarray, prior: np.ndarray
) -> np.ndarray:
    """The v >= 0 where the quadratic model is largest: least v'Av / 2 - (2 zbar - prior)'v."""
    A = curvature + 1e-12 * np.trace(curvature) / len(v) * np.eye(len(v))
    pull = A @ v + z - prior
    free = np.linalg.solve(A, pull)
    if free.min() >= 0:
        return np.asarray(free)
    R = np.linalg.cholesky(A).T
    return non_negative(R, np.linalg.solve(R.T, pull))


def _farthest_up(
    engine: Arrays, v: np.ndarray, there: np.ndarray, cost: np.ndarray, pseudo: np.ndarray
) -> np.ndarray | None:
    """The point between v and there of largest likelihood among a few, None if all are lower.

    Near the top they differ by rounding only, and the longest step is as good as any.
    """
    lengths = np.append(LENGTHS, 0.0)

    def kernel(batch: Predictions) -> np.ndarray:
        here, step = batch.p @ v, batch.p @ (there - v)
        return np.array([batch.frequency @ _log(here + t * step) for t in lengths])

    points, known = v + lengths[:, None] * (there - v), pseudo > 0
    with np.errstate(divide="ignore"):  # no share at all is impossible under a prior
        value = engine.total(kernel) + np.log(points[:, known]) @ pseudo[known] - points @ cost
    best = int(np.argmax(value >= value.max() - 1e-13 * cost.sum()))
    return points[best] if best < len(LENGTHS) else None


def _log(x: np.ndarray) -> np.ndarray:
    """Logarithm, of 0 a very low value rather than an infinite one."""
    return np.asarray(np.log(np.maximum(x, 1e-300)))
