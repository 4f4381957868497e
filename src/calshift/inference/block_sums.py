"""Sums over the rows of a block of events: the parts of `influence_sums` that numba compiles.

(docs/mathematics.md 8)
"""

from __future__ import annotations

import numpy as np

from calshift._core.linalg import sparse_columns, sparse_rows
from calshift.binning.hat_basis import HatBasis
from calshift.binning.placement import ScoreBlock
from calshift.compiled import fastest


@fastest
def add_source_influence(
    score: np.ndarray, bins: np.ndarray, true: np.ndarray, weight: np.ndarray,
    frequency: np.ndarray | None, fit: np.ndarray, plugin: np.ndarray, through: np.ndarray,
    own: float, sketch: np.ndarray, threshold: float, least: float, total: np.ndarray,
    x: np.ndarray,
) -> tuple[np.ndarray, np.ndarray]:  # fmt: skip
    """Sums over labelled rows of some events: noise (4, E, B), and squared influence (E,).

    Adds to ``total`` (n,) the influence of each row on |a|^2, and to ``x`` (n, D) its influence on
    the coefficients in the directions of ``sketch`` (E, B, D). ``fit`` (4, E, B) has g, leverage,
    gradient and trace weight of the bins; ``through`` (E, n) the influence by way of the class
    weights, or has no columns; ``own`` is 1 / m where the source is the target too, else 0.
    """
    noise, square, f = np.empty((4, *fit.shape[1:])), np.empty(len(score)), frequency
    once = None if f is None else np.minimum(f, 1.0)
    squared_weight = weight**2 if f is None else weight**2 * (f * once)
    for part in ScoreBlock(0, score, bins, fit.shape[2]).parts():
        here = part.events
        g, leverage, gradient = (part.at_bins(values) for values in fit[:3])
        leverage *= weight if once is None else weight * once
        u = (true == np.arange(here.start, here.stop)[:, None]) - part.score.astype(float)
        pulled = (u - g) * weight
        gap = np.maximum(1 - leverage, least)
        left_out = pulled / gap
        squared = pulled * left_out if f is None else pulled * left_out * (f * once)
        noise[0, here] = part.by_bin(squared)
        squared *= leverage
        noise[2, here], noise[3, here] = part.by_bin(squared), part.by_bin(squared_weight)
        leverage *= left_out if f is None else left_out * f
        noise[1, here] = part.by_bin(leverage)
        value = left_out * gradient
        if own:
            value += own * (g * g - plugin[here, None])
        if through.shape[1]:
            value += through[here]
        square[here] = sum_squares(value, f)
        total += np.add.reduce(value, axis=0)
        if x.shape[1]:
            one = pulled * left_out  # of one row, whatever its frequency
            above = None if threshold < 0 else one * part.at_bins(fit[3]) > threshold
            Z = sketch[here].reshape(-1, x.shape[1])
            _add_sketch(pulled / np.sqrt(gap), part.place, above, Z, x)
    return noise, square


@fastest
def add_influence(
    score: np.ndarray, bins: np.ndarray, true: np.ndarray, group: np.ndarray, groups: int,
    frequency: np.ndarray | None, lines: np.ndarray, through: np.ndarray, sketch: np.ndarray,
    trace: np.ndarray, threshold: float, total: np.ndarray, x: np.ndarray,
) -> np.ndarray:  # fmt: skip
    """(E,) sums of squared influence over labelled rows of some events, none of weight below 1.

    Adds to ``total`` and ``x`` as `add_source_influence` does. ``lines`` (4, E, B G) are of
    `GroupSums`, ``trace`` (E, B) the trace weights of bins.
    """
    square, D = np.zeros(len(score)), x.shape[1]
    for rows, part in ScoreBlock(0, score, bins, trace.shape[1]).tiles():
        here, place = part.events, part.place
        cell = place if groups == 1 else place * groups + group[rows]
        u, f = part.residuals(true[rows]), None if frequency is None else frequency[rows]
        slope, offset, pull, rest = (one[here].ravel() for one in lines)
        value = slope.take(cell, mode="clip")
        value *= u
        value += offset.take(cell, mode="clip")
        if through.shape[1]:
            value += through[here, rows]
        square[here] += np.einsum("en,en->e", value, value if f is None else value * f)
        total[rows] += np.add.reduce(value, axis=0)
        if D:
            size = pull.take(cell, mode="clip")
            size *= u
            size += rest.take(cell, mode="clip")
            above = None if threshold < 0 else size**2 * part.at_bins(trace) > threshold
            _add_sketch(size, place, above, sketch[here].reshape(-1, D), x[rows])
    return square


def _add_sketch(
    size: np.ndarray, place: np.ndarray, above: np.ndarray | None, Z: np.ndarray, x: np.ndarray
) -> None:
    """Add w e / sqrt(1 - l), (E, n), times the sketch, of all rows or those above a threshold."""
    if above is None:
        x += sparse_rows(size, place, len(Z)) @ Z
        return
    entry = np.flatnonzero(above)
    row, each = entry % size.shape[1], np.arange(len(entry) + 1)
    x += sparse_columns(size.ravel()[entry], row, each, len(x)) @ Z[place.ravel()[entry]]


@fastest
def add_target_influence(
    bins: np.ndarray, frequency: np.ndarray | None, values: np.ndarray, through: np.ndarray,
    total: np.ndarray,
) -> np.ndarray:  # fmt: skip
    """(E,) sums of squares of the values (E, B) of the bins in which rows lie.

    Adds the values to ``total`` (n,); ``through`` as in `add_source_influence`.
    """
    square = np.zeros(len(bins))
    for rows, part in ScoreBlock(0, bins, bins, values.shape[1]).tiles():
        value = part.at_bins(values)
        if through.shape[1]:
            value += through[part.events, rows]
        f = None if frequency is None else frequency[rows]
        square[part.events] += sum_squares(value, f)
        total[rows] += np.add.reduce(value, axis=0)
    return square


def sum_squares(values: np.ndarray, frequency: np.ndarray | None) -> np.ndarray:
    """(E,) sums over rows; a row that counts less than one counts by its square."""
    if frequency is None:
        return np.asarray(np.einsum("en,en->e", values, values))
    return np.asarray(values**2 @ (frequency * np.minimum(frequency, 1.0)))


@fastest
def add_products(
    score: np.ndarray, bins: np.ndarray, true: np.ndarray, weight: np.ndarray,
    frequency: np.ndarray | None, fit: np.ndarray, least: float, left: np.ndarray,
    share: np.ndarray, others: np.ndarray, sums: np.ndarray,
) -> None:  # fmt: skip
    """Add X' w e / (1 - l) others, (E, R, S), over labelled rows of some events; others (n, S).

    ``fit`` (2, E, B) has g and leverage of the bins, ``left`` and ``share`` (E, B) their hats.
    """
    basis = HatBasis(left, share, np.full(len(left), sums.shape[1]))
    once = weight if frequency is None else weight * np.minimum(frequency, 1.0)
    for part in ScoreBlock(0, score, bins, left.shape[1]).parts():
        here, left_out = part.events, part.residuals(true)
        left_out -= part.at_bins(fit[0])
        left_out *= weight
        left_out /= np.maximum(1 - part.at_bins(fit[1]) * once, least)
        by_place = sparse_rows(left_out, part.place, len(left_out) * part.width)
        sums[here] += basis.project_rows(here, by_place.T @ others)
