"""How each row moves the fitted residuals of all events.

A source row moves the coordinates a of an event's fit by x_i, a target row by x_j:

    x_i = F w_i e_i / sqrt(1 - l_i) + Gam phi_i / n        x_j = Gam phi_j / m

phi is the influence on the class weights and Gam = sum_i F e_i 1_{y_i}' the slope of a in them.
docs/mathematics.md section 8.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from calshift.binning import BinEdges
from calshift.fits import SMALLEST_GAP, Fit
from calshift.predictions import Predictions
from calshift.weighting import Weighting

MOST_COORDINATES = 256  # of all events together, beyond which |S|^2 is found through a sketch
SKETCH = 64  # random directions: |S|^2 within 3%


@dataclass(frozen=True)
class Moves:
    """The fits of E events as tables by event and bin, on which rows are laid.

    Attributes
    ----------
    edges, fits : of the events
    weighting : class weights and their influence
    labelled : whether the source stands for the target too
    counts : what each class of the source is worth in rows if that was fixed by design, else None
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
    def shortening(self) -> np.ndarray | None:
        """(S, D) random signs by which moves of many weights are shortened, or None for few.

        Products of shortened vectors have the right mean: s' t = E (r's)(r't).
        """
        S = self.by_weight[0].shape[1]
        if S <= MOST_COORDINATES:
            return None
        signs = np.random.default_rng(1).choice([-1.0, 1.0], (S, SKETCH))
        return np.asarray(signs / np.sqrt(SKETCH))

    def shortened(self, moves: np.ndarray) -> np.ndarray:
        """(..., S) moves of the weights in fewer columns, if they are many."""
        return moves if self.shortening is None else np.asarray(moves @ self.shortening)

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
        slack = np.maximum(1 - leverage, SMALLEST_GAP)
        return Rows(where, u, e, w, slack, self.value.size)


@dataclass(frozen=True)
class Rows:
    """Labelled rows under E events, all (rows, E) but w, (rows, 1)."""

    where: np.ndarray  # bin, counted through all events
    residual: np.ndarray  # u
    excess: np.ndarray  # e
    weight: np.ndarray
    slack: np.ndarray  # 1 - l
    bins: int  # of all events together

    @cached_property
    def noise(self) -> np.ndarray:
        """w e / sqrt(1 - l)."""
        return np.asarray(self.weight * self.excess / np.sqrt(self.slack))

    @cached_property
    def left_out(self) -> np.ndarray:
        """w e / (1 - l): by how much the fit moves if the row is left out."""
        return np.asarray(self.weight * self.excess / self.slack)

    @cached_property
    def sparse(self) -> Any:
        """The noise as a sparse matrix, (rows, E B): each row has one cell an event."""
        from scipy.sparse import csr_matrix  # late: importing calshift must be fast

        n, E = self.where.shape
        start = np.arange(0, n * E + 1, E)
        return csr_matrix((self.noise.ravel(), self.where.ravel(), start), (n, self.bins))
