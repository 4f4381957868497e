"""Errors of all events from validated samples, options and class weights.

Estimators take sums over bins, a second pass over rows, or pairs of rows.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from calshift._core.addable import Tally
from calshift._core.predictions import Predictions
from calshift.binning.edges import BinEdges
from calshift.binning.events import Events
from calshift.binning.find_edges import BinnedSample, bin_sample, cut_simplex
from calshift.binning.placement import BinLocator
from calshift.binning.statistics import ShiftStatistics, source_kernel, target_kernel
from calshift.engines.base import Engine, rows_in_memory
from calshift.engines.sample_summary import SampleSummary
from calshift.errors import InvalidInput
from calshift.estimators.kernel import Sample, kernel_error
from calshift.estimators.paper import labelled_error, labelled_ratio, shifted_error, shifted_ratio
from calshift.estimators.regression import (
    BinSums,
    ResidualRegression,
    fit_residuals,
    share_on_few_rows,
    target_share_on_few_rows,
)
from calshift.estimators.row_sums import (
    LabelSums,
    SourceSums,
    SourceSumsByGroup,
    TargetSums,
    excess_by_label,
    weigh_labels,
)
from calshift.estimators.smoothing_kernels import BINNING, as_points
from calshift.estimators.statistics_sums import bin_sums_of
from calshift.estimators.weight_bias import WeightDraws, draw_changes
from calshift.inference.error_distributions import estimate_events
from calshift.inference.event_estimates import EventEstimates
from calshift.inference.influence_sums import CurvePlan
from calshift.inference.options import Options
from calshift.inference.row_influence import GroupSums, InfluenceTables
from calshift.weights.influence import ScaledWeights, WeightInfluence

ROWS_A_SUM = 8  # by bin and group of an event, below which such sums take longer than the rows


def event_errors(
    source: Engine,
    target: Engine | None,
    events: Events,
    options: Options,
    class_weights: np.ndarray,
    influence: WeightInfluence | None = None,
    *,
    interval: bool = False,
    curves: CurvePlan | None = None,
) -> EventEstimates:
    """Errors of all events; target None means labelled.

    Classes without a weight (NaN) are left out of every sum. With the influence on the weights
    the error is corrected for their noise too. Sums for ``curves`` are made in the last pass.
    """
    check_rows(source.summary, None if target is None else target.summary, class_weights)
    cells = options.kernel == BINNING
    if options.kernel is not None and not cells:
        what = "a kernel, which compares pairs of rows,"
        rows = rows_in_memory(source, what)
        others = None if target is None else rows_in_memory(target, what)
        return _estimate_by_kernel(rows, others, events, options, class_weights)
    at = source if target is None else target
    if cells:
        events = Events("classwise", events.n_classes)
        rows = rows_in_memory(at, 'kernel="binning"')
        bins = cut_simplex(rows, options.bins, source.summary.size)
    else:
        bins = bin_sample(at, events, options.bins, options.binning)
    kept = np.ones(events.count, dtype=bool)
    if events.kind == "classwise" and np.isnan(class_weights).any():
        kept = ~np.isnan(class_weights)
        bins = bins.only(np.flatnonzero(kept))
    if options.estimator == "paper":
        found = _estimate_as_paper(
            source, target, bins.edges, options, np.nan_to_num(class_weights)
        )
    else:
        sizes = source.summary.size, at.summary.size
        weights = ScaledWeights.of(class_weights, influence, sizes)
        plan = None if curves is None else lambda values: curves(_insert_missing(values, kept))
        found = _estimate_by_regression(source, target, bins, options, weights, interval, plan)
    if cells:
        return found.summed()
    return found if kept.all() else replace(found, values=_insert_missing(found.values, kept))


def _insert_missing(values: np.ndarray, kept: np.ndarray) -> np.ndarray:
    """NaN for events that were left out."""
    full = np.full(len(kept), np.nan)
    full[kept] = values
    return full


def check_rows(source: SampleSummary, target: SampleSummary | None, w: np.ndarray) -> None:
    """Check that samples have two rows, the least for a variance."""
    usable = float(source.class_counts @ (w > 0))  # NaN is not
    sizes = {"p": usable} if target is None else {"p_source": usable, "p_target": target.size}
    for name, size in sizes.items():
        if size < 2:
            least = "at least two rows, or sample weights that sum to 2"
            msg = f"{name} must have {least}; it has {size:g}"
            raise InvalidInput(msg)


def gather_statistics(source: Engine, target: Engine | None, edges: BinEdges) -> ShiftStatistics:
    """The sums of both samples; with target None the source is the target too."""
    statistics: ShiftStatistics = source.total(source_kernel(edges))
    if target is None:
        return statistics.as_labelled()
    target_sums: ShiftStatistics = target.total(target_kernel(edges))
    return statistics + target_sums


def _estimate_as_paper(
    source: Engine, target: Engine | None, edges: BinEdges, options: Options, w: np.ndarray
) -> EventEstimates:
    """The paper's estimator: ratios from sums, then the error in a second pass."""
    values, merged, few = [], 0, 0.0
    for part in edges.split():
        statistics = gather_statistics(source, target, part)
        if target is None:
            ratio = labelled_ratio(statistics)
            total = source.total(labelled_error(ratio, options.norm)) / source.summary.size
        else:
            ratio = shifted_ratio(statistics, w)
            total = target.total(shifted_error(ratio, options.norm)) / target.summary.size
            few += len(part) * target_share_on_few_rows(bin_sums_of(statistics, w))
        values.append(total)
        merged += ratio.merged
    sparse = None if target is None else (0.0, few / len(edges))
    return EventEstimates(np.concatenate(values), merged=merged, sparse=sparse)


def _estimate_by_regression(
    source: Engine,
    target: Engine | None,
    bins: BinnedSample,
    options: Options,
    weights: ScaledWeights,
    interval: bool,
    curves: CurvePlan | None,
) -> EventEstimates:
    """Plug-in and debiased: residuals regressed on the bins' sums, then their noise."""
    locator, debias = bins.locator(source, target), options.estimator == "debiased"
    labels = weights.influence is not None and (interval or debias)
    fits, by_label, by_group = _fit(source, target, bins, locator, weights, labels)
    tables = InfluenceTables(
        fits,
        weights,
        locator,
        labelled=target is None,
        rows=max(source.summary.rows, source.summary.size),
        counts=source.summary.class_effective_size,
        stratified=options.stratified,
        by_weight=_by_weight(fits, by_label.pop("excess", None)),
        by_group=by_group,
        weight_draws=_weight_draws(fits, by_label, weights),
    )
    asked = options.norm, debias, interval, by_label.get("signed"), curves
    found = estimate_events(tables, source, target, *asked)
    return replace(found, merged=fits.merged, sparse=share_on_few_rows(fits))


def _by_weight(fits: ResidualRegression, excess: np.ndarray | None) -> np.ndarray:
    """(E, R, S) in the place of residuals by label, which may be many; (E, R, 0) without these."""
    if excess is None:
        return np.zeros((*fits.coefficients.shape, 0))
    return fits.times(excess, out=excess)


def _weight_draws(
    fits: ResidualRegression, by_label: Tally, weights: ScaledWeights
) -> WeightDraws | None:
    """None if sums by label or draws are missing."""
    draws = weights.draws if "bands" in by_label else None
    if draws is None:
        return None
    return draw_changes(fits, by_label, weights.values[weights.seen], draws)


def _fit(
    source: Engine,
    target: Engine | None,
    bins: BinnedSample,
    locator: BinLocator,
    weights: ScaledWeights,
    labels: bool,
) -> tuple[ResidualRegression, Tally, GroupSums | None]:
    """The regressions, with ``labels`` sums of residuals by label, and sums by groups if few."""
    count, score, seen = bins.count, bins.score, weights.seen
    if count is None or score is None:
        at = source if target is None else target
        count, score = at.total(TargetSums(locator)).values()
    values, group = _group_classes(weights, labels)
    sums_an_event = len(values) * locator.width
    few = len(values) == 1 or ROWS_A_SUM * sums_an_event <= source.summary.rows
    if not (few or labels) or not SourceSumsByGroup.fits_memory(locator, len(values)):
        sums = source.total(SourceSums(locator, weights.values))
        fits = fit_residuals(BinSums(**sums, count=count, score=score), bins.edges)
        found = LabelSums(locator, fits, seen, weights.values[seen])
        return fits, source.total(found) if labels else Tally(), None
    by_group = source.total(SourceSumsByGroup(locator, group, len(values)))
    sums = weigh_labels(by_group, values)
    fits = fit_residuals(BinSums(**sums, count=count, score=score), bins.edges)
    by_label = excess_by_label(by_group, fits, values) if labels else Tally()
    plain = few and not source.summary.light  # else 1 - l depends on the row
    return fits, by_label, GroupSums(by_group, values, group) if plain else None


def _group_classes(weights: ScaledWeights, labels: bool) -> tuple[np.ndarray, np.ndarray]:
    """Weights of groups of classes, and the group (K,) of each class: of its own with ``labels``.

    Classes that are not seen have no rows.
    """
    if labels:
        return weights.values[weights.seen], np.cumsum(weights.seen) - 1
    values, place = np.unique(weights.values[weights.seen], return_inverse=True)
    group = np.zeros(len(weights.seen), np.intp)
    group[weights.seen] = place
    return values, group


def _estimate_by_kernel(
    source: Predictions,
    target: Predictions | None,
    events: Events,
    options: Options,
    class_weights: np.ndarray,
) -> EventEstimates:
    """Pairwise estimators: one for the whole vector, or one an event on the line."""
    assert options.kernel is not None
    w = np.nan_to_num(class_weights)[source.labels]
    if options.estimator != "paper":
        w = w / w.max()  # their scale does not matter
    seen = ~np.isnan(class_weights)
    each = [None] if events.kind == "canonical" else list(range(events.count))
    found = [
        kernel_error(
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
    isolated, sparse = max(isolated for _, isolated in found), None
    if target is not None and options.kernel == "triweight" and options.estimator != "paper":
        sparse = (0.0, isolated / len(target))  # other kernels reach every row, however far
    return EventEstimates(values, isolated=isolated, sparse=sparse)


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
