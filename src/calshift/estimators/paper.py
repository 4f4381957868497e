"""The paper's estimator on bins, leave-one-out terms included. (docs/mathematics.md 2)

    label-free:  R_b = [ (1/n) sum_{i in b} w_{y_i} event_i ] / [ (M_b - 1) / (m - 1) ]
    labelled:    R_j = ( sum_{i in b} event_i - event_j ) / (N_b - 1)
    CE_p^p = mean_j |R_j - f_j|^p

Two passes: sums over bins give the ratios, and a second sum over rows the error, for any p.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from calshift._core.predictions import Predictions
from calshift.binning.edges import BinEdges, merge_sparse_bins
from calshift.binning.statistics import ShiftStatistics
from calshift.errors import InvalidInput

MOST_DIGITS = 140  # of |R - f|^p, so that squares of sums stay in the range of numbers
ErrorKernel = Callable[[Predictions], np.ndarray]


@dataclass(frozen=True)
class Ratio:
    """Per event and bin, numerator and denominator of R; bins of a joined group hold the same."""

    edges: BinEdges
    numerator: np.ndarray
    denominator: np.ndarray
    merged: int

    def value(self) -> np.ndarray:
        """R_b, and 0 in the padding, where there are no rows."""
        zero = np.zeros_like(self.numerator)
        occupied = self.denominator > 0
        return np.asarray(np.divide(self.numerator, self.denominator, where=occupied, out=zero))


def shifted_ratio(statistics: ShiftStatistics, class_weights: np.ndarray) -> Ratio:
    """R_b without target labels: paper eq. 8 with its binning kernel, eq. 9."""
    events = statistics.edges.events
    weight = class_weights[events.stratum_label]
    outcomes = np.stack([events.stratum_outcome(event) for event in statistics.edges.which])
    hits = np.einsum("kbs,ks,s->kb", statistics.source[0], outcomes, weight)
    n, m = statistics.size_source, statistics.size_target
    hits, counts, merged = _merge_bins(statistics, hits)
    return Ratio(statistics.edges, hits / n, (counts - 1) / (m - 1), merged)


def labelled_ratio(statistics: ShiftStatistics) -> Ratio:
    """Events and N_b - 1 in each bin; the point itself is left out row by row."""
    events = statistics.edges.events
    outcomes = np.stack([events.stratum_outcome(event) for event in statistics.edges.which])
    hits = np.einsum("kbs,ks->kb", statistics.source[0], outcomes)
    hits, counts, merged = _merge_bins(statistics.as_labelled(), hits)
    return Ratio(statistics.edges, hits, counts - 1, merged)


def _merge_bins(
    statistics: ShiftStatistics, hits: np.ndarray
) -> tuple[np.ndarray, np.ndarray, int]:
    """Hits and target counts of the group each bin belongs to; bins with M_b < 2 are joined."""
    hits, counts, merged = hits.copy(), statistics.target[0].copy(), 0
    for k in range(len(statistics.edges)):
        bins = len(statistics.edges[k]) + 1
        starts = merge_sparse_bins(counts[k, :bins])
        length = np.diff(np.append(starts, bins))
        for sums in (hits, counts):
            sums[k, :bins] = np.repeat(np.add.reduceat(sums[k, :bins], starts), length)
        merged += bins - len(starts)
    return hits, counts, merged


def _check_range(R: np.ndarray, norm: float) -> np.ndarray:
    """Refuse ratios whose powers leave the range of numbers: they have the scale of the weights."""
    if norm * np.log10(max(R.max(), 1.0)) > MOST_DIGITS:
        msg = f"weights are too large for norm={norm:g}: the error leaves the range of numbers"
        raise InvalidInput(msg)
    return R


def shifted_error(ratio: Ratio, norm: float) -> ErrorKernel:
    """Target rows -> sum_j |R_b(j) - f_j|^p of every event."""
    R = _check_range(ratio.value(), norm)

    def kernel(batch: Predictions) -> np.ndarray:
        return _sum_over_events(batch, ratio.edges, norm, lambda k, b: R[k, b])

    return kernel


def shifted_square(
    statistics: ShiftStatistics, class_weights: np.ndarray
) -> tuple[np.ndarray, int]:
    """CE_2^2 from the sums alone: sum_j (R - f_j)^2 = M R^2 - 2 R sum f + sum f^2 in each bin."""
    ratio = shifted_ratio(statistics, class_weights)
    R = _check_range(ratio.value(), 2.0)
    count, score, square = statistics.target
    total = (count * R**2 - 2 * R * score + square).sum(axis=1)
    return total / statistics.size_target, ratio.merged


def labelled_error(ratio: Ratio, norm: float) -> ErrorKernel:
    """Labelled rows -> sum_j |R_j - f_j|^p of every event, each row left out of its own R_j."""

    def kernel(batch: Predictions) -> np.ndarray:
        stratum = ratio.edges.events.stratum(batch)

        def left_out(k: int, b: np.ndarray) -> np.ndarray:
            outcome = ratio.edges.events.stratum_outcome(ratio.edges.which[k])[stratum]
            return np.asarray((ratio.numerator[k, b] - outcome) / ratio.denominator[k, b])

        return _sum_over_events(batch, ratio.edges, norm, left_out)

    return kernel


def _sum_over_events(
    batch: Predictions,
    edges: BinEdges,
    norm: float,
    frequency: Callable[[int, np.ndarray], np.ndarray],
) -> np.ndarray:
    sums = np.empty(len(edges))
    for k in range(len(edges)):
        score, place = edges.place(k, batch)
        gap = np.abs(frequency(k, place) - score) ** norm
        # not a product of vectors, whose order of summing is the machine's
        sums[k] = (gap if batch.sample_weight is None else gap * batch.sample_weight).sum()
    return sums
