"""Errors freed of all noise, that of estimated weights included, and the laws of their intervals.

With S = sum_i x_i x_i' + sum_j x_j x_j' over the moves of section 8 of docs/mathematics.md,

    plug = |a|^2 + 2 a . sum_i l_i o_i / (1 - l_i)        bias = tr S        T = |S|^2
    V1 = sum_i (2 x_i . a)^2, rows left out one by one, + the target's

over all events together; what events share of T through random directions where they are many.
"""

from __future__ import annotations

import numpy as np

from calshift._core.addable import Tally
from calshift.compiled import loops
from calshift.engines import Blocks
from calshift.engines.base import Engine
from calshift.estimators import RegressionNoise, errors, unfold_errors
from calshift.inference.event_estimates import EventEstimates
from calshift.inference.influence_sums import (
    Signs,
    SourceInfluenceSums,
    TargetInfluenceSums,
    TargetNoise,
)
from calshift.inference.row_influence import InfluenceTables
from calshift.results import (
    AbsoluteErrorDistribution,
    RowInfluence,
    SquaredErrorDistribution,
)

FEW_EVENTS = 20  # up to which all rows are sketched
SMALL_SHARE = 0.1  # of the mean, below which what a row adds to S is left out of the sketch


def estimate_events(
    moves: InfluenceTables,
    source: Engine,
    target: Engine | None,
    norm: float,
    debias: bool,
    interval: bool,
    signed: np.ndarray | None = None,
) -> EventEstimates:
    """The errors, and their laws if asked for; those exist for norms 1 and 2.

    ``signed`` (E, S) is what mean |g| needs of the labels where weights were estimated.
    """
    distributions = interval and norm in (1, 2)
    if not debias and not distributions:
        return EventEstimates(errors(moves.fits, norm, None))
    if moves.scaled_weights.influence is not None:  # moves of all weights are as wide as the rows
        source, target = Blocks(source), None if target is None else Blocks(target)
    more = _target_noise(moves, target)
    if not distributions:
        second = _second(moves, source.total(SourceInfluenceSums(moves)), more)
        return EventEstimates(errors(moves.fits, norm, second if debias else None))
    return _with_distributions(moves, (source, target), norm, debias, more, signed)


def _with_distributions(
    moves: InfluenceTables,
    engines: tuple[Engine, Engine | None],
    norm: float,
    debias: bool,
    more: np.ndarray,
    signed: np.ndarray | None,
) -> EventEstimates:
    (source, target), fits = engines, moves.fits
    signs = None
    if norm == 1:
        counts = source.summary.class_counts[moves.scaled_weights.seen]
        signs = Signs.of(fits, signed, counts, source.summary.square / source.summary.size)
    kept = source.in_memory is not None and (target is None or target.in_memory is not None)
    kernel = SourceInfluenceSums(moves, True, kept, _threshold(moves, source), signs)
    tally = source.total(kernel)
    second, beside = _second(moves, tally, more), None
    if signs is not None:
        signs = signs.with_gaps(fits, unfold_errors(fits, 1, second))
    if target is not None:
        beside = target.total(TargetInfluenceSums(moves, kept, signs))
    values = errors(fits, norm, second if debias else None)
    variance, mean, rows = _moved(moves, tally, beside, "squared", moves.slope_by_weight, source)
    distribution, distributions = _squared_error_distributions(
        moves, second, _whole(moves, tally, more), variance, mean
    )
    if signs is None:
        return EventEstimates(values, distribution, distributions, rows)
    variance, mean, rows = _moved(moves, tally, beside, "absolute", signs.by_weight, source)
    least, gap = tally["least"], signs.mean_gap
    mean_distribution = AbsoluteErrorDistribution(gap.mean(), least.mean(), mean, distribution)
    return EventEstimates(
        values,
        mean_distribution,
        AbsoluteErrorDistribution(gap, least, variance, distributions),
        rows,
    )


def _threshold(moves: InfluenceTables, source: Engine) -> float:
    """What a row must add to the trace of S through one event to be sketched.

    All rows are if S is exact, or if events are few: then most matter.
    """
    E, n = len(moves.fits.value), source.summary.size
    if moves.exact or E <= FEW_EVENTS:
        return -1.0
    return SMALL_SHARE * moves.fits.planned_trace / (n * E)


def _target_noise(moves: InfluenceTables, target: Engine | None) -> np.ndarray:
    """sum_j phi_j phi_j', and of observations of neither sample.

    The method knows the first from its own sums, but for rows that count less than one.
    """
    scaled_weights = moves.scaled_weights
    if target is None or scaled_weights.influence is None:
        return np.zeros((moves.by_weight.shape[2],) * 2)
    outside = scaled_weights.outside_influence
    if target.summary.light:
        return np.asarray(target.total(TargetNoise(moves)) + outside.T @ outside)
    known = scaled_weights.influence.target_square / (
        scaled_weights.scale**2 * scaled_weights.sizes[1]
    )
    return np.asarray(known + outside.T @ outside)


def _second(moves: InfluenceTables, tally: Tally, target: np.ndarray) -> RegressionNoise:
    """S of each event, and what tilts its fit.

    To the noise of residuals estimated weights add sum_i (o_i phi_i' Gam' + its transpose) +
    Gam (sum phi phi') Gam'. If class counts were fixed, what lies between the classes goes.
    """
    fits = moves.fits
    covariance = fits.covariance(tally["noise"])
    if "cross" not in tally and moves.counts is None:
        return RegressionNoise(fits, covariance, tally["tilt"])
    if covariance.ndim == 2:
        covariance = covariance[:, :, None] * np.eye(covariance.shape[1])
    if "cross" in tally:
        gam = moves.by_weight
        once = fits.times(tally["cross"]) @ moves.shortened(gam).transpose(0, 2, 1)
        covariance = covariance + once + once.transpose(0, 2, 1)
        covariance += gam @ (tally["square"] + target) @ gam.transpose(0, 2, 1)
    if moves.counts is not None:
        covariance = covariance - _between(moves, tally)
    return RegressionNoise(fits, covariance, tally["tilt"])


def _between(moves: InfluenceTables, tally: Tally) -> np.ndarray:
    """(E, R, R) the part of each event's S that lies between the classes."""
    assert moves.counts is not None
    moved = moves.fits.times(tally["noise_by_label"])
    moved = moved + moves.by_weight @ tally["phi_by_label"].T
    return np.asarray((moved / np.maximum(moves.counts, 1)) @ moved.transpose(0, 2, 1))


def _whole(moves: InfluenceTables, tally: Tally, target: np.ndarray) -> np.ndarray | None:
    """S of all events in the directions of the sketch; None for one event."""
    if moves.alone:
        return None
    whole = tally["whole"] + moves.sketch_by_weight.T @ target @ moves.sketch_by_weight
    if moves.counts is None:
        return np.asarray(whole)
    by_label = tally["whole_by_label"]
    return np.asarray(whole - by_label.T @ (by_label / np.maximum(moves.counts, 1)[:, None]))


def _moved(
    moves: InfluenceTables,
    tally: Tally,
    beside: Tally | None,
    name: str,
    by_weight: np.ndarray,
    source: Engine,
) -> tuple[np.ndarray, float, RowInfluence | None]:
    """Variances of the events and of their mean to first order, and the moves of that mean.

    ``by_weight`` (S, E) has the slopes of the events in the class weights.
    """
    part = tally[name]
    variance, mean, rows = part["variance"], part["mean"], None
    within = None
    if moves.counts is not None:
        by_label, worth = part["by_label"], np.maximum(moves.counts, 1)
        between = (by_label**2 / worth[:, None]).sum(axis=0)
        variance = np.maximum(variance - between, 0.0)  # rounding may leave less than nothing
        within = by_label.mean(axis=1)
        mean = max(mean - float((within**2 / worth).sum()), 0.0)
    kept = source.in_memory if part["rows"] else None
    if kept is not None:
        own = _kept_rows(part, source, within)
        mean = float(own @ own)
    if beside is None:
        return variance, mean, None if kept is None else RowInfluence(own, None, kept.fingerprint)
    other, outside = beside[name], moves.scaled_weights.outside_influence @ by_weight
    variance = variance + other["variance"] + (outside**2).sum(axis=0)
    moved = outside.mean(axis=1)
    mean = mean + other["mean"] + float(moved @ moved)
    if kept is not None:
        rows = RowInfluence(own, _joined(other["rows"]), kept.fingerprint, moved)
    return variance, mean, rows


def _joined(rows: list[np.ndarray]) -> np.ndarray:
    """The moves of all blocks; mostly there is but one."""
    return rows[0] if len(rows) == 1 else np.concatenate(rows)


def _kept_rows(part: Tally, source: Engine, within: np.ndarray | None) -> np.ndarray:
    """The moves of the source's rows, around the mean of their class if counts were fixed."""
    rows = _joined(part["rows"])
    if within is None:
        return rows
    assert source.in_memory is not None
    mean = within / np.maximum(source.summary.class_counts, 1e-300)
    return np.asarray(
        rows - np.sqrt(source.in_memory.squared_frequency) * mean[source.in_memory.labels]
    )


def _squared_error_distributions(
    moves: InfluenceTables,
    second: RegressionNoise,
    whole: np.ndarray | None,
    variance: np.ndarray,
    mean: float,
) -> tuple[SquaredErrorDistribution, SquaredErrorDistribution]:
    """Of |a|^2, the mean over the events and each; freed of the bias of the ratio."""
    fits, E = moves.fits, len(variance)
    plug = fits.plug + second.lean
    bias = np.maximum(second.trace, 0.0)
    each = second.squares
    together = float(each.sum())
    if whole is not None and moves.exact:
        together = float(np.sum(whole**2))
    elif whole is not None:
        together += _shared(moves, second.covariance, whole)
    distribution = SquaredErrorDistribution(
        max(plug.mean(), 0.0), bias.mean(), mean, together / E**2
    )
    return distribution, SquaredErrorDistribution(np.maximum(plug, 0.0), bias, variance, each)


def _shared(moves: InfluenceTables, covariance: np.ndarray, whole: np.ndarray) -> float:
    """|S|^2 off the events' own blocks: r' S s over pairs of different random directions r, s."""
    turn, compiled, D = moves.directions, loops(), len(whole)
    own = np.zeros((D, D))
    if covariance.ndim == 2:
        own = np.einsum("erd,er,erc->dc", turn, covariance, turn)
    elif compiled is None:
        own = turn.reshape(-1, D).T @ (covariance @ turn).reshape(-1, D)
    else:
        compiled.share_hats(covariance, moves.fits.layout.count, turn, own)
    apart = (whole - own) ** 2
    return float((apart.sum() - apart.trace()) / (D * (D - 1)))
