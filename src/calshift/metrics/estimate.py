"""Metrics of a labelled sample, and of an unlabelled target under label shift."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

import numpy as np

from calshift._core.frozen import Frozen
from calshift.engines import Blocks
from calshift.engines.base import Engine
from calshift.metrics.catalogue import Metric
from calshift.metrics.decision_rule import DecisionRule
from calshift.metrics.drift import drift_influence
from calshift.metrics.efficient_shares import EfficientShares, fit_shares, known_calibrator
from calshift.metrics.products import LabelledRows, SourceRows, TargetRows, combine_products
from calshift.metrics.rare_classes import rare_class_variance
from calshift.metrics.ratio_bias import MOST_CLASSES, average_bias, class_covariances, ratio_of
from calshift.metrics.row_influence import RowCoefficients, influence_of_labelled, influence_of_pair
from calshift.metrics.terms import (
    ClassTables,
    Linearised,
    SourceFits,
    check_class_count,
    linearise,
    needs_tables,
    tabulate_source,
    tabulate_target,
)
from calshift.results import ClassWeights
from calshift.results.metrics import MetricInfluence


@dataclass(frozen=True, eq=False)
class MetricValues(Frozen):
    """(M,) estimates of the metrics with their standard errors; None without intervals.

    Attributes
    ----------
    values, source : on the target (or the labelled sample), and on the source
    error, source_error, difference_error : standard errors, the last of target - source
    undefined : for each metric, classes whose ratio counts as 0
    tables : the confusion matrix, or None
    source_confusion : (K, K) that of the source, or None
    drift : for each metric, how far it can be too high, and too low, for the drift asked for
    draws : (2, draws, M) of a bootstrap, on the target and on the source
    influence : of each row, of samples in memory
    """

    values: np.ndarray
    source: np.ndarray
    error: np.ndarray | None
    source_error: np.ndarray | None
    difference_error: np.ndarray | None
    undefined: tuple[tuple[int, ...], ...]
    tables: ClassTables | None
    source_confusion: np.ndarray | None = None
    drift: list[tuple[float, float]] | None = None
    draws: np.ndarray | None = None
    influence: MetricInfluence | None = None

    def inflated(self, factor: float) -> MetricValues:
        """With standard errors multiplied by a factor."""
        if factor == 1 or self.error is None or self.difference_error is None:
            return self
        return replace(
            self, error=self.error * factor, difference_error=self.difference_error * factor
        )


def estimate_labelled(
    sample: Engine, metrics: tuple[Metric, ...], rule: DecisionRule, *, interval: bool = True
) -> MetricValues:
    """The metrics of labelled rows."""
    tables = _tables_of_source(sample, metrics, rule)
    ones = np.ones(sample.summary.n_classes)
    found = linearise(metrics, tables, SourceFits.of(metrics, sample, ones))
    rows, n = LabelledRows(rule, [one.term for one in found]), sample.summary.size
    sums = Blocks(sample).total(rows)
    mean = sums["own"] / n
    values = _labelled_values(found, mean)
    by = -mean[None]
    error = influence = None
    if interval:
        error = np.sqrt(np.maximum(combine_products(sums, "s", by, "s", by), 0.0)) / n
        influence = influence_of_labelled(sample, rows, by)
    return MetricValues(
        values, values, error, error, None, tuple(one.undefined for one in found), tables,
        influence=influence,
    )  # fmt: skip


def _tables_of_source(
    source: Engine, metrics: tuple[Metric, ...], rule: DecisionRule
) -> ClassTables | None:
    """The confusion matrix, unless no metric needs it and it would be large."""
    K = source.summary.n_classes
    if needs_tables(metrics):
        check_class_count(K)
    elif K > SMALL_TABLE:
        return None
    return tabulate_source(source, rule)


LEAST_WEIGHT = 1e-10  # of a class of the source: an area under a ROC curve exists without its rows
SMALL_TABLE = 200  # classes up to which a confusion matrix is made in any case


def _labelled_values(found: Sequence[Linearised], mean: np.ndarray) -> np.ndarray:
    """(M,) of a sample's own terms, whose mean is 0 for ratios and areas."""
    return np.array([m if one.is_mean else one.value for one, m in zip(found, mean, strict=True)])


def estimate_target(
    source: Engine,
    target: Engine,
    metrics: tuple[Metric, ...],
    rule: DecisionRule,
    class_weights: ClassWeights,
    *,
    interval: bool = True,
    drift: float = 0.0,
) -> MetricValues:
    """The metrics on the target, without its labels; ``drift`` is the share outside label shift."""
    setup = _Setup.of(source, target, metrics, rule, class_weights)
    influence = class_weights.influence if interval else None
    rows = setup.rows(rule, influence)
    totals = _Totals.of((source, target), rows, setup)
    values = totals.values(setup)
    values -= _biases(source, target, metrics, rule, setup, class_weights.influence)
    errors: tuple[Any, ...] = (None, None, None)
    kept = changes = None
    if interval:
        more = rare_class_variance(target, source.summary.class_counts, rows[0])
        errors = totals.errors(more + totals.outside(influence))
        kept = influence_of_pair(source, target, rows, totals.coefficients)
    if drift > 0:
        found = drift_influence(target, rows[1], totals.extra, totals.through)
        changes = [one.change(drift) for one in found]
    return MetricValues(
        values, _labelled_values(setup.own, totals.own), errors[0], errors[1], errors[2],
        undefined=tuple(one.undefined for one in setup.shifted), tables=setup.tables,
        source_confusion=setup.source_confusion, drift=changes, influence=kept,
    )  # fmt: skip


@dataclass(frozen=True, eq=False)
class _Totals(Frozen):
    """Sums over both samples, and what follows from them; symbols as in metrics/products.py."""

    sums: tuple[Any, Any]  # over source and target rows
    sizes: tuple[float, float]  # n, m
    extra: np.ndarray  # (M,) E
    mean: np.ndarray  # (M,) of a
    own: np.ndarray  # (M,) of the terms of the source
    through: np.ndarray  # (S, M) D, or (0, M) without influence on the class weights

    @staticmethod
    def of(
        samples: tuple[Engine, Engine], rows: tuple[SourceRows, TargetRows], setup: _Setup
    ) -> _Totals:
        """By one pass over each sample."""
        before, after = Blocks(samples[0]).total(rows[0]), Blocks(samples[1]).total(rows[1])
        sizes, counts = (samples[0].summary.size, samples[1].summary.size), setup.counts
        extra = setup.weights @ before["e"] / sizes[0]
        through = (before["e"] - counts[:, None] * extra) / (sizes[0] * setup.scale)
        through = through[counts > 0] if rows[0].influence is not None else through[:0]
        own = before["own"] / sizes[0]
        return _Totals((before, after), sizes, extra, after["a"] / sizes[1], own, through)

    def values(self, setup: _Setup) -> np.ndarray:
        """(M,) the estimates."""
        adds_mean = np.array([one.shifts for one in setup.shifted])
        values = np.array([one.value for one in setup.shifted])
        return np.asarray(values + adds_mean * (self.mean + self.extra))

    @cached_property
    def coefficients(self) -> RowCoefficients:
        """Of the influence of rows."""
        zero = 0 * self.extra
        return RowCoefficients(
            np.vstack([zero, -self.extra, self.through]),
            np.vstack([-self.own, zero, 0 * self.through]),
            np.vstack([-self.mean, self.through]),
        )

    def outside(self, influence: Any) -> np.ndarray:
        """(M,) variance by observations outside both samples."""
        if influence is None or not len(influence.outside):
            return np.zeros(len(self.extra))
        return np.asarray(((influence.outside @ self.through) ** 2).sum(axis=0))

    def errors(self, more: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Standard errors on the target, on the source, and of the difference."""
        return self.coefficients.errors(*self.sums, self.sizes, more)


def _biases(
    source: Engine,
    target: Engine,
    metrics: tuple[Metric, ...],
    rule: DecisionRule,
    setup: _Setup,
    influence: Any,
) -> np.ndarray:
    """(M,) of averages of ratios over many classes; 0 for other metrics."""
    names, K = [ratio_of(one.function) for one in metrics], source.summary.n_classes
    found = np.zeros(len(metrics))
    if setup.tables is None or not any(names) or K > MOST_CLASSES:
        return found
    covariance = class_covariances(
        source, target, rule, setup.weights, setup.scale, setup.shares, influence,
        setup.tables.margins,
    )  # fmt: skip
    for k, name in enumerate(names):
        if name is not None:
            found[k] = average_bias(name, setup.tables.shares, covariance)
    return found


@dataclass(frozen=True, eq=False)
class _Setup(Frozen):
    """What both passes over the rows need: first-order terms at estimated tables and ranks."""

    shifted: list[Linearised]
    own: list[Linearised]
    weights: np.ndarray  # (K,) of mean 1 over the source, 0 for classes that it lacks
    counts: np.ndarray  # (K,) source rows
    scale: float  # mean of the weights as they were given
    shares: EfficientShares
    tables: ClassTables | None
    source_confusion: np.ndarray | None

    @staticmethod
    def of(
        source: Engine,
        target: Engine,
        metrics: tuple[Metric, ...],
        rule: DecisionRule,
        class_weights: ClassWeights,
    ) -> _Setup:
        """From the class weights."""
        counts = source.summary.class_counts
        weights = np.where(counts > 0, np.nan_to_num(class_weights.values), 0.0)
        scale = float(counts @ weights / counts.sum())
        weights = np.where(counts > 0, np.maximum(weights / scale, LEAST_WEIGHT), 0.0)
        known = known_calibrator(class_weights.influence)
        shares = fit_shares(source, weights, target.summary.size, known)
        before = _tables_of_source(source, metrics, rule)
        after = before
        if before is not None:
            after = tabulate_target(source, target, rule, weights, shares, before)
        fits = partial(SourceFits.of, metrics, source)
        own = linearise(metrics, before, fits(np.ones(len(counts))))
        shifted = linearise(metrics, after, fits(weights))
        confusion = None if before is None else before.confusion
        return _Setup(shifted, own, weights, counts, scale, shares, after, confusion)

    def rows(self, rule: DecisionRule, influence: Any) -> tuple[SourceRows, TargetRows]:
        """What the rows of both samples contribute."""
        shifted, own = ([part.term for part in one] for one in (self.shifted, self.own))
        before = SourceRows(rule, shifted, own, self.weights, self.shares, influence)
        return before, TargetRows(rule, shifted, self.shares, influence)
