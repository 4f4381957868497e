"""The public functions: read the input, conduct the parts, answer with a result."""

from __future__ import annotations

import warnings as python_warnings
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from calshift._core.validate import (
    MOST_CLASSES,
    check_same_names,
    encode_labels,
    is_number,
    validate_integer,
    validate_rng,
)
from calshift.binning.edges import BinEdges
from calshift.binning.events import select_binned_events, select_events
from calshift.binning.find_edges import find_edges
from calshift.binning.statistics import ShiftStatistics, source_kernel, target_kernel
from calshift.diagnostics.label_shift_check import label_shift_check
from calshift.engines.base import Engine
from calshift.engines.open import is_engine, open_engine, open_pair, open_source
from calshift.engines.run import Run
from calshift.engines.sample_summary import SampleSummary
from calshift.errors import InvalidInput, NoRows, UnreliableWeights
from calshift.estimators import from_statistics, shifted_square
from calshift.inference.algorithm1 import event_variances, variance_of
from calshift.inference.assemble import (
    labelled_result,
    shifted_result,
    sum_variances,
    target_result,
)
from calshift.inference.compare import difference
from calshift.inference.event_estimates import EventEstimates
from calshift.inference.options import Options, Progress, Resampling
from calshift.inference.reliability import reliability_curves
from calshift.results import (
    AlgorithmVariance,
    CalibrationErrorResult,
    ClassWeights,
    Difference,
    LabelShiftCheck,
    ReliabilityCurve,
)
from calshift.weights import (
    DEFAULT,
    estimate_weights,
    make_given_weights,
    resolve_class_weights,
    weights_from_counts,
)
from calshift.weights.influence import ScaledWeights

CHECK_LEVEL, CHECK_DRAWS = 0.05, 200  # of the test that comes with an estimate
MOST_CELLS = 20_000_000  # of ShiftStatistics, events x bins x strata


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
        "paper" takes 15 for "auto"
    binning : "mass" (bins with equally many rows) or "width"
    kernel : "dirichlet" or "triweight" in the place of bins; canonical takes "triweight"
    bandwidth : "auto" (leave-one-out likelihood) or a number
    interval : "influence" (closed form, for bins and norms 1 and 2 of "debiased" and "plugin"),
        "bootstrap" (for everything) or None
    n_boot, rng, n_jobs, progress : of the bootstrap: draws, seed, processes, and a callable that
        is told (done, total); of scanned data, rows of a pass
    stratified : whether the number of rows of each class was fixed by design, not drawn
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
    with Run(checkpoint, progress, ("calibration_error", options), resampling.jobs) as run:
        sample = open_engine(p, y, labelled=True, run=run)
        events = select_events(kind, sample.summary)
        return labelled_result(sample, events, options, np.ones(events.n_classes), resampling)


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
    checkpoint: str | Path | None = None,
) -> CalibrationErrorResult:
    """Calibration error on a target sample without labels, under label shift.

    If only the mix of classes changed, source rows weighted by ``w_y = p_t(y) / p_s(y)`` stand
    for the target. On the target's bins (or a smooth basis of them), with source residuals
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
    weights : a method of `label_shift_weights` ("em-bcts" by default), (K,) class weights used as
        they are, or a `ClassWeights`
    kind, norm, estimator, bins, binning, kernel, bandwidth : as in `calibration_error`
    check : whether to test that only the mix of classes changed (`check_label_shift`)
    interval, n_boot, rng, n_jobs, progress, stratified : as in `calibration_error`. Both intervals
        know the uncertainty of estimated weights; the bootstrap refits them in every draw
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
    options = Options(kind, norm, estimator, bins, binning, kernel, bandwidth, interval, stratified)
    resampling = Resampling(n_boot, rng, n_jobs, progress)
    seed = rng if is_number(rng) else 0
    asked = ("target_calibration_error", options, weights, bool(check))
    with Run(checkpoint, progress, asked, resampling.jobs) as run:
        source, target = open_pair(p_source, y_source, p_target, run)
        select_events(kind, source.summary)  # a kind that does not fit is said before the test
        tested = (source, target, CHECK_LEVEL, CHECK_DRAWS, seed)
        checked = label_shift_check(*tested) if check else None
        result = target_result(source, target, options, weights, resampling, checked)
    _announce(result.class_weights, checked)
    return result


def target_calibration_error_from(
    statistics: ShiftStatistics, *, weights: Any, norm: float = 2, estimator: str = "debiased"
) -> CalibrationErrorResult:
    """`target_calibration_error` from sums made by `accumulate`, however many batches they saw.

    The formulas and the numbers are those of `target_calibration_error` with given weights on the
    same edges. Weights count as known, since the rows that moved them are gone; there is no
    interval, and no ``.source``, whose bins would be the source's own.

    Examples
    --------
    >>> import calshift
    >>> p_source, y_source = [0.2, 0.3, 0.6, 0.9], [0, 0, 1, 1]
    >>> p_target = [0.4, 0.7, 0.8, 0.9]
    >>> edges = calshift.bin_edges(p_target, kind="binary", bins=1)
    >>> sums = calshift.accumulate(p_source, y_source, p_target, edges=edges)
    >>> result = calshift.target_calibration_error_from(sums, weights=[0.5, 1.5])
    >>> round(result.estimate, 4)
    0.0041
    """
    options = Options("classwise", norm, estimator, "auto", "mass", None, "auto")
    if not isinstance(statistics, ShiftStatistics):
        msg = f"statistics must be ShiftStatistics, as accumulate makes; got {type(statistics)!r}"
        raise InvalidInput(msg)
    events = statistics.edges.events
    counts = _class_counts(statistics)
    if min(statistics.size_source, statistics.size_target) < 2 or np.count_nonzero(counts) < 2:
        msg = "statistics must hold two source rows or more, of two classes, and two target rows"
        raise InvalidInput(msg)
    class_weights = make_given_weights(weights, counts, classes=statistics.edges.classes)
    _announce(class_weights)
    w = np.nan_to_num(class_weights.values)
    if estimator == "paper" and statistics.edges.smooth:
        msg = 'estimator="paper" needs bins: make the edges with bin_edges(bins=15)'
        raise InvalidInput(msg)
    if estimator == "paper":
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
    found = EventEstimates(values, merged=merged)
    return shifted_result(found, events, options, class_weights, sizes)


def label_shift_weights(
    p_source: Any,
    y_source: Any,
    p_target: Any,
    *,
    method: str = DEFAULT,
    progress: Progress | None = None,
    checkpoint: str | Path | None = None,
) -> ClassWeights:
    """Class weights ``w_y = p_t(y) / p_s(y)`` without target labels.

    With ``C[a, y]`` the share of source rows predicted as a with label y, ``mu[a]`` the share of
    target rows predicted as a, and ``pi`` the class shares of the source::

        bbse, bbse-soft    C w = mu in least squares,      w >= 0, sum_y pi_y w_y = 1
        rlls, rlls-soft    min |C t - b| + penalty |t|,    w = 1 + t >= 0, b = mu - C 1
        em                 max mean_j log sum_y p_jy q_y / pi_y,    w = q / pi
        em-ts, em-bcts, em-vs, em-nbvs    the same after calibrating both samples on the source
        map                em-bcts with a Dirichlet prior on q around pi
        elsa               C w = mu with features weighted by their noise
        kmm                C w = mu with the features of a Gaussian kernel

    "soft" counts probabilities where the plain form counts predicted classes.

    Parameters
    ----------
    p_source, y_source : labelled predictions before the shift; or a `Predictions`, a `scan` or the
        path of files, and None
    p_target : predictions after it
    method : its name
    progress, checkpoint : of scanned data, as in `calibration_error`

    Returns
    -------
    ClassWeights
        with both priors, standard errors from the sampling of both sides, and warnings

    Notes
    -----
    "em-bcts" is precise and unbiased where calibration by a temperature and biases suffices.
    "bbse-soft" and "kmm" assume nothing about calibration, for where that is in doubt; "map" is
    drawn to the source's mix as far as the evidence allows, for weak models and for hundreds of
    classes with few rows. docs/mathematics.md section 7 compares them.

    Examples
    --------
    >>> import calshift
    >>> simulation = calshift.simulate.GaussianSimulation(n_classes=3, imbalance=4)
    >>> p_source, y_source = simulation.source(3000, rng=1)
    >>> p_target, _ = simulation.target(3000, rng=2)
    >>> weights = calshift.label_shift_weights(p_source, y_source, p_target)
    >>> weights.prior_target.round(2), simulation.prior("target").round(2)
    (array([0.57, 0.28, 0.15]), array([0.57, 0.29, 0.14]))
    >>> weights.standard_error.round(3)
    array([0.01 , 0.009, 0.007])
    """
    with Run(checkpoint, progress, ("label_shift_weights", method)) as run:
        found = estimate_weights(method, *open_pair(p_source, y_source, p_target, run))
    _announce(found)
    return found


def weights_from_labels(y_source: Any, y_target: Any, n_classes: int | None = None) -> ClassWeights:
    """The weights ``w_y = p_t(y) / p_s(y)`` where target labels exist: the oracle w*.

    Intervals of what is made of them include the noise of both sides' labels, if ``y_source`` is
    the source's; with ``interval="bootstrap"`` they are kept as they are.

    Examples
    --------
    >>> import calshift
    >>> calshift.weights_from_labels([0, 0, 0, 1], [0, 1, 1, 1]).values
    array([0.33333333, 3.        ])
    """
    most = MOST_CLASSES if n_classes is None else validate_integer(n_classes, "n_classes", 2)
    labels = [encode_labels(y_source, "y_source", most), encode_labels(y_target, "y_target", most)]
    K = max(2, *(int(y.max()) + 1 for y in labels)) if n_classes is None else most
    return weights_from_counts(*(np.bincount(y, minlength=K).astype(float) for y in labels))


def check_label_shift(
    p_source: Any,
    y_source: Any,
    p_target: Any,
    *,
    level: float = 0.05,
    n_boot: int = 200,
    rng: Any = 0,
    progress: Progress | None = None,
    checkpoint: str | Path | None = None,
) -> LabelShiftCheck:
    """Test whether only the mix of classes has changed, without target labels.

    Rows are counted in cells of predicted class and confidence. Under label shift the target's
    shares h of the cells are a mixture ``A q`` of the shares A_y of the source's classes; as there
    are more cells than classes, other changes show::

        J = min_q (h - A q)' S^-1 (h - A q)        S: the sampling noise of both sides

    The p-value is that of a parametric bootstrap: tables drawn under the fitted mixture.

    Parameters
    ----------
    p_source, y_source : labelled predictions before the shift; or a `Predictions`, a `scan` or the
        path of files, and None
    p_target : predictions after it
    level : of the test, the share of false alarms
    n_boot : draws of the bootstrap at most; it stops early where the outcome is clear
    rng : seed or generator of the draws; the same seed gives the same p-value
    progress, checkpoint : of scanned data, as in `calibration_error`

    Returns
    -------
    LabelShiftCheck
        with ``.rejected``, ``.verdict`` in words, and residuals by class and confidence

    Notes
    -----
    Not rejecting is no proof: docs/mathematics.md tells what is seen and what is not. Where there
    are no more cells with enough rows than classes, nothing is tested and ``.p_value`` is None.
    Fractional sample weights count as fractions of rows.

    Examples
    --------
    >>> import calshift
    >>> simulation = calshift.simulate.GaussianSimulation(n_classes=3, dimensions=3)
    >>> p_source, y_source = simulation.source(5000, rng=1)
    >>> p_target, _ = simulation.target(5000, rng=2)
    >>> calshift.check_label_shift(p_source, y_source, p_target).rejected
    False
    >>> flattened = p_target**0.7 / (p_target**0.7).sum(axis=1, keepdims=True)
    >>> check = calshift.check_label_shift(p_source, y_source, flattened)
    >>> check.rejected, round(check.p_value, 3)
    (True, 0.005)
    """
    with Run(checkpoint, progress, "check_label_shift") as run:
        source, target = open_pair(p_source, y_source, p_target, run)
        return label_shift_check(source, target, level, n_boot, rng)


def compare(a: CalibrationErrorResult, b: CalibrationErrorResult) -> Difference:
    """The difference of two calibration errors of the same rows, with its interval.

    Two models on the same rows, or one model on the target and on the source
    (``compare(result, result.source)``). Errors of the same rows share noise, which the interval
    takes into account; both must come with ``interval="influence"``, and be of one kind, norm and
    estimator. Labels, sample weights and sizes tell whether the rows are the same; that two models
    saw the same target rows in the same order only the caller knows.

    Examples
    --------
    >>> import calshift
    >>> simulation = calshift.simulate.BetaSimulation()
    >>> p_source, y_source = simulation.source(5000, rng=1)
    >>> p_target, _ = simulation.target(5000, rng=2)
    >>> result = calshift.target_calibration_error(p_source, y_source, p_target)
    >>> print(calshift.compare(result, result.source))
    Difference of calibration errors (root): -0.0729, 95% interval -0.0861 to -0.0598: different
    """
    return difference(a, b)


def variance_algorithm1(
    p_source: Any,
    y_source: Any,
    p_target: Any = None,
    *,
    weights: Any = None,
    kind: str = "classwise",
    norm: float = 2,
    bins: Any = 15,
    stratified: bool = False,
    sampled: bool = False,
    rng: Any = None,
) -> AlgorithmVariance:
    """Variance of ``estimator="paper"`` by Algorithm 1 of the paper, with labels or without.

    In each bin the frequency R is taken as normal, and the M_b gaps ``Z = |R - f|^p`` share it::

        Var(CE_p^p) = sum_b [ M_b Var(Z) + M_b (M_b - 1) Cov(Z, Z') ] / m^2
        with labels:     R ~ N(q, q (1 - q) / (N_b - 1)),         q the frequency in the bin
        without:         R ~ N(a S_b, a^2 S_b (1 - S_b / n_b)),   a = (w / n) (m - 1) / (M_b - 1)
        corrected:       R ~ N(a S_b, a^2 S_b (1 - S_b / n))

    with S_b source rows of the class among the n_b of the bin. Class weights are held fixed.

    Parameters
    ----------
    p_source, y_source : labelled predictions (or a `Predictions` and None)
    p_target : unlabelled predictions after a shift; None asks for the variance of the error
        with labels, on the source
    weights : as in `target_calibration_error`, and required with a target
    kind : "classwise" or "binary"; a 1-D ``p_source`` is binary
    norm, bins : as in `calibration_error`
    stratified : the corrected variance for a source with as many rows of a class as were planned:
        ``S_b / n_c`` in the place of ``S_b / n``
    sampled : draw R and f, as the paper prints it, rather than compute the same numbers
    rng : seed or generator of these draws

    Returns
    -------
    AlgorithmVariance
        ``float()`` of it is the paper's variance; ``.corrected`` stands beside it under shift

    Notes
    -----
    The paper takes n_b as given, though it is random and nothing divides S_b by it; the corrected
    variance mends that. Neither knows the noise of estimated weights or of the bins' edges. The
    paper takes classes one at a time, as ``.per_class`` does; ``.variance`` of their mean adds them
    up as if they were independent, and ``.largest`` bounds it whatever their dependence.
    docs/mathematics.md tells how near all of this is to the truth.

    Examples
    --------
    >>> import calshift
    >>> simulation = calshift.simulate.BetaSimulation()
    >>> p_source, y_source = simulation.source(1000, rng=1)
    >>> p_target, _ = simulation.target(1000, rng=2)
    >>> labelled = calshift.variance_algorithm1(p_source, y_source)
    >>> shifted = calshift.variance_algorithm1(p_source, y_source, p_target, weights="bbse")
    >>> [f"{value:.1e}" for value in (float(labelled), float(shifted), shifted.corrected)]
    ['1.6e-05', '3.5e-05', '1.9e-04']
    """
    if kind in ("top-label", "canonical"):
        msg = f'kind must be "classwise" or "binary" for Algorithm 1; got {kind!r}'
        raise InvalidInput(msg)
    options = Options(kind, norm, "paper", bins, "mass", None, "auto", None, stratified)
    source, target, class_weights = _with_weights(p_source, y_source, p_target, weights, stratified)
    events = select_events(kind, source.summary)
    w = np.ones(events.n_classes) if class_weights is None else class_weights.values
    if class_weights is not None:
        _announce(class_weights)
    spread = variance_of(options.norm, validate_rng(rng) if sampled else None)
    found, joined = event_variances(source, target, events, options, w, stratified, spread)
    return AlgorithmVariance(
        norm=options.norm,
        n_source=source.summary.size,
        n_target=None if target is None else target.summary.size,
        class_weights=class_weights,
        stratified=stratified,
        sampled=sampled,
        warnings=() if class_weights is None else class_weights.warnings,
        merged_bins=joined,
        classes=source.summary.classes,
        **sum_variances(found, events, w),
    )


def reliability_curve(
    p_source: Any,
    y_source: Any = None,
    p_target: Any = None,
    *,
    weights: Any = DEFAULT,
    kind: str = "classwise",
    label: int | None = None,
    bins: Any = "auto",
) -> ReliabilityCurve:
    """Frequency of the event against its score, with labels or, given a target, without.

    In a bin the frequency is the mean score plus the mean residual, ``F_b + U_b``: with labels
    the plain frequency, on a target ``F_b`` is the target's and ``U_b`` the weighted source's, kept
    within [0, 1].
    ``.band(level)`` is its interval in each bin, that of estimated weights included.
    ``label`` picks a class; None under "classwise" pools the scores of all classes, where errors
    of opposite sign in different classes can cancel: look at the classes too.

    Examples
    --------
    >>> import calshift
    >>> curve = calshift.reliability_curve([0.1, 0.2, 0.8, 0.9], [0, 0, 1, 0], bins=2)
    >>> curve.score, curve.frequency
    (array([0.15, 0.85]), array([0. , 0.5]))
    """
    if p_target is None:
        source, target = open_source(p_source, y_source), None
        if not (isinstance(weights, str) and weights == DEFAULT):
            msg = "weights need a p_target to be the weights of"
            raise InvalidInput(msg)
        facts = source.summary
        scaled_weights = ScaledWeights.of(np.ones(facts.n_classes), None, (facts.size, facts.size))
    else:
        source, target = open_pair(p_source, y_source, p_target)
        found = resolve_class_weights(weights, source, target)
        _announce(found)
        sizes = (source.summary.size, target.summary.size)
        scaled_weights = ScaledWeights.of(found.values, found.influence, sizes)
    wanted = [(select_binned_events(kind, source.summary), label)]
    return reliability_curves(source, target, wanted, scaled_weights, bins)[0]


def bin_edges(
    p_target: Any, *, kind: str = "classwise", bins: Any = "auto", binning: str = "mass"
) -> BinEdges:
    """The edges on which `accumulate` counts: one array of inner edges an event.

    Equal mass: ``unique(s[ceil(k m / B)], k = 1..B-1)`` above ``s[0]``, with s the sorted scores;
    a bin holds its lower edge, and equal scores are never split.

    Examples
    --------
    >>> import calshift
    >>> calshift.bin_edges([0.1, 0.2, 0.3, 0.4], bins=2)[0]
    array([0.3])
    """
    target = open_engine(p_target, labelled=False, name_p="p_target")
    return find_edges(target, select_binned_events(kind, target.summary), bins, binning)


def accumulate(
    p_source: Any = None, y_source: Any = None, p_target: Any = None, *, edges: BinEdges
) -> ShiftStatistics:
    """Sums over a batch of source rows, target rows, both or none, on given edges.

    Count, sum of scores and of squared scores by event, bin and label: batches add up with ``+``
    or ``sum()`` to the same numbers as one pass over all rows; an empty batch adds nothing. Many
    classes need fewer bins: events x bins x labels is limited to 20 million.

    Examples
    --------
    >>> import calshift
    >>> edges = calshift.bin_edges([0.1, 0.2, 0.3, 0.4], bins=2)
    >>> batches = [([0.1], [0]), ([0.3], [1])]
    >>> sum(calshift.accumulate(p, y, edges=edges) for p, y in batches).size_source
    2.0
    """
    if not isinstance(edges, BinEdges):
        msg = f"edges must come from bin_edges; got {type(edges)!r}"
        raise InvalidInput(msg)
    cells = len(edges) * edges.max_bins * len(edges.events.stratum_label)
    if cells > MOST_CELLS:
        most = MOST_CELLS * edges.max_bins // cells
        msg = f"edges make {cells:,} sums; with bins={most} or fewer they fit ({MOST_CELLS:,})"
        raise InvalidInput(msg)
    if p_source is None and y_source is not None:
        msg = "y_source needs a p_source to be the labels of"
        raise InvalidInput(msg)
    statistics = ShiftStatistics.zero(edges)
    if p_source is not None and not _is_empty(p_source):
        with suppress(NoRows):
            source = open_source(p_source, y_source)
            _check_classes(source.summary, edges, "p_source")
            statistics += source.total(source_kernel(edges))
    if p_target is not None and not _is_empty(p_target):
        with suppress(NoRows):
            target = open_engine(p_target, labelled=False, name_p="p_target")
            _check_classes(target.summary, edges, "p_target")
            statistics += target.total(target_kernel(edges))
    return statistics


def _is_empty(p: Any) -> bool:
    return not is_engine(p) and not isinstance(p, Path) and len(p) == 0


def _announce(
    class_weights: ClassWeights | None, assumption: LabelShiftCheck | None = None
) -> None:
    """Tell the caller of the public function what is wrong with the weights."""
    if assumption is not None and assumption.rejected:
        python_warnings.warn(assumption.verdict, UnreliableWeights, stacklevel=3)
    for note in () if class_weights is None else class_weights.warnings:
        python_warnings.warn(note, UnreliableWeights, stacklevel=3)


def _with_weights(
    p_source: Any, y_source: Any, p_target: Any, weights: Any, stratified: bool
) -> tuple[Engine, Engine | None, ClassWeights | None]:
    """Both samples and the weights between them, or the source alone."""
    if p_target is not None:
        source, target = open_pair(p_source, y_source, p_target)
        return source, target, resolve_class_weights(weights, source, target)
    if weights is not None or stratified:
        asked = "weights need" if weights is not None else "stratified needs"
        msg = f"{asked} a p_target: the error with labels on the source has no shift"
        raise InvalidInput(msg)
    return open_source(p_source, y_source), None, None


def _class_counts(statistics: ShiftStatistics) -> np.ndarray:
    events = statistics.edges.events
    return np.bincount(events.stratum_label, statistics.rows[0], events.n_classes)


def _check_classes(predictions: SampleSummary, edges: BinEdges, name: str) -> None:
    if predictions.n_classes != edges.events.n_classes:
        msg = (
            f"{name} must have the classes of the edges; "
            f"it has {predictions.n_classes}, the edges {edges.events.n_classes}"
        )
        raise InvalidInput(msg)
    check_same_names(predictions.classes, edges.classes, (name, "the edges"))
