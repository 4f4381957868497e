"""Recalibrated probabilities, with cross-fitted errors and metrics before and after."""

from __future__ import annotations

import warnings as python_warnings
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np

from calshift._core.memory import release_memory
from calshift._core.predictions import Predictions
from calshift._core.validate import is_number, show, validate_flag, validate_integer, validate_rng
from calshift.api import target_calibration_error
from calshift.diagnostics.conditions import LABEL_FREE, validate_waive
from calshift.engines import Arrays
from calshift.engines.open import rows_of_pair
from calshift.errors import InvalidInput, UnreliableWeights
from calshift.inference.assemble import target_result
from calshift.inference.options import Options, Progress
from calshift.recalibration import DEFAULT_RECALIBRATOR, make_recalibrator
from calshift.recalibration.assessment.fallback import choose_fallback
from calshift.recalibration.assessment.fragility import describe_fragility
from calshift.recalibration.assessment.metrics import measure_rows, plan_metrics
from calshift.recalibration.assessment.scores import ClassDistribution, Scores, Strata
from calshift.recalibration.cross_fit import FoldedSample, draw_folds, fit_folds
from calshift.results import RecalibrationResult
from calshift.results.difference import compare_results
from calshift.weights import DEFAULT

FEW_CERTAIN, MOST_CERTAIN = 0.01, 0.5  # shares of certain rows: a warning; not usable


def recalibrate(
    p_source: Any,
    y_source: Any,
    p_target: Any,
    *,
    method: Any = DEFAULT_RECALIBRATOR,
    weights: Any = None,
    kind: str = "classwise",
    norm: float = 2,
    folds: int = 5,
    rng: Any = 0,
    check: bool = True,
    waive: Iterable[str] = (),
    progress: Progress | None = None,
    metrics: Any = None,
    decision: Any = "argmax",
    cost: Any = None,
    positive: Any = None,
) -> RecalibrationResult:
    """Recalibrate the target's probabilities without its labels.

    Parameters
    ----------
    p_source, y_source, p_target : predictions and labels before, predictions after the shift
    method : "shift" (default, `ShiftScaling`), "temperature", "bcts", "vector", "isotonic",
        "ensemble", "label-free", "prior", "temperature+prior", "bcts+prior", "vector+prior", or a
        recalibrator
    weights : class weights (a method's name, a vector or a ClassWeights) for the recalibrator and
        for both errors; None leaves them to the recalibrator, and the errors have "auto"
    kind, norm : of the errors; norm 1 or 2
    folds : number of folds of the cross-fitting for ``.after``
    rng : seed of the folds, and of the test
    check : whether to test that only the class distribution has changed
    waive : names of conditions for ``.trusted`` to do without, as in `target_calibration_error`
    progress : callback ``progress(done, total)``, in fits
    metrics, decision, cost, positive : as in `target_metrics`, for the metrics before and after

    Returns
    -------
    RecalibrationResult
        with ``.probabilities``, ``.recalibrator``, ``.before`` and ``.after``, ``.metrics_before``,
        ``.metrics_after`` and ``.metric_changes``

    Notes
    -----
    ``.after`` is cross-fitted: each fold of both samples is recalibrated by a fit to the other
    folds, and the label-free error is that of all folds together. The recalibrator returned, fitted
    to all rows, should be slightly better. So are ``.metrics_after``, of the same rows with the
    class weights of ``.after``; the rule that ``decision`` names is applied before and after. An
    error of estimated class weights is largely common to
    the recalibration and to its assessment: it is part of the interval of ``.after``, not of the
    estimate.

    Both errors and the recalibration assume label shift. Where one of the errors is not trusted,
    calibration error, accuracy or log loss is clearly worse after, or a model that predicts one
    class for nearly all rows shows little of the shift, the recalibration asked for is not applied.
    ``.fallback`` is then "source": ``.probabilities`` come from a temperature, or from vector
    scaling, fitted to the source alone, if it improves the source's log loss on rows that it was
    not fitted to; or "unchanged": they are the input. To insist, name the conditions in ``waive``,
    or apply ``.requested``.

    Examples
    --------
    >>> import calshift
    >>> model = calshift.simulate.GaussianSimulation(n_classes=3, dimensions=3, seed=4)
    >>> p, y = model.source(3000, rng=0)
    >>> q, _ = model.target(3000, rng=1)
    >>> result = calshift.recalibrate(p, y, q)
    >>> result.after.root < result.before.root / 3
    True
    >>> result.probabilities.shape
    (3000, 3)
    """
    samples = list(rows_of_pair(p_source, y_source, p_target))
    target = samples[1]
    found = recalibrate_samples(
        samples, method=method, weights=weights, kind=kind, norm=norm, folds=folds, rng=rng,
        check=check, waive=waive, progress=progress, metrics=metrics, decision=decision, cost=cost,
        positive=positive,
    )  # fmt: skip
    return replace(found, probabilities=found.recalibrator.transform(target).p)


def recalibrate_samples(
    samples: list[Predictions],
    *,
    method: Any = DEFAULT_RECALIBRATOR,
    weights: Any = None,
    kind: str = "classwise",
    norm: float = 2,
    folds: int = 5,
    rng: Any = 0,
    check: bool = True,
    waive: Iterable[str] = (),
    progress: Progress | None = None,
    metrics: Any = None,
    decision: Any = "argmax",
    cost: Any = None,
    positive: Any = None,
) -> RecalibrationResult:
    """`recalibrate` of source and target without the recalibrated probabilities.

    The list is emptied when the rows are not needed any more, so that their memory can be used.
    """
    options = Options(
        kind=kind, norm=norm, estimator="debiased", bins="auto", binning="mass", kernel=None,
        bandwidth="auto", interval="influence",
    )  # fmt: skip
    if options.norm not in (1.0, 2.0) or kind == "canonical":
        msg = f"norm must be 1 or 2 and kind not canonical; got {show(norm)} and {show(kind)}"
        raise InvalidInput(msg)
    waived = validate_waive(waive, LABEL_FREE, validate_flag(check, "check"))
    generator = validate_rng(rng)
    of = draw_folds(samples[0], samples[1], validate_integer(folds, "folds", 2), generator)
    fitted, used = make_recalibrator(method), DEFAULT if weights is None else weights
    plan = plan_metrics(Arrays(samples[0]).summary, metrics, decision, cost, positive)
    before = target_calibration_error(
        samples[0], None, samples[1], weights=used, kind=kind, norm=norm, waive=waived,
        rng=int(rng) if is_number(rng) else int(generator.integers(2**31)),
    )  # fmt: skip
    strata, scores = Strata(samples[0]), Scores.of(samples[0])
    with python_warnings.catch_warnings():
        python_warnings.simplefilter("ignore", UnreliableWeights)  # given with the error before
        metrics_before = measure_rows(samples[0], samples[1], plan, before, waived)
        fitted.fit_rows(samples[0], samples[1], weights)
        notes, usable = _recalibration_notes(samples[1], weights)
        if fragile := describe_fragility(samples[0], before):
            notes, usable = (fragile, *notes), False
        release_memory()  # before large arrays are needed again
        folded = [FoldedSample(samples.pop(0), one) for one in of]
        fits = fit_folds(fitted, folded[0], folded[1], weights, progress)
        second = Arrays(folded.pop(1).recalibrate(fits))
        first = Arrays(folded[0].recalibrate(fits))
        release_memory()
        after = target_result(first, second, options, used, None, before.assumption, waived)
        assert before.class_weights is not None
        target = ClassDistribution.of(before.class_weights)
        changes = strata.changes(scores, Scores.of(first.in_memory), target)
        found = RecalibrationResult(
            probabilities=np.empty((0, fitted.n_classes_)),
            recalibrator=fitted,
            requested=fitted,
            before=before,
            after=after,
            change=compare_results(after, before),
            accuracy=changes.accuracy,
            log_loss=changes.log_loss,
            metrics_before=metrics_before,
            metrics_after=measure_rows(first.in_memory, second.in_memory, plan, after, waived),
            folds=len(fits),
            notes=notes,
            usable=usable,
        )
        if found.trusted and not found.worse():
            return found
        instead = choose_fallback(folded[0], strata, scores, target)
        return replace(found, recalibrator=instead.recalibrator, fallback=instead.name)


def _recalibration_notes(target: Predictions, weights: Any) -> tuple[tuple[str, ...], bool]:
    """Warnings about the recalibration itself, and whether its probabilities are usable."""
    notes = []
    certain = float(np.average(target.matrix.max(axis=1) >= 1, weights=target.frequency))
    if certain > FEW_CERTAIN:
        notes.append(
            f"{certain:.0%} of the target's rows give a class a probability of exactly 1, which "
            "cannot be recalibrated: store more digits, or logits"
        )
    if not (weights is None or isinstance(weights, str)):
        notes.append("recalibration and errors use the weights given, not compared with the data")
    return tuple(notes), certain <= MOST_CERTAIN
