"""From checked samples, options and class weights to the error of every event and its laws.

The one place that knows which estimator takes which road: sums over bins, a second pass over rows,
or pairs of rows.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from calshift._core.addable import Tally
from calshift._core.predictions import Predictions
from calshift.binning.edges import BinEdges
from calshift.binning.events import Events
from calshift.binning.find_edges import Laid, laid
from calshift.binning.placement import Places
from calshift.binning.statistics import ShiftStatistics, source_kernel, target_kernel
from calshift.engines.base import Engine, rows_in_memory
from calshift.engines.sample_summary import Facts
from calshift.errors import InvalidInput
from calshift.estimators import (
    Sample,
    labelled_error,
    labelled_ratio,
    shifted_error,
    shifted_ratio,
    smoothed_error,
)
from calshift.estimators.regression import FirstSums, fitted, resting_on_few
from calshift.estimators.row_sums import LabelSums, SourceSums, TargetSums
from calshift.estimators.smoothing_kernels import as_points
from calshift.inference.bias_variance import assessed
from calshift.inference.options import Options
from calshift.inference.row_influence import Moves
from calshift.results import Law, RowMoves
from calshift.weights.influence import WeightInfluence, Weighting


@dataclass(frozen=True)
class Estimation:
    """Errors of all events (NaN: left out), and what is known about them.

    Attributes
    ----------
    values : (E,)
    joined : bins or knots joined to a neighbour for lack of rows
    lonely : rows without a neighbour within the bandwidth of a kernel
    thin : shares of the error and of the target that rest on few source rows
    law, event_laws : of the mean and of each event that is not left out, or None
    moves : by how much each row moved the mean, or None
    """

    values: np.ndarray
    joined: int = 0
    lonely: int = 0
    thin: tuple[float, float] = (0.0, 0.0)
    law: Law | None = None
    event_laws: Law | None = None
    moves: RowMoves | None = None


def event_errors(
    source: Engine,
    target: Engine | None,
    events: Events,
    options: Options,
    class_weights: np.ndarray,
    influence: WeightInfluence | None = None,
    *,
    interval: bool = False,
) -> Estimation:
    """Errors of all events; target None means labelled.

    Classes without a weight (NaN) are left out of every sum. With the influence on the weights
    their noise is taken out of the error too.
    """
    check_rows(source.facts, None if target is None else target.facts, class_weights)
    if options.kernel is not None:
        what = "a kernel, which compares pairs of rows,"
        rows = rows_in_memory(source, what)
        others = None if target is None else rows_in_memory(target, what)
        return _smoothed(rows, others, events, options, class_weights)
    at = source if target is None else target
    bins = laid(at, events, options.bins, options.binning)
    kept = np.ones(events.count, dtype=bool)
    if events.kind == "classwise" and np.isnan(class_weights).any():
        kept = ~np.isnan(class_weights)
        bins = bins.only(np.flatnonzero(kept))
    if options.estimator == "paper":
        found = _paper(source, target, bins.edges, options, np.nan_to_num(class_weights))
    else:
        weighting = Weighting.of(class_weights, influence, (source.facts.size, at.facts.size))
        found = _fitted(source, target, bins, options, weighting, interval)
    return _spread(found, kept)


def _spread(found: Estimation, kept: np.ndarray) -> Estimation:
    """NaN in the place of events left out."""
    if kept.all():
        return found
    values = np.full(len(kept), np.nan)
    values[kept] = found.values
    return replace(found, values=values)


def check_rows(source: Facts, target: Facts | None, w: np.ndarray) -> None:
    """Two rows are the least from which a spread can be told."""
    usable = float(source.class_counts @ (w > 0))  # NaN is not
    sizes = {"p": usable} if target is None else {"p_source": usable, "p_target": target.size}
    for name, size in sizes.items():
        if size < 2:
            msg = f"{name} must have at least two rows of positive weight; it has {size:g}"
            raise InvalidInput(msg)


def gathered(source: Engine, target: Engine | None, edges: BinEdges) -> ShiftStatistics:
    """The sums of both samples; with target None the source stands on both sides."""
    statistics: ShiftStatistics = source.total(source_kernel(edges))
    if target is None:
        return statistics.as_labelled()
    target_sums: ShiftStatistics = target.total(target_kernel(edges))
    return statistics + target_sums


def _paper(
    source: Engine,
    target: Engine | None,
    edges: BinEdges,
    options: Options,
    w: np.ndarray,
) -> Estimation:
    """The paper's estimator: ratios from sums, then the error in a second pass."""
    values, joined = [], 0
    for part in edges.split():
        statistics = gathered(source, target, part)
        if target is None:
            ratio = labelled_ratio(statistics)
            total = source.total(labelled_error(ratio, options.norm)) / source.facts.size
        else:
            ratio = shifted_ratio(statistics, w)
            total = target.total(shifted_error(ratio, options.norm)) / target.facts.size
        values.append(total)
        joined += ratio.joined
    return Estimation(np.concatenate(values), joined)


def _fitted(
    source: Engine,
    target: Engine | None,
    bins: Laid,
    options: Options,
    weighting: Weighting,
    interval: bool,
) -> Estimation:
    """Plug-in and debiased: residuals fitted on the bins' sums, then the noise of the fits."""
    places = bins.places(source, target)
    fits = fitted(_first_sums(source, target, bins, places, weighting.values), bins.edges)
    counts = source.facts.class_worth if options.stratified else None
    by_label: Tally | dict[str, None] = {"excess": None, "signed": None}
    if weighting.influence is not None and (interval or options.estimator == "debiased"):
        by_label = source.total(
            LabelSums(bins.edges, places, fits, weighting.values, weighting.seen)
        )
    rows = max(source.facts.rows, source.facts.size)
    moves = Moves(
        bins.edges, fits, weighting, places, target is None, rows, counts, by_label["excess"]
    )
    debias = options.estimator == "debiased"
    found = assessed(moves, source, target, options.norm, debias, interval, by_label["signed"])
    return Estimation(
        found.values,
        joined=fits.thin,
        thin=resting_on_few(fits),
        law=found.law,
        event_laws=found.event_laws,
        moves=found.moves,
    )


def _first_sums(
    source: Engine, target: Engine | None, bins: Laid, places: Places, w: np.ndarray
) -> FirstSums:
    """What fits need: a pass over the source, and one over the target if that was not counted."""
    count, score = bins.count, bins.score
    if count is None or score is None:
        at = source if target is None else target
        count, score = at.total(TargetSums(bins.edges, places)).values()
    return FirstSums(**source.total(SourceSums(bins.edges, places, w)), count=count, score=score)


def _smoothed(
    source: Predictions,
    target: Predictions | None,
    events: Events,
    options: Options,
    class_weights: np.ndarray,
) -> Estimation:
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
    values = np.array([value for value, _ in found])
    if events.kind == "classwise":
        values[~seen] = np.nan
    return Estimation(values, lonely=max(lonely for _, lonely in found))


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
