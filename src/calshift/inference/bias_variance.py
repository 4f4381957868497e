"""Errors freed of all noise, that of estimated weights included, and the laws of their intervals.

With S = sum_i x_i x_i' + sum_j x_j x_j' over the moves of section 8 of docs/mathematics.md,

    plug = |a|^2 + 2 a . sum_i l_i o_i / (1 - l_i)        bias = tr S        T = |S|^2
    V1 = sum_i (2 x_i . a)^2, rows left out one by one, + the target's

over all events together; what events share of T through random directions where they are many.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from calshift._core.addable import Tally
from calshift.compiled import loops
from calshift.engines import Blocks
from calshift.engines.base import Engine
from calshift.estimators import Second, errors, unfolded_gaps
from calshift.inference.influence_sums import Signs, SourceMoves, TargetMoves, TargetNoise
from calshift.inference.row_influence import Moves
from calshift.results import AbsoluteLaw, Law, RowMoves, SquareLaw

FEW_EVENTS = 20  # up to which all rows are sketched
SMALL_SHARE = 0.1  # of the mean, below which what a row adds to S is left out of the sketch


@dataclass(frozen=True)
class Assessment:
    """Errors of E events; the law of their mean, of each, and how the rows moved the mean."""

    values: np.ndarray
    law: Law | None = None
    event_laws: Law | None = None
    moves: RowMoves | None = None


def assessed(
    moves: Moves,
    source: Engine,
    target: Engine | None,
    norm: float,
    debias: bool,
    interval: bool,
    signed: np.ndarray | None = None,
) -> Assessment:
    """The errors, and their laws if asked for; those exist for norms 1 and 2.

    ``signed`` (E, S) is what mean |g| needs of the labels where weights were estimated.
    """
    laws = interval and norm in (1, 2)
    if not debias and not laws:
        return Assessment(errors(moves.fits, norm, None))
    if moves.weighting.influence is not None:  # moves of all weights are as wide as the rows
        source, target = Blocks(source), None if target is None else Blocks(target)
    more = _target_noise(moves, target)
    if not laws:
        second = _second(moves, source.total(SourceMoves(moves)), more)
        return Assessment(errors(moves.fits, norm, second if debias else None))
    return _with_laws(moves, (source, target), norm, debias, more, signed)


def _with_laws(
    moves: Moves,
    engines: tuple[Engine, Engine | None],
    norm: float,
    debias: bool,
    more: np.ndarray,
    signed: np.ndarray | None,
) -> Assessment:
    (source, target), fits = engines, moves.fits
    signs = None
    if norm == 1:
        counts = source.facts.class_counts[moves.weighting.seen]
        signs = Signs.of(fits, signed, counts, source.facts.square / source.facts.size)
    kept = source.kept is not None and (target is None or target.kept is not None)
    kernel = SourceMoves(moves, True, kept, _threshold(moves, source), signs)
    tally = source.total(kernel)
    second, beside = _second(moves, tally, more), None
    if signs is not None:
        signs = signs.with_gaps(fits, unfolded_gaps(fits, 1, second))
    if target is not None:
        beside = target.total(TargetMoves(moves, kept, signs))
    values = errors(fits, norm, second if debias else None)
    variance, mean, rows = _moved(moves, tally, beside, "squared", moves.slope_by_weight, source)
    law, laws = _square_laws(moves, second, _whole(moves, tally, more), variance, mean)
    if signs is None:
        return Assessment(values, law, laws, rows)
    variance, mean, rows = _moved(moves, tally, beside, "absolute", signs.by_weight, source)
    least, gap = tally["least"], signs.mean_gap
    mean_law = AbsoluteLaw(gap.mean(), least.mean(), mean, law)
    return Assessment(values, mean_law, AbsoluteLaw(gap, least, variance, laws), rows)


def _threshold(moves: Moves, source: Engine) -> float:
    """What a row must add to the trace of S through one event to be sketched.

    All rows are if S is exact, or if events are few: then most matter.
    """
    E, n = len(moves.fits.value), source.facts.size
    if moves.exact or E <= FEW_EVENTS:
        return -1.0
    return SMALL_SHARE * moves.fits.planned_trace / (n * E)


def _target_noise(moves: Moves, target: Engine | None) -> np.ndarray:
    """sum_j phi_j phi_j', and of observations of neither sample.

    The method knows the first from its own sums, but for rows that count less than one.
    """
    weighting = moves.weighting
    if target is None or weighting.influence is None:
        return np.zeros((moves.by_weight.shape[2],) * 2)
    outside = weighting.outside_moves
    if target.facts.light:
        return np.asarray(target.total(TargetNoise(moves)) + outside.T @ outside)
    known = weighting.influence.target_square / (weighting.scale**2 * weighting.sizes[1])
    return np.asarray(known + outside.T @ outside)


def _second(moves: Moves, tally: Tally, target: np.ndarray) -> Second:
    """S of each event, and what tilts its fit.

    To the noise of residuals estimated weights add sum_i (o_i phi_i' Gam' + its transpose) +
    Gam (sum phi phi') Gam'. If class counts were fixed, what lies between the classes goes.
    """
    fits = moves.fits
    covariance = fits.covariance(tally["noise"])
    if "cross" not in tally and moves.counts is None:
        return Second(fits, covariance, tally["tilt"])
    if covariance.ndim == 2:
        covariance = covariance[:, :, None] * np.eye(covariance.shape[1])
    if "cross" in tally:
        gam = moves.by_weight
        once = fits.times(tally["cross"]) @ moves.shortened(gam).transpose(0, 2, 1)
        covariance = covariance + once + once.transpose(0, 2, 1)
        covariance += gam @ (tally["square"] + target) @ gam.transpose(0, 2, 1)
    if moves.counts is not None:
        covariance = covariance - _between(moves, tally)
    return Second(fits, covariance, tally["tilt"])


def _between(moves: Moves, tally: Tally) -> np.ndarray:
    """(E, R, R) the part of each event's S that lies between the classes."""
    assert moves.counts is not None
    moved = moves.fits.times(tally["noise_by_label"])
    moved = moved + moves.by_weight @ tally["phi_by_label"].T
    return np.asarray((moved / np.maximum(moves.counts, 1)) @ moved.transpose(0, 2, 1))


def _whole(moves: Moves, tally: Tally, target: np.ndarray) -> np.ndarray | None:
    """S of all events in the directions of the sketch; None for one event."""
    if moves.alone:
        return None
    whole = tally["whole"] + moves.sketch_by_weight.T @ target @ moves.sketch_by_weight
    if moves.counts is None:
        return np.asarray(whole)
    by_label = tally["whole_by_label"]
    return np.asarray(whole - by_label.T @ (by_label / np.maximum(moves.counts, 1)[:, None]))


def _moved(
    moves: Moves,
    tally: Tally,
    beside: Tally | None,
    name: str,
    by_weight: np.ndarray,
    source: Engine,
) -> tuple[np.ndarray, float, RowMoves | None]:
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
    kept = source.kept if part["rows"] else None
    if kept is not None:
        own = _kept_rows(part, source, within)
        mean = float(own @ own)
    if beside is None:
        return variance, mean, None if kept is None else RowMoves(own, None, kept.mark)
    other, outside = beside[name], moves.weighting.outside_moves @ by_weight
    variance = variance + other["variance"] + (outside**2).sum(axis=0)
    moved = outside.mean(axis=1)
    mean = mean + other["mean"] + float(moved @ moved)
    if kept is not None:
        rows = RowMoves(own, _joined(other["rows"]), kept.mark, moved)
    return variance, mean, rows


def _joined(rows: list[np.ndarray]) -> np.ndarray:
    """The moves of all blocks; mostly there is but one."""
    return rows[0] if len(rows) == 1 else np.concatenate(rows)


def _kept_rows(part: Tally, source: Engine, within: np.ndarray | None) -> np.ndarray:
    """The moves of the source's rows, around the mean of their class if counts were fixed."""
    rows = _joined(part["rows"])
    if within is None:
        return rows
    assert source.kept is not None
    mean = within / np.maximum(source.facts.class_counts, 1e-300)
    return np.asarray(rows - np.sqrt(source.kept.squared_frequency) * mean[source.kept.labels])


def _square_laws(
    moves: Moves, second: Second, whole: np.ndarray | None, variance: np.ndarray, mean: float
) -> tuple[SquareLaw, SquareLaw]:
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
    law = SquareLaw(max(plug.mean(), 0.0), bias.mean(), mean, together / E**2)
    return law, SquareLaw(np.maximum(plug, 0.0), bias, variance, each)


def _shared(moves: Moves, covariance: np.ndarray, whole: np.ndarray) -> float:
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
