"""Rows laid on the fits of all events, and sums of how they moved the errors.

Each class below gathers one thing over the events of a batch, a tile of events at a time; the
kernels at the end gather several. docs/mathematics.md section 8.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Protocol

import numpy as np

from calshift._core.addable import Tally
from calshift._core.predictions import Predictions
from calshift.binning.placement import LOT_EVENTS, tiles, true_event
from calshift.compiled import loops
from calshift.estimators.regression import (
    ROUNDING,
    SMALLEST_GAP,
    ResidualRegression,
    near_diagonal,
    sign,
)
from calshift.estimators.row_sums import BinnedRows, binned_rows
from calshift.inference.row_influence import InfluenceTables

SPARSE = 8  # rows to one that matters, from which only those are worked on


@dataclass(frozen=True)
class Signs:
    """Mean |g| as a weighted mean of u sign(g) over the source.

    Attributes
    ----------
    mean : (E,) sum w u sign(g) / sum w
    mass : sum w
    by_weight : (S, E) how the mean moves with the class weights
    noise : (E, B) standard error of g, within which a sign counts in part
    gap, mean_gap : (E, B) |d| freed of noise, and (E,) its mean over the target
    """

    mean: np.ndarray
    mass: float
    by_weight: np.ndarray
    noise: np.ndarray
    gap: np.ndarray = field(default_factory=lambda: np.zeros(0))
    mean_gap: np.ndarray = field(default_factory=lambda: np.zeros(0))

    @staticmethod
    def of(
        fits: ResidualRegression, signed: np.ndarray | None, counts: np.ndarray, part: float
    ) -> Signs:
        """From the fits; ``signed`` (E, S) has u sign(g) by label, if weights were estimated.

        ``part`` is what a row counts in sums of squares: less than 1 if it stands for less.
        """
        mass = float(fits.sums.mass[0].sum())
        mean = (fits.sums.pull * sign(fits.value)).sum(axis=1) / mass
        noise = np.sqrt(np.maximum(_planned_noise(fits) * part, ROUNDING**2))
        if signed is None:
            return Signs(mean, mass, np.zeros((0, len(mean))), noise)
        return Signs(mean, mass, (signed - np.outer(mean, counts)).T / mass, noise)

    def with_gaps(self, fits: ResidualRegression, gaps: np.ndarray) -> Signs:
        """Together with |d| of each bin, freed of all noise."""
        return replace(self, gap=gaps, mean_gap=(fits.sums.share * gaps).sum(axis=1))


def _planned_noise(fits: ResidualRegression) -> np.ndarray:
    """(E, B) the variance that g would have if the scores were true."""
    return fits.layout.quadratic(*near_diagonal(fits.covariance(fits.sums.planned_noise)))


@dataclass(frozen=True)
class RowTerms:
    """Labelled rows of some events on the fits: all (E, n)."""

    rows: BinnedRows
    batch: Predictions
    moves: InfluenceTables

    def of_bins(self, values: np.ndarray) -> np.ndarray:
        """Values (E, B) of the bins in which the rows lie."""
        return np.asarray(values.ravel().take(self.rows.place, mode="clip"))

    @cached_property
    def fitted(self) -> np.ndarray:
        """g."""
        return self.of_bins(self.moves.fits.value)

    @cached_property
    def excess(self) -> np.ndarray:
        """e."""
        return np.asarray(self.rows.residual - self.fitted)

    @cached_property
    def leverage(self) -> np.ndarray:
        """l; a frequency weight below 1 makes less than one observation."""
        w = self.rows.weight
        part = w if self.rows.frequency is None else w * np.minimum(self.rows.frequency, 1.0)
        found = self.of_bins(self.moves.fits.leverage)
        found *= part
        return found

    @cached_property
    def slack(self) -> np.ndarray:
        """1 - l."""
        left = 1 - self.leverage
        return np.asarray(np.maximum(left, SMALLEST_GAP, out=left))

    @cached_property
    def pulled(self) -> np.ndarray:
        """w e."""
        return np.asarray(self.excess * self.rows.weight)

    @cached_property
    def left_out(self) -> np.ndarray:
        """w e / (1 - l): by how much the fit moves if the row is left out."""
        return np.asarray(self.pulled / self.slack)

    @cached_property
    def noise(self) -> np.ndarray:
        """w e / sqrt(1 - l)."""
        return np.asarray(self.pulled / np.sqrt(self.slack))

    @cached_property
    def squared_noise(self) -> np.ndarray:
        """w^2 e^2 / (1 - l), as often as the row counts in a sum of squares."""
        squared = np.asarray(self.pulled * self.left_out)
        return (
            squared
            if self.rows.frequency is None
            else np.asarray(squared * self.batch.squared_frequency)
        )

    @cached_property
    def slope(self) -> np.ndarray:
        """How |a|^2 moves with a weighted residual."""
        return self.of_bins(self.moves.fits.slope)

    @cached_property
    def energy(self) -> np.ndarray:
        """What a squared weighted residual adds to the trace of S."""
        return self.of_bins(self.moves.fits.energy)


class Part(Protocol):
    """One thing that is gathered over the events of a batch."""

    def add(self, rows: RowTerms) -> None:
        """Some more events."""

    def tally(self) -> dict[str, Any]:
        """Sums over the rows, by name."""


class Noise:
    """(E, B) sums of w^2 e^2 / (1 - l), and of l w e / (1 - l): the bias of a ratio."""

    def __init__(self, batch: Predictions, moves: InfluenceTables) -> None:
        self.noise, self.tilt = (np.zeros(moves.fits.value.shape) for _ in range(2))

    def add(self, rows: RowTerms) -> None:
        """Some more events."""
        here, f = rows.rows.tile.events, rows.rows.frequency
        tilt = rows.left_out * rows.leverage
        self.noise[here] = rows.rows.by_bin(rows.squared_noise)
        self.tilt[here] = rows.rows.by_bin(tilt if f is None else tilt * f)

    def tally(self) -> dict[str, Any]:
        """Sums over the rows."""
        return {"noise": self.noise, "tilt": self.tilt}


class ThroughWeights:
    """What estimated weights add to S: sums of X N phi', N = w e / sqrt(1 - l), and of phi phi'.

    phi is shortened where it is long, since X N phi' has a row for each knot of each event.
    """

    def __init__(self, batch: Predictions, moves: InfluenceTables, phi: np.ndarray) -> None:
        counted = phi * batch.squared_frequency[:, None]
        self.square, self.short = counted.T @ phi, moves.shortened(counted)
        layout = moves.fits.layout
        self.cross = np.zeros((len(layout.count), layout.width, self.short.shape[1]))

    def add(self, rows: RowTerms) -> None:
        """Some more events."""
        here, width = rows.rows.tile.events, self.cross.shape[1]
        design = rows.moves.fits.layout.design
        by_place = _sparse(rows.noise, rows.rows.place, design.shape[0])
        first, last = here.start * rows.rows.width, here.stop * rows.rows.width
        sums = by_place.T[first:last] @ self.short
        X = design[first:last, here.start * width : here.stop * width]
        self.cross[here] = (X.T @ sums).reshape(-1, width, sums.shape[1])

    def tally(self) -> dict[str, Any]:
        """Sums over the rows."""
        return {"cross": self.cross, "square": self.square}


class Between:
    """Moves by label, for class counts that were fixed by design."""

    def __init__(self, batch: Predictions, moves: InfluenceTables, phi: np.ndarray) -> None:
        layout = moves.fits.layout
        self.phi = by_label(batch, moves, phi)
        self.noise = np.zeros((len(layout.count), layout.width, len(self.phi)))

    def add(self, rows: RowTerms) -> None:
        """Some more events."""
        here, K, inner = rows.rows.tile.events, len(self.phi), rows.rows
        layout, width = rows.moves.fits.layout, rows.moves.fits.layout.width
        first, E = here.start * inner.width, len(rows.noise)
        cell = (inner.place - first) * K + rows.batch.labels
        counted = (rows.noise * rows.batch.frequency).ravel()
        sums = np.bincount(cell.ravel(), counted, E * inner.width * K).reshape(-1, K)
        X = layout.design[first : first + len(sums), here.start * width : here.stop * width]
        self.noise[here] = (X.T @ sums).reshape(E, width, K)

    def tally(self) -> dict[str, Any]:
        """Sums over the rows."""
        return {"noise_by_label": self.noise, "phi_by_label": self.phi}


class Sketch:
    """S of all events together, in some directions.

    ``threshold`` is what a row must add to the trace of S through one event to be worked on: what
    is left out adds up to a small part of it, and spares the many scores near 0.
    """

    def __init__(
        self, batch: Predictions, moves: InfluenceTables, phi: np.ndarray, threshold: float
    ) -> None:
        self.batch, self.moves, self.threshold = batch, moves, threshold
        self.x = phi @ moves.sketch_by_weight

    def add(self, rows: RowTerms) -> None:
        """Some more events."""
        Z, place = self.moves.sketch, rows.rows.place
        matters = rows.squared_noise * rows.energy > self.threshold
        if np.count_nonzero(matters) * SPARSE > matters.size:
            self.x += _sparse(rows.noise * matters, place, len(Z)) @ Z
            return
        for k, these in enumerate(matters):
            row = np.flatnonzero(these)
            size = rows.pulled[k, row] / np.sqrt(rows.slack[k, row])
            self.x[row] += size[:, None] * Z[place[k, row]]

    def tally(self) -> dict[str, Any]:
        """Sums over the rows."""
        out = {"whole": self.x.T @ (self.x * self.batch.squared_frequency[:, None])}
        if self.moves.counts is not None:
            out["whole_by_label"] = by_label(self.batch, self.moves, self.x)
        return out


class ErrorInfluence:
    """Squares of the moves of each event, and of the moves of their mean."""

    def __init__(self, name: str, batch: Predictions, moves: InfluenceTables, kept: bool) -> None:
        E = len(moves.fits.value)
        self.name, self.batch, self.moves, self.kept = name, batch, moves, kept
        self.variance, self.sum = np.zeros(E), np.zeros(len(batch))
        labelled = moves.counts is not None and batch.y is not None
        self.by_label = np.zeros((batch.n_classes, E)) if labelled else None

    def put(self, here: slice, moved: np.ndarray) -> None:
        """Moves (E, n) of some events."""
        if self.batch.sample_weight is None:
            self.variance[here] = np.einsum("en,en->e", moved, moved)
        else:
            self.variance[here] = moved**2 @ self.batch.squared_frequency
        self.sum += np.add.reduce(moved, axis=0)
        if self.by_label is not None:
            self.by_label[:, here] = by_label(self.batch, self.moves, moved.T)

    def tally(self) -> dict[str, Any]:
        """Sums over the rows, and the moves of each row if they are kept."""
        mean = self.sum
        mean /= len(self.variance)
        if self.batch.sample_weight is not None:
            mean *= np.sqrt(self.batch.squared_frequency)
        out = Tally(variance=self.variance, mean=float(mean @ mean), rows=[mean] * self.kept)
        if self.by_label is not None:
            out["by_label"] = self.by_label
        return {self.name: out}


class Squared(ErrorInfluence):
    """The source's moves of |a|^2."""

    def __init__(
        self, batch: Predictions, moves: InfluenceTables, phi: np.ndarray, kept: bool
    ) -> None:
        super().__init__("squared", batch, moves, kept)
        self.phi = phi

    def add(self, rows: RowTerms) -> None:
        """Some more events."""
        here, moves = rows.rows.tile.events, self.moves
        moved = rows.left_out * rows.slope
        if self.phi.shape[1]:
            moved += moves.slope_by_weight[:, here].T @ self.phi.T
        if moves.labelled:
            moved += (rows.fitted**2 - moves.fits.plug[here, None]) / moves.scaled_weights.sizes[1]
        self.put(here, moved)


class Absolute(ErrorInfluence):
    """Mean of u with the signs of left-out fits, and the moves of that with all signs.

    A sign turns from -1 to 1 in proportion to the fit where that is within its standard error:
    with a leap at 0 a bin whose fit is next to it would count each row against its own residual.
    """

    def __init__(
        self, batch: Predictions, moves: InfluenceTables, phi: np.ndarray, kept: bool, signs: Signs
    ) -> None:
        super().__init__("absolute", batch, moves, kept)
        self.phi, self.signs, self.least = phi, signs, np.zeros(len(moves.fits.value))

    def add(self, rows: RowTerms) -> None:
        """Some more events; u sign(g) varies with |g| too: labelled rows need no more."""
        here, inner, signs = rows.rows.tile.events, rows.rows, self.signs
        without = rows.fitted - (1 - rows.slack) / rows.slack * rows.excess
        without = np.clip(without / rows.of_bins(signs.noise), -1.0, 1.0)
        counted = inner.weight * self.batch.frequency
        self.least[here] = (inner.residual * without) @ counted / signs.mass
        moved = inner.residual * sign(rows.fitted) - signs.mean[here, None]
        moved *= inner.weight / signs.mass
        if self.phi.shape[1]:
            moved += signs.by_weight[:, here].T @ self.phi.T
        self.put(here, moved)

    def tally(self) -> dict[str, Any]:
        """Sums over the rows, and the moves of each row if they are kept."""
        return {**super().tally(), "least": self.least}


@dataclass(frozen=True)
class SourceInfluenceSums:
    """Kernel: the noise of the fits and, for an interval, S and the moves of the errors."""

    moves: InfluenceTables
    interval: bool = False
    kept: bool = False
    threshold: float = 0.0
    signs: Signs | None = None

    def __call__(self, batch: Predictions) -> Tally:
        compiled, moves = loops(), self.moves
        known = (
            moves.scaled_weights.influence is None and moves.counts is None and self.signs is None
        )
        if compiled is not None and known and self.interval and not moves.places.corrections:
            return self._looped(batch, compiled)
        phi = self.moves.scaled_weights.source_influence(batch)
        parts = self._parts(batch, phi)
        w = self.moves.scaled_weights.values
        for rows in binned_rows(batch, self.moves.edges, self.moves.places, w):
            terms = RowTerms(rows, batch, self.moves)
            for part in parts:
                part.add(terms)
        return Tally({name: value for part in parts for name, value in part.tally().items()})

    def _looped(self, batch: Predictions, compiled: Any) -> Tally:
        """The same with given weights and norm 2, in compiled loops."""
        moves, fits, edges, n = self.moves, self.moves.fits, self.moves.edges, len(batch)
        squared = ErrorInfluence("squared", batch, moves, self.kept)
        noise, layout = np.zeros((*fits.value.shape, 2)), fits.layout
        turned = _in_lanes(moves, compiled.LANES)
        E, _, D = turned.shape
        at_once = E <= LOT_EVENTS and D <= compiled.LANES
        x, whole = np.zeros((min(compiled.STEP, n) if at_once else n, D)), np.zeros((D, D))
        true = true_event(batch, edges.events, edges.which)
        own = 1 / moves.scaled_weights.sizes[1] if moves.labelled else 0.0
        for lot in moves.places.lots(batch, compiled):
            here = lot.events
            compiled.move_source(
                lot.p, lot.columns, lot.bins, true, lot.first, batch.labels,
                moves.scaled_weights.values, batch.sample_weight,
                fits.tables[here], fits.plug[here], own,
                turned[here], layout.left[here], layout.share[here], self.threshold, SMALLEST_GAP,
                noise[here], squared.variance[here], squared.sum, x, whole,
            )  # fmt: skip
        out = Tally(noise=noise[..., 0], tilt=noise[..., 1], **squared.tally())
        if moves.alone:
            return out
        if len(x) == n:
            weighed = batch.sample_weight is not None
            whole = x.T @ (x * batch.squared_frequency[:, None] if weighed else x)
        out["whole"] = whole[: moves.turned.shape[2], : moves.turned.shape[2]]
        return out

    def _parts(self, batch: Predictions, phi: np.ndarray) -> list[Part]:
        moves = self.moves
        parts: list[Part] = [Noise(batch, moves)]
        if phi.shape[1]:
            parts.append(ThroughWeights(batch, moves, phi))
        if moves.counts is not None:
            parts.append(Between(batch, moves, phi))
        if self.interval and not moves.alone:
            parts.append(Sketch(batch, moves, phi, self.threshold))
        if self.interval:
            parts.append(Squared(batch, moves, phi, self.kept))
        if self.signs is not None:
            parts.append(Absolute(batch, moves, phi, self.kept, self.signs))
        return parts


@dataclass(frozen=True)
class TargetInfluenceSums:
    """Kernel: the target's moves of |a|^2, and with signs those of mean |g|."""

    moves: InfluenceTables
    kept: bool
    signs: Signs | None = None

    def __call__(self, batch: Predictions) -> Tally:
        compiled, moves, signs = loops(), self.moves, self.signs
        given = moves.scaled_weights.influence is None and signs is None
        if compiled is not None and given and not moves.places.corrections:
            return self._looped(batch, compiled)
        phi = self.moves.scaled_weights.target_influence(batch)
        fits, m = moves.fits, moves.scaled_weights.sizes[1]
        tables = {"squared": (fits.value**2 - fits.plug[:, None], moves.slope_by_weight)}
        if signs is not None:
            tables["absolute"] = (signs.gap - signs.mean_gap[:, None], signs.by_weight)
        parts = {name: ErrorInfluence(name, batch, moves, self.kept) for name in tables}
        for tile in tiles(batch, moves.edges.events, moves.edges.which):
            place, here = moves.places.of(tile), tile.events
            for name, (values, by_weight) in tables.items():
                moved = (values / m).ravel().take(place, mode="clip")
                if phi.shape[1]:
                    moved += by_weight[:, here].T @ phi.T
                parts[name].put(here, moved)
        return Tally({k: v for part in parts.values() for k, v in part.tally().items()})

    def _looped(self, batch: Predictions, compiled: Any) -> Tally:
        moves, f = self.moves, batch.sample_weight
        squared = ErrorInfluence("squared", batch, moves, self.kept)
        values = moves.fits.value**2 - moves.fits.plug[:, None]
        values /= moves.scaled_weights.sizes[1]
        for lot in moves.places.lots(batch, compiled):
            here = lot.events
            compiled.move_target(lot.bins, f, values[here], squared.variance[here], squared.sum)
        return Tally(squared.tally())


@dataclass(frozen=True)
class TargetNoise:
    """Kernel: sum of phi phi' over the target."""

    moves: InfluenceTables

    def __call__(self, batch: Predictions) -> np.ndarray:
        phi = self.moves.scaled_weights.target_influence(batch)
        return np.asarray((phi * batch.squared_frequency[:, None]).T @ phi)


def _in_lanes(moves: InfluenceTables, lanes: int) -> np.ndarray:
    """(E, R, D) V in the directions of the sketch, none if they share nothing; D in lanes."""
    if moves.alone:
        return np.zeros((*moves.fits.coefficients.shape, 0))
    turned = moves.turned
    more = -turned.shape[2] % lanes
    return np.pad(turned, ((0, 0), (0, 0), (0, more))) if more else turned


def by_label(batch: Predictions, moves: InfluenceTables, values: np.ndarray) -> np.ndarray:
    """(K, ...) rows of values summed by label."""
    from scipy.sparse import csr_matrix  # late: importing calshift must be fast

    n = len(batch)
    shape = (n, batch.n_classes)
    return np.asarray(
        csr_matrix((batch.frequency, batch.labels, np.arange(n + 1)), shape).T @ values
    )


def _sparse(values: np.ndarray, place: np.ndarray, width: int) -> Any:
    """(n, width) sparse: each row has one value an event, of (E, n)."""
    from scipy.sparse import csr_matrix

    E, n = values.shape
    start = np.arange(0, n * E + 1, E)
    return csr_matrix((values.T.ravel(), place.T.ravel(), start), (n, width))
