"""Reliability curves: frequency against score, bin by bin."""

from __future__ import annotations

from typing import Any

import numpy as np

from calshift.basis import LEAST_COUNT, planned_hats
from calshift.binning import BinEdges, find_edges, fine_edges
from calshift.errors import InvalidInput
from calshift.estimation import gathered
from calshift.estimators import reliability
from calshift.events import Events
from calshift.predictions import Predictions
from calshift.results import ReliabilityCurve


def curve_of(
    source: Predictions,
    target: Predictions | None,
    events: Events,
    class_weights: np.ndarray,
    label: int | None,
    bins: Any,
) -> ReliabilityCurve:
    """The curve of the target, or of the labelled source where there is none."""
    edges, least = _edges(source, target or source, events, label, bins)
    points = reliability(gathered(source, target, edges), class_weights, least)
    label = None if label is None else int(label)  # a plain number, for JSON
    return ReliabilityCurve(*points, kind=events.kind, label=label, shifted=target is not None)


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
    score = np.concatenate([events.score(at, event) for event in which])
    weight = None if at.sample_weight is None else np.tile(at.sample_weight, len(which))
    if isinstance(bins, str) and bins == "auto":
        inner, least = fine_edges(score, weight, planned_hats(source.size, at.size)), LEAST_COUNT
    else:
        pooled = Predictions(score, sample_weight=weight)
        inner, least = find_edges(pooled, Events("binary", 2), bins)[0], 2.0
    return BinEdges(events, which, (inner,) * len(which), smooth=False), least
