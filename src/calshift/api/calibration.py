"""Calibration errors, with target labels or without."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any, overload

import numpy as np

from calshift._core.validate import is_number, validate_flag, validate_number
from calshift.api.label_shift import CHECK_DRAWS, CHECK_LEVEL
from calshift.binning.confidence_cells import plan_cells
from calshift.binning.events import select_events
from calshift.binning.find_edges import plan_bins
from calshift.binning.statistics import ShiftStatistics
from calshift.diagnostics.conditions import GIVEN, LABEL_FREE, LABEL_SHIFT, LABELLED, validate_waive
from calshift.diagnostics.label_shift_check import label_shift_check
from calshift.diagnostics.label_tables import plan_label_tables
from calshift.diagnostics.trust import announce
from calshift.engines.open import open_engine, open_pair, start_run
from calshift.engines.subsample import plan_subsample
from calshift.errors import InvalidInput
from calshift.estimators.debiased import from_statistics
from calshift.estimators.paper import shifted_square
from calshift.estimators.regression import target_share_on_few_rows
from calshift.estimators.statistics_sums import bin_sums_of
from calshift.inference.assemble import labelled_result, shifted_result, target_result
from calshift.inference.event_estimates import EventEstimates
from calshift.inference.options import Options, Progress, Resampling
from calshift.results import CalibrationErrorResult, Difference, MetricsComparison, MetricsResult
from calshift.results.difference import compare_metrics, compare_results
from calshift.weights import DEFAULT, make_given_weights


def calibration_error(
    p: Any,
    y: Any = None,
    *,
    kind: str = "classwise",
    norm: float = 2,
    estimator: str = "debiased",
    bins: Any = "auto",
    binning: str = "mass",
    kernel: str | None = None,
    bandwidth: float | str = "auto",
    interval: str | None = "influence",
    n_boot: int = 500,
    rng: Any = None,
    n_jobs: int = 1,
    progress: Progress | None = None,
    stratified: bool = False,
    waive: Iterable[str] = (),
    checkpoint: str | Path | None = None,
) -> CalibrationErrorResult:
    """Calibration error of labelled predictions.

    For a score f and an event Y it is ``CE_p^p = E |E[Y | f] - f|^p``; "classwise" averages over
    the classes, "canonical" takes the whole vector in the p-norm.

    Parameters
    ----------
    p, y : predictions and labels; or a `Predictions`, a `scan`, or the path of files alone
    kind : "classwise", "binary", "top-label" or "canonical"; a 1-D ``p`` is binary
    norm : p from 1 to 100
    estimator : "debiased" (default) takes the sampling noise out of the error,
        "plugin" leaves it in, "paper" follows Popordanoska et al. with leave-one-out frequencies
    bins : "auto" (a smooth basis whose size follows the sample), a number of bins, or edges;
        "paper" takes 15 for "auto". With ``kernel="binning"`` the number of cells, "auto" about one
        for 20 rows
    binning : "mass" (bins with equally many rows) or "width"
    kernel : "dirichlet" or "triweight" in the place of bins; canonical takes "triweight", or
        "binning", cells of the simplex with equally many rows
    bandwidth : "auto" (leave-one-out likelihood) or a number
    interval : "influence" (closed form, for bins and norms 1 and 2 of "debiased" and "plugin"),
        "bootstrap" (for everything) or None
    n_boot, rng, n_jobs, progress : of the bootstrap: draws, seed, processes, and a callback
        ``progress(done, total)``; of scanned data, rows of a pass
    stratified : whether the number of rows of each class was fixed by design, not drawn
    waive : names of conditions for ``.trusted`` to do without: "label-order", "sample-size",
        "interval-width" (docs/trust.md)
    checkpoint : a file for the sums of scanned data: when the call is interrupted they are kept,
        the same call goes on from there, and removes it at its end

    Returns
    -------
    CalibrationErrorResult

    Notes
    -----
    For p = 2 the debiased estimate is unbiased up to the basis (a kernel smooths more away) and may
    fall below 0 by chance. For other p no unbiased estimator exists; inverting the folded normal
    removes most of the bias.
    The interval of "plugin" is that of "debiased": both are of the calibration error itself. That
    of "paper" is of its expected value, bias included (``.interval_of``).

    Examples
    --------
    >>> import numpy as np, calshift
    >>> rng = np.random.default_rng(0)
    >>> truth = rng.uniform(size=4000)
    >>> y = (rng.uniform(size=4000) < truth).astype(int)
    >>> overconfident = truth**2 / (truth**2 + (1 - truth)**2)
    >>> result = calshift.calibration_error(overconfident, y)
    >>> round(result.root, 2)
    0.11
    >>> low, high = result.confidence_interval(0.95, root=True)
    >>> round(low, 2), round(high, 2)
    (0.1, 0.12)
    >>> round(calshift.calibration_error(truth, y).root, 2)
    0.0
    """
    options = Options(kind, norm, estimator, bins, binning, kernel, bandwidth, interval, stratified)
    resampling = Resampling(n_boot, rng, n_jobs, progress)
    waived = validate_waive(waive, LABELLED)
    with start_run(checkpoint, progress, ("calibration_error", options), resampling.jobs) as run:
        sample = open_engine(p, y, labelled=True, run=run)
        events = select_events(kind, sample.summary)
        ones = np.ones(events.n_classes)
        result = labelled_result(sample, events, options, ones, resampling, waived)
    announce(None, None, result.diagnostics)
    return result


def target_calibration_error(
    p_source: Any,
    y_source: Any,
    p_target: Any,
    *,
    weights: Any = DEFAULT,
    kind: str = "classwise",
    norm: float = 2,
    estimator: str = "debiased",
    bins: Any = "auto",
    binning: str = "mass",
    kernel: str | None = None,
    bandwidth: float | str = "auto",
    check: bool = True,
    interval: str | None = "influence",
    n_boot: int = 500,
    rng: Any = None,
    n_jobs: int = 1,
    progress: Progress | None = None,
    stratified: bool = False,
    drift: float = 0.0,
    waive: Iterable[str] = (),
    checkpoint: str | Path | None = None,
) -> CalibrationErrorResult:
    """Calibration error on a target sample without labels, under label shift.

    If only the class priors changed, source rows weighted by ``w_y = p_t(y) / p_s(y)`` represent
    the target. On the target's bins (or a smooth basis of them), with source residuals
    ``u = event - score``::

        U_b = sum_{i in b} w_i u_i / sum_{i in b} w_i
        plugin:    CE_p^p = sum_b P_b |U_b|^p            P_b: the target's share of bin b
        debiased:  CE_2^2 = sum_b P_b (U_b^2 - its sampling variance)
        paper:     CE_p^p = mean_j |R_b(j) - f_j|^p,     R_b = (w/n) events_b / ((M_b - 1)/(m - 1))

    Parameters
    ----------
    p_source, y_source : labelled predictions before the shift; or a `Predictions`, a `scan` or the
        path of files, and None
    p_target : predictions after it
    weights : a method of `label_shift_weights` ("auto" by default), (K,) class weights used as they
        are, or a `ClassWeights`
    kind, norm, estimator, bins, binning, kernel, bandwidth : as in `calibration_error`
    check : whether to test that only the class priors changed (`check_label_shift`)
    interval, n_boot, rng, n_jobs, progress, stratified : as in `calibration_error`. Both intervals
        know the uncertainty of estimated weights; the bootstrap refits them in every draw
    drift : share of the target's rows, 0 to 1, that may come from another distribution than label
        shift allows; intervals are widened by the largest effect of that (not by class)
    waive : names of conditions for ``.trusted`` to do without, such as "overlap"; those of
        ``.diagnostics`` (docs/trust.md). ``check=False`` waives those of label shift
    checkpoint : as in `calibration_error`

    Returns
    -------
    CalibrationErrorResult
        with the labelled error on the source in ``.source`` and the test in ``.assumption``

    Examples
    --------
    >>> import numpy as np, calshift
    >>> simulation = calshift.simulate.BetaSimulation()
    >>> p_source, y_source = simulation.source(5000, rng=1)
    >>> p_target, _ = simulation.target(5000, rng=2)
    >>> result = calshift.target_calibration_error(p_source, y_source, p_target)
    >>> round(result.root, 3), round(simulation.true_error() ** 0.5, 3)
    (0.095, 0.098)
    """
    smoothing = bins, binning, kernel, bandwidth
    drift = validate_number(drift, "drift", 0, 1)
    options = Options(kind, norm, estimator, *smoothing, interval, stratified, drift)
    resampling = Resampling(n_boot, rng, n_jobs, progress)
    seed = rng if is_number(rng) else 0
    waived = validate_waive(waive, LABEL_FREE, validate_flag(check, "check"))
    check = LABEL_SHIFT[0] not in waived
    asked = ("target_calibration_error", options, weights, check)
    with start_run(checkpoint, progress, asked, resampling.jobs) as run:
        prepare = plan_cells if check else None
        source, target = open_pair(p_source, y_source, p_target, run, prepare)
        events = select_events(kind, source.summary)  # which does not fit is said before the test
        for sample in (source, target):
            plan_bins(sample, events, bins)
            if isinstance(weights, str):  # of a method that estimates them
                plan_subsample(sample)
        if isinstance(weights, str):
            plan_label_tables(source, means=True)
        tested = (source, target, CHECK_LEVEL, CHECK_DRAWS, seed)
        checked = label_shift_check(*tested) if check else None
        result = target_result(source, target, options, weights, resampling, checked, waived)
    announce(result.class_weights, checked, result.diagnostics)
    return result


def target_calibration_error_from(
    statistics: ShiftStatistics,
    *,
    weights: Any,
    norm: float = 2,
    estimator: str = "debiased",
    waive: Iterable[str] = (),
) -> CalibrationErrorResult:
    """`target_calibration_error` from sums made by `accumulate`, however many batches they saw.

    The formulas and the numbers are those of `target_calibration_error` with given weights on the
    same edges. Weights count as known, since their influence functions need rows; there is no
    interval, and no ``.source``, whose bins would be the source's own. Neither label shift nor the
    order of labels and columns can be checked from sums: the result is not trusted unless
    ``waive=("label-shift-test", "label-order", "interval-width")``.

    Examples
    --------
    >>> import calshift
    >>> p_source, y_source = [0.2, 0.3, 0.6, 0.9], [0, 0, 1, 1]
    >>> p_target = [0.4, 0.7, 0.8, 0.9]
    >>> edges = calshift.bin_edges(p_target, kind="binary", bins=1)
    >>> sums = calshift.accumulate(p_source, y_source, p_target, edges=edges)
    >>> result = calshift.target_calibration_error_from(sums, weights=[0.5, 1.5])
    >>> round(result.estimate, 4)
    0.0006
    """
    options = Options("classwise", norm, estimator, "auto", "mass", None, "auto")
    waived = validate_waive(waive, GIVEN)
    if not isinstance(statistics, ShiftStatistics):
        msg = f"statistics must be ShiftStatistics, as accumulate makes; got {type(statistics)!r}"
        raise InvalidInput(msg)
    events = statistics.edges.events
    counts = np.bincount(events.stratum_label, statistics.rows[0], events.n_classes)
    if min(statistics.size_source, statistics.size_target) < 2 or np.count_nonzero(counts) < 2:
        msg = "statistics must hold two source rows or more, of two classes, and two target rows"
        raise InvalidInput(msg)
    class_weights = make_given_weights(weights, counts, classes=statistics.edges.classes)
    announce(class_weights)
    w = np.nan_to_num(class_weights.values)
    if estimator == "paper":
        if statistics.edges.smooth:
            msg = 'estimator="paper" needs bins: make the edges with bin_edges(bins=15)'
            raise InvalidInput(msg)
        if norm != 2:
            msg = f'estimator="paper" needs the rows again for norm={norm:g}; sums give norm=2 only'
            raise InvalidInput(msg)
        values, merged = shifted_square(statistics, w)
    else:
        if counts @ (w > 0) < 2:
            msg = "weights must be positive for at least two source rows"
            raise InvalidInput(msg)
        values, merged = from_statistics(statistics, w, options.norm, estimator == "debiased")
    sizes = (statistics.size_source, statistics.size_target)
    few = target_share_on_few_rows(bin_sums_of(statistics, w))
    found = EventEstimates(values, merged=merged, sparse=(0.0, few))
    return shifted_result(found, events, options, class_weights, sizes, waive=waived)


@overload
def compare(a: MetricsResult, b: MetricsResult) -> MetricsComparison: ...


@overload
def compare(a: CalibrationErrorResult, b: CalibrationErrorResult) -> Difference: ...


def compare(a: Any, b: Any) -> Difference | MetricsComparison:
    """The difference of two calibration errors, or of metrics, of the same rows, with its interval.

    Two models on the same rows, or one model on the target and on the source
    (``compare(result, result.source)``). Estimates of the same rows share noise, which the interval
    takes into account; both must come with ``interval="influence"``. Errors must be of one kind,
    norm and estimator; of metrics (`target_metrics`, `labelled_metrics`) those that both results
    have are compared. That rows are the same is checked by labels, sample weights and sizes; that
    two models saw the same target rows in the same order only the caller knows.

    Returns
    -------
    Difference, or MetricsComparison
        the latter of metrics: a mapping of names to `MetricDifference`

    Examples
    --------
    >>> import calshift
    >>> simulation = calshift.simulate.BetaSimulation()
    >>> p_source, y_source = simulation.source(5000, rng=1)
    >>> p_target, _ = simulation.target(5000, rng=2)
    >>> result = calshift.target_calibration_error(p_source, y_source, p_target)
    >>> print(calshift.compare(result, result.source))
    Difference of calibration errors (root): -0.0728, 95% interval -0.0866 to -0.0587: different
    """
    if isinstance(a, MetricsResult) or isinstance(b, MetricsResult):
        return compare_metrics(a, b)
    return compare_results(a, b)
