"""Errors freed of all noise, that of estimated weights included, and the laws of their intervals.

With S = sum_i x_i x_i' + sum_j x_j x_j' over the moves of section 8 of docs/mathematics.md,

    bias = tr S - 2 a . sum_i l_i o_i / (1 - l_i)        V1 = sum_i (2 x_i . a)^2 + the target's
    T = |S|^2, over all events together through random directions where they are many
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from calshift.engines import Arrays
from calshift.estimators import event_error, unfolded_gap
from calshift.moves import Moves, Signs
from calshift.predictions import Predictions
from calshift.results import AbsoluteLaw, Law, RowMoves, SquareLaw

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
        sums = engines[0].total(moves.source_noise)
        noise = _added_noise(moves, sums, _target_noise(moves, engines[1]))
    return Assessment(_errors(moves, norm, debias, noise))


def _errors(moves: Moves, norm: float, debias: bool, noise: Noise) -> np.ndarray:
    pairs = zip(moves.fits, noise, strict=True)
    return np.array([event_error(fit, norm, debias, more) for fit, more in pairs])


def _target_noise(moves: Moves, target: Arrays | None) -> np.ndarray | float:
    """sum_j phi_j phi_j'."""
    if target is None or moves.weighting.influence is None:
        return 0.0
    return np.asarray(target.total(moves.target_noise))


def _added_noise(moves: Moves, sums: tuple[Any, ...], target: np.ndarray | float) -> Noise:
    """What is to be added to each event's noise of residuals to make S.

    Of estimated weights: sum_i (o_i phi_i' Gam' + its transpose) + Gam (sum phi phi') Gam'.
    If class counts were fixed, what lies between the classes goes.
    """
    cross, square, by_label = sums
    known = moves.weighting.influence is None
    if known and moves.counts is None:
        return [None] * len(moves.fits)
    cross = cross.reshape(len(moves.fits), moves.edges.max_bins, cross.shape[-1])
    added: Noise = []
    for fit, gam, part in zip(moves.fits, moves.by_weight, cross, strict=True):
        once = fit.basis.gathered(part[: fit.cells.bins]) @ gam.T
        more = once + once.T + gam @ (square + target) @ gam.T
        added.append(more if moves.counts is None else more - moves.between(fit, gam, by_label))
    return added


def _with_laws(
    moves: Moves, engines: tuple[Arrays, Arrays | None], norm: float, debias: bool
) -> Assessment:
    source, target = engines
    signs = moves.signs() if norm == 1 else None
    if signs is not None and target is None and moves.counts is None:
        signs = _with_gaps(moves, signs, [None] * len(moves.fits))
    elif signs is not None and target is None:
        noise = _added_noise(moves, source.total(moves.source_noise), 0.0)
        signs = _with_gaps(moves, signs, noise)
    found = source.total(partial(moves.source_sums, signs=signs))
    sums, (whole, by_label), square, absolute = found[:3], found[3:5], found[5:8], found[8:]
    more = _target_noise(moves, target)
    noise = _added_noise(moves, sums, more)
    whole = _within(whole, by_label, moves)
    if target is not None and moves.weighting.influence is not None:
        whole = whole + moves.sketch_by_weight.T @ more @ moves.sketch_by_weight
    if target is not None and signs is not None:
        signs = _with_gaps(moves, signs, noise)
    beside = None if target is None else target.total(partial(moves.target_sums, signs=signs))
    values = _errors(moves, norm, debias, noise)
    variance, rows = _moved(moves, square, None if beside is None else beside[:2], source)
    law, laws = _square_laws(moves, noise, whole, variance, rows)
    if signs is None:
        return Assessment(values, law, laws, rows)
    least = absolute[0]
    variance, rows = _moved(moves, absolute[1:], None if beside is None else beside[2:], source)
    mean = AbsoluteLaw(signs.mean_gap.mean(), least.mean(), rows.variance, law)
    return Assessment(values, mean, AbsoluteLaw(signs.mean_gap, least, variance, laws), rows)


def _within(squares: np.ndarray, by_label: Any, moves: Moves) -> np.ndarray:
    """Sums of squares without what lies between the classes, if their counts were fixed."""
    if moves.counts is None:
        return squares
    if squares.ndim == 1:
        return np.asarray(
            squares - (by_label**2 / np.maximum(moves.counts, 1)[:, None]).sum(axis=0)
        )
    return np.asarray(squares - by_label.T @ (by_label / np.maximum(moves.counts, 1)[:, None]))


def _moved(
    moves: Moves, source: tuple[Any, ...], target: tuple[Any, ...] | None, engine: Arrays
) -> tuple[np.ndarray, RowMoves]:
    """Variances of the events to first order, and the moves of their mean."""
    variance, rows, by_label = source
    variance, moved = _within(variance, by_label, moves), np.concatenate(rows)
    sample = engine.predictions
    if moves.counts is not None:
        mean = np.bincount(sample.labels, moved, len(moves.counts)) / np.maximum(moves.counts, 1)
        moved = moved - mean[sample.labels]
    if target is None:
        return variance, RowMoves(moved, None, sample.mark)
    return variance + target[0], RowMoves(moved, np.concatenate(target[1]), sample.mark)


def _with_gaps(moves: Moves, signs: Signs, noise: Noise) -> Signs:
    pairs = zip(moves.fits, noise, strict=True)
    return moves.with_gaps(signs, [unfolded_gap(fit, 1, more) for fit, more in pairs])


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
