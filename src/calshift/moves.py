"""How each row moves the fitted residuals of all events: kernels to be summed over the rows.

A source row moves the coordinates a of an event's fit by x_i, a target row by x_j:

    x_i = F w_i e_i / sqrt(1 - l_i) + Gam phi_i / n        x_j = Gam phi_j / m

phi is the influence on the class weights and Gam = sum_i F e_i 1_{y_i}' the slope of a in them.
docs/mathematics.md section 8.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from calshift.binning import BinEdges
from calshift.engines import Sums
from calshift.fits import SMALLEST_GAP, Fit
from calshift.influence import Influence
from calshift.predictions import Predictions

MOST_COORDINATES = 256  # of all events together, beyond which |S|^2 is found through a sketch
SKETCH = 64  # random directions: |S|^2 within 3%


@dataclass(frozen=True)
class Weighting:
    """Class weights as the fits use them (largest 1), and how each row moved them."""

    values: np.ndarray  # (K,), 0 for classes that are left out
    seen: np.ndarray  # (K,) bool
    scale: float  # what the weights were divided by
    influence: Influence | None
    sizes: tuple[float, float]  # n, m

    @staticmethod
    def of(
        class_weights: np.ndarray, influence: Influence | None, sizes: tuple[float, float]
    ) -> Weighting:
        """From weights with NaN for classes that are left out."""
        scale = float(np.nanmax(class_weights))
        values = np.nan_to_num(class_weights) / scale
        return Weighting(values, ~np.isnan(class_weights), scale, influence, sizes)

    def source_moves(self, batch: Predictions) -> np.ndarray:
        """(rows, S) by how much each source row moved the weights; (rows, 0) if they are given."""
        if self.influence is None:
            return np.zeros((len(batch), 0))
        return np.asarray(self.influence.source(batch) / (self.scale * self.sizes[0]))

    def target_moves(self, batch: Predictions) -> np.ndarray:
        """(rows, S) by how much each target row moved the weights; (rows, 0) if they are given."""
        if self.influence is None:
            return np.zeros((len(batch), 0))
        return np.asarray(self.influence.target(batch) / (self.scale * self.sizes[1]))


@dataclass(frozen=True)
class Moves:
    """The fits of E events, as tables by event and bin, and the sums over rows made with them.

    Attributes
    ----------
    edges, fits : of the events
    weighting : class weights and their influence
    labelled : whether the source stands for the target too
    counts : rows of each class of the source if they were fixed by design, else None
    """

    edges: BinEdges
    fits: list[Fit]
    weighting: Weighting
    labelled: bool
    counts: np.ndarray | None = None

    def table(self, values: list[np.ndarray]) -> np.ndarray:
        """(E, B, ...) of values (B_c, ...) of each event, padded with 0."""
        out = np.zeros((len(values), self.edges.max_bins, *values[0].shape[1:]))
        for row, value in zip(out, values, strict=True):
            row[: len(value)] = value
        return out

    @cached_property
    def by_weight(self) -> list[np.ndarray]:
        """Gam of each event, (R, S), or (R, 0) if the weights are given."""
        if self.weighting.influence is None:
            return [np.zeros((len(fit.coordinates), 0)) for fit in self.fits]
        K, seen = len(self.weighting.values), self.weighting.seen
        return [
            fit.basis.gathered(fit.cells.by_bin_and_label(fit.excess, K)[:, seen])
            for fit in self.fits
        ]

    @cached_property
    def value(self) -> np.ndarray:
        """(E, B) g."""
        return self.table([fit.value for fit in self.fits])

    @cached_property
    def leverage(self) -> np.ndarray:
        """(E, B) l / w."""
        return self.table([fit.leverage for fit in self.fits])

    @cached_property
    def slope(self) -> np.ndarray:
        """(E, B) 2 F a: how |a|^2 moves with a weighted residual."""
        return self.table([2 * fit.basis.spread(fit.coordinates) for fit in self.fits])

    @cached_property
    def slope_by_weight(self) -> np.ndarray:
        """(S, E) 2 Gam' a."""
        pairs = zip(self.by_weight, self.fits, strict=True)
        return np.stack([2 * gam.T @ fit.coordinates for gam, fit in pairs], axis=1)

    @cached_property
    def exact(self) -> bool:
        """Whether S is kept whole, not sketched."""
        return sum(len(fit.coordinates) for fit in self.fits) <= MOST_COORDINATES

    @cached_property
    def directions(self) -> list[np.ndarray]:
        """(R, D) of each event: unit vectors if coordinates are few, else random signs."""
        ends = np.cumsum([len(fit.coordinates) for fit in self.fits])
        if self.exact:
            turn = np.eye(ends[-1])
        else:
            turn = np.random.default_rng(0).choice([-1.0, 1.0], (ends[-1], SKETCH))
        return np.split(turn, ends[:-1])

    @cached_property
    def sketch(self) -> np.ndarray:
        """(E B, D) F in these directions."""
        pairs = zip(self.fits, self.directions, strict=True)
        tables = self.table([fit.basis.spread(turn) for fit, turn in pairs])
        return tables.reshape(-1, tables.shape[-1])

    @cached_property
    def sketch_by_weight(self) -> np.ndarray:
        """(S, D) Gam in these directions."""
        pairs = zip(self.by_weight, self.directions, strict=True)
        return np.asarray(sum(gam.T @ turn for gam, turn in pairs))

    @cached_property
    def plug(self) -> np.ndarray:
        """(E,) |a|^2, which is the target's mean of g^2."""
        return np.array([fit.coordinates @ fit.coordinates for fit in self.fits])

    def located(self, batch: Predictions) -> np.ndarray:
        """(rows, E) the bin of each row under each event, counted through all events."""
        where = np.empty((len(batch), len(self.fits)), dtype=np.int32)
        for k, event in enumerate(self.edges.which):
            score = self.edges.events.score(batch, event)
            where[:, k] = self.edges.locate(k, score) + k * self.edges.max_bins
        return where

    def residuals(self, batch: Predictions) -> np.ndarray:
        """(rows, E) u, outcome less score."""
        events, stratum = self.edges.events, self.edges.events.stratum(batch)
        u = np.empty((len(batch), len(self.fits)))
        for k, event in enumerate(self.edges.which):
            u[:, k] = events.stratum_outcome(event)[stratum] - events.score(batch, event)
        return u

    def rows(self, batch: Predictions) -> Rows:
        """Labelled rows laid on the tables."""
        where, u = self.located(batch), self.residuals(batch)
        w = self.weighting.values[batch.labels][:, None]
        e = u - self.value.ravel()[where]
        leverage = self.leverage.ravel()[where] * (w * np.minimum(batch.frequency, 1.0)[:, None])
        return Rows(where, u, e, w, np.maximum(1 - leverage, SMALLEST_GAP))

    def source_noise(self, batch: Predictions) -> Sums:
        """What estimated weights add to S: N phi' and phi phi', N = w e / sqrt(1 - l); by label."""
        phi = self.weighting.source_moves(batch)
        counted = phi * batch.squared_frequency[:, None]
        sparse = self._sparse(self.rows(batch))
        return Sums((sparse.T @ counted, counted.T @ phi, self._by_label(batch, phi)))

    def target_noise(self, batch: Predictions) -> np.ndarray:
        """Sum of phi phi' over the target."""
        phi = self.weighting.target_moves(batch)
        return np.asarray((phi * batch.squared_frequency[:, None]).T @ phi)

    def source_sums(self, batch: Predictions, signs: Signs | None) -> Sums:
        """Sums for the law of |a|^2: those of `source_noise`, S in some directions, moves of |a|^2.

        With signs also for the law of mean |g|: the mean with left-out signs, and its moves.
        """
        rows, phi = self.rows(batch), self.weighting.source_moves(batch)
        count, g = batch.squared_frequency[:, None], self.value.ravel()[rows.where]
        sparse, counted = self._sparse(rows), phi * count
        x = sparse @ self.sketch + phi @ self.sketch_by_weight
        moved = rows.noise * self.slope.ravel()[rows.where] + phi @ self.slope_by_weight
        if self.labelled:
            moved += (g**2 - self.plug) / self.weighting.sizes[1]
        sums = (
            sparse.T @ counted, counted.T @ phi, self._by_label(batch, phi),
            x.T @ (x * count), self._by_label(batch, x),
            *_summed(moved, batch), self._by_label(batch, moved),
        )  # fmt: skip
        if signs is None:
            return Sums(sums)
        return Sums((*sums, *self._absolute_sums(batch, rows, phi, g, signs)))

    def _absolute_sums(
        self, batch: Predictions, rows: Rows, phi: np.ndarray, g: np.ndarray, signs: Signs
    ) -> tuple[Any, ...]:
        left_out = np.sign(g - (1 - rows.slack) / rows.slack * rows.excess)
        least = batch.frequency @ (rows.weight * rows.residual * left_out) / signs.mass
        moved = rows.weight * (rows.residual * np.sign(g) - signs.mean) / signs.mass
        moved += phi @ signs.by_weight
        if self.labelled:
            moved += (signs.gap.ravel()[rows.where] - signs.mean_gap) / self.weighting.sizes[1]
        return (least, *_summed(moved, batch), self._by_label(batch, moved))

    def target_sums(self, batch: Predictions, signs: Signs | None) -> Sums:
        """The target's moves of |a|^2, and with signs those of mean |g|."""
        where, phi = self.located(batch), self.weighting.target_moves(batch)
        moved = (self.value.ravel()[where] ** 2 - self.plug) / self.weighting.sizes[1]
        moved += phi @ self.slope_by_weight
        if signs is None:
            return Sums(_summed(moved, batch))
        apart = (signs.gap.ravel()[where] - signs.mean_gap) / self.weighting.sizes[1]
        apart += phi @ signs.by_weight
        return Sums((*_summed(moved, batch), *_summed(apart, batch)))

    def signs(self) -> Signs:
        """sum w u sign(g) / sum w of each event and its slopes, from the cells."""
        K, seen = len(self.weighting.values), self.weighting.seen
        mean, slopes = [], []
        mass = float(sum(self.fits[0].cells.weight * self.fits[0].cells.rows))
        for fit in self.fits:
            cells, sign = fit.cells, np.sign(fit.value[fit.cells.bin])
            mean.append(float(np.sum(cells.weight * cells.residual * sign)) / mass)
            excess = cells.residual * sign - mean[-1] * cells.rows
            slopes.append(np.bincount(cells.label, excess, K)[seen] / mass)
        known = self.weighting.influence is None
        by_weight = np.zeros((0, len(mean))) if known else np.stack(slopes, axis=1)
        return Signs(np.array(mean), mass, by_weight)

    def with_gaps(self, signs: Signs, gaps: list[np.ndarray]) -> Signs:
        """Together with |d| of each bin, freed of all noise."""
        mean = [fit.cells.share @ gap for fit, gap in zip(self.fits, gaps, strict=True)]
        return replace(signs, gap=self.table(gaps), mean_gap=np.array(mean))

    def _by_label(self, batch: Predictions, values: np.ndarray) -> Any:
        """(K, ...) rows of values summed by label, 0 unless class counts were fixed."""
        if self.counts is None:
            return 0.0
        from scipy.sparse import csr_matrix

        n, K = len(batch), len(self.counts)
        one_hot = csr_matrix((batch.frequency, batch.labels, np.arange(n + 1)), (n, K))
        return one_hot.T @ values

    def between(self, fit: Fit, gam: np.ndarray, phi: Any) -> np.ndarray:
        """(R, R) the part of an event's S that lies between classes: absent if counts are fixed.

        ``phi`` are the moves of the weights summed by label.
        """
        assert self.counts is not None
        cells = fit.cells
        noise = cells.weight * fit.excess / np.sqrt(fit.slack)
        moved = fit.basis.gathered(cells.by_bin_and_label(noise, len(self.counts))) + gam @ phi.T
        return np.asarray((moved / np.maximum(self.counts, 1)) @ moved.T)

    def _sparse(self, rows: Rows) -> Any:
        """N as a sparse matrix, (rows, E B): each row has one cell an event."""
        from scipy.sparse import csr_matrix

        n, E = rows.where.shape
        start = np.arange(0, n * E + 1, E)
        shape = (n, E * self.edges.max_bins)
        return csr_matrix((rows.noise.ravel(), rows.where.ravel(), start), shape)


def _summed(moved: np.ndarray, batch: Predictions) -> tuple[np.ndarray, list[np.ndarray]]:
    """Squares of the moves of each event, and the moves of their mean, row by row."""
    count = batch.squared_frequency
    return count @ moved**2, [moved.mean(axis=1) * np.sqrt(count)]


@dataclass(frozen=True)
class Rows:
    """Labelled rows under E events, all (rows, E) but w, (rows, 1)."""

    where: np.ndarray  # bin, counted through all events
    residual: np.ndarray  # u
    excess: np.ndarray  # e
    weight: np.ndarray
    slack: np.ndarray  # 1 - l

    @cached_property
    def noise(self) -> np.ndarray:
        """w e / sqrt(1 - l)."""
        return np.asarray(self.weight * self.excess / np.sqrt(self.slack))


@dataclass(frozen=True)
class Signs:
    """Mean |g| as a weighted mean of u sign(g) over the source.

    Attributes
    ----------
    mean : (E,) sum w u sign(g) / sum w
    mass : sum w
    by_weight : (S, E) how the mean moves with the class weights
    gap, mean_gap : (E, B) |d| freed of noise, and (E,) its mean over the target
    """

    mean: np.ndarray
    mass: float
    by_weight: np.ndarray
    gap: np.ndarray = field(default_factory=lambda: np.zeros(0))
    mean_gap: np.ndarray = field(default_factory=lambda: np.zeros(0))
