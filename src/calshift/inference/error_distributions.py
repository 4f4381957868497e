"""Bias-corrected errors and their sampling distributions, with estimated class weights.

With S = sum_i x_i x_i' + sum_j x_j x_j' over the influence x of section 8 of docs/mathematics.md,

    plug-in = |a|^2 + 2 a . sum_i l_i o_i / (1 - l_i)        bias = tr S        T = |S|^2
    V1 = sum_i (2 x_i . a)^2, rows left out one by one, + the target's

over all events together; the part of T that events share is sketched where they are many.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np

from calshift._core.addable import Tally
from calshift.engines import Blocks
from calshift.engines.base import Engine
from calshift.estimators.debiased import (
    RegressionNoise,
    errors,
    regression_noise,
    trace_in_moments,
    unfold_errors,
)
from calshift.estimators.weight_bias import WeightDraws
from calshift.inference.event_estimates import EventEstimates
from calshift.inference.influence_sums import (
    CurvePlan,
    SourceInfluenceSums,
    TargetInfluenceSums,
    target_noise,
)
from calshift.inference.row_influence import InfluenceTables
from calshift.inference.signed_residuals import SignedResiduals
from calshift.results import (
    AbsoluteErrorDistribution,
    EstimatedWeightsDistribution,
    RowInfluence,
    SquaredErrorDistribution,
)
from calshift.results.drift import DriftInfluence

_Distribution = SquaredErrorDistribution | EstimatedWeightsDistribution

FEW_EVENTS = 20  # up to which all rows are sketched
SMALL_SHARE = 0.1  # of the mean, below which a row's part of S is left out of the sketch


def estimate_events(
    tables: InfluenceTables,
    source: Engine,
    target: Engine | None,
    norm: float,
    debias: bool,
    interval: bool,
    signed: np.ndarray | None = None,
    curves: CurvePlan | None = None,
) -> EventEstimates:
    """Errors of all events, and their sampling distributions if asked for (norms 1 and 2).

    ``signed`` (E, S) has u sign(g) by label, for norm 1 with estimated weights.
    """
    interval = interval and norm in (1, 2)
    if not debias and not interval:
        return EventEstimates(errors(tables.fits, norm, None))
    if tables.scaled_weights.influence is not None:  # which is as wide as the rows
        source, target = Blocks(source), None if target is None else Blocks(target)
    weight_noise = _target_noise(tables, target)
    if not interval:
        known = tables.by_group is not None and tables.scaled_weights.influence is None
        again = not known or tables.stratified
        sums = source.total(SourceInfluenceSums(tables)) if again else Tally()
        return EventEstimates(errors(tables.fits, norm, _noise(tables, sums, weight_noise)))
    asked = norm, debias, weight_noise, signed, curves
    return _with_distributions(tables, (source, target), *asked)


def _with_distributions(
    tables: InfluenceTables,
    engines: tuple[Engine, Engine | None],
    norm: float,
    debias: bool,
    weight_noise: np.ndarray,
    signed: np.ndarray | None,
    curves: CurvePlan | None,
) -> EventEstimates:
    (source, target), fits, signs = engines, tables.fits, None
    if norm == 1:
        counts = source.summary.class_counts[tables.scaled_weights.seen]
        part = source.summary.square / source.summary.size
        signs = SignedResiduals.of(fits, signed, counts, part)
    kept = source.in_memory is not None and (target is None or target.in_memory is not None)
    sums = source.total(SourceInfluenceSums(tables, True, kept, _threshold(tables, source), signs))
    noise = _noise(tables, sums, weight_noise)
    if signs is not None:
        signs = signs.with_gaps(fits, unfold_errors(fits, 1, noise))
    values = errors(fits, norm, noise if debias else None)
    others, plan = None, None if curves is None else curves(values)
    if target is not None:
        others = target.total(TargetInfluenceSums(tables, kept, signs, plan))
    first = _first_order(tables, (sums, others), "squared", tables.gradient_by_weight, source)
    whole = _covariance_of_all(tables, sums, weight_noise)
    linear = _squared_distributions(tables, noise, whole, *first[:2])
    found: tuple[_Distribution, _Distribution] = linear
    if tables.weight_draws is not None:
        found = _with_drawn_weights(
            tables.weight_draws, linear, regression_noise(fits, tables.noise_sums(sums)).trace
        )
    mean, each = found
    kept_curves = None
    drift = None if others is None else DriftInfluence.of(others["drift"])
    if plan is not None and others is not None:
        kept_curves = plan, others.get("curves"), tables.scaled_weights
    if signs is None:
        return EventEstimates(values, mean, each, first[2], drift=drift, curves=kept_curves)
    variance, square, rows = _first_order(
        tables, (sums, others), "absolute", signs.by_weight, source
    )
    least, gap = sums["least"], signs.mean_gap
    of_mean = AbsoluteErrorDistribution(gap.mean(), least.mean(), square, mean)
    of_each = AbsoluteErrorDistribution(gap, least, variance, each)
    return EventEstimates(values, of_mean, of_each, rows, drift=drift, curves=kept_curves)


def _threshold(tables: InfluenceTables, source: Engine) -> float:
    """The least part of the trace of S of a row in one event that is sketched.

    All rows are sketched if S is exact, or if events are few: then most matter.
    """
    E, n = len(tables.fits.value), source.summary.size
    if tables.exact or E <= FEW_EVENTS:
        return -1.0
    return SMALL_SHARE * tables.fits.expected_trace / (n * E)


def _target_noise(tables: InfluenceTables, target: Engine | None) -> np.ndarray:
    """sum_j phi_j phi_j', and of observations of neither sample.

    The method knows the first from its own sums, but for rows that count less than one.
    """
    weights = tables.scaled_weights
    if target is None or weights.influence is None:
        return np.zeros((tables.by_weight.shape[2],) * 2)
    outside = weights.outside_influence
    if target.summary.light:
        return np.asarray(target.total(partial(target_noise, weights)) + outside.T @ outside)
    inside = weights.influence.target_square / (weights.scale**2 * weights.sizes[1])
    return np.asarray(inside + outside.T @ outside)


def _noise(tables: InfluenceTables, sums: Tally, weight_noise: np.ndarray) -> RegressionNoise:
    """S of each event, and the bias of its ratios.

    Estimated weights add sum_i (o_i phi_i' Gam' + its transpose) + Gam (sum phi phi') Gam'. If
    class counts were fixed, the part between the classes is subtracted.
    """
    fits, own = tables.fits, regression_noise(tables.fits, tables.noise_sums(sums))
    estimated, covariance, bias = "cross" in sums, own.covariance, None
    if (estimated or tables.stratified) and covariance.ndim == 2:
        covariance = covariance[:, :, None] * np.eye(covariance.shape[1])
    if estimated:
        gam = tables.by_weight
        once = fits.times(sums["cross"]) @ tables.project(gam).transpose(0, 2, 1)
        of_weights = _square_through_weights(tables, sums["square"] + weight_noise)
        cross = once + once.transpose(0, 2, 1)
        if tables.weight_draws is not None:
            traces = trace_in_moments(fits, cross), trace_in_moments(fits, of_weights)
            bias = _bias_with_draws(tables, sums, own.trace, *traces)
        covariance = covariance + cross + of_weights
    if tables.stratified:
        between = _covariance_between(tables, sums)
        covariance = covariance - between
        if bias is not None:
            bias = bias - trace_in_moments(fits, between)
    return replace(own, covariance=covariance, bias=bias)


def _square_through_weights(tables: InfluenceTables, square: np.ndarray) -> np.ndarray:
    """(E, R, R) Gam square Gam'."""
    gam, count = tables.by_weight, tables.fits.basis.count
    found = np.zeros((*gam.shape[:2], gam.shape[1]))
    product = gam[~tables.fits.basis.missing] @ square  # of all knots at once: faster
    parts = np.split(product, np.cumsum(count)[:-1])
    for event, (R, part) in enumerate(zip(count, parts, strict=True)):
        np.matmul(part, gam[event, :R].T, out=found[event, :R, :R])
    return found


def _bias_with_draws(
    tables: InfluenceTables, sums: Tally, own: np.ndarray, cross: np.ndarray, of_weights: np.ndarray
) -> np.ndarray:
    """(E,) bias of |a|^2, with draws of the target prior in place of a linear approximation.

    A class contributes to the weighted source in proportion to its share q of the target, whatever
    its share of the source. So the noise of class counts, which is part of the residuals' noise
    ``own`` with known weights, is subtracted, and only residuals within classes are correlated with
    q. ``cross`` and ``of_weights`` are the parts of the weights w = q / pi to first order.
    """
    drawn, seen = tables.weight_draws, tables.scaled_weights.seen
    assert drawn is not None
    by_class = tables.by_weight * tables.scaled_weights.values[seen]  # o, summed by label
    between = drawn.noise_of_counts(tables.fits, by_class, tables.counts[seen], own)
    means = (by_class / tables.counts[seen]) @ tables.project(sums["phi_by_label"][seen])
    once = means @ tables.project(tables.by_weight).transpose(0, 2, 1)
    within = cross - trace_in_moments(tables.fits, once + once.transpose(0, 2, 1))
    of_priors = of_weights + cross - within + between
    within = _bound_cross(within, own - between, of_priors, drawn.plugin.mean(axis=0))
    return np.asarray(own + drawn.changes(own).mean(axis=0) + within - between)


def _bound_cross(
    cross: np.ndarray, own: np.ndarray, linear: np.ndarray, drawn: np.ndarray
) -> np.ndarray:
    """(E,) the part of the bias that rows have through residuals and priors together.

    ``cross`` is linear in the noise of the priors, which the draws limit: as far as their part of
    the bias is below the ``linear`` one, this part is reduced by the root of the ratio. By the
    inequality of Cauchy and Schwarz it is at most twice the root of the two parts' product.
    """
    drawn = np.maximum(drawn, 0.0)
    ratio = np.divide(drawn, linear, out=np.ones_like(drawn), where=linear > drawn)
    most = 2 * np.sqrt(np.maximum(own, 0.0) * drawn)
    return np.asarray(np.clip(cross * np.sqrt(ratio), -most, most))


def _covariance_between(tables: InfluenceTables, sums: Tally) -> np.ndarray:
    """(E, R, R) the part of each event's S that lies between the classes."""
    by_label = tables.fits.times(sums["noise_by_label"])
    if "phi_by_label" in sums:
        by_label = by_label + tables.by_weight @ sums["phi_by_label"].T
    return np.asarray((by_label / np.maximum(tables.counts, 1)) @ by_label.transpose(0, 2, 1))


def _covariance_of_all(
    tables: InfluenceTables, sums: Tally, weight_noise: np.ndarray
) -> np.ndarray | None:
    """S of all events in the directions of the sketch; None for one event."""
    if tables.single:
        return None
    whole, by_weight = sums["whole"], tables.sketch_by_weight
    if "cross" in sums:
        once = np.einsum("erd,ers->ds", tables.directions, tables.fits.times(sums["cross"]))
        once = once @ tables.project(by_weight.T).T
        whole = whole + once + once.T + by_weight.T @ (sums["square"] + weight_noise) @ by_weight
    if not tables.stratified:
        return np.asarray(whole)
    by_label = sums["whole_by_label"]
    if "phi_by_label" in sums:
        by_label = by_label + sums["phi_by_label"] @ by_weight
    return np.asarray(whole - by_label.T @ (by_label / np.maximum(tables.counts, 1)[:, None]))


def _first_order(
    tables: InfluenceTables,
    sums: tuple[Tally, Tally | None],
    name: str,
    by_weight: np.ndarray,
    source: Engine,
) -> tuple[np.ndarray, float, RowInfluence | None]:
    """Variances of the events and of their mean to first order, and the influence on that mean.

    ``by_weight`` (S, E) has the derivatives of the events in the class weights.
    """
    (own_sums, target_sums), own, within = sums, None, None
    variance, mean = own_sums[name]["variance"], own_sums[name]["mean"]
    if tables.stratified:
        by_label, sizes = own_sums[f"{name}_by_label"], np.maximum(tables.counts, 1)
        between = (by_label**2 / sizes[:, None]).sum(axis=0)
        variance = np.maximum(variance - between, 0.0)  # rounding may leave less than 0
        within = by_label.mean(axis=1)
        mean = max(mean - float((within**2 / sizes).sum()), 0.0)
    rows = source.in_memory if own_sums[name]["rows"] else None
    if rows is not None:
        own = np.concatenate(own_sums[name]["rows"])
        if within is not None:  # around the mean of the class
            centre = within / np.maximum(source.summary.class_counts, 1e-300)
            own = own - np.sqrt(rows.squared_frequency) * centre[rows.labels]
        mean = float(own @ own)
    if target_sums is None:
        influence = (
            None if own is None or rows is None else RowInfluence(own, None, rows.fingerprint)
        )
        return variance, mean, influence
    outside = tables.scaled_weights.outside_influence @ by_weight
    variance = variance + target_sums[name]["variance"] + (outside**2).sum(axis=0)
    of_mean = outside.mean(axis=1)
    mean = mean + target_sums[name]["mean"] + float(of_mean @ of_mean)
    if own is None or rows is None:
        return variance, mean, None
    others = np.concatenate(target_sums[name]["rows"])
    return variance, mean, RowInfluence(own, others, rows.fingerprint, of_mean)


def _squared_distributions(
    tables: InfluenceTables,
    noise: RegressionNoise,
    whole: np.ndarray | None,
    variance: np.ndarray,
    mean: float,
) -> tuple[SquaredErrorDistribution, SquaredErrorDistribution]:
    """Of |a|^2, the mean over the events and each, corrected for the bias of the ratio."""
    plugin = tables.fits.plugin + noise.ratio_bias
    bias, each, E = np.maximum(noise.trace, 0.0), noise.squares, len(variance)
    total = float(each.sum())
    if whole is not None and tables.exact:
        total = float(np.sum(whole**2))
    elif whole is not None:
        total += _shared_squares(tables, noise.covariance, whole)
    of_mean = SquaredErrorDistribution(max(plugin.mean(), 0.0), bias.mean(), mean, total / E**2)
    return of_mean, SquaredErrorDistribution(np.maximum(plugin, 0.0), bias, variance, each)


def _with_drawn_weights(
    draws: WeightDraws,
    linear: tuple[SquaredErrorDistribution, SquaredErrorDistribution],
    residual_bias: np.ndarray,
) -> tuple[_Distribution, _Distribution]:
    """The distributions with the weights' part by draws."""
    changes = draws.changes(residual_bias)
    means = changes.mean(axis=1), changes
    found = [
        EstimatedWeightsDistribution.of(one, np.maximum(one.bias - drawn.mean(axis=0), 0.0), drawn)
        for one, drawn in zip(linear, means, strict=True)
    ]
    return found[0], found[1]


def _shared_squares(tables: InfluenceTables, covariance: np.ndarray, whole: np.ndarray) -> float:
    """|S|^2 off the events' own blocks: r' S s over pairs of different random directions r, s."""
    directions, D = tables.directions, len(whole)
    if covariance.ndim == 2:
        own = np.einsum("erd,er,erc->dc", directions, covariance, directions)
    else:
        own = directions.reshape(-1, D).T @ (covariance @ directions).reshape(-1, D)
    apart = (whole - own) ** 2
    return float((apart.sum() - apart.trace()) / (D * (D - 1)))
