"""The variance of the paper's estimate: its Algorithm 1.

In every bin R is taken as normal, the gaps are Z_j = |R - f_j|^p, and R is shared by all M_b scores
of the bin::

    Var(CE_p^p) = sum_b [ M_b Var(Z) + M_b (M_b - 1) Cov(Z, Z') ] / m^2

(docs/mathematics.md, Algorithm 1; the paper's section 3.2 and appendix A)

The variance of one gap and the covariance of two that share R (the variance over R of the mean
gap, Var_R( mean_f |R - f|^p )) have closed forms for p = 1 and 2, else quadrature.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache, partial

import numpy as np

from calshift._core.predictions import Predictions
from calshift.binning.edges import merge_sparse_bins
from calshift.binning.events import Events
from calshift.binning.find_edges import find_edges
from calshift.binning.statistics import ShiftStatistics
from calshift.engines import Arrays
from calshift.engines.base import Engine, rows_in_memory
from calshift.errors import InvalidInput
from calshift.inference.estimate import check_rows, gather_statistics
from calshift.inference.options import Options


@dataclass(frozen=True)
class Bins:
    """One event's bins after joining: the target's scores, and counts on both sides."""

    scores: list[np.ndarray]
    frequency: list[np.ndarray]
    M: np.ndarray  # target rows
    n: np.ndarray  # source rows
    S: np.ndarray  # source rows in which the event is true


@dataclass(frozen=True)
class Normal:
    """The normal approximation of R in every bin."""

    mean: np.ndarray
    variance: np.ndarray


def event_variances(
    source: Engine,
    target: Engine | None,
    events: Events,
    options: Options,
    class_weights: np.ndarray,
    stratified: bool,
    spread: Spread,
) -> tuple[np.ndarray, int]:
    """(distributions, events) variances, and the number of bins merged; target None means labelled.

    The distributions of R: the paper's and, without labels, the corrected one.
    """
    check_rows(source.summary, None if target is None else target.summary, class_weights)
    before = rows_in_memory(source, "Algorithm 1")
    at = before if target is None else rows_in_memory(target, "Algorithm 1")
    for name, sample in (("p_source", before), ("p_target", at)):
        _check_whole(sample, name)
    w = np.nan_to_num(class_weights)[events.stratum_label]
    found, merged = [], 0
    for edges in find_edges(Arrays(at), events, options.bins, options.binning).split():
        statistics = gather_statistics(source, target, edges)
        for k, event in enumerate(edges.which):
            bins = _bins_of(at, statistics, k)
            weight = None if target is None else float(w @ events.stratum_outcome(event))
            found.append(_variances(bins, weight, stratified, spread))
            merged += len(edges[k]) + 1 - len(bins.M)
    return _finite(np.array(found).T, options.norm), merged


def _check_whole(sample: Predictions, name: str) -> None:
    weight = sample.frequency
    if (weight != np.floor(weight)).any():
        row = int(np.argmax(weight != np.floor(weight)))
        msg = (
            f"{name} must have whole sample weights, since Algorithm 1 draws and counts rows; "
            f"a weight is {weight[row]:.6g}"
        )
        raise InvalidInput(msg)


def _finite(variances: np.ndarray, norm: float) -> np.ndarray:
    if not np.isfinite(variances).all():
        msg = f"norm={norm:g} (or a weight) is too large: the variance leaves the range of numbers"
        raise InvalidInput(msg)
    return variances


def _bins_of(at: Predictions, statistics: ShiftStatistics, k: int) -> Bins:
    """Scores in order, cut where a bin, or a group of joined ones, begins."""
    edges, bins = statistics.edges, len(statistics.edges[k]) + 1
    target, source = statistics.target[0, k, :bins], statistics.source[0, k, :bins]
    starts = merge_sparse_bins(target)
    source = np.add.reduceat(source, starts, axis=0)
    score = edges.events.score(at, edges.which[k])
    order = np.argsort(score, kind="stable")
    cuts = np.searchsorted(edges.locate(k, score[order]), starts[1:])
    return Bins(
        scores=np.split(score[order].astype(float), cuts),
        frequency=np.split(at.frequency[order], cuts),
        M=np.add.reduceat(target, starts),
        n=source.sum(axis=1),
        S=source @ edges.events.stratum_outcome(edges.which[k]),
    )


def source_distribution(bins: Bins) -> Normal:
    """With labels: N(R, R (1 - R) / (N_b - 1)), with R the frequency in the bin."""
    R = bins.S / bins.n
    return Normal(R, R * (1 - R) / (bins.n - 1))


def target_distributions(bins: Bins, w: float, stratified: bool) -> Iterator[Normal]:
    """Without: R = scale S_b, where S_b is binomial out of so many trials.

    The paper takes the n_b source rows of the bin. But nothing divides S_b by n_b, which is as
    random: S_b counts among all n rows, or among the n_c of the class where that number was fixed.
    """
    n, m = bins.n.sum(), bins.M.sum()
    scale = (w / n) * (m - 1) / (bins.M - 1)
    for trials in (bins.n, bins.S.sum() if stratified else n):
        share = bins.S / np.maximum(trials, 1.0)  # without rows there is no hit
        yield Normal(scale * bins.S, scale**2 * bins.S * (1 - share))


def _variances(bins: Bins, w: float | None, stratified: bool, spread: Spread) -> list[float]:
    """One for each distribution of R: with labels (no weight) there is one, without two."""
    with np.errstate(over="ignore", invalid="ignore"):  # `_finite` looks for them
        distributions = (
            [source_distribution(bins)] if w is None else target_distributions(bins, w, stratified)
        )
        return [_variance(bins, distribution, spread) for distribution in distributions]


def _variance(bins: Bins, distribution: Normal, spread: Spread) -> float:
    """sum_b [ M Var(Z) + M (M - 1) Cov ] / m^2."""
    each = zip(
        bins.scores, bins.frequency, bins.M, distribution.mean, distribution.variance, strict=True
    )
    found = [spread(Bin(f, rows / M, int(M), mean, s2)) for f, rows, M, mean, s2 in each]
    variance, covariance = np.array(found).T
    M = bins.M
    return float((M * variance + M * (M - 1) * covariance).sum() / M.sum() ** 2)


NODES = 101  # of the quadrature over R: exact for even p up to 100, the largest norm


@dataclass(frozen=True)
class Bin:
    """Scores in order, the share of the bin's rows each stands for, and the distribution of R."""

    scores: np.ndarray
    share: np.ndarray
    rows: int
    mean: float
    variance: float


Spread = Callable[[Bin], tuple[float, float]]  # -> Var(Z), covariance


def variance_of(norm: float, rng: np.random.Generator | None = None) -> Spread:
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

    cuts = np.clip(cuts, -40.0, 40.0)  # beyond, the normal density vanishes
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
