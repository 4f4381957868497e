"""Reliability curves: frequency against score, bin by bin."""

from __future__ import annotations

from typing import Any

import numpy as np

from calshift.basis import planned_hats
from calshift.binning import BinEdges, find_edges, fine_edges
from calshift.errors import InvalidInput
from calshift.estimation import gathered
from calshift.estimators import reliability
from calshift.events import Events
from calshift.predictions import Predictions
from calshift.results import ReliabilityCurve

LEAST_ROWS = 10.0  # of a bin under bins="auto": a point worth drawing
MOST_SCORES = 4_000_000  # sorted for the edges of a pooled curve; beyond it evenly spaced rows


def curve_of(
    source: Predictions,
    target: Predictions | None,
    events: Events,
    class_weights: np.ndarray,
    label: int | None,
    bins: Any,
) -> ReliabilityCurve:
    """The curve of the target, or of the labelled source where there is none."""
    at = source if target is None else target
    edges, least = _edges(source, at, events, label, bins)
    parts = (gathered(source, target, part) for part in edges.split())
    score, frequency, mass, starts = reliability(parts, class_weights, least)
    return ReliabilityCurve(
        score,
        frequency,
        mass,
        edges[0][starts[1:] - 1],
        kind=events.kind,
        label=None if label is None else int(label),  # a plain number, for JSON
        shifted=target is not None,
    )


def _edges(
    source: Predictions, at: Predictions, events: Events, label: int | None, bins: Any
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
    step = -(-len(at) * len(which) // MOST_SCORES)  # edges of a pooled curve need not be exact
    score = np.concatenate([events.score(at, event)[::step] for event in which])
    weight = None if at.sample_weight is None else np.tile(at.sample_weight[::step], len(which))
    if isinstance(bins, str) and bins == "auto":
        inner, least = fine_edges(score, weight, planned_hats(source.size, at.size)), LEAST_ROWS
    else:
        pooled = Predictions(score, sample_weight=weight)
        inner, least = find_edges(pooled, Events("binary", 2), bins)[0], 2.0
    return BinEdges(events, which, (inner,) * len(which), smooth=False), least
