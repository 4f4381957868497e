"""The variance of the paper's estimate: its Algorithm 1.

In every bin R is taken as normal, the gaps are Z_j = |R - f_j|^p, and R is shared by all M_b scores
of the bin::

    Var(CE_p^p) = sum_b [ M_b Var(Z) + M_b (M_b - 1) Cov(Z, Z') ] / m^2

(docs/mathematics.md, Algorithm 1; the paper's section 3.2 and appendix A)
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from calshift.binning import joined
from calshift.engine import Engine, rows_in_memory
from calshift.engines import Arrays
from calshift.errors import InvalidInput
from calshift.estimation import check_rows, gathered
from calshift.events import Events
from calshift.gaps import Bin, Spread
from calshift.options import Options
from calshift.predictions import Predictions
from calshift.ranking import edges_of
from calshift.statistics import ShiftStatistics


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
    """(laws, events) variances, and the bins joined; target None means labelled.

    The laws of R: the paper's and, without labels, the corrected one.
    """
    check_rows(source.facts, None if target is None else target.facts, class_weights)
    before = rows_in_memory(source, "Algorithm 1")
    at = before if target is None else rows_in_memory(target, "Algorithm 1")
    for name, sample in (("p_source", before), ("p_target", at)):
        _check_whole(sample, name)
    w = np.nan_to_num(class_weights)[events.stratum_label]
    found, thin = [], 0
    for edges in edges_of(Arrays(at), events, options.bins, options.binning).split():
        statistics = gathered(source, target, edges)
        for k, event in enumerate(edges.which):
            bins = _bins_of(at, statistics, k)
            weight = None if target is None else float(w @ events.stratum_outcome(event))
            found.append(_variances(bins, weight, stratified, spread))
            thin += len(edges[k]) + 1 - len(bins.M)
    return _finite(np.array(found).T, options.norm), thin


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
    starts = joined(target)
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


def source_law(bins: Bins) -> Normal:
    """With labels: N(R, R (1 - R) / (N_b - 1)), with R the frequency in the bin."""
    R = bins.S / bins.n
    return Normal(R, R * (1 - R) / (bins.n - 1))


def target_laws(bins: Bins, w: float, stratified: bool) -> Iterator[Normal]:
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
    """One for each law: with labels (no weight) there is one law, without there are two."""
    with np.errstate(over="ignore", invalid="ignore"):  # `_finite` looks for them
        laws = [source_law(bins)] if w is None else target_laws(bins, w, stratified)
        return [_variance(bins, law, spread) for law in laws]


def _variance(bins: Bins, law: Normal, spread: Spread) -> float:
    """sum_b [ M Var(Z) + M (M - 1) Cov ] / m^2."""
    each = zip(bins.scores, bins.frequency, bins.M, law.mean, law.variance, strict=True)
    found = [spread(Bin(f, rows / M, int(M), mean, s2)) for f, rows, M, mean, s2 in each]
    variance, covariance = np.array(found).T
    M = bins.M
    return float((M * variance + M * (M - 1) * covariance).sum() / M.sum() ** 2)
