"""The public functions: read the input, conduct the parts, answer with a result."""

from __future__ import annotations

import warnings as python_warnings
from typing import Any

import numpy as np

from calshift.assumptions import label_shift_check
from calshift.binning import BinEdges, find_edges
from calshift.checks import MOST_CLASSES, check_same_names, checked_whole, label_codes
from calshift.curves import curve_of
from calshift.engines import Arrays
from calshift.errors import InvalidInput, UnreliableWeights
from calshift.estimation import event_errors
from calshift.estimators import from_statistics, shifted_square
from calshift.events import Events, binned_events, events_of
from calshift.options import Options
from calshift.predictions import Predictions, as_pair, as_predictions, as_source
from calshift.results import (
    CalibrationErrorResult,
    ClassWeights,
    LabelShiftCheck,
    ReliabilityCurve,
)
from calshift.statistics import ShiftStatistics, source_kernel, target_kernel
from calshift.weights import (
    DEFAULT,
    class_weights_of,
    estimated_weights,
    given_weights,
    weights_from_counts,
)

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
) -> CalibrationErrorResult:
    """Calibration error of labelled predictions.

    For a score f and an event Y it is ``CE_p^p = E |E[Y | f] - f|^p``; "classwise" averages over
    the classes, "canonical" takes the whole vector in the p-norm.

    Parameters
    ----------
    p, y : predictions and labels, or a `Predictions` alone
    kind : "classwise", "binary", "top-label" or "canonical"; a 1-D ``p`` is binary
    norm : p from 1 to 100
    estimator : "debiased" (default) takes the sampling noise out of the error,
        "plugin" leaves it in, "paper" follows Popordanoska et al. with leave-one-out frequencies
    bins : "auto" (a smooth basis whose size follows the sample), a number of bins, or edges;
        "paper" takes 15 for "auto"
    binning : "mass" (bins with equally many rows) or "width"
    kernel : "dirichlet" or "triweight" in the place of bins; canonical takes "triweight"
    bandwidth : "auto" (leave-one-out likelihood) or a number

    Returns
    -------
    CalibrationErrorResult

    Notes
    -----
    For p = 2 the debiased estimate is unbiased up to the basis (a kernel smooths more away) and may
    fall below 0 by chance. For other p no unbiased estimator exists; inverting the folded normal
    removes most of the bias.

    Examples
    --------
    >>> import numpy as np, calshift
    >>> rng = np.random.default_rng(0)
    >>> truth = rng.uniform(size=4000)
    >>> y = (rng.uniform(size=4000) < truth).astype(int)
    >>> overconfident = truth**2 / (truth**2 + (1 - truth)**2)
    >>> round(calshift.calibration_error(overconfident, y).root, 2)
    0.11
    >>> round(calshift.calibration_error(truth, y).root, 2)
    0.0
    """
    options = Options(kind, norm, estimator, bins, binning, kernel, bandwidth)
    sample = as_predictions(p, y, labelled=True)
    return _labelled(sample, events_of(kind, sample), options, np.ones(sample.n_classes))


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
    p_source, y_source : labelled predictions before the shift (or a `Predictions` and None)
    p_target : predictions after it
    weights : a method of `label_shift_weights` ("em-bcts" by default), (K,) class weights used as
        they are, or a `ClassWeights`
    kind, norm, estimator, bins, binning, kernel, bandwidth : as in `calibration_error`

    Returns
    -------
    CalibrationErrorResult
        with the labelled error on the source in ``.source``

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
    options = Options(kind, norm, estimator, bins, binning, kernel, bandwidth)
    source, target = as_pair(p_source, y_source, p_target)
    events = events_of(kind, source)
    class_weights = _announced(class_weights_of(weights, source, target))
    found = event_errors(source, target, events, options, class_weights.values)
    before = _labelled(source, events, options, 0 * class_weights.values + 1)
    sizes = (source.size, target.size)
    return _shifted(found, events, options, class_weights, sizes, before, source.classes)


def target_calibration_error_from(
    statistics: ShiftStatistics, *, weights: Any, norm: float = 2, estimator: str = "debiased"
) -> CalibrationErrorResult:
    """`target_calibration_error` from sums made by `accumulate`, however many batches they saw.

    The formulas and the numbers are those of `target_calibration_error` on the same edges; there
    is no ``.source``, whose bins would be the source's own.

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
    given = given_weights(weights, counts, classes=statistics.edges.classes)
    class_weights = _announced(given)
    w = np.nan_to_num(class_weights.values)
    if estimator == "paper" and statistics.edges.smooth:
        msg = 'estimator="paper" needs bins: make the edges with bin_edges(bins=15)'
        raise InvalidInput(msg)
    if estimator == "paper":
        if norm != 2:
            msg = f'estimator="paper" needs the rows again for norm={norm:g}; sums give norm=2 only'
            raise InvalidInput(msg)
        values, joined = shifted_square(statistics, w)
    else:
        if counts @ (w > 0) < 2:
            msg = "weights must be positive for at least two source rows"
            raise InvalidInput(msg)
        values, joined = from_statistics(statistics, w, options.norm, estimator == "debiased")
    sizes = (statistics.size_source, statistics.size_target)
    return _shifted((values, joined, 0), events, options, class_weights, sizes)


def label_shift_weights(
    p_source: Any, y_source: Any, p_target: Any, *, method: str = DEFAULT
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
    p_source, y_source : labelled predictions before the shift (or a `Predictions` and None)
    p_target : predictions after it
    method : its name

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
    source, target = as_pair(p_source, y_source, p_target)
    return _announced(estimated_weights(method, source, target))


def weights_from_labels(y_source: Any, y_target: Any, n_classes: int | None = None) -> ClassWeights:
    """The weights ``w_y = p_t(y) / p_s(y)`` where target labels exist: the oracle w*.

    Examples
    --------
    >>> import calshift
    >>> calshift.weights_from_labels([0, 0, 0, 1], [0, 1, 1, 1]).values
    array([0.33333333, 3.        ])
    """
    most = MOST_CLASSES if n_classes is None else checked_whole(n_classes, "n_classes", 2)
    labels = [label_codes(y_source, "y_source", most), label_codes(y_target, "y_target", most)]
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
) -> LabelShiftCheck:
    """Test whether only the mix of classes has changed, without target labels.

    Rows are counted in cells of predicted class and confidence. Under label shift the target's
    shares h of the cells are a mixture ``A q`` of the shares A_y of the source's classes; as there
    are more cells than classes, other changes show::

        J = min_q (h - A q)' S^-1 (h - A q)        S: the sampling noise of both sides

    The p-value is that of a parametric bootstrap: tables drawn under the fitted mixture.

    Parameters
    ----------
    p_source, y_source : labelled predictions before the shift (or a `Predictions` and None)
    p_target : predictions after it
    level : of the test, the share of false alarms
    n_boot : draws of the bootstrap at most; it stops early where the outcome is clear
    rng : seed or generator of the draws; the same seed gives the same p-value

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
    source, target = as_pair(p_source, y_source, p_target)
    return label_shift_check(source, target, level, n_boot, rng)


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
        source, target = as_source(p_source, y_source), None
        if not (isinstance(weights, str) and weights == DEFAULT):
            msg = "weights need a p_target to be the weights of"
            raise InvalidInput(msg)
        w = np.ones(source.n_classes)
    else:
        source, target = as_pair(p_source, y_source, p_target)
        w = np.nan_to_num(_announced(class_weights_of(weights, source, target)).values)
    return curve_of(source, target, binned_events(kind, source), w, label, bins)


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
    target = as_predictions(p_target, labelled=False, name_p="p_target")
    return find_edges(target, binned_events(kind, target), bins, binning)


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
    if p_source is not None and len(p_source) > 0:
        source = as_source(p_source, y_source)
        _check_classes(source, edges, "p_source")
        statistics += Arrays(source).total(source_kernel(edges))
    if p_target is not None and len(p_target) > 0:
        target = as_predictions(p_target, labelled=False, name_p="p_target")
        _check_classes(target, edges, "p_target")
        statistics += Arrays(target).total(target_kernel(edges))
    return statistics


def _announced(class_weights: ClassWeights) -> ClassWeights:
    """Pass the weights on, and their warnings to the caller of the public function."""
    for note in class_weights.warnings:
        python_warnings.warn(note, UnreliableWeights, stacklevel=3)
    return class_weights


def _labelled(
    sample: Predictions, events: Events, options: Options, ones: np.ndarray
) -> CalibrationErrorResult:
    """The error with labels; a class with NaN in the place of a one is left out."""
    values, joined, lonely = event_errors(sample, None, events, options, ones)
    return CalibrationErrorResult(
        n_source=sample.size,
        warnings=_lonely_note(lonely),
        merged_bins=joined,
        classes=sample.classes,
        **_averaged(values, events, options, ones),
    )


def _shifted(
    found: tuple[np.ndarray, int, int],
    events: Events,
    options: Options,
    class_weights: ClassWeights,
    sizes: tuple[float, float],
    source: CalibrationErrorResult | None = None,
    classes: tuple[Any, ...] | None = None,
) -> CalibrationErrorResult:
    """The error without labels."""
    values, joined, lonely = found
    return CalibrationErrorResult(
        n_source=sizes[0],
        n_target=sizes[1],
        class_weights=class_weights,
        source=source,
        warnings=class_weights.warnings + _lonely_note(lonely),
        merged_bins=joined,
        classes=classes,
        **_averaged(values, events, options, class_weights.values),
    )


def _averaged(
    values: np.ndarray, events: Events, options: Options, w: np.ndarray
) -> dict[str, Any]:
    """The mean over the events whose class has a weight, and what was asked."""
    classwise = events.kind == "classwise"
    if classwise:
        values = np.where(np.isnan(w), np.nan, values)
    return {
        "estimate": float(np.nanmean(values)),
        "per_class": values if classwise else None,
        "kind": events.kind,
        "norm": options.norm,
        "estimator": options.estimator,
    }


def _lonely_note(lonely: int) -> tuple[str, ...]:
    if lonely == 0:
        return ()
    return (f"{lonely} rows have too few neighbours within the bandwidth; their nearest stood in",)


def _class_counts(statistics: ShiftStatistics) -> np.ndarray:
    by_stratum = statistics.source[0, 0].sum(axis=0)
    events = statistics.edges.events
    return np.bincount(events.stratum_label, by_stratum, events.n_classes)


def _check_classes(predictions: Predictions, edges: BinEdges, name: str) -> None:
    if predictions.n_classes != edges.events.n_classes:
        msg = (
            f"{name} must have the classes of the edges; "
            f"it has {predictions.n_classes}, the edges {edges.events.n_classes}"
        )
        raise InvalidInput(msg)
    check_same_names(predictions.classes, edges.classes, (name, "the edges"))
