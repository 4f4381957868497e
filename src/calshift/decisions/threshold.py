"""The threshold or decision rule for the class distribution of the target."""

from __future__ import annotations

import warnings as python_warnings
from collections.abc import Iterable
from typing import Any

import numpy as np

from calshift._core.predictions import Predictions
from calshift._core.validate import validate_choice, validate_flag, validate_number
from calshift.api.label_shift import check_unless_waived
from calshift.api.metrics import MetricPlan, metrics_of_target
from calshift.decisions.recalibrated_rule import RecalibratedRule, break_even, make_threshold
from calshift.decisions.score_curve import ScoredRows
from calshift.diagnostics.conditions import METRICS, validate_waive
from calshift.diagnostics.trust import announce
from calshift.engines import Arrays
from calshift.engines.open import rows_of_pair
from calshift.errors import InvalidInput, UnreliableWeights
from calshift.metrics.decision_rule import DecisionRule, validate_cost, validate_positive
from calshift.recalibration import DEFAULT_RECALIBRATOR, make_recalibrator
from calshift.recalibration.base import Recalibrator
from calshift.results import ClassWeights, DecisionThreshold
from calshift.weights import DEFAULT, resolve_class_weights

KEPT = ("precision", "recall", "specificity", "alarm_rate")
ALL_POSITIVE = (
    "all rows are predicted positive: the costs decide by probabilities too small to be known"
)
SHOWN_OF_TWO = (
    "prevalence", "alarm_rate", "precision", "recall", "specificity", "missed_cases",
    "false_alarms", "accuracy",
)  # fmt: skip
SHOWN_OF_MANY = ("accuracy", "balanced_accuracy", "f1_macro")


def decision_threshold(
    p_source: Any,
    y_source: Any,
    p_target: Any,
    *,
    cost: Any = None,
    keep: str | None = None,
    at: float | None = None,
    method: Any = DEFAULT_RECALIBRATOR,
    weights: Any = DEFAULT,
    decision: Any = "argmax",
    positive: Any = None,
    metrics: Any = None,
    check: bool = True,
    waive: Iterable[str] = (),
    rng: Any = None,
) -> DecisionThreshold:
    """The decision threshold or rule for the target, without its labels.

    Exactly one of ``cost`` and ``keep`` is given. With costs, the class of least expected cost is
    predicted, with probabilities recalibrated for the target; for two classes this is a threshold.
    With ``keep``, the threshold that keeps a metric at a value on the target.

    Parameters
    ----------
    p_source, y_source, p_target : array-like
        labelled predictions before the shift, predictions after it; in memory
    cost : (K, K) array-like or dict, optional
        as in `labelled_metrics`: by predicted (row) and true class (column), or of two classes
        {"false_positive": 1, "false_negative": 20}
    keep : {"precision", "recall", "specificity", "alarm_rate"}, optional
        for two classes; the first three are at least ``at``, the alarm rate at most
    at : float, optional
        the value to keep, in (0, 1)
    method : optional
        recalibrator for costs, as in `recalibrate`
    weights, check, waive, rng : optional
        as in `target_calibration_error`
    decision : optional
        the rule used until now, as in `labelled_metrics`
    positive : optional
        the positive class of two
    metrics : optional
        to report, as in `labelled_metrics`

    Returns
    -------
    DecisionThreshold
        with ``.threshold``, ``.predict(p)``, ``.achieved`` and ``.unchanged``

    Raises
    ------
    InvalidInput
        if an argument is not valid

    Notes
    -----
    The threshold is chosen and assessed on the same rows, so that what it achieves is slightly
    overstated. ``.trusted`` also asks that the metric that was to be kept, or the expected cost, is
    trusted, and that a threshold that keeps it exists. If a missed case costs so much that already
    a probability below half a row of the source decides, all rows are predicted positive.

    References
    ----------
    Elkan (2001) for thresholds from costs; docs/mathematics.md section 13.

    Examples
    --------
    >>> import calshift
    >>> simulation = calshift.simulate.BetaSimulation()
    >>> p_source, y_source = simulation.source(5000, rng=1)
    >>> p_target, _ = simulation.target(5000, rng=2)
    >>> found = calshift.decision_threshold(p_source, y_source, p_target, keep="recall", at=0.9)
    >>> round(found.achieved["recall"].estimate, 2)
    0.9
    """
    _check_goal(cost, keep, at)
    waived = validate_waive(waive, METRICS, validate_flag(check, "check"))
    source, target = rows_of_pair(p_source, y_source, p_target)
    samples = Arrays(source), Arrays(target)
    label = validate_positive(positive, source.n_classes, source.classes)
    matrix = validate_cost(cost, source.n_classes, label, source.classes)
    used = resolve_class_weights(weights, *samples, compare=True)
    checked = check_unless_waived(samples, waived, rng)
    recalibrator, probability, reached = None, None, True
    least = 0.5 / len(source)  # a probability that the rows can determine
    if matrix is None:
        rule, reached = _rule_to_keep(source, target, used, str(keep), float(at or 0), label)
    else:
        given = None if isinstance(weights, str) else used
        recalibrator = _fit_recalibrator(method, source, target, given)
        if label is None or source.n_classes > 2:
            rule = DecisionRule("function", function=RecalibratedRule(recalibrator, matrix))
        else:
            rows = _scored_rows(source, target, used, label)
            rule = make_threshold(recalibrator, matrix, label, rows, least)
            probability = break_even(matrix, label)
    kept = "expected_cost" if matrix is not None else str(keep)
    shown = SHOWN_OF_TWO if source.n_classes == 2 else SHOWN_OF_MANY
    asked = list_metrics(shown if metrics is None else metrics, kept)
    achieved, unchanged = (
        metrics_of_target(
            samples, MetricPlan.of(samples[0].summary, asked, one, matrix, positive), used,
            checked, waived,
        )
        for one in (rule, decision)
    )  # fmt: skip
    announce(used, checked, achieved.diagnostics)
    goal = "least expected cost" if matrix is not None else f"{keep} kept at {at:g}"
    notes = achieved.warnings
    if probability is not None and 0 < probability < least:
        notes = (ALL_POSITIVE, *notes)
    if not reached:
        notes = (f"no threshold keeps {keep} at {at:g}: this one comes nearest", *notes)
    return DecisionThreshold(
        rule.threshold, probability, goal, reached, achieved, unchanged, rule, recalibrator,
        matrix, notes, kept,
    )  # fmt: skip


def list_metrics(metrics: Any, first: str) -> Any:
    """The metrics asked for, with the one that decides at the beginning."""
    names = [metrics] if isinstance(metrics, str | dict) else list(metrics)
    return [first, *(name for name in names if name != first)]


def _check_goal(cost: Any, keep: Any, at: Any) -> None:
    if (cost is None) == (keep is None):
        msg = f"give either cost= or keep= ({', '.join(KEPT)}) with at="
        raise InvalidInput(msg)
    if keep is None:
        if at is not None:
            msg = "at= belongs to keep=; costs decide by themselves"
            raise InvalidInput(msg)
        return
    validate_choice(keep, "keep", KEPT)
    if at is None or not 0 < validate_number(at, "at", 0, 1) < 1:
        msg = f"keep={keep!r} needs at=, a value between 0 and 1"
        raise InvalidInput(msg)


def _rule_to_keep(
    source: Predictions,
    target: Predictions,
    weights: ClassWeights,
    keep: str,
    at: float,
    positive: int | None,
) -> tuple[DecisionRule, bool]:
    """A threshold, and whether it keeps the metric."""
    if source.n_classes != 2 or positive is None:
        msg = f"keep={keep!r} is for two classes; there are {source.n_classes}: use cost="
        raise InvalidInput(msg)
    curve = _scored_rows(source, target, weights, positive).curve()
    threshold, reached = curve.keep(keep, at)
    return DecisionRule("threshold", threshold, positive), reached


def _scored_rows(
    source: Predictions, target: Predictions, weights: ClassWeights, positive: int
) -> ScoredRows:
    values = np.nan_to_num(weights.values)
    values = values / float(source.class_counts @ values / source.size)
    return ScoredRows.of(source, target, values, positive)


def _fit_recalibrator(
    method: Any, source: Predictions, target: Predictions, weights: Any
) -> Recalibrator:
    """For the class distribution of the target; its warnings are those of the class weights."""
    with python_warnings.catch_warnings():
        python_warnings.simplefilter("ignore", UnreliableWeights)
        return make_recalibrator(method).fit_rows(source, target, weights)
