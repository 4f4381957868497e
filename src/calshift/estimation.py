"""From checked samples, options and a weight vector to the error of every event.

The one place that knows which estimator takes which road: sums over bins, a second pass over rows,
or pairs of rows.
"""

from __future__ import annotations

import numpy as np

from calshift.binning import BinEdges, find_edges
from calshift.engines import Arrays
from calshift.errors import InvalidInput
from calshift.estimators import (
    Sample,
    from_statistics,
    labelled_error,
    labelled_ratio,
    shifted_error,
    shifted_ratio,
    smoothed_error,
)
from calshift.events import Events
from calshift.kernels import as_points
from calshift.options import Options
from calshift.predictions import Predictions
from calshift.statistics import ShiftStatistics, source_kernel, target_kernel


def event_errors(
    source: Predictions,
    target: Predictions | None,
    events: Events,
    options: Options,
    class_weights: np.ndarray,
) -> tuple[np.ndarray, int, int]:
    """Errors, bins joined, points without a neighbour; target None means labelled.

    Classes without a weight (NaN) are left out of every sum.
    """
    check_rows(source, target, class_weights)
    if options.kernel is not None:
        values, lonely = _smoothed(source, target, events, options, class_weights)
        return values, 0, lonely
    at = source if target is None else target
    edges = find_edges(at, events, options.bins, options.binning)
    parts = [
        _binned(source, target, part, options, np.nan_to_num(class_weights))
        for part in edges.split()
    ]
    return np.concatenate([values for values, _ in parts]), sum(thin for _, thin in parts), 0


def check_rows(source: Predictions, target: Predictions | None, w: np.ndarray) -> None:
    """Two rows are the least from which a spread can be told."""
    usable = float(source.class_counts @ (np.nan_to_num(w) > 0))
    sizes = {"p": usable} if target is None else {"p_source": usable, "p_target": target.size}
    for name, size in sizes.items():
        if size < 2:
            msg = f"{name} must have at least two rows (of positive weight); got {size:g}"
            raise InvalidInput(msg)


def gathered(source: Predictions, target: Predictions | None, edges: BinEdges) -> ShiftStatistics:
    """The sums of both samples; with target None the source stands on both sides."""
    statistics: ShiftStatistics = Arrays(source).total(source_kernel(edges))
    if target is None:
        return statistics.as_labelled()
    target_sums: ShiftStatistics = Arrays(target).total(target_kernel(edges))
    return statistics + target_sums


def _binned(
    source: Predictions,
    target: Predictions | None,
    edges: BinEdges,
    options: Options,
    w: np.ndarray,
) -> tuple[np.ndarray, int]:
    statistics = gathered(source, target, edges)
    if options.estimator != "paper":
        return from_statistics(statistics, w, options.norm, options.estimator == "debiased")
    if target is None:
        ratio = labelled_ratio(statistics)
        total = Arrays(source).total(labelled_error(ratio, options.norm))
        return total / source.size, ratio.joined
    ratio = shifted_ratio(statistics, w)
    total = Arrays(target).total(shifted_error(ratio, options.norm))
    return total / target.size, ratio.joined


def _smoothed(
    source: Predictions,
    target: Predictions | None,
    events: Events,
    options: Options,
    class_weights: np.ndarray,
) -> tuple[np.ndarray, int]:
    """Pairwise estimators: one for the whole vector, or one an event on the line."""
    assert options.kernel is not None
    w = np.nan_to_num(class_weights)[source.labels]
    if options.estimator != "paper":
        w = w / w.max()  # their scale does not matter
    seen = ~np.isnan(class_weights)
    each = [None] if events.kind == "canonical" else list(range(events.count))
    found = [
        smoothed_error(
            _sample(source, events, event, options.kernel, seen),
            None if target is None else _sample(target, events, event, options.kernel, seen),
            w,
            options.norm,
            options.estimator,
            options.kernel,
            options.bandwidth,
        )
        for event in each
    ]
    return np.array([value for value, _ in found]), max(lonely for _, lonely in found)


def _sample(
    predictions: Predictions, events: Events, event: int | None, kernel: str, seen: np.ndarray
) -> Sample:
    weight = predictions.sample_weight
    weight = np.ones(len(predictions)) if weight is None else weight
    labelled, outcome = predictions.y is not None, None
    if event is None:  # canonical: the whole vector
        points = predictions.matrix.astype(float)
        if labelled:
            outcome = (predictions.labels[:, None] == np.arange(events.n_classes)).astype(float)
            outcome = outcome[:, seen]
        return Sample(points, points[:, seen], outcome, weight)
    score = events.score(predictions, event).astype(float)
    if labelled:
        outcome = events.stratum_outcome(event)[events.stratum(predictions)][:, None]
    return Sample(as_points(score, kernel), score[:, None], outcome, weight)
