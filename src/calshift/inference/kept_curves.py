"""Reliability curves of a result, from sums over the target's rows: these need not be kept.

For a bin of one event with target rows j, scores f_j and influence phi_j on the class weights, and
c the derivative of its frequency in these,

    sum_j influence_j^2 = sum_{j in bin} (f_j - F)^2 / M^2
                          + 2 sum_{j in bin} (f_j - F) phi_j'c / M  +  c' (sum_j phi_j phi_j') c
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from calshift._core.addable import Tally
from calshift._core.frozen import Frozen
from calshift._core.predictions import Predictions
from calshift._core.score_grid import ANGLE, MIDDLE
from calshift.binning.edges import BinEdges
from calshift.binning.events import select_binned_events
from calshift.binning.find_edges import GridCount, cut_cells
from calshift.binning.hat_basis import planned_hats
from calshift.binning.placement import locate
from calshift.binning.statistics import ShiftStatistics, source_kernel
from calshift.engines import Arrays, Blocks
from calshift.engines.base import Engine
from calshift.engines.sample_summary import SampleSummary
from calshift.inference.event_estimates import EventEstimates
from calshift.inference.reliability import (
    LEAST_ROWS,
    CurveInfluence,
    Wanted,
    reliability_curves,
    source_sums,
)
from calshift.results import ReliabilityCurve
from calshift.weights.influence import ScaledWeights

CLASSES_KEPT = 6  # those with the largest errors


@dataclass(frozen=True, eq=False)
class CurveSums(Frozen):
    """Summand over target rows and their influence on the weights, for the curves of some events.

    Attributes
    ----------
    wanted, edges : of each curve
    centres : (C, B) the mean score of the target in each bin
    table : (C, CELLS) the bin of each cell of the grid of scores
    """

    wanted: tuple[Wanted, ...]
    edges: tuple[BinEdges, ...]
    centres: np.ndarray
    table: np.ndarray

    def __call__(self, batch: Predictions, phi: np.ndarray) -> Tally:
        each = (self._sum_curve(k, batch, phi) for k in range(len(self.edges)))
        sums, once = Tally(enumerate(each)), batch.squared_frequency
        sums["phi"] = (phi * once[:, None]).T @ phi
        return sums

    def _sum_curve(self, k: int, batch: Predictions, phi: np.ndarray) -> Tally:
        """Sums over rows by bin: of 1, f and f^2, and of 1, d, d^2, phi and d phi for errors.

        d is the difference of a score f and the mean of its bin: near 1 f would lose digits.
        """
        from scipy.sparse import csr_matrix  # late: importing calshift must be fast

        edges, once = self.edges[k], batch.squared_frequency
        score, B = edges.events.score(batch, edges.which[0]), edges.max_bins
        b = locate(score[None], self.table[k : k + 1])[0].astype(np.intp)
        d, f = score - self.centres[k][b], score.astype(float)
        squares = [np.stack([np.bincount(b, once * d**power, B) for power in (0, 1, 2)])]
        if phi.shape[1]:
            shape, rows = (len(batch), B), np.arange(len(batch) + 1)
            squares += [(csr_matrix((one, b, rows), shape).T @ phi).T for one in (once, once * d)]
        bins = [np.bincount(b, batch.frequency * f**power, B) for power in (0, 1, 2)]
        return Tally(bins=np.stack(bins)[:, None], squares=np.concatenate(squares).T)


@dataclass(frozen=True, eq=False)
class KeptCurves(Frozen):
    """The source, and sums over the target's rows, for the curves of a few events.

    Attributes
    ----------
    source : labelled rows
    plan : the events and their bins
    target : sums over the target's rows
    weights : class weights and their influence functions
    """

    source: Predictions
    plan: CurveSums
    target: Tally
    weights: ScaledWeights

    def curves(self) -> list[tuple[ReliabilityCurve, ReliabilityCurve]]:
        """Curves of the source and of the target."""
        source = Arrays(self.source)
        known = ScaledWeights.of(np.where(self.weights.seen, 1.0, np.nan), None, self.weights.sizes)
        before = reliability_curves(source, None, self.plan.wanted, known, "auto")
        return list(zip(before, self._target_curves(source), strict=True))

    def _target_curves(self, source: Engine) -> list[ReliabilityCurve]:
        found = []
        plan = self.plan
        for k, (edges, (_, label)) in enumerate(zip(plan.edges, plan.wanted, strict=True)):
            target = replace(ShiftStatistics.zero(edges), target=self.target[k]["bins"])
            sums: ShiftStatistics = source.total(source_kernel(edges)) + target
            found.append(CurveInfluence.of([sums], edges, LEAST_ROWS, self.weights, False, label))
        added = source_sums(source, found, self.weights)
        return [
            one.curve(
                added[k]["variance"] + self._target_variance(one, k) + one.outside, added[k]["mass"]
            )
            for k, one in enumerate(found)
        ]

    def _target_variance(self, one: CurveInfluence, k: int) -> np.ndarray:
        """(B,) sums of the squared influence of the target's rows."""
        points, c, squares = one.points, one.by_weight, self.target[k]["squares"]
        length = np.diff(np.append(points.starts, len(squares)))
        off = self.plan.centres[k, : len(squares)] - np.repeat(
            points.score, length
        )  # of a bin from its group's mean
        rows, score, square = squares[:, :3].T
        phi, by_score = np.split(squares[:, 3:], 2, axis=1)
        within = square + 2 * off * score + off**2 * rows
        within, cross = (
            np.add.reduceat(sums, points.starts, axis=0)
            for sums in (within, by_score + off[:, None] * phi)
        )
        first = within / points.count**2 + 2 * (cross * c.T).sum(axis=1) / points.count
        return np.asarray(first + np.einsum("sb,st,tb->b", c, self.target["phi"], c))


def plan_curves(source: Engine, target: Engine, kind: str, values: np.ndarray) -> CurveSums:
    """Curves of the predicted class, and of the classes with the largest errors ``values``."""
    wanted = _choose_curves(kind, source.summary, values)
    rows = min(source.summary.size, target.summary.size)
    return CurveSums(wanted, *_find_edges(target, wanted, rows))


def keep_curves(
    source: Engine, target: Engine, weights: ScaledWeights, kind: str, found: EventEstimates
) -> KeptCurves | None:
    """What curves of a result need; None where rows are not in memory."""
    if source.in_memory is None or target.in_memory is None:
        return None
    if found.curves is not None:
        plan, sums = found.curves
        return KeptCurves(source.in_memory, plan, sums, weights)
    plan = plan_curves(source, target, kind, found.values)
    sums = Blocks(target).total(lambda batch: plan(batch, weights.target_influence(batch)))
    return KeptCurves(source.in_memory, plan, sums, weights)


def _choose_curves(kind: str, source: SampleSummary, values: np.ndarray) -> tuple[Wanted, ...]:
    if kind == "binary" or source.one_column:
        return ((select_binned_events("binary", source), None),)
    top: Wanted = (select_binned_events("top-label", source), None)
    if kind != "classwise":
        return (top,)
    worst = np.argsort(-np.nan_to_num(values, nan=-np.inf), kind="stable")[:CLASSES_KEPT]
    events = select_binned_events("classwise", source)
    return (top, *((events, int(c)) for c in worst if not np.isnan(values[c])))


def _find_edges(
    target: Engine, wanted: tuple[Wanted, ...], rows: float
) -> tuple[tuple[BinEdges, ...], np.ndarray, np.ndarray]:
    """Edges of all curves, the mean scores of their bins, and the bins of cells, in one pass."""
    counts = [GridCount(events, (label or 0,)) for events, label in wanted]
    found = target.total(lambda batch: Tally(enumerate(one(batch) for one in counts)))
    cells = np.concatenate([one["cells"] for one in found.values()], axis=1)
    cuts, number, sums, table = cut_cells(cells, MIDDLE, ANGLE, planned_hats(rows))
    edges = (
        BinEdges(one.events, one.which, (), smooth=False, cuts=(cuts[k, : number[k]],))
        for k, one in enumerate(counts)
    )
    centres = np.divide(sums[1], sums[0], out=np.zeros(sums[0].shape), where=sums[0] > 0)
    return tuple(edges), centres, table
