"""Reliability curves: frequency against score, bin by bin."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from calshift._core.addable import Sums
from calshift._core.predictions import Predictions
from calshift.binning.edges import BinEdges, fine_cuts
from calshift.binning.events import Events
from calshift.binning.find_edges import find_edges, pooled_cells
from calshift.binning.hat_basis import planned_hats
from calshift.engines import Arrays, Blocks
from calshift.engines.base import Engine, rows_in_memory
from calshift.errors import InvalidInput
from calshift.estimators import Points, reliability
from calshift.inference.estimate import gather_statistics
from calshift.results import ReliabilityCurve
from calshift.weights.influence import ScaledWeights

LEAST_ROWS = 10.0  # of a bin under bins="auto": a point worth drawing
MOST_SCORES = 4_000_000  # sorted for the edges of a pooled curve; beyond it evenly spaced rows


def reliability_curves(
    source: Engine,
    target: Engine | None,
    wanted: Sequence[tuple[Events, int | None]],
    scaled_weights: ScaledWeights,
    bins: Any,
) -> list[ReliabilityCurve]:
    """Curves of events (or of one class of them): the target's, or the labelled source's.

    How the rows moved the weights, the dear part of the bands, is worked out once for all curves.
    """
    spreads = [_spread(source, target, *one, scaled_weights, bins) for one in wanted]

    def by_source(batch: Predictions) -> Sums:
        moves = scaled_weights.source_influence(batch)
        return Sums(tuple(spread.source(batch, moves) for spread in spreads))

    def by_target(batch: Predictions) -> Sums:
        moves = scaled_weights.target_influence(batch)
        return Sums(tuple(spread.target(batch, moves) for spread in spreads))

    sums = Blocks(source).total(by_source)
    if target is None:
        return [spread.curve(*part) for spread, part in zip(spreads, sums, strict=True)]
    more = Blocks(target).total(by_target)
    return [
        spread.curve(variance + added + spread.outside, mass)
        for spread, (variance, mass), added in zip(spreads, sums, more, strict=True)
    ]


def _spread(
    source: Engine,
    target: Engine | None,
    events: Events,
    label: int | None,
    scaled_weights: ScaledWeights,
    bins: Any,
) -> Spread:
    edges, least = _edges(source, source if target is None else target, events, label, bins)
    parts = (gather_statistics(source, target, part) for part in edges.split())
    points = reliability(parts, scaled_weights.values, least)
    return Spread(edges, points, scaled_weights, target is None, label)


@dataclass(frozen=True)
class Spread:
    """How each row moves the frequencies F_b + U_b of the bins, pooled over the events."""

    edges: BinEdges
    points: Points
    scaled_weights: ScaledWeights
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

    def source(self, batch: Predictions, moves: np.ndarray) -> Sums:
        """Kernel: sums of the squared moves, and of squared weights, in each bin."""
        w, once = self.scaled_weights.values[batch.labels], batch.squared_frequency
        events, stratum = self.edges.events, self.edges.events.stratum(batch)
        moved = np.zeros((len(batch), len(self.points.starts)))
        mass = np.zeros(len(self.points.starts))
        row = np.arange(len(batch))
        for k, event in enumerate(self.edges.which):
            score, outcome = events.score(batch, event), events.stratum_outcome(event)[stratum]
            b = self._located(k, score)
            # with labels a row moves the mean score of its bin too
            at = self.points.score[b] if self.labelled else score
            gap = outcome - at - self.points.residual[b]
            moved[row, b] += w * gap / self.points.mass[b]
            mass = mass + np.bincount(b, w**2 * once, len(self.points.starts))
        moved += moves @ self._by_weight
        return Sums((once @ moved**2, mass))

    def target(self, batch: Predictions, moves: np.ndarray) -> np.ndarray:
        """Kernel: sums of the squared moves of the bins' mean scores, and through the weights."""
        moved, row = np.zeros((len(batch), len(self.points.starts))), np.arange(len(batch))
        for k, event in enumerate(self.edges.which):
            score = self.edges.events.score(batch, event)
            b = self._located(k, score)
            moved[row, b] += (score - self.points.score[b]) / self.points.count[b]
        moved += moves @ self._by_weight
        return np.asarray(batch.squared_frequency @ moved**2)

    @property
    def outside(self) -> np.ndarray:
        """(B,) sums of the squared moves by observations of neither sample."""
        return np.asarray(
            ((self.scaled_weights.outside_influence @ self._by_weight) ** 2).sum(axis=0)
        )

    @cached_property
    def _by_weight(self) -> np.ndarray:
        """(S, B) how U_b moves with the class weights; (0, B) if they are given."""
        if self.scaled_weights.influence is None:
            return np.zeros((0, len(self.points.starts)))
        return np.asarray(
            (self.points.excess / self.points.mass[:, None]).T[self.scaled_weights.seen]
        )

    def _located(self, k: int, score: np.ndarray) -> np.ndarray:
        b = self.edges.locate(k, score)
        return np.searchsorted(self.points.starts, b, side="right") - 1


def _edges(
    source: Engine, sample: Engine, events: Events, label: int | None, bins: Any
) -> tuple[BinEdges, float]:
    """Edges shared by the classes shown, and the least count of a bin."""
    whole = isinstance(label, int | np.integer) and not isinstance(label, bool)
    fits = whole and events.kind == "classwise" and 0 <= int(label or 0) < events.n_classes
    if label is not None and not fits:
        msg = (
            f'label must be a class 0..{events.n_classes - 1} under kind="classwise"; got {label!r}'
        )
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
