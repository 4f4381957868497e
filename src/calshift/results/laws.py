"""From moments of an estimate to its standard error and interval. (docs/mathematics.md 8)

Arrays throughout: one law serves a whole error and every class of it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from calshift.frozen import Frozen

MOST_STEPS, CLOSE = 80, 1e-12  # of the search for an end, relative to it
ONE_SIDED = 0.7  # of the doubt, where all of it is about too high a plug-in: a margin for the law
FAR = 1e4  # noncentrality beyond which chi-square is taken as normal: chndtr slows down there


class Law(Protocol):
    """Of an error, or of an array of them."""

    @property
    def standard_error(self) -> np.ndarray:
        """Of the estimate."""

    def interval(self, level: float) -> tuple[np.ndarray, np.ndarray]:
        """Lower and upper ends, not below 0."""


@dataclass(frozen=True, eq=False)
class SquareLaw(Frozen):
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
        agreement, doubt, zero = Agreement(self), 1 - level, np.zeros_like(self.plug)
        found = np.maximum(self.plug - self.bias, 0.0)
        far = np.asarray(self.plug + self.bias) + 1e-300
        while (near := agreement(far) >= doubt).any():
            far = np.where(near, 2 * far, far)
        ends = np.stack([zero, far])
        low, high = _crossing(lambda t: agreement(t) - doubt, ends, np.stack([found, found]))
        return np.where(agreement(zero) >= doubt, 0.0, low), high


class Agreement:
    """P(a plug-in as far from its mean as the one found, or farther | error t).

    Far on the scale of roots, on which the spread is nearly the same for all t. Nothing counts as
    below the bias: so no plug-in is too low for a small t, and all doubt is about too high, where
    the chi-square falls a little too fast.
    """

    def __init__(self, law: SquareLaw) -> None:
        from scipy.special import chndtr, ndtr  # late: importing calshift must be fast

        self.chi_square, self.normal = chndtr, ndtr
        variance, size = (law.first + law.second) / 4, law.plug + law.bias / 4
        self.sure = (variance <= 0) | (size <= 0)  # no noise was found: the plug-in is the error
        self.scale = np.where(self.sure, 1.0, variance) / np.where(self.sure, 1.0, size)  # kap
        self.bias, self.df = law.bias, np.maximum(law.bias / self.scale, 1e-12)
        self.least, self.root = np.sqrt(law.bias), np.sqrt(np.maximum(law.plug, law.bias))

    def __call__(self, t: np.ndarray) -> np.ndarray:
        other = 2 * np.sqrt(t + self.bias) - self.root  # as far from the mean, on the other side
        low, high = np.minimum(self.root, other), np.maximum(self.root, other)
        too_low, too_high = self._below(low**2, t), 1 - self._below(high**2, t)
        return np.asarray(np.where(low >= self.least, too_low + too_high, too_high / ONE_SIDED))

    def _below(self, plug: np.ndarray, t: np.ndarray) -> np.ndarray:
        """P(plug-in below that | error t)."""
        x, shift = plug / self.scale, t / self.scale
        far = shift > FAR
        found = self.chi_square(x, self.df, np.where(far, 0.0, shift))
        if far.any():
            spread = np.sqrt(2 * self.df + 4 * shift + 1e-300)
            found = np.where(far, self.normal((x - self.df - shift) / spread), found)
        return np.asarray(np.where(self.sure, (t <= plug) * 1.0, found))


@dataclass(frozen=True, eq=False)
class AbsoluteLaw(Frozen):
    """Of mean |g|, between two bounds.

    A mean of u sign(g), with the sign from the other rows, cannot exceed mean |g| in expectation:
    it bounds the error from below. From above, the estimate freed of noise is biased upwards if at
    all, and no mean of |g| exceeds the root of the mean of g^2.

    Attributes
    ----------
    estimate : mean |d|, freed of noise
    least : mean of u sign(g) with left-out signs
    variance : of either
    square : the law of mean g^2
    """

    estimate: Any
    least: Any
    variance: Any
    square: SquareLaw

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
class DrawsLaw(Frozen):
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
class RowMoves(Frozen):
    """By how much each row moved an error, to tell what two errors of the same rows share.

    Attributes
    ----------
    source, target : (n,), and (m,) or None for an error with labels
    mark : of the source's labels and weights, by which the same rows are recognised
    outside : moves by observations of neither sample
    """

    source: np.ndarray
    target: np.ndarray | None
    mark: int = 0
    outside: np.ndarray = field(default_factory=lambda: np.zeros(0))

    def of_the_same_rows(self, other: RowMoves) -> bool:
        """Whether both are about the same rows, as far as labels and sizes tell."""
        same = self.mark == other.mark and self.source.shape == other.source.shape
        if self.target is None or other.target is None:
            return same
        return same and self.target.shape == other.target.shape

    @property
    def variance(self) -> float:
        """Of the error, to first order."""
        return self.with_other(self)

    def with_other(self, other: RowMoves) -> float:
        """Covariance with an error of the same rows; a sample that one lacks is not shared."""
        shared = float(self.source @ other.source)
        if self.outside.shape == other.outside.shape:
            shared += float(self.outside @ other.outside)
        if self.target is None or other.target is None:
            return shared
        return shared + float(self.target @ other.target)


def _crossing(
    excess: Callable[[np.ndarray], np.ndarray], below: np.ndarray, above: np.ndarray
) -> np.ndarray:
    """Where a function turns from negative to positive, for each pair of such ends.

    Chandrupatla's method: inverse quadratic steps where they can be trusted, else halves.
    """
    a, b = np.array(above, dtype=float), np.array(below, dtype=float)  # the root is between them
    fa, fb = excess(a), excess(b)
    done = fb >= 0  # it is positive all the way: the far end is the answer
    fa, fb = np.where(done, 1.0, np.maximum(fa, 1e-300)), np.where(done, -1.0, fb)
    share = np.full(np.shape(a), 0.5)
    for _ in range(MOST_STEPS):
        x = a + share * (b - a)
        f = np.where(done, 1.0, excess(x))
        same = (f >= 0) == (fa >= 0)
        c, fc = np.where(same, a, b), np.where(same, fa, fb)
        b, fb = np.where(same, b, a), np.where(same, fb, fa)
        a, fa = x, f
        width = np.abs(b - a)
        if (width <= CLOSE * np.maximum(np.abs(a), np.abs(b)) + 1e-300).all():
            break
        share = _trusted_step(a, b, c, fa, fb, fc)
    found = np.where(fa >= 0, a, b)
    return np.asarray(np.where(done, below, found))


def _trusted_step(
    a: np.ndarray, b: np.ndarray, c: np.ndarray, fa: np.ndarray, fb: np.ndarray, fc: np.ndarray
) -> np.ndarray:
    """The share of the way from a to b at which to look next."""
    with np.errstate(divide="ignore", invalid="ignore"):
        xi, phi = (a - b) / (c - b), (fa - fb) / (fc - fb)
        step = fa / (fb - fa) * fc / (fb - fc) + (c - a) / (b - a) * fa / (fc - fa) * fb / (fc - fb)
        good = (phi**2 < xi) & ((1 - phi) ** 2 < 1 - xi) & np.isfinite(step)
        least = np.minimum(CLOSE * np.abs(a) / np.abs(b - a), 0.5)
    least = np.where(np.isfinite(least), least, 0.5)
    return np.clip(np.where(good, step, 0.5), least, 1 - least)
