"""Errors freed of all noise, that of estimated weights included, and the laws of their intervals.

With S = sum_i x_i x_i' + sum_j x_j x_j' over the moves of section 8 of docs/mathematics.md,

    plug = |a|^2 + 2 a . sum_i l_i o_i / (1 - l_i)        bias = tr S        T = |S|^2
    V1 = sum_i (2 x_i . a)^2, rows left out one by one, + the target's

over all events together; T through random directions where they are many.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np

from calshift.engines import Arrays, Tally
from calshift.estimators import event_error, unfolded_gap
from calshift.fits import Fit
from calshift.moves import Moves
from calshift.predictions import Predictions
from calshift.results import AbsoluteLaw, Law, RowMoves, SquareLaw
from calshift.tallies import Signs, source_noise, source_tally, target_noise, target_tally

Noise = list[np.ndarray | None]


@dataclass(frozen=True)
class Assessment:
    """Errors of E events; the law of their mean, of each, and how the rows moved the mean."""

    values: np.ndarray
    law: Law | None = None
    event_laws: Law | None = None
    moves: RowMoves | None = None


def assessed(
    moves: Moves,
    source: Predictions,
    target: Predictions | None,
    norm: float,
    debias: bool,
    interval: bool,
) -> Assessment:
    """The errors, and their laws if asked for; those exist for norms 1 and 2."""
    engines = Arrays.in_blocks(source), None if target is None else Arrays.in_blocks(target)
    if interval and norm in (1, 2):
        return _with_laws(moves, engines, norm, debias)
    noise: Noise = [None] * len(moves.fits)
    if debias and (moves.weighting.influence is not None or moves.counts is not None):
        tally = engines[0].total(partial(source_noise, moves=moves))
        noise = _added_noise(moves, tally, _target_noise(moves, engines[1]))
    return Assessment(_errors(moves, norm, debias, noise))


def _with_laws(
    moves: Moves, engines: tuple[Arrays, Arrays | None], norm: float, debias: bool
) -> Assessment:
    source, target = engines
    signs, more = Signs.of(moves) if norm == 1 else None, _target_noise(moves, target)
    tally = source.total(partial(source_tally, moves=moves, signs=signs))
    noise, beside = _added_noise(moves, tally, more), None
    signs = None if signs is None else _with_gaps(moves, signs, noise)
    if target is not None:
        beside = target.total(partial(target_tally, moves=moves, signs=signs))
    values = _errors(moves, norm, debias, noise)
    variance, rows = _moved(
        moves, tally, beside, "squared", moves.slope_by_weight, source.predictions
    )
    law, laws = _square_laws(moves, noise, _whole(moves, tally, more), variance, rows)
    if signs is None:
        return Assessment(values, law, laws, rows)
    variance, rows = _moved(moves, tally, beside, "absolute", signs.by_weight, source.predictions)
    least, gap = tally["least"], signs.mean_gap
    mean = AbsoluteLaw(gap.mean(), least.mean(), rows.variance, law)
    return Assessment(values, mean, AbsoluteLaw(gap, least, variance, laws), rows)


def _errors(moves: Moves, norm: float, debias: bool, noise: Noise) -> np.ndarray:
    pairs = zip(moves.fits, noise, strict=True)
    return np.array([event_error(fit, norm, debias, more) for fit, more in pairs])


def _with_gaps(moves: Moves, signs: Signs, noise: Noise) -> Signs:
    pairs = zip(moves.fits, noise, strict=True)
    return signs.with_gaps(moves, [unfolded_gap(fit, 1, more) for fit, more in pairs])


def _target_noise(moves: Moves, target: Arrays | None) -> np.ndarray:
    """sum_j phi_j phi_j', and of observations of neither sample."""
    if target is None or moves.weighting.influence is None:
        return np.zeros((moves.by_weight[0].shape[1],) * 2)
    outside = moves.weighting.outside_moves
    return np.asarray(target.total(partial(target_noise, moves=moves)) + outside.T @ outside)


def _added_noise(moves: Moves, tally: Tally, target: np.ndarray) -> Noise:
    """What is to be added to each event's noise of residuals to make S.

    Of estimated weights: sum_i (o_i phi_i' Gam' + its transpose) + Gam (sum phi phi') Gam'.
    If class counts were fixed, what lies between the classes goes.
    """
    if moves.weighting.influence is None and moves.counts is None:
        return [None] * len(moves.fits)
    square = tally["square"] + target
    cross = tally["cross"].reshape(len(moves.fits), moves.edges.max_bins, tally["cross"].shape[1])
    added: Noise = []
    for fit, gam, part in zip(moves.fits, moves.by_weight, cross, strict=True):
        once = fit.basis.gathered(part[: fit.cells.bins]) @ moves.shortened(gam).T
        more = once + once.T + gam @ square @ gam.T
        if moves.counts is not None:
            more -= _between(fit, gam @ tally["phi_by_label"].T, moves.counts)
        added.append(more)
    return added


def _between(fit: Fit, by_weights: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """(R, R) the part of an event's S that lies between the classes.

    ``by_weights`` is the part of the moves that goes through the weights, summed by label.
    """
    noise = fit.cells.weight * fit.excess / np.sqrt(fit.slack)
    moved = fit.basis.gathered(fit.cells.by_bin_and_label(noise, len(counts))) + by_weights
    return np.asarray((moved / np.maximum(counts, 1)) @ moved.T)


def _whole(moves: Moves, tally: Tally, target: np.ndarray) -> np.ndarray:
    """S of all events in the directions of the sketch."""
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
    sample: Predictions,
) -> tuple[np.ndarray, RowMoves]:
    """Variances of the events to first order, and the moves of their mean.

    ``by_weight`` (S, E) has the slopes of the events in the class weights.
    """
    part = tally[name]
    variance, rows = part["variance"], np.concatenate(part["rows"])
    if moves.counts is not None:
        moved = part["by_label"]
        between = (moved**2 / np.maximum(moves.counts, 1)[:, None]).sum(axis=0)
        variance = np.maximum(variance - between, 0.0)  # rounding may leave less than nothing
        mean = moved.mean(axis=1) / np.maximum(sample.class_counts, 1e-300)
        rows = rows - np.sqrt(sample.squared_frequency) * mean[sample.labels]
    if beside is None:
        return variance, RowMoves(rows, None, sample.mark)
    part, outside = beside[name], moves.weighting.outside_moves @ by_weight
    variance = variance + part["variance"] + (outside**2).sum(axis=0)
    rows_target = np.concatenate(part["rows"])
    return variance, RowMoves(rows, rows_target, sample.mark, outside.mean(axis=1))


def _square_laws(
    moves: Moves, noise: Noise, whole: np.ndarray, variance: np.ndarray, rows: RowMoves
) -> tuple[SquareLaw, SquareLaw]:
    """Of |a|^2, the mean over the events and each; freed of the bias of the ratio."""
    total = [
        fit.noise if more is None else fit.noise + more
        for fit, more in zip(moves.fits, noise, strict=True)
    ]
    plug = moves.plug + [2 * fit.coordinates @ fit.lean for fit in moves.fits]
    bias = np.array([max(np.trace(S), 0.0) for S in total])
    second = np.array([np.sum(S**2) for S in total])
    together = _squared_norm(whole, moves.exact) / len(moves.fits) ** 2
    mean = SquareLaw(max(plug.mean(), 0.0), bias.mean(), rows.variance, together)
    return mean, SquareLaw(np.maximum(plug, 0.0), bias, variance, second)


def _squared_norm(whole: np.ndarray, exact: bool) -> float:
    """|S|^2 from S, or from r' S s over pairs of different random directions r, s."""
    if exact:
        return float(np.sum(whole**2))
    pairs = ~np.eye(len(whole), dtype=bool)
    return float(np.mean(whole[pairs] ** 2))
