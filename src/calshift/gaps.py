"""Spread of a gap Z = |R - f|^p in one bin: R normal, f one of the bin's scores.

Two numbers: Var(Z), and the covariance of two gaps that share R, which is the variance over R of
the mean gap, Var_R( mean_f |R - f|^p ). (docs/mathematics.md, Algorithm 1)
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache, partial

import numpy as np

NODES = 101  # of the quadrature over R: exact for even p up to 100, the largest norm


@dataclass(frozen=True)
class Bin:
    """Scores in order, the share of the bin's rows each stands for, and the law of R."""

    scores: np.ndarray
    share: np.ndarray
    rows: int
    mean: float
    variance: float


Spread = Callable[[Bin], tuple[float, float]]  # -> Var(Z), covariance


def spread_of(norm: float, rng: np.random.Generator | None = None) -> Spread:
    """Drawn if there is an rng, else computed: exactly for p = 1 and even p."""
    if rng is not None:
        return partial(drawn, norm=norm, rng=rng)
    if norm == 1:
        return absolute
    return square if norm == 2 else partial(by_quadrature, norm=norm)


def drawn(bin_: Bin, norm: float, rng: np.random.Generator) -> tuple[float, float]:
    """As printed in the paper: as many draws of R as rows, each with a pair of scores."""
    R = rng.normal(bin_.mean, np.sqrt(bin_.variance), bin_.rows)
    f = rng.choice(bin_.scores, (2, bin_.rows), p=bin_.share)
    (first, shared), (_, second) = np.cov(np.abs(R - f) ** norm)
    return float(first + second) / 2, float(shared)


def square(bin_: Bin) -> tuple[float, float]:
    """p = 2, with e = E R - f and s^2 = Var R.

    Var(Z) = Var(e^2) + 4 s^2 E e^2 + 2 s^4,    covariance = 4 s^2 (E e)^2 + 2 s^4
    """
    e, s2 = bin_.mean - bin_.scores, bin_.variance
    second = bin_.share @ e**2
    within = bin_.share @ (e**2 - second) ** 2 + 4 * s2 * second
    return float(within + 2 * s2**2), float(4 * s2 * (bin_.share @ e) ** 2 + 2 * s2**2)


def absolute(bin_: Bin) -> tuple[float, float]:
    """p = 1: between neighbouring scores the mean gap is a line in R, integrated piece by piece.

    With R = E R + s U the line of a piece is a + b U. Over a piece, with P the normal distribution
    function, d its density and [.] the difference between its ends::

        E (a + b U) = a [P] - b [d],    E (a + b U)^2 = (a^2 + b^2) [P] - 2 a b [d] - b^2 [U d]
    """
    f, share, s = bin_.scores, bin_.share, float(np.sqrt(bin_.variance))
    if s == 0:
        gap = np.abs(bin_.mean - f)
        return float(share @ (gap - share @ gap) ** 2), 0.0
    below = np.concatenate([[0.0], np.cumsum(share)])  # share of the scores below each piece
    weighted = np.concatenate([[0.0], np.cumsum(share * f)])
    slope = 2 * below - below[-1]
    a, b = slope * bin_.mean + weighted[-1] - 2 * weighted, slope * s
    mass, density, leaning = _normal_pieces((f - bin_.mean) / s)
    mean = a @ mass - b @ density
    a = a - mean
    covariance = (a**2 + b**2) @ mass - 2 * (a * b) @ density - b**2 @ leaning
    second = share @ (f - bin_.mean) ** 2 + s**2
    return float(max(second - mean**2, 0.0)), float(max(covariance, 0.0))


def _normal_pieces(cuts: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """[P], [d] and [u d] over the pieces into which the cuts divide the line."""
    from scipy.special import ndtr  # late: importing calshift must be fast

    cuts = np.clip(cuts, -40.0, 40.0)  # beyond, there is nothing of the normal law
    density = np.exp(-(cuts**2) / 2) / np.sqrt(2 * np.pi)
    mass = np.diff(ndtr(cuts), prepend=0.0, append=1.0)
    ends = (np.diff(part, prepend=0.0, append=0.0) for part in (density, cuts * density))
    return mass, *ends


def by_quadrature(bin_: Bin, norm: float) -> tuple[float, float]:
    """Any p by Gauss-Hermite quadrature over R: exact for even p.

    Elsewhere the fold at R = f costs accuracy, most of all where every score is the same: 3% near
    p = 1 (which has its own exact form), .2% at p = 1.5, 2e-5 at p = 3.
    """
    u, weight = _nodes()
    s, mean, second = np.sqrt(bin_.variance), np.empty(NODES), np.empty(NODES)
    for k in range(NODES):
        Z = np.abs(bin_.mean + s * u[k] - bin_.scores) ** norm
        mean[k], second[k] = bin_.share @ Z, bin_.share @ Z**2
    centre = weight @ mean
    covariance = weight @ (mean - centre) ** 2
    return float(weight @ (second - mean**2) + covariance), float(covariance)


@lru_cache(maxsize=1)
def _nodes() -> tuple[np.ndarray, np.ndarray]:
    u, weight = np.polynomial.hermite_e.hermegauss(NODES)
    return u, weight / weight.sum()
