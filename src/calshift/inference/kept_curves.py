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
from calshift.binning.find_edges import count_cells, cut_cells
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
from calshift.inference.row_influence import sparse_rows
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
        """Sums by curve and bin of 1, d, d^2, phi and d phi; and of phi phi' over all rows.

        d is the difference of a score and the mean of its bin: near 1 scores would lose digits.
        """
        score, (C, B) = curve_scores(batch, self.edges), self.centres.shape
        place = locate(score, self.table) + (np.arange(C) * B)[:, None]
        d, f = score - self.centres.ravel()[place], batch.sample_weight
        once = None if f is None else np.tile(batch.squared_frequency, C)
        values = d.ravel() if once is None else d.ravel() * once
        counted = place.ravel(), C * B
        squares = [
            np.bincount(counted[0], one, counted[1]) for one in (once, values, values * d.ravel())
        ]
        out = Tally(squares=np.stack(squares, axis=1).reshape(C, B, 3))
        if f is not None:
            out["rows"] = np.bincount(counted[0], np.tile(f, C), counted[1]).reshape(C, B)
            both = np.tile(f, C) * d.ravel()
            out["score"] = np.bincount(counted[0], both, counted[1]).reshape(C, B)
        if phi.shape[1]:
            root = np.broadcast_to(batch.squared_frequency, score.shape)
            by_bin = [sparse_rows(v, place, C * B).T @ phi for v in (root, root * d)]
            out["by_weight"] = np.concatenate(by_bin, axis=1).reshape(C, B, -1)
        out["phi"] = (phi * batch.squared_frequency[:, None]).T @ phi if phi.shape[1] else 0.0
        return out


def curve_scores(batch: Predictions, edges: tuple[BinEdges, ...]) -> np.ndarray:
    """(C, n) scores of the event of each curve."""
    return np.stack([one.events.score(batch, one.which[0]) for one in edges])


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
            target = replace(ShiftStatistics.zero(edges), target=self._target_bins(k))
            sums: ShiftStatistics = source.total(source_kernel(edges)) + target
            found.append(CurveInfluence.of([sums], edges, LEAST_ROWS, self.weights, False, label))
        added = source_sums(source, found, self.weights)
        return [
            one.curve(
                added[k]["variance"] + self._target_variance(one, k) + one.outside, added[k]["mass"]
            )
            for k, one in enumerate(found)
        ]

    def _target_bins(self, k: int) -> np.ndarray:
        """(3, 1, B) sums of 1 and f over the target's rows in each bin; curves need no f^2."""
        B, centre = self.plan.edges[k].max_bins, self.plan.centres[k]
        rows, first, _ = self.target["squares"][k].T
        if "rows" in self.target:
            rows, first = self.target["rows"][k], self.target["score"][k]
        return np.stack([rows, first + centre * rows, 0 * rows])[:, None, :B]

    def _target_variance(self, one: CurveInfluence, k: int) -> np.ndarray:
        """(B,) sums of the squared influence of the target's rows."""
        B, points, c = self.plan.edges[k].max_bins, one.points, one.by_weight
        rows, score, square = self.target["squares"][k, :B].T
        length = np.diff(np.append(points.starts, B))
        # of a bin from the mean of its group
        off = self.plan.centres[k, :B] - np.repeat(points.score, length)
        within = square + 2 * off * score + off**2 * rows
        found = np.add.reduceat(within, points.starts) / points.count**2
        if not len(c):
            return np.asarray(found)
        phi, by_score = np.split(self.target["by_weight"][k, :B], 2, axis=1)
        cross = np.add.reduceat(by_score + off[:, None] * phi, points.starts, axis=0)
        found = found + 2 * (cross * c.T).sum(axis=1) / points.count
        return np.asarray(found + np.einsum("sb,st,tb->b", c, self.target["phi"], c))


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
    plain = tuple(BinEdges(events, (label or 0,), (), smooth=False) for events, label in wanted)
    cells = target.total(lambda b: count_cells(curve_scores(b, plain), b.sample_weight))
    cuts, number, sums, table = cut_cells(cells, MIDDLE, ANGLE, planned_hats(rows))
    edges = (replace(one, cuts=(cuts[k, : number[k]],)) for k, one in enumerate(plain))
    centres = np.divide(sums[1], sums[0], out=np.zeros(sums[0].shape), where=sums[0] > 0)
    return tuple(edges), centres, table
