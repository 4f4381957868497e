"""Source residuals regressed on a basis of the score, from sums over bins. (docs/mathematics.md 4)

Residuals u = event - score, weighted by w, are fitted by functions X of the score: hats, or
indicators of bins. For every event at once, with A = sum w X X' and M = sum_b P_b X_b X_b',

    V = A^-1 (floored where the source is sparse)    alpha = V sum_i w_i u_i X_i      g = X alpha
    e = u - g                                        l = w X' V X: the leverage of a row
    |a|^2 = alpha' M alpha = sum_b P_b g_b^2
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from calshift._core.linalg import (
    apply_by_width,
    dense_band,
    factor_band,
    group_by_width,
    multiply_band,
    near_diagonal,
)
from calshift.binning.edges import BinEdges, merge_sparse_bins
from calshift.binning.hat_basis import LEAST_ROWS, HatBasis, choose_knots, planned_hats, positions

EIGENVALUE_FLOOR = 0.5  # of A relative to M: where the source is sparser, shrink to no error
SMALLEST_GAP = 0.1  # 1 - l: a row that determines a bin alone has no information on its noise
FEW_ROWS, PARTS = 5.0, 4  # rows below which a part of the scores is sparse, parts of an event
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
    residual : sum of w u
    count, score : the target's rows and their scores
    """

    rows: np.ndarray
    usable: np.ndarray
    mass: np.ndarray
    square: np.ndarray
    residual: np.ndarray
    count: np.ndarray
    score: np.ndarray

    @cached_property
    def share(self) -> np.ndarray:
        """P, the target's share of each bin."""
        return np.asarray(self.count / self.count.sum(axis=1, keepdims=True))

    @cached_property
    def expected_noise(self) -> np.ndarray:
        """The expected sums of w^2 u^2 if the scores are calibrated."""
        score = np.minimum(self.score / np.maximum(self.count, 1e-300), 1.0)
        return np.asarray(self.square * score * (1 - score))


@dataclass(frozen=True)
class ResidualRegression:
    """Fitted residuals of all events.

    Attributes
    ----------
    sums : what they were fitted to
    basis : X
    merged : bins or planned hats that had too few rows of their own
    mean_score : (E, B) the target's mean score in each fine bin, None for plain bins
    """

    sums: BinSums
    basis: HatBasis
    merged: int
    mean_score: np.ndarray | None = None

    @cached_property
    def moments(self) -> tuple[np.ndarray, np.ndarray]:
        """M: its diagonal and the one above, (E, R) each."""
        return self.basis.band(self.sums.share)

    @cached_property
    def root(self) -> tuple[np.ndarray, np.ndarray]:
        """L of M = L L': its diagonal and the one below, (E, R) each."""
        return factor_band(*self.moments, SINGULAR)

    @cached_property
    def inverse(self) -> np.ndarray:
        """V, (E, R, R), or (E, R) where it is diagonal."""
        if self.mean_score is not None:
            return _floored_inverse(self)
        mass = self.basis.project(self.sums.mass)
        return np.asarray(np.divide(1.0, mass, out=np.zeros(mass.shape), where=mass > 0))

    @cached_property
    def coefficients(self) -> np.ndarray:
        """(E, R) alpha."""
        return self.times(self.basis.project(self.sums.residual))

    @cached_property
    def value(self) -> np.ndarray:
        """(E, B) g."""
        return self.basis.evaluate(self.coefficients)

    @cached_property
    def leverage(self) -> np.ndarray:
        """(E, B) l / w."""
        return self.basis.quadratic(*near_diagonal(self.inverse))

    @cached_property
    def gradient(self) -> np.ndarray:
        """(E, B) 2 X V M alpha: the derivative of |a|^2 in a weighted residual."""
        return self.basis.evaluate(2 * self.times(self.weighted_coefficients))

    @cached_property
    def weighted_coefficients(self) -> np.ndarray:
        """(E, R) M alpha."""
        return multiply_band(*self.moments, self.coefficients)

    @cached_property
    def trace_weight(self) -> np.ndarray:
        """(E, B) x' V M V x: what a squared weighted residual adds to the trace of S."""
        if self.inverse.ndim == 2:
            return self.basis.evaluate(self.inverse**2 * self.moments[0])

        def near(main: np.ndarray, above: np.ndarray, V: np.ndarray) -> np.ndarray:
            return np.stack(near_diagonal(V @ multiply_band(main, above, V)), axis=2)

        product = apply_by_width(self.basis.groups, near, *self.moments, self.inverse)
        return self.basis.quadratic(product[..., 0], product[..., 1])

    @cached_property
    def expected_trace(self) -> float:
        """The expected trace of all S if the scores are calibrated."""
        return float((self.sums.expected_noise * self.trace_weight).sum())

    @cached_property
    def plugin(self) -> np.ndarray:
        """(E,) |a|^2, which is the target's mean of g^2."""
        return np.asarray((self.sums.share * self.value**2).sum(axis=1))

    def times(self, vectors: np.ndarray, out: np.ndarray | None = None) -> np.ndarray:
        """V vectors: (E, R) -> (E, R), or (E, R, S) -> (E, R, S), which may be in their place."""
        if self.inverse.ndim == 2:
            shape = self.inverse.shape + (1,) * (vectors.ndim - 2)
            return np.asarray(self.inverse.reshape(shape) * vectors)
        if vectors.ndim == 3:
            found = np.empty(vectors.shape) if out is None else out
            for event, R in enumerate(self.basis.count):  # a few may have many more knots
                found[event, :R] = self.inverse[event, :R, :R] @ vectors[event, :R]
                found[event, R:] = 0.0
            return found
        return np.asarray((self.inverse @ vectors[..., None])[..., 0])

    def covariance(self, mass: np.ndarray) -> np.ndarray:
        """V X' diag(mass) X V: (E, B) -> (E, R, R), or (E, R) where it is diagonal."""
        diagonal, above = self.basis.band(mass)
        if self.inverse.ndim == 2:
            return np.asarray(self.inverse**2 * diagonal)

        def enclose(main: np.ndarray, above: np.ndarray, V: np.ndarray) -> np.ndarray:
            return np.asarray(V @ multiply_band(main, above, V))

        return apply_by_width(self.basis.groups, enclose, diagonal, above, self.inverse)

    def in_root_metric(self, vectors: np.ndarray) -> np.ndarray:
        """L vectors with M = L L', (E, R, D); 0 for knots that an event does not have."""
        main, below = self.root
        vectors = np.where(self.basis.missing[..., None], 0.0, vectors)
        out = main[..., None] * vectors
        out[:, 1:] += below[:, :-1, None] * vectors[:, :-1]
        return np.asarray(out)


def fit_residuals(sums: BinSums, edges: BinEdges) -> ResidualRegression:
    """The regressions of all events held; the scale of the weights does not matter."""
    return _fit_hats(sums, edges) if edges.smooth else _fit_bins(sums, edges.bins)


def _fit_bins(sums: BinSums, bins: np.ndarray) -> ResidualRegression:
    """g_b = sum w u / W_b in each group of bins."""
    pairs = zip(sums.count, sums.usable, bins, strict=True)
    starts = [merge_sparse_bins(count[:b], usable[:b]) for count, usable, b in pairs]
    basis = HatBasis.of_groups(starts, bins)
    return ResidualRegression(sums, basis, int(bins.sum() - basis.count.sum()))


def _fit_hats(sums: BinSums, edges: BinEdges) -> ResidualRegression:
    """Weighted least squares on hats."""
    planned, lower, bins = planned_hats(float(sums.rows[0].sum())), _lowest(sums, edges), edges.bins
    mean = np.where(sums.count > 0, sums.score / np.maximum(sums.count, 1e-300), lower)
    t = positions(sums.count, mean)
    knots = choose_knots(t, sums.rows, sums.count, bins, planned, LEAST_ROWS)
    basis = HatBasis.of_hats(t, knots)
    merged = np.maximum(np.minimum(planned, bins) - basis.count, 0).sum()
    return ResidualRegression(sums, basis, int(merged), mean)


def _lowest(sums: BinSums, edges: BinEdges) -> np.ndarray:
    """(E, B) the lower edge of each bin, if there are bins without a row of the target."""
    lower = np.zeros(sums.count.shape)
    if np.count_nonzero(sums.count) < edges.bins.sum():
        for row, inner in zip(lower, edges.inner, strict=True):
            row[1 : len(inner) + 1] = inner
    return lower


def _floored_inverse(fits: ResidualRegression) -> np.ndarray:
    """(E, R, R) A^-1, with A floored relative to M; 0 for knots that an event does not have.

    Under label shift A / sum w and M are the same matrix in the limit; where the source has far
    less mass than the target, A^-1 would explode on a handful of rows. A / sum w - M / 2 has a
    factor unless it has a negative eigenvalue.
    """
    total, M, missing = fits.sums.mass.sum(axis=1)[:, None], fits.moments, fits.basis.missing
    A = fits.basis.band(fits.sums.mass / total)
    excess = factor_band(A[0] - EIGENVALUE_FLOOR * M[0], A[1] - EIGENVALUE_FLOOR * M[1], 0.0)
    sound = ((np.minimum(excess[0], fits.root[0]) > 0) | missing).all(axis=1)

    def invert(*bands: np.ndarray) -> np.ndarray:
        return np.linalg.inv(dense_band(*bands))

    filled = np.where(missing | ~sound[:, None], 1.0, A[0]), np.where(sound[:, None], A[1], 0.0)
    inverse = apply_by_width(fits.basis.groups, invert, *filled)
    if not sound.all():
        bands, groups = (one[~sound] for one in (*A, *M)), group_by_width(fits.basis.count[~sound])
        inverse[~sound] = 0.0
        found = apply_by_width(groups, _inverse_of_floored, *bands)
        inverse[~sound, : found.shape[1], : found.shape[1]] = found
    inverse[missing] = 0.0  # rows; the columns are 0 already, as the band is
    inverse /= total[..., None]
    return np.asarray(inverse)


def _inverse_of_floored(*bands: np.ndarray) -> np.ndarray:
    """Of A, floored relative to M, in coordinates in which M = 1 and A is diagonal.

    Without the null space of M. ``bands`` (E, R) are the diagonals of both and those above.
    """
    A, M = dense_band(*bands[:2]), dense_band(*bands[2:])
    size, axes = np.linalg.eigh(M)
    seen = size > SINGULAR * size[:, -1:]
    scale = np.where(seen, 1 / np.sqrt(np.where(seen, size, 1.0)), 0.0)
    whiten = axes * scale[:, None, :]
    ratio, rotation = np.linalg.eigh(whiten.transpose(0, 2, 1) @ A @ whiten)
    vectors = whiten @ rotation
    floored = vectors / np.maximum(ratio, EIGENVALUE_FLOOR)[:, None, :]
    return np.asarray(floored @ vectors.transpose(0, 2, 1))


def sign(values: np.ndarray) -> np.ndarray:
    """-1, 0 or 1; a residual of 0 up to rounding has no sign."""
    return np.asarray(np.sign(values) * (np.abs(values) > ROUNDING))


def share_on_few_rows(fits: ResidualRegression) -> tuple[float, float]:
    """Shares of the plug-in error, and of the target's rows, where the source has few rows.

    The scores of each event are cut in parts with about the same share of its error, or of the
    target; the effective sample size of a part is (sum w)^2 / sum w^2.
    """
    sums = fits.sums
    return _sparse_share(sums, sums.share * fits.value**2), target_share_on_few_rows(sums)


def target_share_on_few_rows(sums: BinSums) -> float:
    """The share of the target's rows where the source has few."""
    return _sparse_share(sums, sums.share)


def _sparse_share(sums: BinSums, part: np.ndarray) -> float:
    """The share of the parts (E, B) of a total in which the source has few rows."""
    upto = np.cumsum(part, axis=1)
    whole = upto[:, -1:]
    group = (upto - part / 2) / np.maximum(whole, 1e-300) * PARTS + TIE
    group = np.minimum(group, PARTS - 1).astype(int) + np.arange(len(part))[:, None] * PARTS
    each = (sums.mass, sums.square, part)
    mass, square, inside = (
        np.bincount(group.ravel(), values.ravel(), PARTS * len(part)) for values in each
    )
    few, total = mass**2 < (FEW_ROWS - TIE) * square + (square == 0), float(whole.sum())
    return float(inside[few].sum()) / total if total > 0 else 0.0
