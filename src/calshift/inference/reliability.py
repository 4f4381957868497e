"""Reliability curves: frequency against score, bin by bin, with standard errors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from calshift._core.addable import Tally
from calshift._core.predictions import Predictions
from calshift._core.validate import show
from calshift.binning.edges import BinEdges, fine_cuts
from calshift.binning.events import Events
from calshift.binning.find_edges import find_edges, pooled_cells
from calshift.binning.hat_basis import planned_hats
from calshift.engines import Arrays, Blocks
from calshift.engines.base import Engine, rows_in_memory
from calshift.errors import InvalidInput
from calshift.estimators.reliability_points import Points, reliability
from calshift.inference.estimate import gather_statistics
from calshift.results import ReliabilityCurve
from calshift.weights.influence import ScaledWeights

LEAST_ROWS = 10.0  # of a bin under bins="auto"
MOST_SCORES = 4_000_000  # sorted for the edges of a pooled curve; beyond it evenly spaced rows

Wanted = tuple[Events, int | None]  # events, and one class of them or all


def reliability_curves(
    source: Engine,
    target: Engine | None,
    wanted: Sequence[Wanted],
    weights: ScaledWeights,
    bins: Any,
) -> list[ReliabilityCurve]:
    """Curves of events (or of one class of them): the target's, or the labelled source's.

    The influence of rows on the weights, the most expensive part, is computed once for all curves.
    """
    at, found = source if target is None else target, []
    for events, label in wanted:
        edges, least = _edges(source, at, events, label, bins)
        parts = (gather_statistics(source, target, part) for part in edges.split())
        points = reliability(parts, weights.values, least)
        found.append(CurveInfluence(edges, points, weights, target is None, label))
    sums = source_sums(source, found, weights)
    if target is None:
        return [one.curve(*sums[k].values()) for k, one in enumerate(found)]

    def by_target(batch: Predictions) -> Tally:
        phi = weights.target_influence(batch)
        return Tally(enumerate(one.target(batch, phi) for one in found))

    added = Blocks(target).total(by_target)
    return [
        one.curve(sums[k]["variance"] + added[k] + one.outside, sums[k]["mass"])
        for k, one in enumerate(found)
    ]


def source_sums(source: Engine, curves: Sequence[CurveInfluence], weights: ScaledWeights) -> Tally:
    """Sums over source rows for each curve, in one pass."""

    def by_source(batch: Predictions) -> Tally:
        phi = weights.source_influence(batch)
        return Tally(enumerate(one.source(batch, phi) for one in curves))

    sums: Tally = Blocks(source).total(by_source)
    return sums


@dataclass(frozen=True)
class CurveInfluence:
    """Influence of rows on the frequencies F_b + U_b of the bins, pooled over the events."""

    edges: BinEdges
    points: Points
    weights: ScaledWeights
    labelled: bool
    label: int | None

    def curve(self, variance: np.ndarray, mass: np.ndarray) -> ReliabilityCurve:
        """The curve, from sums over all rows."""
        points = self.points
        return ReliabilityCurve(
            points.score,
            np.clip(points.score + points.residual, 0.0, 1.0),
            points.count / points.count.sum(),
            self.edges[0][points.starts[1:] - 1],
            np.sqrt(variance),
            points.mass**2 / mass,
            kind=self.edges.events.kind,
            label=None if self.label is None else int(self.label),  # a plain number, for JSON
            shifted=not self.labelled,
        )

    def source(self, batch: Predictions, phi: np.ndarray) -> Tally:
        """Sums of the squared influence, and of squared weights, in each bin."""
        w, once = self.weights.values[batch.labels], batch.squared_frequency
        events, stratum = self.edges.events, self.edges.events.stratum(batch)
        influence = np.zeros((len(batch), len(self.points.starts)))
        mass = np.zeros(len(self.points.starts))
        row = np.arange(len(batch))
        for k, event in enumerate(self.edges.which):
            score, outcome = events.score(batch, event), events.stratum_outcome(event)[stratum]
            b = self._locate(k, score)
            # with labels a row has influence on the mean score of its bin too
            at = self.points.score[b] if self.labelled else score
            gap = outcome - at - self.points.residual[b]
            influence[row, b] += w * gap / self.points.mass[b]
            mass = mass + np.bincount(b, w**2 * once, len(self.points.starts))
        influence += phi @ self.by_weight
        return Tally(variance=once @ influence**2, mass=mass)

    def target(self, batch: Predictions, phi: np.ndarray) -> np.ndarray:
        """Sums of the squared influence on the bins' mean scores, and through the weights."""
        influence, row = np.zeros((len(batch), len(self.points.starts))), np.arange(len(batch))
        for k, event in enumerate(self.edges.which):
            score = self.edges.events.score(batch, event)
            b = self._locate(k, score)
            influence[row, b] += (score - self.points.score[b]) / self.points.count[b]
        influence += phi @ self.by_weight
        return np.asarray(batch.squared_frequency @ influence**2)

    @property
    def outside(self) -> np.ndarray:
        """(B,) sums of the squared influence of observations of neither sample."""
        return np.asarray(((self.weights.outside_influence @ self.by_weight) ** 2).sum(axis=0))

    @cached_property
    def by_weight(self) -> np.ndarray:
        """(S, B) derivative of U_b in the class weights; (0, B) if they are given."""
        if self.weights.influence is None:
            return np.zeros((0, len(self.points.starts)))
        return np.asarray((self.points.excess / self.points.mass[:, None]).T[self.weights.seen])

    def _locate(self, k: int, score: np.ndarray) -> np.ndarray:
        b = self.edges.locate(k, score)
        return np.searchsorted(self.points.starts, b, side="right") - 1


def _edges(
    source: Engine, sample: Engine, events: Events, label: int | None, bins: Any
) -> tuple[BinEdges, float]:
    """Edges shared by the classes shown, and the least count of a bin."""
    whole = isinstance(label, int | np.integer) and not isinstance(label, bool | np.timedelta64)
    fits = whole and events.kind == "classwise" and 0 <= int(label or 0) < events.n_classes
    if label is not None and not fits:
        last = events.n_classes - 1
        msg = f'label must be a class 0..{last} under kind="classwise"; got {show(label)}'
        raise InvalidInput(msg)
    which = tuple(range(events.count)) if label is None else (label,)
    if isinstance(bins, str) and bins == "auto":
        planned = planned_hats(min(source.summary.size, sample.summary.size))
        cut = fine_cuts(pooled_cells(sample, events, which)[None], planned)[0]
        return BinEdges(events, which, (), smooth=False, cuts=(cut,) * len(which)), LEAST_ROWS
    at = rows_in_memory(sample, "a reliability curve on a number of bins")
    step = -(-len(at) * len(which) // MOST_SCORES)  # edges of a pooled curve need not be exact
    score = np.concatenate([events.score(at, event)[::step] for event in which])
    weight = None if at.sample_weight is None else np.tile(at.sample_weight[::step], len(which))
    pooled = Arrays(Predictions(score, sample_weight=weight))
    inner = find_edges(pooled, Events("binary", 2), bins)[0]
    return BinEdges(events, which, (inner,) * len(which), smooth=False), 2.0
