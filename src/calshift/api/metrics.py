"""Metrics of a classifier: on labelled rows, and on a target without labels."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from calshift._core.validate import validate_choice, validate_flag, validate_number
from calshift.api.label_shift import check_unless_waived
from calshift.binning.confidence_cells import plan_cells
from calshift.diagnostics.conditions import LABEL_SHIFT, LABELLED_METRICS, METRICS, validate_waive
from calshift.diagnostics.trust import announce
from calshift.engines.base import Engine
from calshift.engines.open import open_engine, open_pair, start_run
from calshift.engines.sample_summary import SampleSummary
from calshift.errors import InvalidInput
from calshift.inference.options import INTERVALS, Progress, Resampling
from calshift.metrics.assemble import labelled_metrics_result, target_metrics_result
from calshift.metrics.bootstrap import with_bootstrap
from calshift.metrics.catalogue import Metric, Setting, make_metrics
from calshift.metrics.decision_rule import (
    DecisionRule,
    make_decision_rule,
    validate_cost,
    validate_positive,
)
from calshift.metrics.estimate import estimate_labelled, estimate_target
from calshift.results import LabelShiftCheck, MetricsResult
from calshift.weights import DEFAULT, METHODS, resolve_class_weights


def labelled_metrics(
    p: Any,
    y: Any = None,
    *,
    metrics: Any = None,
    decision: Any = "argmax",
    cost: Any = None,
    positive: Any = None,
    interval: str | None = "influence",
    n_boot: int = 500,
    rng: Any = None,
    n_jobs: int = 1,
    progress: Progress | None = None,
    waive: Iterable[str] = (),
    checkpoint: str | Path | None = None,
) -> MetricsResult:
    """Metrics of labelled predictions, with intervals.

    Parameters
    ----------
    p, y : array-like
        predictions and labels; or a `Predictions`, a `scan`, or the path of files alone
    metrics : str, list of str, or dict, optional
        names as in scikit-learn: "accuracy", "balanced_accuracy", "log_loss", "brier_score",
        "top_2_accuracy", "cohen_kappa", "matthews_corrcoef", "roc_auc_ovr", "expected_cost";
        "precision", "recall", "f1", "specificity" and "npv", of the positive class or with
        "_macro", "_micro", "_weighted", "_per_class"; "roc_auc", "average_precision", "oe_ratio"
        (observed over expected rows), "calibration_slope" and "calibration_intercept" of the
        positive class or "_per_class"; "prevalence", "alarm_rate",
        "missed_cases" and "false_alarms", shares of all rows. A mapping {name: function} asks for
        the mean of function(p, y), with p (n, K) and y (n,), which returns one number a row. None:
        the usual ones
    decision : {"argmax", "cost"}, float or callable, default "argmax"
        which class is predicted: the most probable, the one of least expected cost, the positive
        one at a probability of at least this threshold, or what a function of p (n, K) returns
    cost : (K, K) array-like or dict, optional
        cost by predicted (row) and true class (column), for "expected_cost" and decision="cost"; of
        two classes also {"false_positive": 1, "false_negative": 20}
    positive : optional
        the positive class, by name or number; by default the second of two
    interval : {"influence", "bootstrap", None}, default "influence"
        closed form, by resampling, or none
    n_boot, rng, n_jobs, progress, checkpoint
        as in `calibration_error`
    waive : names of conditions, optional
        that ``.trusted`` does without: "label-order", "sample-size", "residual-rows",
        "interval-width"

    Returns
    -------
    MetricsResult
        a mapping of names to `MetricEstimate`

    Raises
    ------
    InvalidInput
        if an argument is not valid

    Examples
    --------
    >>> import calshift
    >>> p = [0.1, 0.4, 0.35, 0.8, 0.7, 0.2]
    >>> found = calshift.labelled_metrics(p, [0, 0, 1, 1, 1, 0], metrics=["accuracy", "recall"])
    >>> round(found["accuracy"].estimate, 3), round(found["recall"].estimate, 3)
    (0.833, 0.667)
    """
    validate_choice(interval, "interval", INTERVALS)
    resampling = Resampling(n_boot, rng, n_jobs, progress)
    waived = validate_waive(waive, LABELLED_METRICS)
    asked = ("labelled_metrics", metrics, decision, cost, positive, interval)
    with start_run(checkpoint, progress, asked, resampling.jobs) as run:
        sample = open_engine(p, y, labelled=True, run=run)
        plan = MetricPlan.of(sample.summary, metrics, decision, cost, positive)
        closed = interval == "influence"
        found = estimate_labelled(sample, plan.metrics, plan.rule, interval=closed)
        if interval == "bootstrap":
            samples = (sample, None)
            found = with_bootstrap(found, samples, plan.metrics, plan.rule, None, resampling)
        result = labelled_metrics_result(
            sample, plan.metrics, plan.rule, found, waived, positive=plan.positive,
            settings=plan.settings(interval),
        )  # fmt: skip
    announce(None, None, result.diagnostics)
    return result


def target_metrics(
    p_source: Any,
    y_source: Any,
    p_target: Any,
    *,
    metrics: Any = None,
    decision: Any = "argmax",
    cost: Any = None,
    positive: Any = None,
    weights: Any = DEFAULT,
    check: bool = True,
    waive: Iterable[str] = (),
    drift: float = 0.0,
    interval: str | None = "influence",
    n_boot: int = 500,
    rng: Any = None,
    n_jobs: int = 1,
    progress: Progress | None = None,
    checkpoint: str | Path | None = None,
) -> MetricsResult:
    """Metrics on a target sample without labels, under label shift, with intervals.

    A metric that is the mean of psi(x, y) over the target is estimated by::

        mean_j sum_y v_y(x_j) psi(x_j, y)  +  mean_i w_{y_i} (psi(x_i, y_i) - sum_y v_y psi(x_i, y))

    over target rows j and source rows i, with class weights w and the shares v that minimise its
    variance. Others are functions of such means. Intervals include the uncertainty of the class
    priors.

    Parameters
    ----------
    p_source, y_source : array-like
        labelled predictions before the shift; or a `Predictions`, a `scan` or the path of files,
        and None
    p_target : array-like
        predictions after it
    metrics, decision, cost, positive : optional
        as in `labelled_metrics`
    weights, check, waive : optional
        as in `target_calibration_error`
    drift : float, default 0
        share of the target's rows, 0 to 1, that may come from another distribution than label
        shift allows; intervals are widened by the largest effect of that
    interval, n_boot, rng, n_jobs, progress, checkpoint
        as in `target_calibration_error`

    Returns
    -------
    MetricsResult
        a mapping of names to `MetricEstimate`, each with the metric on the source beside it

    Raises
    ------
    InvalidInput
        if an argument is not valid

    Notes
    -----
    Shares of predicted classes, such as the alarm rate, are those of the target's rows; class
    priors are those of ``.class_weights``. Both assume less than other metrics.

    References
    ----------
    docs/mathematics.md section 13; Tian, Zhang and Zhao (2023) for the efficient influence function
    under label shift.

    Examples
    --------
    >>> import calshift
    >>> simulation = calshift.simulate.BetaSimulation()
    >>> p_source, y_source = simulation.source(5000, rng=1)
    >>> p_target, y_target = simulation.target(5000, rng=2)
    >>> found = calshift.target_metrics(p_source, y_source, p_target, metrics=["precision"])
    >>> found.trusted
    True
    >>> round(found["precision"].estimate, 2), round(found["precision"].source, 2)
    (0.88, 0.69)
    >>> after = calshift.labelled_metrics(p_target, y_target, metrics=["precision"])
    >>> round(after["precision"].estimate, 2)
    0.88
    """
    validate_choice(interval, "interval", INTERVALS)
    drift = validate_number(drift, "drift", 0, 1)
    if drift and interval != "influence":
        msg = f'drift={drift:g} needs interval="influence"'
        raise InvalidInput(msg)
    resampling = Resampling(n_boot, rng, n_jobs, progress)
    waived = validate_waive(waive, METRICS, validate_flag(check, "check"))
    asked = ("target_metrics", metrics, decision, cost, positive, weights, interval, drift)
    with start_run(checkpoint, progress, asked, resampling.jobs) as run:
        prepare = None if LABEL_SHIFT[0] in waived else plan_cells
        samples = open_pair(p_source, y_source, p_target, run, prepare)
        plan = MetricPlan.of(samples[0].summary, metrics, decision, cost, positive)
        checked = check_unless_waived(samples, waived, rng)
        result = metrics_of_target(
            samples, plan, weights, checked, waived, interval, drift, resampling
        )
    announce(result.class_weights, checked, result.diagnostics)
    return result


@dataclass(frozen=True, eq=False)
class MetricPlan:
    """The metrics asked for, and the rule that predicts classes."""

    metrics: tuple[Metric, ...]
    rule: DecisionRule
    positive: Any

    @staticmethod
    def of(
        summary: SampleSummary, metrics: Any, decision: Any, cost: Any, positive: Any
    ) -> MetricPlan:
        """From arguments, which are validated."""
        K, classes = summary.n_classes, summary.classes
        label = validate_positive(positive, K, classes)
        matrix = validate_cost(cost, K, label, classes)
        rule = make_decision_rule(decision, K, label, matrix)
        found = make_metrics(metrics, Setting(K, classes, label, matrix))
        name = None if label is None else label if classes is None else classes[label]
        return MetricPlan(found, rule, name)

    def settings(self, interval: str | None, drift: float = 0.0) -> tuple[tuple[str, Any], ...]:
        """What was asked, in plain values."""
        return (("decision", self.rule.description), ("interval", interval), ("drift", drift))


def metrics_of_target(
    samples: tuple[Engine, Engine],
    plan: MetricPlan,
    weights: Any,
    check: LabelShiftCheck | None,
    waive: frozenset[str],
    interval: str | None = "influence",
    drift: float = 0.0,
    resampling: Resampling | None = None,
) -> MetricsResult:
    """`target_metrics` of opened samples."""
    used = resolve_class_weights(weights, *samples, compare=True)
    closed = interval == "influence"
    found = estimate_target(*samples, plan.metrics, plan.rule, used, interval=closed, drift=drift)
    if interval == "bootstrap" and resampling is not None:
        name = used.method.split(":")[0]  # without the description of the weights
        refit = name if used.influence is not None and name in METHODS else used
        found = with_bootstrap(found, samples, plan.metrics, plan.rule, refit, resampling)
    if check is not None:
        found = found.inflated(used.error_factor)
    return target_metrics_result(
        samples, plan.metrics, plan.rule, found, used, check, waive, positive=plan.positive,
        settings=plan.settings(interval, drift),
    )  # fmt: skip
