"""Source residuals regressed on a basis of the score, from sums over bins. (docs/mathematics.md 4)

Residuals u = event - score, weighted by w, are fitted by functions X of the score: hats, or
indicators of bins. For every event at once, with A = sum w X X' and M = sum_b P_b X_b X_b',

    V = A^-1 (floored where the source is thin)      alpha = V sum_i w_i u_i X_i      g = X alpha
    e = u - g                                        l = w X' V X: the leverage of a row
    |a|^2 = alpha' M alpha = sum_b P_b g_b^2
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from calshift.binning.edges import BinEdges, merge_sparse_bins
from calshift.binning.hat_basis import (
    KNOT,
    LEAST_DISTINCT,
    LEAST_SOURCE,
    LEAST_TARGET,
    HatBasis,
    knots,
    planned_hats,
    positions,
)
from calshift.compiled import loops

EIGENVALUE_FLOOR = 0.5  # of A relative to M: where the source is this thin, shrink to no error
SMALLEST_GAP = 0.1  # 1 - l: a row that carries a bin alone says nothing of its noise
FEW_ROWS, PARTS = 5.0, 4  # rows below which a part of the scores is thin, parts of an event
TIE = 1e-9  # of such a part or row: what is nearer to a bound than that is on it
SINGULAR = 1e-12  # of the largest eigenvalue
ROUNDING = 1e-10  # of a mean residual, below which its sign is chance


@dataclass(frozen=True)
class BinSums:
    """Sums over rows by event and bin, all (E, B), padded with 0.

    Attributes
    ----------
    rows, usable : source rows, and those of positive weight
    mass, square : sums of w and w^2
    pull : sum of w u
    count, score : the target's rows and their scores
    """

    rows: np.ndarray
    usable: np.ndarray
    mass: np.ndarray
    square: np.ndarray
    pull: np.ndarray
    count: np.ndarray
    score: np.ndarray

    @cached_property
    def share(self) -> np.ndarray:
        """P, the target's share of each bin."""
        return np.asarray(self.count / self.count.sum(axis=1, keepdims=True))

    @cached_property
    def planned_noise(self) -> np.ndarray:
        """What sums of w^2 u^2 would be if the scores were true."""
        score = np.minimum(self.score / np.maximum(self.count, 1e-300), 1.0)
        return np.asarray(self.square * score * (1 - score))


@dataclass(frozen=True)
class ResidualRegression:
    """Fitted residuals of all events.

    Attributes
    ----------
    sums : what they were fitted to
    layout : the basis X
    inverse : V, (E, R, R), or (E, R) where it is diagonal
    thin : bins or planned hats that had too few rows of their own
    room : (E, B) the target's mean score in each fine bin, None for plain bins
    """

    sums: BinSums
    layout: HatBasis
    inverse: np.ndarray
    merged: int
    room: np.ndarray | None = None

    @cached_property
    def moments(self) -> tuple[np.ndarray, np.ndarray]:
        """M: its diagonal and the one above, (E, R) each."""
        return self.layout.band(self.sums.share)

    @cached_property
    def coefficients(self) -> np.ndarray:
        """(E, R) alpha."""
        return self.times(self.layout.gathered(self.sums.pull))

    @cached_property
    def value(self) -> np.ndarray:
        """(E, B) g."""
        return self.layout.spread(self.coefficients)

    @cached_property
    def leverage(self) -> np.ndarray:
        """(E, B) l / w."""
        return self.layout.quadratic(*near_diagonal(self.inverse))

    @cached_property
    def slope(self) -> np.ndarray:
        """(E, B) 2 X V M alpha: how |a|^2 moves with a weighted residual."""
        pulled = banded_product(*self.moments, self.coefficients)
        return self.layout.spread(2 * self.times(pulled))

    @cached_property
    def energy(self) -> np.ndarray:
        """(E, B) x' V M V x: what a squared weighted residual adds to the trace of S."""
        if self.inverse.ndim == 2:
            return self.layout.spread(self.inverse**2 * self.moments[0])
        product = self.inverse @ banded_rows(*self.moments, self.inverse)
        return self.layout.quadratic(*near_diagonal(product))

    @cached_property
    def planned_trace(self) -> float:
        """The trace of all S, as it would be if the scores were true."""
        return float((self.sums.planned_noise * self.energy).sum())

    @cached_property
    def plug(self) -> np.ndarray:
        """(E,) |a|^2, which is the target's mean of g^2."""
        return np.asarray((self.sums.share * self.value**2).sum(axis=1))

    @cached_property
    def tables(self) -> np.ndarray:
        """(E, B, 4) g, leverage, slope and energy side by side, for loops over rows."""
        return np.stack([self.value, self.leverage, self.slope, self.energy], axis=2)

    def times(self, vectors: np.ndarray) -> np.ndarray:
        """V vectors: (E, R) -> (E, R), or (E, R, S) -> (E, R, S)."""
        if self.inverse.ndim == 2:
            shape = self.inverse.shape + (1,) * (vectors.ndim - 2)
            return np.asarray(self.inverse.reshape(shape) * vectors)
        if vectors.ndim == 3:
            return np.asarray(self.inverse @ vectors)
        return np.asarray((self.inverse @ vectors[..., None])[..., 0])

    def covariance(self, mass: np.ndarray) -> np.ndarray:
        """V X' diag(mass) X V: (E, B) -> (E, R, R), or (E, R) where it is diagonal."""
        compiled, layout = loops(), self.layout
        if compiled is not None and self.inverse.ndim == 3:
            covariance = np.zeros(self.inverse.shape)
            hats = layout.left, layout.share, layout.count
            compiled.covary_hats(self.inverse, *hats, mass, covariance)
            return covariance
        diagonal, above = layout.band(mass)
        if self.inverse.ndim == 2:
            return np.asarray(self.inverse**2 * diagonal)
        return np.asarray(self.inverse @ banded_rows(diagonal, above, self.inverse))

    def directed(self, vectors: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """L vectors with M = L L', 0 for knots that an event lacks, and V L vectors: (E, R, D)."""
        compiled = loops()
        if compiled is not None and self.inverse.ndim == 3:
            out, turned = np.zeros((2, *vectors.shape))
            count = self.layout.count
            compiled.direct_hats(self.inverse, *self.moments, count, SINGULAR, vectors, out, turned)
            return out, turned
        main, below = self._cholesky
        there = np.arange(self.layout.width) < self.layout.count[:, None]
        vectors = vectors * there[..., None]
        out = main[..., None] * vectors
        out[:, 1:] += below[:, :-1, None] * vectors[:, :-1]
        return out, self.times(out)

    @cached_property
    def _cholesky(self) -> tuple[np.ndarray, np.ndarray]:
        """The diagonal of L and the one below it, (E, R) each; M may be singular."""
        diagonal, above = self.moments
        main, below = np.zeros_like(diagonal), np.zeros_like(diagonal)
        rest, least = diagonal[:, 0], SINGULAR * diagonal.max(axis=1)
        for k in range(diagonal.shape[1]):
            main[:, k] = np.sqrt(np.where(rest > least, rest, 0.0))
            safe = np.where(main[:, k] > 0, main[:, k], np.inf)
            below[:, k] = above[:, k] / safe
            if k + 1 < diagonal.shape[1]:
                rest = diagonal[:, k + 1] - below[:, k] ** 2
        return main, below


def near_diagonal(matrices: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The diagonal of matrices (E, R, R) and the one above, (E, R) each; or of diagonals (E, R)."""
    if matrices.ndim == 2:
        return matrices, np.zeros_like(matrices)
    above = np.zeros(matrices.shape[:2])
    above[:, :-1] = np.diagonal(matrices, 1, axis1=1, axis2=2)
    return np.diagonal(matrices, axis1=1, axis2=2), above


def banded_product(diagonal: np.ndarray, above: np.ndarray, vectors: np.ndarray) -> np.ndarray:
    """Tridiagonal matrices times vectors (E, R)."""
    out = diagonal * vectors
    out[:, :-1] += above[:, :-1] * vectors[:, 1:]
    out[:, 1:] += above[:, :-1] * vectors[:, :-1]
    return np.asarray(out)


def banded_rows(diagonal: np.ndarray, above: np.ndarray, matrices: np.ndarray) -> np.ndarray:
    """Tridiagonal matrices times matrices (E, R, S)."""
    out = diagonal[..., None] * matrices
    out[:, :-1] += above[:, :-1, None] * matrices[:, 1:]
    out[:, 1:] += above[:, :-1, None] * matrices[:, :-1]
    return np.asarray(out)


def dense_band(diagonal: np.ndarray, above: np.ndarray) -> np.ndarray:
    """(E, R, R) tridiagonal matrices in full."""
    E, R = diagonal.shape
    dense, at = np.zeros((E, R, R)), np.arange(R)
    dense[:, at, at] = diagonal
    dense[:, at[:-1], at[1:]] = dense[:, at[1:], at[:-1]] = above[:, :-1]
    return dense


def fit_residuals(sums: BinSums, edges: BinEdges) -> ResidualRegression:
    """The fits of all events held; the scale of the weights does not matter."""
    return _on_hats(sums, edges) if edges.smooth else _on_bins(sums, edges.bins)


def _on_bins(sums: BinSums, bins: np.ndarray) -> ResidualRegression:
    """g_b = sum w u / W_b in each group of bins."""
    pairs = zip(sums.count, sums.usable, bins, strict=True)
    starts = [merge_sparse_bins(count[:b], usable[:b]) for count, usable, b in pairs]
    layout = HatBasis.of_groups(starts, bins)
    mass = layout.gathered(sums.mass)
    inverse = np.divide(1.0, mass, out=np.zeros(mass.shape), where=mass > 0)
    return ResidualRegression(sums, layout, inverse, int(bins.sum() - layout.count.sum()))


def _on_hats(sums: BinSums, edges: BinEdges) -> ResidualRegression:
    """Weighted least squares on hats."""
    planned = planned_hats(float(sums.rows[0].sum()))
    layout, mean = _hats(sums, edges, planned)
    inverse = _floored_inverse(layout, sums)
    merged = np.maximum(np.minimum(planned, edges.bins) - layout.count, 0).sum()
    fits = ResidualRegression(sums, layout, inverse, int(merged), mean)
    compiled = loops()
    if compiled is not None:
        _fill(fits, compiled)
    return fits


def _hats(sums: BinSums, edges: BinEdges, planned: int) -> tuple[HatBasis, np.ndarray]:
    """The hats of all events, and the target's mean score in each bin."""
    lower, bins = _lowest(sums, edges), edges.bins
    compiled = loops()
    if compiled is None:
        mean = np.where(sums.count > 0, sums.score / np.maximum(sums.count, 1e-300), lower)
        t = positions(sums.count, mean)
        rows = zip(t, sums.rows, sums.count, bins, strict=True)
        chosen = [knots(at[:b], one[:b], two[:b], planned) for at, one, two, b in rows]
        return HatBasis.of_hats(t, chosen), mean
    mean, share = np.empty((2, *lower.shape))
    left, number = np.empty(lower.shape, KNOT), np.empty(len(lower), np.int64)
    least = (LEAST_DISTINCT, LEAST_SOURCE, LEAST_TARGET)
    asked = sums.count, sums.score, lower, sums.rows, bins, planned, least
    compiled.lay_hats(*asked, mean, left, share, number)
    return HatBasis(left, share, number), mean


def _lowest(sums: BinSums, edges: BinEdges) -> np.ndarray:
    """(E, B) the lower edge of each bin, if there are bins without a row of the target."""
    lower = np.zeros(sums.count.shape)
    if np.count_nonzero(sums.count) < edges.bins.sum():
        for row, inner in zip(lower, edges.inner, strict=True):
            row[1 : len(inner) + 1] = inner
    return lower


def _floored_inverse(layout: HatBasis, sums: BinSums) -> np.ndarray:
    """(E, R, R) A^-1, with A floored relative to M; 0 for knots that an event lacks.

    Under label shift A / sum w and M are the same matrix in the limit; where the source has far
    less mass than the target, A^-1 would blow up on a handful of rows. Whether A / sum w - M / 2
    has a negative eigenvalue is told by the pivots of its elimination.
    """
    compiled = loops()
    inverse = np.zeros((len(layout.count), layout.width, layout.width))
    rest = np.ones(len(inverse), bool)
    if compiled is not None:
        rest = _compiled_inverse(compiled, layout, sums, inverse)
    if rest.any():
        total = sums.mass.sum(axis=1)[:, None]
        A, M = layout.band(sums.mass / total), layout.band(sums.share)
        lacking = np.arange(layout.width) >= layout.count[:, None]
        found = _sound_or_turned((A[0][rest], A[1][rest]), (M[0][rest], M[1][rest]), lacking[rest])
        inverse[rest] = found / total[rest, :, None]
    return inverse


def _compiled_inverse(
    compiled: Any, layout: HatBasis, sums: BinSums, inverse: np.ndarray
) -> np.ndarray:
    """Fills in A^-1, and tells which events are left."""
    whiten, state = np.empty(inverse.shape), np.zeros(len(inverse), np.int64)
    hats = layout.left, layout.share, layout.count
    given = sums.mass, sums.share, EIGENVALUE_FLOOR, SINGULAR
    compiled.invert_hats(*hats, *given, inverse, whiten, state)
    merged = np.flatnonzero(state == 1)
    if len(merged):
        ratio, turn = np.linalg.eigh(inverse[merged])
        basis = whiten[merged].transpose(0, 2, 1) @ turn
        total = sums.mass[merged].sum(axis=1)[:, None]
        floored = basis / (np.maximum(ratio, EIGENVALUE_FLOOR) * total)[:, None, :]
        inverse[merged] = floored @ basis.transpose(0, 2, 1)
    return np.asarray(state == 2)


def _sound_or_turned(
    A: tuple[np.ndarray, np.ndarray], M: tuple[np.ndarray, np.ndarray], lacking: np.ndarray
) -> np.ndarray:
    """(E, R, R) A^-1, floored where A is small beside M."""
    main, beside = (a - EIGENVALUE_FLOOR * m for a, m in zip(A, M, strict=True))
    sound = _least_pivot(main, beside, lacking) > 0
    sound &= _least_pivot(*M, lacking) > SINGULAR * M[0].max(axis=1)
    inverse = np.zeros((*A[0].shape, A[0].shape[1]))
    if sound.any():
        dense = dense_band(np.where(lacking, 1.0, A[0])[sound], A[1][sound])
        inverse[sound] = np.linalg.inv(dense)
    if not sound.all():
        parts = dense_band(A[0][~sound], A[1][~sound]), dense_band(M[0][~sound], M[1][~sound])
        inverse[~sound] = _turned_inverse(*parts)
    inverse[lacking] = 0.0  # rows; the columns are 0 already, as the band is
    return inverse


def _least_pivot(diagonal: np.ndarray, above: np.ndarray, lacking: np.ndarray) -> np.ndarray:
    """(E,) the least pivot in eliminating tridiagonal matrices: positive if they are definite."""
    pivot = least = diagonal[:, 0]
    for k in range(1, diagonal.shape[1]):
        fine = np.where(pivot > 0, pivot, np.inf)
        pivot = diagonal[:, k] - above[:, k - 1] ** 2 / fine
        least = np.where(lacking[:, k], least, np.minimum(least, pivot))
    return np.asarray(least)


def _turned_inverse(A: np.ndarray, M: np.ndarray) -> np.ndarray:
    """In coordinates in which M = 1 and A is diagonal, A floored; without what M does not see."""
    size, axes = np.linalg.eigh(M)
    seen = size > SINGULAR * size[:, -1:]
    scale = np.where(seen, 1 / np.sqrt(np.where(seen, size, 1.0)), 0.0)
    whiten = axes * scale[:, None, :]
    ratio, turn = np.linalg.eigh(whiten.transpose(0, 2, 1) @ A @ whiten)
    basis = whiten @ turn
    floored = basis / np.maximum(ratio, EIGENVALUE_FLOOR)[:, None, :]
    return np.asarray(floored @ basis.transpose(0, 2, 1))


def _fill(fits: ResidualRegression, compiled: Any) -> None:
    """What the properties of the fits would find, in one loop."""
    layout, sums = fits.layout, fits.sums
    (E, B), R = layout.left.shape, layout.width
    moments, coefficients, plug = np.empty((2, E, R)), np.zeros((E, R)), np.empty(E)
    tables = np.empty((E, B, 4))
    hats = fits.inverse, layout.left, layout.share, layout.count
    held = sums.pull, sums.share, sums.square, sums.count, sums.score
    planned = compiled.fit_hats(*hats, *held, moments, coefficients, tables, plug)
    value, leverage, slope, energy = tables.transpose(2, 0, 1)
    fits.__dict__.update(
        moments=tuple(moments), coefficients=coefficients, value=value, leverage=leverage,
        slope=slope, energy=energy, tables=tables, plug=plug, planned_trace=planned,
    )  # fmt: skip


def sign(values: np.ndarray) -> np.ndarray:
    """-1, 0 or 1; what rounding leaves of a residual of 0 has no sign."""
    return np.asarray(np.sign(values) * (np.abs(values) > ROUNDING))


def share_on_few_rows(fits: ResidualRegression) -> tuple[float, float]:
    """Shares of the plug-in error, and of the target's rows, where the source is worth few rows.

    The scores of each event are cut in parts that hold about as much of its error each, or of the
    target; what a part is worth is (sum w)^2 / sum w^2.
    """
    (merged, total), (bare, whole) = _thin_part(fits, True), _thin_part(fits, False)
    return merged / total if total > 0 else 0.0, bare / whole


def _thin_part(fits: ResidualRegression, squared: bool) -> tuple[float, float]:
    """What of the error, or of the target, lies in places with few source rows, and all of it."""
    compiled, sums = loops(), fits.sums
    if compiled is not None:
        rows = sums.mass, sums.square, PARTS, FEW_ROWS, TIE
        merged, whole = compiled.thin_part(sums.share, fits.value, squared, *rows)
        return merged, whole
    part = sums.share * fits.value**2 if squared else sums.share
    upto = np.cumsum(part, axis=1)
    total = np.maximum(upto[:, -1:], 1e-300)
    group = np.minimum((upto - part / 2) / total * PARTS + TIE, PARTS - 1).astype(int)
    group += np.arange(len(part))[:, None] * PARTS
    mass, square, held = (
        np.bincount(group.ravel(), values.ravel(), PARTS * len(part))
        for values in (sums.mass, sums.square, part)
    )
    few = mass**2 < (FEW_ROWS - TIE) * square + (square == 0)
    return float(held[few].sum()), float(upto[:, -1].sum())
