"""Decision curves: net benefit by threshold (Vickers and Elkin, 2006)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from calshift._core.convert import as_double, to_numpy
from calshift._core.validate import validate_flag
from calshift.api.label_shift import check_unless_waived
from calshift.api.metrics import MetricPlan, metrics_of_target
from calshift.diagnostics.conditions import LABELLED, METRICS, validate_waive
from calshift.diagnostics.trust import announce
from calshift.engines.open import open_engine, open_pair
from calshift.engines.sample_summary import SampleSummary
from calshift.errors import InvalidInput
from calshift.metrics.assemble import labelled_metrics_result
from calshift.metrics.catalogue import UNBOUNDED, Metric
from calshift.metrics.decision_rule import DecisionRule, validate_positive
from calshift.metrics.estimate import estimate_labelled
from calshift.metrics.row_scores import DecidedRows, RowScore
from calshift.results import DecisionCurve, MetricsResult
from calshift.weights import DEFAULT

THRESHOLDS = np.linspace(0.01, 0.99, 99)
MOST_THRESHOLDS = 1000


@dataclass(frozen=True)
class NetBenefit(RowScore):
    """Of predicting a class at a threshold: 1 for a hit, minus the odds for a false alarm."""

    threshold: float
    positive: int

    @property
    def odds(self) -> float:
        """Of the threshold."""
        return self.threshold / (1 - self.threshold)

    def at(self, rows: DecidedRows, y: np.ndarray) -> np.ndarray:
        """(n,) the part that depends on the label."""
        return np.asarray((1 + self.odds) * self._alarms(rows) * (y == self.positive))

    def expected(self, rows: DecidedRows, v: np.ndarray) -> np.ndarray:
        """(n,) sum over the labels of v times that part."""
        return np.asarray((1 + self.odds) * self._alarms(rows) * v[:, self.positive])

    def alone(self, rows: DecidedRows) -> np.ndarray:
        """(n,) the part that does not."""
        return np.asarray(-self.odds * self._alarms(rows))

    def _alarms(self, rows: DecidedRows) -> np.ndarray:
        return np.asarray(rows.p[:, self.positive] >= self.threshold)


def decision_curve(
    p_source: Any,
    y_source: Any = None,
    p_target: Any = None,
    *,
    thresholds: Any = None,
    positive: Any = None,
    weights: Any = DEFAULT,
    check: bool = True,
    waive: Iterable[str] = (),
    rng: Any = None,
) -> DecisionCurve:
    """Net benefit by threshold, with labels or, given a target, without.

    At a threshold t of the probability of the positive class, the net benefit is the share of true
    positives less the share of false positives times t / (1 - t).

    Parameters
    ----------
    p_source, y_source, p_target : array-like
        as in `target_metrics`; without ``p_target`` the curve is of the labelled rows
    thresholds : array-like, optional
        between 0 and 1; by default 0.01 to 0.99
    positive : optional
        the positive class; by default the second of two
    weights, check, waive, rng : optional
        as in `target_metrics`

    Returns
    -------
    DecisionCurve

    Raises
    ------
    InvalidInput
        if an argument is not valid

    References
    ----------
    Vickers and Elkin (2006).

    Examples
    --------
    >>> import calshift
    >>> simulation = calshift.simulate.BetaSimulation()
    >>> p_source, y_source = simulation.source(2000, rng=1)
    >>> p_target, _ = simulation.target(2000, rng=2)
    >>> curve = calshift.decision_curve(p_source, y_source, p_target, thresholds=[0.2, 0.5])
    >>> curve.net_benefit.shape
    (2,)
    """
    values = _validate_thresholds(thresholds)
    if p_target is None:
        waived = validate_waive(waive, LABELLED)
        sample = open_engine(
            p_source, y_source, labelled=True, name_p="p_source", name_y="y_source"
        )
        plan = _plan(sample.summary, values, positive)
        found = estimate_labelled(sample, plan.metrics, plan.rule)
        result = labelled_metrics_result(sample, plan.metrics, plan.rule, found, waived)
        return _make_curve(result, values, plan.positive)
    waived = validate_waive(waive, METRICS, validate_flag(check, "check"))
    samples = open_pair(p_source, y_source, p_target)
    plan = _plan(samples[0].summary, values, positive)
    checked = check_unless_waived(samples, waived, rng)
    result = metrics_of_target(samples, plan, weights, checked, waived)
    announce(result.class_weights, checked, result.diagnostics)
    return _make_curve(result, values, plan.positive)


def _validate_thresholds(thresholds: Any) -> np.ndarray:
    if thresholds is None:
        return THRESHOLDS
    values, _ = to_numpy(thresholds, "thresholds")
    usable = values.ndim == 1 and values.dtype.kind in "fiu" and 0 < len(values) <= MOST_THRESHOLDS
    if usable:
        values = as_double(values)
        usable = bool(((values > 0) & (values < 1)).all())
    if not usable:
        msg = f"thresholds must be 1 to {MOST_THRESHOLDS} numbers between 0 and 1"
        raise InvalidInput(msg)
    return np.unique(values)


def _plan(summary: SampleSummary, thresholds: np.ndarray, positive: Any) -> MetricPlan:
    """One metric a threshold, and one for predicting all rows positive."""
    label = validate_positive(positive, summary.n_classes, summary.classes)
    if label is None:
        msg = f"a decision curve is of one class of {summary.n_classes}: name it by positive="
        raise InvalidInput(msg)
    metrics = [Metric(f"{t!r}", UNBOUNDED, NetBenefit(float(t), label)) for t in thresholds]
    name = label if summary.classes is None else summary.classes[label]
    prior = Metric("prevalence", UNBOUNDED, NetBenefit(0.0, label))
    return MetricPlan((*metrics, prior), DecisionRule("argmax"), name)


def _make_curve(result: MetricsResult, thresholds: np.ndarray, positive: Any) -> DecisionCurve:
    *metrics, prior = result.values()
    odds = thresholds / (1 - thresholds)
    return DecisionCurve(
        thresholds,
        np.array([one.estimate for one in metrics]),
        np.array([one.standard_error for one in metrics]),
        prior.estimate - odds * (1 - prior.estimate),
        (1 + odds) * prior.standard_error,
        None if result.n_target is None else np.array([one.source for one in metrics], dtype=float),
        positive,
        result.trusted,
        result.warnings,
    )
