"""Influence of each row on the regression coefficients of all events.

A source row has influence x_i on the coefficients of an event, a target row x_j:

    x_i = V X w_i e_i / sqrt(1 - l_i) + Gam phi_i / n        x_j = Gam phi_j / m

phi is the influence on the class weights and Gam = V sum_i X e_i 1_{y_i}' the derivative of the
coefficients in them. Lengths are taken in M. docs/mathematics.md section 8.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np

from calshift._core.addable import Tally
from calshift._core.linalg import sparse_columns
from calshift._core.predictions import Predictions
from calshift.binning.placement import BinLocator, ScoreBlock
from calshift.estimators.regression import SMALLEST_GAP, ResidualRegression
from calshift.estimators.row_sums import noise_by_group
from calshift.estimators.weight_bias import WeightDraws
from calshift.weights.influence import ScaledWeights

EXACT_WORK = 3e7  # rows times squared coordinates, up to which S of all events is exact
SKETCH = 8  # random directions: |S|^2 of 10 or more events within 2 to 5%
MOST_WEIGHTS = 256  # class weights, above which their influence is projected where it meets bins
PROJECTED = 64


@lru_cache(maxsize=1)
def _random_signs(E: int, R: int) -> np.ndarray:
    """(E, R, D) random signs, the same every time."""
    return 2.0 * np.random.default_rng(0).integers(0, 2, (E, R, SKETCH), np.int8) - 1.0


@dataclass(frozen=True)
class GroupSums:
    """Sums of `SourceSumsByGroup`, weights (G,) of the groups, and the group (K,) of each class."""

    sums: Tally
    weights: np.ndarray
    group: np.ndarray

    def lines(self, fits: ResidualRegression, own: float) -> np.ndarray:
        """(4, E, B G) a, b, c, d of each bin and group.

        The influence of a row on |a|^2 is a u + b, and w e / sqrt(1 - l) is c u + d.
        """
        g, w = fits.value[..., None], self.weights
        gap = np.maximum(1 - fits.leverage[..., None] * w, SMALLEST_GAP)
        slope, pull = fits.gradient[..., None] * (w / gap), w / np.sqrt(gap)
        offset = own * (g**2 - fits.plugin[:, None, None]) - slope * g
        return np.stack([slope, offset, pull, -pull * g]).reshape(4, len(g), -1)


@dataclass(frozen=True)
class InfluenceTables:
    """The regressions of E events, and derivatives by which rows influence them.

    Attributes
    ----------
    fits : the regressions
    scaled_weights : class weights and their influence functions
    locator : of the scores of rows in bins
    labelled : whether the source is the target too
    rows : of the source, or its size if that is more
    counts : (K,) effective sizes of the source's classes
    by_weight : (E, R, S) Gam of the classes seen, or (E, R, 0) if the weights are given
    stratified : whether the sizes are fixed by design
    by_group : sums over the source by groups of classes with equal weights; None if these are
        too many, or rows count less than one
    weight_draws : what drawn class weights change, or None
    """

    fits: ResidualRegression
    scaled_weights: ScaledWeights
    locator: BinLocator
    labelled: bool
    rows: float
    counts: np.ndarray
    by_weight: np.ndarray
    stratified: bool = False
    by_group: GroupSums | None = None
    weight_draws: WeightDraws | None = None

    @cached_property
    def gradient_by_weight(self) -> np.ndarray:
        """(S, E) 2 Gam' M alpha."""
        by = self.fits.weighted_coefficients[:, None] @ self.by_weight  # (E, 1, S)
        return np.asarray(2 * by[:, 0].T)

    @cached_property
    def lines(self) -> np.ndarray | None:
        """(4, E, B G) what `GroupSums` says of the influence of rows, if there are such sums."""
        return None if self.by_group is None else self.by_group.lines(self.fits, self.own_share)

    def noise_sums(self, sums: Tally) -> np.ndarray:
        """(4, E, B) for `regression_noise`; ``sums`` over rows have them if groups do not."""
        if self.by_group is None:
            return np.asarray(sums["noise"])
        return noise_by_group(self.by_group.sums, self.fits, self.by_group.weights)

    @property
    def own_share(self) -> float:
        """1 / m where the source is the target too, else 0."""
        return 1 / self.scaled_weights.sizes[1] if self.labelled else 0.0

    @cached_property
    def exact(self) -> bool:
        """Whether S of all events together is exact, not sketched."""
        coordinates = float(self.fits.basis.count.sum())
        return self.rows * coordinates**2 <= EXACT_WORK

    @cached_property
    def single(self) -> bool:
        """Whether there is only one event."""
        return len(self.fits.coefficients) == 1

    @cached_property
    def directions(self) -> np.ndarray:
        """(E, R, D) unit vectors in which M = 1 if coordinates are few, else random signs."""
        missing = self.fits.basis.missing
        if not self.exact:
            return self.fits.in_root_metric(_random_signs(*missing.shape))
        event, knot = np.nonzero(~missing)
        unit = np.zeros((*missing.shape, len(event)))
        unit[event, knot, np.arange(len(event))] = 1.0
        return self.fits.in_root_metric(unit)

    @cached_property
    def sketch(self) -> np.ndarray:
        """(E, B, D) X V in these directions, or D = 0 for a single event."""
        if self.single:
            return np.zeros((*self.fits.value.shape, 0))
        return self.fits.basis.evaluate(self.fits.times(self.directions))

    @cached_property
    def sketch_by_weight(self) -> np.ndarray:
        """(S, D) Gam in these directions."""
        if not self.by_weight.shape[2] or self.single:
            return np.zeros((self.by_weight.shape[2], self.sketch.shape[2]))
        S, D = self.by_weight.shape[2], self.directions.shape[2]
        return np.asarray(self.by_weight.reshape(-1, S).T @ self.directions.reshape(-1, D))

    @cached_property
    def projection(self) -> np.ndarray | None:
        """(S, D) random signs on which the influence of many weights is projected, or None.

        Products of projected vectors have the right mean: s' t = E (r's)(r't).
        """
        S = self.by_weight.shape[2]
        if S <= MOST_WEIGHTS:
            return None
        signs = np.random.default_rng(1).choice([-1.0, 1.0], (S, PROJECTED))
        return np.asarray(signs / np.sqrt(PROJECTED))

    def project(self, influence: np.ndarray) -> np.ndarray:
        """(..., S) influence on the weights in fewer columns, if there are many."""
        return influence if self.projection is None else np.asarray(influence @ self.projection)


@dataclass(frozen=True)
class RowTerms:
    """Labelled rows of some events: all (E, n), of residuals u and class weights w (n,)."""

    block: ScoreBlock
    residual: np.ndarray
    batch: Predictions
    fits: ResidualRegression
    weight: np.ndarray

    @cached_property
    def fitted(self) -> np.ndarray:
        """g."""
        return self.block.at_bins(self.fits.value)

    @cached_property
    def excess(self) -> np.ndarray:
        """e = u - g."""
        return np.asarray(self.residual - self.fitted)

    @cached_property
    def gap(self) -> np.ndarray:
        """1 - l; a frequency weight below 1 makes less than one observation."""
        f, w = self.batch.sample_weight, self.weight
        leverage = self.block.at_bins(self.fits.leverage)
        leverage *= w if f is None else w * np.minimum(f, 1.0)
        return np.asarray(np.maximum(1 - leverage, SMALLEST_GAP))

    @cached_property
    def noise(self) -> np.ndarray:
        """w e / sqrt(1 - l)."""
        return np.asarray(self.excess * self.weight / np.sqrt(self.gap))

    def squared_influence(self, own: float) -> np.ndarray:
        """w e / (1 - l) times the gradient of |a|^2, and the row's own part in it as a target."""
        value = self.excess * self.weight / self.gap * self.block.at_bins(self.fits.gradient)
        if own:
            value += own * (self.fitted**2 - self.fits.plugin[self.block.events, None])
        return np.asarray(value)

    def sum_by_label(self) -> np.ndarray:
        """(E, R, K) X' noise, summed by label."""
        K, block = self.batch.n_classes, self.block
        cell, size = block.place * K + self.batch.labels, len(self.noise) * block.width
        counted = (self.noise * self.batch.frequency).ravel()
        sums = np.bincount(cell.ravel(), counted, size * K).reshape(size, K)
        return self.fits.basis.project_rows(block.events, sums)


def sum_by_label(batch: Predictions, values: np.ndarray) -> np.ndarray:
    """(K, ...) rows of values summed by label."""
    starts = np.arange(len(batch) + 1)
    return np.asarray(
        sparse_columns(batch.frequency, batch.labels, starts, batch.n_classes) @ values
    )
