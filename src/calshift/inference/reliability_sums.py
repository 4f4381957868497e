"""Reliability curves of a result, from sums over the target's rows: these need not be kept.

For a bin of one event with target rows j, scores f_j and influence phi_j on the class weights, and
c the derivative of its frequency in these,

    sum_j influence_j^2 = sum_{j in bin} (f_j - F)^2 / M^2
                          + 2 sum_{j in bin} (f_j - F) phi_j'c / M  +  c' (sum_j phi_j phi_j') c
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import isnan

import numpy as np

from calshift._core.addable import Tally
from calshift._core.frozen import Frozen
from calshift._core.linalg import sparse_rows
from calshift._core.predictions import Predictions
from calshift._core.score_grid import ANGLE, MIDDLE
from calshift.binning.edges import BinEdges
from calshift.binning.events import Events
from calshift.binning.find_edges import cut_scores
from calshift.binning.hat_basis import planned_hats
from calshift.binning.placement import locate, transpose_scores
from calshift.binning.statistics import ShiftStatistics, source_kernel
from calshift.compiled import fastest
from calshift.engines import Arrays, Blocks
from calshift.engines.base import Engine
from calshift.engines.sample_summary import SampleSummary
from calshift.estimators.reliability_points import reliability
from calshift.inference.event_estimates import EventEstimates
from calshift.inference.reliability import (
    LEAST_ROWS,
    CurveInfluence,
    Wanted,
    reliability_curves,
    source_sums,
)
from calshift.results import ClassWeights, ReliabilityCurve
from calshift.weights.influence import ScaledWeights

CLASSES_KEPT = 6  # those with the largest errors
SCORES_AT_ONCE = 2**21  # of a few curves, gathered for their bins


@dataclass(frozen=True, eq=False)
class CurveBins(Frozen):
    """Bins of the curves of some events, and sums over the target's rows in them.

    Attributes
    ----------
    wanted : event of each curve
    cuts : (C, B) first cells of all bins but one, padded
    number : (C,) bins of each curve less one
    table : (C, CELLS) the bin of each cell of the grid of scores
    centres : (C, B) the mean score of the target in each bin
    rows : (C, B) the target's rows
    squares : (C, B, 3) sums of 1, d and d^2, a row that counts less than one by its square;
        d is the difference of a score and the mean of its bin: near 1 scores would lose digits
    """

    wanted: tuple[Wanted, ...]
    cuts: np.ndarray
    number: np.ndarray
    table: np.ndarray
    centres: np.ndarray
    rows: np.ndarray
    squares: np.ndarray

    @staticmethod
    def of(target: Predictions, wanted: tuple[Wanted, ...], most: int) -> CurveBins:
        """With so many bins at most, from the target's rows; a few curves at a time."""
        step = max(1, SCORES_AT_ONCE // len(target))
        groups = [wanted[start : start + step] for start in range(0, len(wanted), step)]
        parts = [_bin_scores(target, curve_scores(target, group), most) for group in groups]
        if len(parts) == 1:
            return CurveBins(wanted, *parts[0])
        return CurveBins(wanted, *(np.concatenate(arrays) for arrays in zip(*parts, strict=True)))

    def edges(self, k: int) -> BinEdges:
        """Edges of a curve."""
        events, label = self.wanted[k]
        cuts = (self.cuts[k, : self.number[k]],)
        return BinEdges(events, (label or 0,), (), smooth=False, cuts=cuts)

    def __call__(self, batch: Predictions, phi: np.ndarray) -> Tally:
        """Sums by curve and bin of phi and d phi; and of phi phi' over all rows."""
        score, (C, B) = curve_scores(batch, self.wanted), self.centres.shape
        bins = locate(score, self.table)
        d = score - self.centres.ravel().take(bins + (np.arange(C) * B)[:, None])
        f = batch.sample_weight
        counted = phi if f is None else phi * batch.squared_frequency[:, None]
        both = [sum_weighted_rows(bins, one, counted, B) for one in (np.ones(d.shape), d)]
        return Tally(by_weight=np.concatenate(both, axis=2), phi=counted.T @ phi)


def _bin_scores(
    target: Predictions, score: np.ndarray, most: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """What `CurveBins` keeps, of scores (C, n)."""
    f = target.sample_weight
    cuts, number, sums, table, bins = cut_scores(score, f, MIDDLE, ANGLE, most)
    centres = np.divide(sums[1], sums[0], out=np.zeros(sums[0].shape), where=sums[0] > 0)
    once = None if f is None else target.squared_frequency
    return cuts, number, table, centres, sums[0], sum_deviations(score, bins, centres, once)


@fastest
def sum_weighted_rows(
    bins: np.ndarray, values: np.ndarray, others: np.ndarray, width: int
) -> np.ndarray:
    """(E, width, S) sums over rows of values (E, n) times others (n, S), by event and bin."""
    E, S = len(bins), others.shape[1]
    place = bins + (np.arange(E) * width)[:, None]
    by_place = sparse_rows(values, place, E * width)
    return np.asarray(by_place.T @ others).reshape(E, width, S)


@fastest
def sum_deviations(
    score: np.ndarray, bins: np.ndarray, centres: np.ndarray, frequency: np.ndarray | None
) -> np.ndarray:
    """(C, B, 3) sums of f, f d and f d^2 over the scores (C, n) in each of the bins (C, n).

    d is the difference to ``centres`` (C, B).
    """
    sums = np.empty((*centres.shape, 3))
    for k, place in enumerate(bins.astype(np.intp)):
        d, f = score[k] - centres[k].take(place, mode="clip"), frequency
        once = d if f is None else d * f
        for s, values in enumerate((f, once, once * d)):
            sums[k, :, s] = np.bincount(place, values, centres.shape[1])
    return sums


def curve_scores(batch: Predictions, wanted: tuple[Wanted, ...]) -> np.ndarray:
    """(C, n) scores of the event of each curve."""
    score = np.empty((len(wanted), len(batch)), batch.p.dtype)
    classes = [k for k, (_, label) in enumerate(wanted) if label is not None]
    if classes:  # columns of the matrix, read together
        which = tuple(label for _, label in wanted if label is not None)
        score[classes] = transpose_scores(batch, wanted[classes[0]][0], which)
    for k, (events, label) in enumerate(wanted):
        if label is None:
            score[k] = events.score(batch, 0)
    return score


@dataclass(frozen=True, eq=False)
class KeptCurves(Frozen):
    """The source, and sums over the target's rows, for the curves of a few events.

    Attributes
    ----------
    source : labelled rows
    plan : the events, their bins, and the target's rows in them
    influence : sums of the influence of the target's rows on the weights; None if these are given
    weights : class weights and their influence functions
    """

    source: Predictions
    plan: CurveBins
    influence: Tally | None
    weights: ScaledWeights

    def curves(self) -> list[tuple[ReliabilityCurve, ReliabilityCurve]]:
        """Curves of the source and of the target."""
        source = Arrays(self.source)
        known = ScaledWeights.of(np.where(self.weights.seen, 1.0, np.nan), None, self.weights.sizes)
        before = reliability_curves(source, None, self.plan.wanted, known, "auto")
        return list(zip(before, self._target_curves(source), strict=True))

    def _target_curves(self, source: Engine) -> list[ReliabilityCurve]:
        found = []
        for k, (_, label) in enumerate(self.plan.wanted):
            edges = self.plan.edges(k)
            target = replace(ShiftStatistics.zero(edges), target=self._target_bins(k))
            sums: ShiftStatistics = source.total(source_kernel(edges)) + target
            points = reliability([sums], self.weights.values, LEAST_ROWS)
            found.append(CurveInfluence(edges, points, self.weights, False, label))
        added = source_sums(source, found, self.weights)
        return [
            one.curve(
                added[k]["variance"] + self._target_variance(one, k) + one.outside, added[k]["mass"]
            )
            for k, one in enumerate(found)
        ]

    def _target_bins(self, k: int) -> np.ndarray:
        """(3, 1, B) sums of 1 and f over the target's rows in each bin; curves need no f^2."""
        B, rows = self.plan.number[k] + 1, self.plan.rows[k]
        return np.stack([rows, self.plan.centres[k] * rows, 0 * rows])[:, None, :B]

    def _target_variance(self, one: CurveInfluence, k: int) -> np.ndarray:
        """(B,) sums of the squared influence of the target's rows."""
        B, points, c = self.plan.number[k] + 1, one.points, one.by_weight
        rows, score, square = self.plan.squares[k, :B].T
        length = np.diff(np.append(points.starts, B))
        # of a bin from the mean of its group
        off = self.plan.centres[k, :B] - np.repeat(points.score, length)
        within = square + 2 * off * score + off**2 * rows
        found = np.add.reduceat(within, points.starts) / points.count**2
        if self.influence is None:
            return np.asarray(found)
        phi, by_score = np.split(self.influence["by_weight"][k, :B], 2, axis=1)
        cross = np.add.reduceat(by_score + off[:, None] * phi, points.starts, axis=0)
        found = found + 2 * (cross * c.T).sum(axis=1) / points.count
        return np.asarray(found + np.einsum("sb,st,tb->b", c, self.influence["phi"], c))


def plan_curves(source: Engine, target: Engine, kind: str, values: np.ndarray) -> CurveBins:
    """Curves of the predicted class, and of the classes with the largest errors ``values``."""
    assert target.in_memory is not None
    wanted = _choose_curves(kind, source.summary, values)
    rows = min(source.summary.size, target.summary.size)
    return CurveBins.of(target.in_memory, wanted, planned_hats(rows))


def keep_curves(
    source: Engine, target: Engine, used: ClassWeights, kind: str, found: EventEstimates
) -> KeptCurves | None:
    """What curves of a result need; None where rows are not in memory."""
    if source.in_memory is None or target.in_memory is None:
        return None
    if found.curves is not None:
        return KeptCurves(source.in_memory, *found.curves)
    sizes = source.summary.size, target.summary.size
    weights = ScaledWeights.of(used.values, used.influence, sizes)
    plan, influence = plan_curves(source, target, kind, found.values), None
    if weights.influence is not None:
        influence = Blocks(target).total(lambda b: plan(b, weights.target_influence(b)))
    return KeptCurves(source.in_memory, plan, influence, weights)


def _choose_curves(kind: str, source: SampleSummary, values: np.ndarray) -> tuple[Wanted, ...]:
    if kind == "binary" or source.one_column:
        return ((Events("binary", 2), None),)
    top: Wanted = (Events("top-label", source.n_classes), None)
    if kind != "classwise":
        return (top,)
    worst = np.argsort(-values, kind="stable")[:CLASSES_KEPT].tolist()  # NaN comes last
    events = Events("classwise", source.n_classes)
    return (top, *((events, c) for c in worst if not isnan(values[c])))
