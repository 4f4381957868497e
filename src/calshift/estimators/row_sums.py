"""Sums over rows that fits are made of: the kernels of the first passes. (docs/mathematics.md 4)"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from calshift._core.addable import Tally
from calshift._core.predictions import Predictions
from calshift.binning.edges import BinEdges
from calshift.binning.placement import BinLocator, Tile, tiles, true_event
from calshift.compiled import loops
from calshift.estimators.regression import ResidualRegression, sign

SOURCE_SUMS = ("rows", "usable", "mass", "square", "pull")


@dataclass(frozen=True)
class BinnedRows:
    """Labelled rows under some events: where they lie (E, n), residuals u, weights and counts."""

    tile: Tile
    place: np.ndarray
    residual: np.ndarray
    weight: np.ndarray  # (n,)
    frequency: np.ndarray | None  # (n,)
    width: int  # B

    def by_bin(self, values: np.ndarray | None) -> np.ndarray:
        """(E, B) values (E, n) summed in each bin; None counts rows."""
        first, E = self.tile.first, len(self.residual)
        place = self.place.ravel()
        if first:
            place = place - first * self.width
        flat = None if values is None else np.broadcast_to(values, self.place.shape).ravel()
        return np.bincount(place, flat, E * self.width).reshape(E, self.width)


def binned_rows(
    batch: Predictions, edges: BinEdges, places: BinLocator, w: np.ndarray
) -> Iterator[BinnedRows]:
    """A labelled batch, a few events at a time."""
    weight, true = w[batch.labels], true_event(batch, edges.events, edges.which)
    for tile in tiles(batch, edges.events, edges.which):
        u = np.negative(tile.score, dtype=float)
        here = np.flatnonzero((true >= tile.first) & (true < tile.events.stop))
        u[true[here] - tile.first, here] += 1.0
        yield BinnedRows(tile, places.of(tile), u, weight, batch.sample_weight, edges.max_bins)


@dataclass(frozen=True)
class SourceSums:
    """Kernel: the source's part of `BinSums`, for class weights w."""

    edges: BinEdges
    places: BinLocator
    w: np.ndarray

    def __call__(self, batch: Predictions) -> Tally:
        compiled = loops()
        if compiled is None or self.places.corrections:
            return self._summed(batch)
        edges, true = self.edges, true_event(batch, self.edges.events, self.edges.which)
        out, f = np.zeros((len(SOURCE_SUMS), len(edges), edges.max_bins)), batch.sample_weight
        for lot in self.places.lots(batch, compiled):
            rows = lot.p, lot.columns, lot.bins, true, lot.first, batch.labels
            compiled.sum_source(*rows, self.w, f, out[:, lot.events])
        return Tally(zip(SOURCE_SUMS, out, strict=True))

    def _summed(self, batch: Predictions) -> Tally:
        weight, f = self.w[batch.labels], batch.sample_weight
        counted = weight if f is None else weight * f
        sums = {"rows": f, "mass": counted, "square": counted * weight}
        even, all_used = bool((weight == weight[:1]).all()), bool(weight.all())
        if even:  # then rows tell the others
            sums = {"rows": f}
        elif not all_used:
            sums["usable"] = (weight > 0) * batch.frequency
        shape = len(self.edges), self.edges.max_bins
        out = {name: np.zeros(shape) for name in (*sums, "pull")}
        for rows in binned_rows(batch, self.edges, self.places, self.w):
            for name, values in sums.items():
                out[name][rows.tile.events] = rows.by_bin(values)
            out["pull"][rows.tile.events] = rows.by_bin(rows.residual * counted)
        if even:
            one = float(weight[0])
            out.update(mass=out["rows"] * one, square=out["rows"] * one**2)
        if even or all_used:
            out["usable"] = out["rows"] * float(weight[0] > 0)
        return Tally({name: out[name] for name in SOURCE_SUMS})


@dataclass(frozen=True)
class TargetSums:
    """Kernel: the target's part of `BinSums`."""

    edges: BinEdges
    places: BinLocator

    def __call__(self, batch: Predictions) -> Tally:
        width = self.edges.max_bins
        out = {name: np.zeros((len(self.edges), width)) for name in ("count", "score")}
        f = batch.sample_weight
        for tile in tiles(batch, self.edges.events, self.edges.which):
            place = self.places.of(tile).ravel() - tile.first * width
            size, E = len(tile.score) * width, len(tile.score)
            each = None if f is None else np.tile(f, E)
            score = tile.score.astype(float).ravel()
            score = score if each is None else score * each
            out["count"][tile.events] = np.bincount(place, each, size).reshape(E, width)
            out["score"][tile.events] = np.bincount(place, score, size).reshape(E, width)
        return Tally(out)


@dataclass(frozen=True)
class LabelSums:
    """Kernel: residuals by label, through which class weights move the fits.

    ``excess`` (E, R, S) X' e, and ``signed`` (E, S) u sign(g), by label of the S classes seen.
    """

    edges: BinEdges
    places: BinLocator
    fits: ResidualRegression
    w: np.ndarray
    seen: np.ndarray

    def __call__(self, batch: Predictions) -> Tally:
        layout, S = self.fits.layout, int(self.seen.sum())
        excess = np.zeros((len(self.edges), layout.width, S))
        signed = np.zeros((len(self.edges), S))
        code, f = batch.codes(self.seen), batch.frequency
        g = self.fits.value.ravel()
        for rows in binned_rows(batch, self.edges, self.places, self.w):
            E, first = len(rows.residual), rows.tile.first
            at = g.take(rows.place, mode="clip")
            cell = (rows.place - first * rows.width) * S + code
            e = ((rows.residual - at) * f).ravel()
            by = np.bincount(cell.ravel(), e, E * rows.width * S).reshape(E * rows.width, S)
            X = layout.design[first * rows.width : (first + E) * rows.width]
            columns = slice(first * layout.width, (first + E) * layout.width)
            excess[rows.tile.events] = (X[:, columns].T @ by).reshape(E, layout.width, S)
            label = code + (np.arange(E) * S)[:, None]
            turned = (rows.residual * sign(at) * f).ravel()
            signed[rows.tile.events] = np.bincount(label.ravel(), turned, E * S).reshape(E, S)
        return Tally(excess=excess, signed=signed)
