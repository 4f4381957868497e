"""Metrics of a labelled sample, and of an unlabelled target under label shift."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
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
        influence = _influence_of_labelled(sample, rows, by)
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
    n, m = source.summary.size, target.summary.size
    influence = class_weights.influence if interval else None
    parts = (setup.shares, influence)
    of_source = SourceRows(rule, setup.shifted_terms, setup.own_terms, setup.weights, *parts)
    of_target = TargetRows(rule, setup.shifted_terms, *parts)
    before, after = Blocks(source).total(of_source), Blocks(target).total(of_target)
    counts = source.summary.class_counts
    extra = setup.weights @ before["e"] / n  # E
    mean, own = after["a"] / m, before["own"] / n
    adds_mean = np.array([one.shifts for one in setup.shifted])
    values = np.array([one.value for one in setup.shifted]) + adds_mean * (mean + extra)
    values -= _biases(source, target, metrics, rule, setup, class_weights.influence)
    by_weight = (before["e"] - counts[:, None] * extra) / (n * setup.scale)  # D
    seen = counts > 0
    through = by_weight[seen] if influence is not None else np.zeros((0, len(metrics)))
    coefficients = _Coefficients(
        np.vstack([0 * extra, -extra, through]),
        np.vstack([-own, 0 * extra, 0 * through]),
        np.vstack([-mean, through]),
    )
    errors: tuple[Any, ...] = (None, None, None)
    kept = None
    if interval:
        outside = np.zeros(len(metrics))
        if influence is not None and len(influence.outside):
            outside = ((influence.outside @ through) ** 2).sum(axis=0)
        rare = rare_class_variance(target, counts, of_source)
        errors = coefficients.errors(before, after, (n, m), outside + rare)
        kept = _influence_of_pair(source, target, (of_source, of_target), coefficients)
    changes = None
    if drift > 0:
        found = drift_influence(target, of_target, extra, through)
        changes = [one.change(drift) for one in found]
    return MetricValues(
        values, _labelled_values(setup.own, own), errors[0], errors[1], errors[2],
        undefined=tuple(one.undefined for one in setup.shifted), tables=setup.tables,
        source_confusion=setup.source_confusion, drift=changes, influence=kept,
    )  # fmt: skip


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
        return _Setup(shifted, own, weights, scale, shares, after, confusion)

    @property
    def shifted_terms(self) -> list[Any]:
        """Of the metrics on the target."""
        return [one.term for one in self.shifted]

    @property
    def own_terms(self) -> list[Any]:
        """Of the metrics on the source."""
        return [one.term for one in self.own]


@dataclass(frozen=True, eq=False)
class _Coefficients(Frozen):
    """By which the designs enter the influence of rows, (U, M) each."""

    shifted: np.ndarray  # of source rows on the metrics of the target
    own: np.ndarray  # of source rows on those of the source
    target: np.ndarray  # of target rows

    def errors(
        self, before: Any, after: Any, sizes: tuple[float, float], more: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Standard errors on the target, on the source, and of the difference."""
        n, m = sizes
        pairs = (("t", self.shifted, "t", self.shifted), ("t", self.shifted, "s", self.own))
        of_source, both = (combine_products(before, *pair) / n**2 for pair in pairs)
        own = combine_products(before, "s", self.own, "s", self.own) / n**2
        variance = of_source + more
        variance += combine_products(after, "t", self.target, "t", self.target) / m**2
        squares = (variance, own, variance + own - 2 * both)
        first, second, third = (np.sqrt(np.maximum(one, 0.0)) for one in squares)
        return first, second, third


MOST_KEPT = 2_000_000  # numbers of the influence of rows that a result keeps


def _influence_of_labelled(
    sample: Engine, rows: LabelledRows, by: np.ndarray
) -> MetricInfluence | None:
    if sample.in_memory is None or len(sample.in_memory) * by.shape[1] > MOST_KEPT:
        return None
    own, design = rows.columns(sample.in_memory)
    r = np.sqrt(sample.in_memory.squared_frequency)[:, None]
    return MetricInfluence(
        r * (own + design @ by) / sample.summary.size, None, sample.in_memory.fingerprint
    )


def _influence_of_pair(
    source: Engine, target: Engine, rows: tuple[SourceRows, TargetRows], coefficients: _Coefficients
) -> MetricInfluence | None:
    """Of samples in memory that are not large."""
    first, second = source.in_memory, target.in_memory
    if first is None or second is None:
        return None
    if (len(first) + len(second)) * coefficients.target.shape[1] > MOST_KEPT:
        return None
    _, weighted, _, design = rows[0].columns(first)
    a, other = rows[1].columns(second)
    r = [np.sqrt(one.squared_frequency)[:, None] for one in (first, second)]
    return MetricInfluence(
        r[0] * (weighted + design @ coefficients.shifted) / source.summary.size,
        r[1] * (a + other @ coefficients.target) / target.summary.size,
        first.fingerprint,
    )
