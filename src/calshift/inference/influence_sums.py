"""Sums over rows of their influence on the errors: last passes. (docs/mathematics.md 8)

Influence of a row on |a|^2, on mean |g|, and on the coefficients; with estimated class weights also
by way of these.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from calshift._core.addable import Tally, add_up
from calshift._core.predictions import Predictions
from calshift.binning.placement import ScoreBlock, labelled_blocks, true_event
from calshift.estimators.regression import SMALLEST_GAP, sign
from calshift.inference.block_sums import (
    add_influence,
    add_products,
    add_source_influence,
    add_target_influence,
    sum_squares,
)
from calshift.inference.drift_sums import DriftTerms
from calshift.inference.row_influence import InfluenceTables, RowTerms, sum_by_label
from calshift.inference.signed_residuals import SignedResiduals
from calshift.weights.influence import ScaledWeights

CurveSummand = Callable[[Predictions, np.ndarray], Tally]  # target rows, their influence
CurvePlan = Callable[[np.ndarray], CurveSummand]  # errors by class, NaN if left out

BLOCK_SCORES = 2**17  # whose influence is found at once: they stay in the cache
FEWEST_ROWS, FEWEST_GIVEN = 256, 16384  # of a block; with given weights


def influence_tally(batch: Predictions, square: np.ndarray, total: np.ndarray, kept: bool) -> Tally:
    """Sums of squared influence of each event and of their mean; that of each row if kept."""
    mean = total / len(square)
    if batch.sample_weight is not None:
        mean *= np.sqrt(batch.squared_frequency)
    return Tally(variance=square, mean=float(mean @ mean), rows=[mean] * kept)


@dataclass(frozen=True)
class SourceInfluenceSums:
    """Summand: noise of the regressions and, for an interval, S and influence on the errors."""

    tables: InfluenceTables
    interval: bool = False
    kept: bool = False
    threshold: float = -1.0  # of a row's part in the trace of S, from which it is sketched
    signs: SignedResiduals | None = None

    def __call__(self, batch: Predictions) -> Tally:
        phi = self.tables.scaled_weights.source_influence(batch)
        out = sum_small_blocks(self._sum_rows, batch, phi, len(self.tables.fits.value))
        return Tally(out | through_weight_sums(batch, self.tables, phi)) if phi.shape[1] else out

    def _sum_rows(self, batch: Predictions, phi: np.ndarray) -> Tally:
        tables = self.tables
        out = self._squared(batch, phi)
        parts: list[Any] = []
        if tables.stratified:
            parts.append(BetweenClasses(batch, tables, phi))
        if self.signs is not None:
            parts.append(AbsoluteInfluence(batch, tables, phi, self.signs, self.kept))
        if parts:
            w = tables.scaled_weights.values[batch.labels]
            for block, u in labelled_blocks(batch, tables.locator):
                terms = RowTerms(block, u, batch, tables.fits, w)
                for part in parts:
                    part.add(terms)
        return Tally(out, **{name: v for part in parts for name, v in part.tally().items()})

    @cached_property
    def _fit(self) -> np.ndarray:
        """(4, E, B) g, leverage, gradient and, if only some rows are sketched, trace weight."""
        fits = self.tables.fits
        return np.stack([fits.value, fits.leverage, fits.gradient, self._trace_weight])

    @cached_property
    def _trace_weight(self) -> np.ndarray:
        fits = self.tables.fits
        return fits.trace_weight if self.threshold >= 0 else np.zeros_like(fits.value)

    def _squared(self, batch: Predictions, phi: np.ndarray) -> Tally:
        """Noise, influence on |a|^2, and the residuals' part of S in directions of the sketch."""
        tables, shape, out = self.tables, self.tables.fits.value.shape, Tally()
        if not self.interval and tables.by_group is not None:
            return out
        sketch = tables.sketch if self.interval else np.zeros((*shape, 0))
        direct, x = phi if self.interval else phi[:, :0], np.zeros((len(batch), sketch.shape[2]))
        square, total = np.zeros(shape[0]), np.zeros(len(batch))
        noise = None if tables.by_group is not None else np.zeros((4, *shape))
        true = true_event(batch, tables.locator.edges.events, tables.locator.edges.which)
        for block in tables.locator.blocks(batch):
            here, among = block.events, true - block.first
            through = through_weights(tables.gradient_by_weight, here, direct)
            if noise is None:
                square[here] = self._add_lines(batch, block, among, through, total, x)
            else:
                noise[:, here], square[here] = self._add_rows(
                    batch, block, among, through, total, x
                )
        if noise is not None:
            out["noise"] = noise
        if self.interval:
            out["squared"] = influence_tally(batch, square, total, self.kept)
        if x.shape[1]:
            f = batch.sample_weight
            out["whole"] = x.T @ (x if f is None else x * batch.squared_frequency[:, None])
            if tables.stratified:
                out["whole_by_label"] = sum_by_label(batch, x)
        return out

    def _add_lines(
        self, batch: Predictions, block: ScoreBlock, true: np.ndarray, through: np.ndarray,
        total: np.ndarray, x: np.ndarray,
    ) -> np.ndarray:  # fmt: skip
        """`add_influence` of a block, from sums by group."""
        tables, here = self.tables, block.events
        assert tables.by_group is not None
        assert tables.lines is not None
        assert block.bins is not None
        groups = len(tables.by_group.weights)
        group = batch.labels if groups == 1 else tables.by_group.group[batch.labels]
        sketch = tables.sketch if x.shape[1] else np.zeros((len(tables.lines[0]), 0, 0))
        return add_influence(
            block.score, block.bins, true, group, groups, batch.sample_weight,
            np.ascontiguousarray(tables.lines[:, here]), through, sketch[here],
            self._trace_weight[here], self.threshold, total, x,
        )  # fmt: skip

    def _add_rows(
        self, batch: Predictions, block: ScoreBlock, true: np.ndarray, through: np.ndarray,
        total: np.ndarray, x: np.ndarray,
    ) -> tuple[np.ndarray, np.ndarray]:  # fmt: skip
        """`add_source_influence` of a block."""
        tables, here = self.tables, block.events
        weight = tables.scaled_weights.values[batch.labels]
        sketch = tables.sketch if x.shape[1] else np.zeros((*tables.fits.value.shape, 0))
        assert block.bins is not None
        return add_source_influence(
            block.score, block.bins, true, weight, batch.sample_weight,
            np.ascontiguousarray(self._fit[:, here]), tables.fits.plugin[here], through,
            tables.own_share, sketch[here], self.threshold, SMALLEST_GAP, total, x,
        )  # fmt: skip


def sum_small_blocks(
    kernel: Callable[[Predictions, np.ndarray], Tally],
    batch: Predictions,
    phi: np.ndarray,
    events: int,
) -> Tally:
    """kernel(block, phi) summed over blocks of rows, whose influence stays in the cache."""
    most = max(FEWEST_ROWS if phi.shape[1] else FEWEST_GIVEN, BLOCK_SCORES // events)
    rows = -(-len(batch) // max(1, round(len(batch) / most)))
    parts = np.split(phi, range(rows, len(batch), rows))
    found: Tally = add_up(map(kernel, batch.blocks(rows), parts))
    return found


def through_weights(by_weight: np.ndarray, events: slice, phi: np.ndarray) -> np.ndarray:
    """(E, n) influence by way of the class weights; (E, 0) if these are given."""
    if not phi.shape[1]:
        return np.zeros((events.stop - events.start, 0))
    return np.asarray(by_weight[:, events].T @ phi.T)


def through_weight_sums(batch: Predictions, tables: InfluenceTables, phi: np.ndarray) -> Tally:
    """What estimated weights add to S: sums of X N phi', N = w e / (1 - l), of phi phi' and of phi.

    phi is projected where it has many columns: X N phi' has a row for each knot of each event.
    """
    f = batch.sample_weight
    counted = phi if f is None else phi * batch.squared_frequency[:, None]
    short = tables.project(counted)
    fits, edges = tables.fits, tables.locator.edges
    cross = np.zeros((*fits.coefficients.shape, short.shape[1]))
    w = tables.scaled_weights.values[batch.labels]
    true = true_event(batch, edges.events, edges.which)
    for block in tables.locator.blocks(batch):
        here = block.events
        assert block.bins is not None
        fit = np.stack([fits.value[here], fits.leverage[here]])
        hats = fits.basis.left[here], fits.basis.share[here]
        asked = w, f, fit, SMALLEST_GAP, *hats, short, cross[here]
        add_products(block.score, block.bins, true - block.first, *asked)
    by_label = sum_by_label(batch, phi)
    return Tally(cross=cross, square=counted.T @ phi, phi_by_label=by_label)


class BetweenClasses:
    """Influence by label, for class counts that were fixed by design."""

    def __init__(self, batch: Predictions, tables: InfluenceTables, phi: np.ndarray) -> None:
        self.batch, self.tables, self.phi = batch, tables, phi
        self.noise = np.zeros((*tables.fits.coefficients.shape, batch.n_classes))
        self.squared = np.zeros((batch.n_classes, len(self.noise)))

    def add(self, terms: RowTerms) -> None:
        """Some more events."""
        here, tables = terms.block.events, self.tables
        self.noise[here] = terms.sum_by_label()
        value = terms.squared_influence(tables.own_share)
        if self.phi.shape[1]:
            value += through_weights(tables.gradient_by_weight, here, self.phi)
        self.squared[:, here] = sum_by_label(self.batch, value.T)

    def tally(self) -> dict[str, Any]:
        """Sums over the rows."""
        return {"noise_by_label": self.noise, "squared_by_label": self.squared}


class AbsoluteInfluence:
    """Mean of u with the signs of left-out fits, and the influence on that with all signs.

    A sign changes from -1 to 1 in proportion to the fit where that is within its standard error:
    with a jump at 0 a bin whose fit is close to 0 would count each row against its own residual.
    """

    def __init__(
        self,
        batch: Predictions,
        tables: InfluenceTables,
        phi: np.ndarray,
        signs: SignedResiduals,
        kept: bool,
    ) -> None:
        E = len(signs.mean)
        self.batch, self.phi, self.signs, self.kept = batch, phi, signs, kept
        self.least, self.square, self.total = np.zeros(E), np.zeros(E), np.zeros(len(batch))
        self.by_label = np.zeros((batch.n_classes, E)) if tables.stratified else None

    def add(self, terms: RowTerms) -> None:
        """Some more events; u sign(g) varies with |g| too: labelled rows need no more."""
        here, signs, gap = terms.block.events, self.signs, terms.gap
        without = terms.fitted - (1 - gap) / gap * terms.excess
        without = np.clip(without / terms.block.at_bins(signs.noise), -1.0, 1.0)
        counted = terms.weight * self.batch.frequency
        self.least[here] = (terms.residual * without) @ counted / signs.mass
        value = terms.residual * sign(terms.fitted) - signs.mean[here, None]
        value *= terms.weight / signs.mass
        if self.phi.shape[1]:
            value += through_weights(signs.by_weight, here, self.phi)
        self.square[here] = sum_squares(value, self.batch.sample_weight)
        self.total += np.add.reduce(value, axis=0)
        if self.by_label is not None:
            self.by_label[:, here] = sum_by_label(self.batch, value.T)

    def tally(self) -> dict[str, Any]:
        """Sums over the rows, and the influence of each row if it is kept."""
        found = influence_tally(self.batch, self.square, self.total, self.kept)
        out = {"absolute": found, "least": self.least}
        return out if self.by_label is None else {**out, "absolute_by_label": self.by_label}


@dataclass(frozen=True)
class TargetInfluenceSums:
    """Summand: the target's influence on |a|^2, with signs on mean |g|.

    For curves also its influence on the class weights, if these are estimated. Also the
    sensitivity to drift.
    """

    tables: InfluenceTables
    kept: bool
    signs: SignedResiduals | None = None
    curves: CurveSummand | None = None

    def __call__(self, batch: Predictions) -> Tally:
        phi = self.tables.scaled_weights.target_influence(batch)
        out = sum_small_blocks(self._sum_rows, batch, phi, len(self.tables.fits.value))
        if self.curves is not None and phi.shape[1]:
            out["curves"] = self.curves(batch, phi)
        return out

    def _sum_rows(self, batch: Predictions, phi: np.ndarray) -> Tally:
        tables, fits, m = self.tables, self.tables.fits, self.tables.scaled_weights.sizes[1]
        drift = DriftTerms(batch, tables, self.signs)
        wanted = {"squared": (fits.value**2 - fits.plugin[:, None], tables.gradient_by_weight)}
        if self.signs is not None:
            centred = self.signs.gap - self.signs.mean_gap[:, None]
            wanted["absolute"] = (centred, self.signs.by_weight)
        out = Tally()
        for name, (values, by_weight) in wanted.items():
            square, total, values = np.zeros(len(values)), np.zeros(len(batch)), values / m
            for block in tables.locator.blocks(batch):
                assert block.bins is not None
                here = block.events
                through = through_weights(by_weight, here, phi)
                square[here] = add_target_influence(
                    block.bins, batch.sample_weight, values[here], through, total
                )
                if name == "squared":  # once
                    drift.add(block)
            out[name] = influence_tally(batch, square, total, self.kept)
        out["drift"] = drift.histograms(phi)
        return out


def target_noise(weights: ScaledWeights, batch: Predictions) -> np.ndarray:
    """Sum of phi phi' over rows of the target."""
    phi = weights.target_influence(batch)
    return np.asarray((phi * batch.squared_frequency[:, None]).T @ phi)
