"""From moments of an estimate to its standard error and interval. (docs/mathematics.md 8)

A law may hold arrays: one serves a whole error and every class of it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from math import isfinite, nan, sqrt
from typing import Any, Protocol

import numpy as np

from calshift._core.frozen import Frozen

MOST_STEPS, CLOSE = 80, 1e-11  # of the search for an end, relative to it
LEAST = 1e-300  # probability that has a quantile
ONE_SIDED = 0.7  # of the doubt, where all of it is about too high a plug-in: a margin for the law
MANY_DEGREES = 1e9  # of freedom, beyond which too: chndtr gives up
FAR = 1e4  # noncentrality beyond which chi-square is taken as normal: chndtr slows down there


class SamplingDistribution(Protocol):
    """Of an error, or of an array of them."""

    @property
    def standard_error(self) -> np.ndarray:
        """Of the estimate."""

    def interval(self, level: float) -> tuple[np.ndarray, np.ndarray]:
        """Lower and upper ends, not below 0."""


@dataclass(frozen=True, eq=False)
class SquaredErrorDistribution(Frozen):
    """Of the squared length of a noisy vector: |a|^2, a ~ N(a0, S), and sampled target rows.

    plug / kap is taken as noncentral chi-square with df = bias / kap and noncentrality t / kap,
    where t is the error asked for: mean t + bias, variance 2 T at t = 0 and as first order has it
    far away. One law from calibrated to miscalibrated.

    Attributes
    ----------
    plug : |a|^2, the plug-in error, freed of the bias of a ratio
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

    def interval(self, level: float) -> tuple[np.ndarray, np.ndarray]:
        """The errors t >= 0 that the plug-in found does not contradict at this level.

        A plug-in below its expected noise counts as just that: luck, no proof of an error of 0.
        """
        moments = self.plug, self.bias, self.first, self.second
        if not any(map(np.ndim, moments)):  # numpy takes longer to begin
            low, high = _agreeing(AcceptanceRegion(*map(float, moments)), 1 - level)
            return np.asarray(low), np.asarray(high)
        several = np.broadcast_arrays(*moments)
        laws = zip(*(np.ravel(one).tolist() for one in several), strict=True)
        ends = np.array([_agreeing(AcceptanceRegion(*law), 1 - level) for law in laws]).reshape(
            -1, 2
        )
        low, high = ends.T.reshape(2, *several[0].shape)
        return low, high


def _agreeing(agreement: AcceptanceRegion, doubt: float) -> tuple[float, float]:
    """The least and the largest error that agrees with the plug-in; NaN if that is no number."""
    if not agreement.known:
        return nan, nan

    quantile, asked = agreement.quantile, agreement.quantile(doubt / 2)

    def excess(t: float) -> float:  # of quantiles, nearly straight lines in t
        return quantile(min(max(agreement(t), LEAST), 1.0) / 2) - asked

    plug, bias = agreement.plug, agreement.bias
    found, far = max(plug - bias, 0.0), plug + bias + 1e-300
    here, there = -asked, excess(far)  # where the plug-in is expected, all of them agree
    while there >= 0 and far < 1e300:
        far *= 2
        there = excess(far)
    low, high = agreement.likely(doubt)
    return (
        _crossing(excess, (0.0, excess(0.0)), (found, here), low),
        _crossing(excess, (far, there), (found, here), high),
    )


class AcceptanceRegion:
    """P(a plug-in as far from its mean as the one found, or farther | error t).

    Far on the scale of roots, on which the spread is nearly the same for all t. Nothing counts as
    below the bias: so no plug-in is too low for a small t, and all doubt is about too high, where
    the chi-square falls a little too fast. Numbers, not arrays: numpy takes longer to begin.
    """

    def __init__(self, plug: float, bias: float, first: float, second: float) -> None:
        # for numbers, not arrays; late: importing calshift must be fast
        from scipy.special.cython_special import chndtr, ndtr, ndtri

        self.chi_square: Callable[[float, float, float], float] = chndtr
        self.normal: Callable[[float], float] = ndtr
        self.quantile: Callable[[float], float] = ndtri
        self.known = isfinite(plug + bias + first + second)
        variance, size = (first + second) / 4, plug + bias / 4
        kap = variance / size if size > 0 else 0.0
        self.sure = kap <= 0  # no noise was found: the plug-in is the error
        self.scale = 1.0 if self.sure else kap
        self.plug, self.bias, self.df = plug, bias, max(bias / self.scale, 1e-12)
        self.least, self.root = sqrt(bias), sqrt(max(plug, bias))

    def __call__(self, t: float) -> float:
        other = 2 * sqrt(t + self.bias) - self.root  # as far from the mean, on the other side
        low, high = min(self.root, other), max(self.root, other)
        too_high = 1 - self._below(high * high, t)
        return too_high + self._below(low * low, t) if low >= self.least else too_high / ONE_SIDED

    def likely(self, doubt: float) -> tuple[float, float]:
        """About where it falls to the doubt: roots are nearly normal, with variance ``scale``."""
        reach = -self.quantile(doubt / 2) * sqrt(self.scale)
        low, high = max(self.root - reach, 0.0), self.root + reach
        return low * low - self.bias, high * high - self.bias

    def _below(self, plug: float, t: float) -> float:
        """P(plug-in below that | error t)."""
        if self.sure:
            return float(t <= plug)
        x, shift = plug / self.scale, t / self.scale
        if shift <= FAR and self.df <= MANY_DEGREES:
            return self.chi_square(x, self.df, shift)
        return self.normal((x - self.df - shift) / sqrt(2 * self.df + 4 * shift))


@dataclass(frozen=True, eq=False)
class AbsoluteErrorDistribution(Frozen):
    """Of mean |g|, between two bounds.

    A mean of u s, with |s| <= 1 from the other rows' fit, cannot exceed mean |g| in expectation: it
    bounds the error from below. From above, the estimate freed of noise is biased upwards if at
    all, and no mean of |g| exceeds the root of the mean of g^2.

    Attributes
    ----------
    estimate : mean |d|, freed of noise
    least : that mean, s the fit in standard errors held to [-1, 1]
    variance : of either
    square : the law of mean g^2
    """

    estimate: Any
    least: Any
    variance: Any
    square: SquaredErrorDistribution

    @property
    def standard_error(self) -> np.ndarray:
        """Of the estimate."""
        return np.asarray(np.sqrt(self.variance))

    def interval(self, level: float) -> tuple[np.ndarray, np.ndarray]:
        """From the lower bound less, to the upper bound plus their errors; 0 if g may be 0.

        Never without the estimate, nor the root of the squared error where that is less: the lower
        bound is a mean over the source, and may lie above both by chance.
        """
        from scipy.special import ndtri

        reach = ndtri((1 + level) / 2) * self.standard_error
        low, high = self.square.interval(level)
        root = np.sqrt(np.maximum(self.square.plug - self.square.bias, 0.0))
        bound = np.minimum(self.least - reach, np.minimum(self.estimate, root))
        return (
            np.where(low > 0, np.maximum(bound, 0.0), 0.0),
            np.minimum(self.estimate + reach, np.sqrt(high)),
        )


@dataclass(frozen=True, eq=False)
class BootstrapDistribution(Frozen):
    """Of an estimate that was made again on samples drawn from the sample.

    The draws are noisier than the estimate by what drawing adds, so their spread is taken around
    their own mean and laid around the estimate. Near an error of 0 it is wider than it must be.

    Attributes
    ----------
    estimate : (), or (E,)
    draws : (draws,), or (draws, E); NaN where a draw had no answer
    """

    estimate: Any
    draws: np.ndarray

    @property
    def standard_error(self) -> np.ndarray:
        """Spread of the draws."""
        return np.asarray(np.nanstd(self.draws, axis=0, ddof=1))

    def interval(self, level: float) -> tuple[np.ndarray, np.ndarray]:
        """The estimate with the quantiles of the draws around it."""
        tail = (1 - level) / 2
        around = np.nanquantile(self.draws, [tail, 1 - tail], axis=0) - np.nanmean(
            self.draws, axis=0
        )
        low, high = np.maximum(self.estimate + around, 0.0)
        return low, high


@dataclass(frozen=True, eq=False)
class RowInfluence(Frozen):
    """By how much each row moved an error, to tell what two errors of the same rows share.

    Attributes
    ----------
    source, target : (n,), and (m,) or None for an error with labels
    mark : of the source's labels and weights, by which the same rows are recognised
    outside : moves by observations of neither sample
    """

    source: np.ndarray
    target: np.ndarray | None
    fingerprint: int = 0
    outside: np.ndarray = field(default_factory=lambda: np.zeros(0))

    def has_same_rows(self, other: RowInfluence) -> bool:
        """Whether both are about the same rows, as far as labels and sizes tell."""
        same = self.fingerprint == other.fingerprint and self.source.shape == other.source.shape
        if self.target is None or other.target is None:
            return same
        return same and self.target.shape == other.target.shape

    @property
    def variance(self) -> float:
        """Of the error, to first order."""
        return self.with_other(self)

    def with_other(self, other: RowInfluence) -> float:
        """Covariance with an error of the same rows; a sample that one lacks is not shared."""
        shared = float(self.source @ other.source)
        if self.outside.shape == other.outside.shape:
            shared += float(self.outside @ other.outside)
        if self.target is None or other.target is None:
            return shared
        return shared + float(self.target @ other.target)


def _crossing(
    excess: Callable[[float], float],
    below: tuple[float, float],
    above: tuple[float, float],
    likely: float,
) -> float:
    """Where a function turns from negative to positive between two such points.

    It is looked at first where it ``likely`` turns. Chandrupatla's method: inverse quadratic steps
    where they can be trusted, else halves. (That of scipy.optimize takes longer to import than all
    else here.)
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
        share = _trusted_step(a, b, c, fa, fb, fc)
    return a if fa >= 0 else b


def _trusted_step(a: float, b: float, c: float, fa: float, fb: float, fc: float) -> float:
    """The share of the way from a to b at which to look next."""
    if fc in (fa, fb):
        return 0.5
    xi, phi = (a - b) / (c - b), (fa - fb) / (fc - fb)
    if phi**2 >= xi or (1 - phi) ** 2 >= 1 - xi:
        return 0.5
    step = fa / (fb - fa) * fc / (fb - fc) + (c - a) / (b - a) * fa / (fc - fa) * fb / (fc - fb)
    least = min(CLOSE * abs(a) / abs(b - a), 0.5)
    return min(max(step, least), 1 - least)
