"""Sums over rows for the regressions of residuals: first passes. (docs/mathematics.md 4)"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from calshift._core.addable import Tally
from calshift._core.predictions import Predictions
from calshift.binning.hat_basis import HatBasis
from calshift.binning.placement import BinLocator, ScoreBlock, true_event
from calshift.compiled import fastest
from calshift.estimators.regression import SMALLEST_GAP, ResidualRegression, sign

MOST_SUMS = 2**20  # by event, bin and group
ROUNDING_OF_SQUARES = 1e-12  # relative
MOST_PROJECTED = 6_000_000  # by event, knot and label


@fastest
def sum_source(
    score: np.ndarray, bins: np.ndarray, width: int, true: np.ndarray, weight: np.ndarray,
    frequency: np.ndarray | None,
) -> np.ndarray:  # fmt: skip
    """(4, E, B) sums of f, f w, f w^2 and f w u over the rows of each bin.

    ``true`` (n,) is the event that came true, counted from the first of these events.
    """
    out, mass = np.empty((4, len(score), width)), weight
    if frequency is not None:
        mass = weight * frequency
    equal = bool((weight == weight[:1]).all())
    for part in ScoreBlock(0, score, bins, width).parts():
        u = (true == np.arange(part.first, part.events.stop)[:, None]) - part.score.astype(float)
        out[0, part.events] = rows = part.by_bin(frequency)
        out[1, part.events] = rows * weight[0] if equal else part.by_bin(mass)
        out[2, part.events] = rows * weight[0] ** 2 if equal else part.by_bin(mass * weight)
        out[3, part.events] = part.by_bin(u * mass)
    return out


@dataclass(frozen=True)
class SourceSums:
    """Summand: the source's part of `BinSums`, for class weights w."""

    locator: BinLocator
    w: np.ndarray

    def __call__(self, batch: Predictions) -> Tally:
        edges, width = self.locator.edges, self.locator.width
        weight, f = self.w[batch.labels], batch.sample_weight
        true = true_event(batch, edges.events, edges.which)
        out, unused = np.empty((4, len(edges), width)), np.zeros((len(edges), width))
        for block in self.locator.blocks(batch):
            assert block.bins is not None
            among = true - block.first
            out[:, block.events] = sum_source(block.score, block.bins, width, among, weight, f)
            if not weight.all():
                unused[block.events] = block.by_bin((weight == 0) * batch.frequency)
        rows, mass, square, residual = out
        return Tally(rows=rows, usable=rows - unused, mass=mass, square=square, residual=residual)


@dataclass(frozen=True)
class TargetSums:
    """Summand: the target's part of `BinSums`."""

    locator: BinLocator

    def __call__(self, batch: Predictions) -> Tally:
        shape, f = (len(self.locator.edges), self.locator.width), batch.sample_weight
        count, score = np.zeros(shape), np.zeros(shape)
        for block in self.locator.blocks(batch):
            for part in block.parts():
                once = part.score.astype(float)
                count[part.events] = part.by_bin(f)
                score[part.events] = part.by_bin(once if f is None else once * f)
        return Tally(count=count, score=score)


@fastest
def sum_groups(
    score: np.ndarray, bins: np.ndarray, width: int, true: np.ndarray, group: np.ndarray,
    groups: int, frequency: np.ndarray | None,
) -> np.ndarray:  # fmt: skip
    """(3, E, B, G) sums of f, f u and f u^2 over the rows of each bin and group.

    ``true`` as in `sum_source`; ``group`` (n,) is ignored if there is only one.
    """
    out = np.zeros((3, len(score), width * groups))
    for rows, part in ScoreBlock(0, score, bins, width).tiles():
        place = part.place if groups == 1 else part.place * groups + group[rows]
        u, f = part.residuals(true[rows]), None if frequency is None else frequency[rows]
        size, shape = len(u) * width * groups, (len(u), -1)
        weighed = u if f is None else u * f
        each = None if f is None else np.broadcast_to(f, u.shape).ravel()
        values = (each, weighed.ravel(), (weighed * u).ravel())
        for s, one in enumerate(values):
            out[s, part.events] += np.bincount(place.ravel(), one, size).reshape(shape)
    return out.reshape(3, len(score), width, groups)


@dataclass(frozen=True)
class SourceSumsByGroup:
    """Summand: rows, residuals and their squares by bin and group of classes, (E, B, G) each.

    Where the classes of a group have equal weights, neither these nor the regressions need another
    pass, nor does the noise of the regressions (`noise_by_group`).
    """

    locator: BinLocator
    group: np.ndarray  # (K,)
    groups: int

    @staticmethod
    def fits_memory(locator: BinLocator, groups: int) -> bool:
        """Whether there are few enough of these sums."""
        return len(locator.edges) * locator.width * groups <= MOST_SUMS

    def __call__(self, batch: Predictions) -> Tally:
        edges, width, G = self.locator.edges, self.locator.width, self.groups
        group = batch.labels if G == 1 else self.group[batch.labels]
        true = true_event(batch, edges.events, edges.which)
        sums = np.empty((3, len(edges), width, G))
        for block in self.locator.blocks(batch):
            assert block.bins is not None
            asked = width, true - block.first, group, G, batch.sample_weight
            sums[:, block.events] = sum_groups(block.score, block.bins, *asked)
        return Tally(rows=sums[0], residual=sums[1], square=sums[2])


def noise_by_group(sums: Tally, fits: ResidualRegression, w: np.ndarray) -> np.ndarray:
    """(4, E, B) sums over rows of w^2 e^2 / (1 - l), l w e / (1 - l), the first times l, and w^2.

    From sums by group, for weights w of the groups.
    """
    rows, g = sums["rows"], fits.value[..., None]
    leverage = fits.leverage[..., None] * w
    left_out = w / np.maximum(1 - leverage, SMALLEST_GAP)
    squared = sum_squared_excess(sums, g) * (w * left_out)
    pull = (sums["residual"] - g * rows) * (left_out * leverage)
    return np.stack([squared.sum(2), pull.sum(2), (squared * leverage).sum(2), rows @ w**2])


def sum_squared_excess(sums: Tally, g: np.ndarray) -> np.ndarray:
    """(E, B, G) sums of (u - g)^2, from the mean and the variance of u in each bin and group."""
    rows, residual, square = sums.values()
    mean = np.divide(residual, rows, out=np.zeros_like(rows), where=rows > 0)
    within = square - residual * mean
    within[within < ROUNDING_OF_SQUARES * square] = 0.0
    return np.asarray(within + rows * (mean - g) ** 2)


def weigh_labels(sums: Tally, w: np.ndarray) -> Tally:
    """The source's part of `BinSums`, for weights w of the groups."""
    rows = sums["rows"]
    if len(w) == 1 and w[0] == 1:
        rows, residual = rows[..., 0], sums["residual"][..., 0]
        return Tally(rows=rows, usable=rows, mass=rows, square=rows, residual=residual)
    return Tally(
        rows=rows.sum(axis=2),
        usable=rows @ (w > 0).astype(float),
        mass=rows @ w,
        square=rows @ w**2,
        residual=sums["residual"] @ w,
    )


def excess_by_label(sums: Tally, fits: ResidualRegression, w: np.ndarray) -> Tally:
    """What `LabelSums` finds, from sums by label, for weights w of the classes seen."""
    rows, residual, g = sums["rows"], sums["residual"], fits.value[..., None]
    every, S = slice(0, len(rows)), rows.shape[2]
    e = residual - g * rows
    square = np.divide(e**2, rows, out=np.zeros_like(e), where=rows > 0)  # bins are fine
    noise = np.einsum("ebs,eb->es", square, fits.trace_weight)
    gap = np.maximum(1 - fits.leverage[..., None] * w, SMALLEST_GAP)
    excess = fits.basis.project_rows(every, (e / gap).reshape(-1, S))
    out = Tally(excess=excess, signed=(sign(g) * residual).sum(axis=1), noise=noise)
    if excess.size <= MOST_PROJECTED:
        out["bands"] = fits.basis.project_bands(every, rows.reshape(-1, S))
        out["residual"] = fits.basis.project_rows(every, residual.reshape(-1, S))
    return out


@dataclass(frozen=True)
class LabelSums:
    """Summand: residuals by label, through which class weights influence the regressions.

    By label of the S classes seen: ``excess`` (E, R, S) X' e / (1 - l), residuals of fits without
    the row, ``signed`` (E, S) u sign(g), ``noise`` (E, S) what e^2 would add to the trace of S with
    a weight of 1 and, unless they are too many, ``residual`` (E, R, S) X' u and ``bands``
    (2, E, R, S) of X' X, with which the regressions can be fitted again for other weights.
    """

    locator: BinLocator
    fits: ResidualRegression
    seen: np.ndarray
    w: np.ndarray  # of the classes seen

    def __call__(self, batch: Predictions) -> Tally:
        fits, basis, S = self.fits, self.fits.basis, int(self.seen.sum())
        E, R = fits.coefficients.shape
        kinds = 4 if E * R * S <= MOST_PROJECTED else 1
        sums, means = np.zeros((E, kinds, R, S)), np.zeros((E, 2, S))
        fit = np.stack([fits.value, fits.leverage, fits.trace_weight, sign(fits.value)])
        code, edges = batch.codes(self.seen), self.locator.edges
        weight, true = self.w[code], true_event(batch, edges.events, edges.which)
        for block in self.locator.blocks(batch):
            here = block.events
            assert block.bins is not None
            add_labelled(
                block.score, block.bins, true - block.first, code, weight, batch.sample_weight,
                np.ascontiguousarray(fit[:, here]), SMALLEST_GAP, basis.left[here],
                basis.share[here], sums[here], means[here],
            )  # fmt: skip
        out = Tally(excess=sums[:, 0], noise=means[:, 0], signed=means[:, 1])
        if kinds > 1:
            out["residual"], out["bands"] = sums[:, 1], np.moveaxis(sums[:, 2:], 1, 0)
        return out


@fastest
def add_labelled(
    score: np.ndarray, bins: np.ndarray, true: np.ndarray, code: np.ndarray, weight: np.ndarray,
    frequency: np.ndarray | None, fit: np.ndarray, least: float, left: np.ndarray,
    share: np.ndarray, sums: np.ndarray, means: np.ndarray,
) -> None:  # fmt: skip
    """Add sums over rows of some events, in hats at knots, by class: ``code`` (n,).

    ``fit`` (4, E, B) has g, leverage, trace weight and the sign of g of the bins. To ``sums``
    (E, 4, R, S) are added excess, residual and the two bands, or the first alone; to ``means``
    (E, 2, S) noise and signed residuals.
    """
    S, f = sums.shape[3], 1.0 if frequency is None else frequency
    basis = HatBasis(left, share, np.full(len(left), sums.shape[2]))
    for part in ScoreBlock(0, score, bins, left.shape[1]).parts():
        here, u, E = part.events, part.residuals(true), len(part.score)
        g, leverage, trace, turn = (part.at_bins(values) for values in fit)
        label, e = (code + (np.arange(E) * S)[:, None]).ravel(), u - g
        for k, one in enumerate((e**2 * trace * f, u * turn * f)):
            means[here, k] += np.bincount(label, one.ravel(), E * S).reshape(E, S)
        cell, size = (part.place * S + code).ravel(), E * part.width * S

        def by_cell(values: np.ndarray, cell: np.ndarray = cell, size: int = size) -> np.ndarray:
            return np.bincount(cell, values.ravel(), size).reshape(-1, S)

        gap = np.maximum(1 - leverage * weight, least)
        sums[here, 0] += basis.project_rows(here, by_cell(e / gap * f))
        if sums.shape[1] > 1:
            sums[here, 1] += basis.project_rows(here, by_cell(u * f))
            rows = by_cell(np.broadcast_to(f, u.shape))
            sums[here, 2:] += np.moveaxis(basis.project_bands(here, rows), 0, 1)
