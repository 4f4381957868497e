"""Interval of the squared (L2) error. (docs/mathematics.md 8)

Fields may be arrays, one entry for each class.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import isfinite, nan, sqrt
from typing import Any

import numpy as np

from calshift._core.frozen import Frozen

MOST_STEPS, CLOSE = 80, 1e-11  # of the search for an end, relative to it
LEAST = 1e-300  # probability that has a quantile
ONE_SIDED = 0.7  # of the tail, where all of it is in the upper tail: a margin for the approximation
FAR = 1e4  # noncentrality above which chi-square is taken as normal: chndtr slows down there
MANY_DEGREES = 1e9  # of freedom, above which too: chndtr fails


@dataclass(frozen=True, eq=False)
class SquaredErrorDistribution(Frozen):
    """Distribution of |a|^2 for a noisy vector a ~ N(a0, S), with sampled target rows.

    plug / kap is approximated by a noncentral chi-square with df = bias / kap and noncentrality
    t / kap at a true error t: mean t + bias, variance 2 T at t = 0 and that of first order for
    large t, so that one distribution serves calibrated and miscalibrated models.

    Attributes
    ----------
    plug : |a|^2, the plug-in error, corrected for the bias of a ratio
    bias : its expected excess, tr S
    first : V1, variance of the linear part, too large by 4 T since a itself is noisy
    second : T = |S|^2, half the variance at error 0
    """

    plug: Any
    bias: Any
    first: Any
    second: Any

    @property
    def standard_error(self) -> np.ndarray:
        """sqrt(max(V1 - 4 T, 0) + 2 T)."""
        return np.asarray(np.sqrt(np.maximum(self.first - 4 * self.second, 0.0) + 2 * self.second))

    def scaled(self, factor: float) -> SquaredErrorDistribution:
        """The distribution of a multiple."""
        square = factor**2
        return SquaredErrorDistribution(
            self.plug * factor, self.bias * factor, self.first * square, self.second * square
        )

    def inflated(self, factor: float) -> SquaredErrorDistribution:
        """With the standard error multiplied by a factor."""
        square = factor**2
        return SquaredErrorDistribution(
            self.plug, self.bias, self.first * square, self.second * square
        )

    def interval(self, level: float) -> tuple[np.ndarray, np.ndarray]:
        """The errors t >= 0 that a test at this level does not reject.

        A plug-in below its bias counts as equal to it: it is no evidence against small errors.
        """
        moments = self.plug, self.bias, self.first, self.second
        if not any(map(np.ndim, moments)):  # faster without numpy
            low, high = _accepted(AcceptanceRegion(*map(float, moments)), 1 - level)
            return np.asarray(low), np.asarray(high)
        several = np.broadcast_arrays(*moments)
        each = zip(*(np.ravel(one).tolist() for one in several), strict=True)
        ends = [_accepted(AcceptanceRegion(*one), 1 - level) for one in each]
        low, high = np.array(ends).reshape(-1, 2).T.reshape(2, *several[0].shape)
        return low, high


def _accepted(region: AcceptanceRegion, alpha: float) -> tuple[float, float]:
    """The least and the largest error that is not rejected; NaN if the moments are not finite."""
    if not region.known:
        return nan, nan

    quantile, asked = region.quantile, region.quantile(alpha / 2)

    def excess(t: float) -> float:  # of quantiles, nearly linear in t
        return quantile(min(max(region(t), LEAST), 1.0) / 2) - asked

    plug, bias = region.plug, region.bias
    found, far = max(plug - bias, 0.0), plug + bias + 1e-300
    here, there = -asked, excess(far)  # the p-value is 1 at the bias-corrected error
    while there >= 0 and far < 1e300:
        far *= 2
        there = excess(far)
    low, high = region.likely(alpha)
    return (
        _crossing(excess, (0.0, excess(0.0)), (found, here), low),
        _crossing(excess, (far, there), (found, here), high),
    )


class AcceptanceRegion:
    """p-value of an error t: P(a plug-in as far from its mean as the one found, or farther | t).

    Distances are those of roots, whose standard deviation depends little on t. No plug-in counts
    as below the bias, so that none is too low for a small t: there the whole tail is the upper one,
    in which the chi-square decreases a little too fast. For numbers: faster than arrays of one.
    """

    def __init__(self, plug: float, bias: float, first: float, second: float) -> None:
        # scalar functions; late: importing calshift must be fast
        from scipy.special.cython_special import chndtr, ndtr, ndtri

        self.chi_square: Callable[[float, float, float], float] = chndtr
        self.normal: Callable[[float], float] = ndtr
        self.quantile: Callable[[float], float] = ndtri
        self.known = isfinite(plug + bias + first + second)
        variance, size = (first + second) / 4, plug + bias / 4
        kap = variance / size if size > 0 else 0.0
        self.exact = kap <= 0  # no noise was found: the plug-in is the error
        self.scale = 1.0 if self.exact else kap
        self.plug, self.bias, self.df = plug, bias, max(bias / self.scale, 1e-12)
        self.least, self.root = sqrt(bias), sqrt(max(plug, bias))

    def __call__(self, t: float) -> float:
        other = 2 * sqrt(t + self.bias) - self.root  # as far from the mean, on the other side
        low, high = min(self.root, other), max(self.root, other)
        too_high = 1 - self._below(high * high, t)
        return too_high + self._below(low * low, t) if low >= self.least else too_high / ONE_SIDED

    def likely(self, alpha: float) -> tuple[float, float]:
        """Approximate ends, for which roots are taken as normal with variance ``scale``."""
        reach = -self.quantile(alpha / 2) * sqrt(self.scale)
        low, high = max(self.root - reach, 0.0), self.root + reach
        return low * low - self.bias, high * high - self.bias

    def _below(self, plug: float, t: float) -> float:
        """P(plug-in below that | error t)."""
        if self.exact:
            return float(t <= plug)
        x, shift = plug / self.scale, t / self.scale
        if shift <= FAR and self.df <= MANY_DEGREES:
            return self.chi_square(x, self.df, shift)
        return self.normal((x - self.df - shift) / sqrt(2 * self.df + 4 * shift))


def _crossing(
    excess: Callable[[float], float],
    below: tuple[float, float],
    above: tuple[float, float],
    likely: float,
) -> float:
    """The root of a function between a point where it is negative and one where it is positive.

    ``likely`` is the first guess. Chandrupatla's method: inverse quadratic steps where they are
    safe, else bisection. (Importing scipy.optimize takes longer than all else here.)
    """
    (a, fa), (b, fb) = above, below
    if fb >= 0:  # positive all the way
        return b
    share = (likely - a) / (b - a) if b != a else 0.5
    fa, share = max(fa, 1e-300), share if 0.01 < share < 0.99 else 0.5
    for _ in range(MOST_STEPS):
        x = a + share * (b - a)
        f = excess(x)
        same = (f >= 0) == (fa >= 0)
        c, fc = (a, fa) if same else (b, fb)
        b, fb = (b, fb) if same else (a, fa)
        a, fa = x, f
        if abs(b - a) <= CLOSE * max(abs(a), abs(b)) + 1e-300:
            break
        share = _safe_step(a, b, c, fa, fb, fc)
    return a if fa >= 0 else b


def _safe_step(a: float, b: float, c: float, fa: float, fb: float, fc: float) -> float:
    """The next point as a share of the way from a to b."""
    if fc in (fa, fb):
        return 0.5
    xi, phi = (a - b) / (c - b), (fa - fb) / (fc - fb)
    if phi**2 >= xi or (1 - phi) ** 2 >= 1 - xi:
        return 0.5
    step = fa / (fb - fa) * fc / (fb - fc) + (c - a) / (b - a) * fa / (fc - fa) * fb / (fc - fb)
    least = min(CLOSE * abs(a) / abs(b - a), 0.5)
    return min(max(step, least), 1 - least)
