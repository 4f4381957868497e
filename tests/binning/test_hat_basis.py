"""Hats and their knots."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import calshift
from calshift.binning import hat_basis as basis
from calshift.estimators import regression as fits
from calshift.estimators.statistics_sums import bin_sums_of

counts = st.lists(st.tuples(st.integers(0, 30), st.integers(1, 30)), min_size=1, max_size=60)


@given(counts=counts, half=st.integers(1, 10))
@example(counts=[(2, 2), (2, 2), (0, 1), (0, 4)], half=2)
@settings(max_examples=200)
def test_knots_leave_enough_rows_between_them_and_hats_sum_to_one(counts, half):
    hats = 2 * half + 1  # planned hats are odd
    source, target = np.array(counts, dtype=float).T
    t = basis.positions(target[None], np.linspace(0, 1, len(target))[None])[0]
    knot = basis.choose_knots(
        t[None], source[None], target[None], np.array([len(t)]), hats, basis.LEAST_ROWS
    )
    chosen = np.flatnonzero(knot[0])
    assert chosen[0] == 0
    assert (np.diff(chosen) > 0).all()
    # few scores have a knot each if all but the most frequent have enough rows on average
    each = len(t) <= hats or source.sum() - source.max() >= basis.ROWS_A_SCORE * (len(t) - 1)
    assert len(chosen) <= max(hats, 1) or each
    least = 2 if each else basis.LEAST_SOURCE
    middle = np.argmin(np.abs(t - (t[0] + t[-1]) / 2))
    if len(chosen) > 2:
        assert chosen[-1] == len(t) - 1
        for a, b in pairwise(chosen):
            # rows are counted from the middle outwards; a knot that stood there and moved to an
            # end for lack of rows beyond it has those on both sides
            between = slice(a if a < middle else a + 1, b if b <= middle else b + 1)
            assert source[between].sum() >= least
            assert target[between].sum() >= basis.LEAST_TARGET
    design = design_of(basis.HatBasis.of_hats(t[None], knot))
    np.testing.assert_allclose(design.sum(axis=1), 1)
    assert design.min() >= -1e-12


def test_positions_are_halfway_between_rank_and_arcsin():
    count, score = np.array([6.0, 3.0, 1.0]), np.array([0.0, 0.25, 1.0])
    rank = np.array([0.3, 0.75, 0.95])  # the middle of each bin's ranks
    angle = np.array([0.0, 1 / 3, 1.0])  # arcsin sqrt of the score, over a quarter turn
    found = basis.positions(count[None], score[None])[0]
    np.testing.assert_allclose(found, (rank + angle) / 2)


def design_of(hats: basis.HatBasis) -> np.ndarray:
    """(B, R) X of one event, from its values at unit coefficients; its transpose projects rows."""
    bins = hats.left.shape[1]
    X = np.stack([hats.evaluate(one[None])[0] for one in np.eye(hats.width)], axis=1)
    np.testing.assert_allclose(hats.project_rows(slice(0, 1), np.eye(bins))[0], X.T)
    squares, beside = hats.project_bands(slice(0, 1), np.eye(bins))[:, 0]
    np.testing.assert_allclose(squares, X.T**2)
    np.testing.assert_allclose(beside[:-1], X.T[:-1] * X.T[1:])
    return X


def test_hats_reproduce_straight_lines():
    t = np.linspace(0, 1, 40)
    knot = np.isin(np.arange(40), [0, 7, 20, 39])
    design = design_of(basis.HatBasis.of_hats(t[None], knot[None]))
    np.testing.assert_allclose(design @ t[[0, 7, 20, 39]], t)


def test_few_distinct_scores_are_treated_exactly_as_bins():
    rng = np.random.default_rng(3)
    levels = np.array([0.05, 0.3, 0.35, 0.9])
    p, q = rng.choice(levels, 500), rng.choice(levels, 300)
    y = (rng.random(500) < p**1.5).astype(int)
    w = np.array([1.2, 0.7])
    w /= w[y].mean()
    for norm in (1, 2):
        smooth = calshift.target_calibration_error(p, y, q, weights=w, norm=norm)
        bins = calshift.target_calibration_error(
            p, y, q, weights=w, norm=norm, bins=[0.2, 0.32, 0.5]
        )
        assert smooth.estimate == pytest.approx(bins.estimate, rel=1e-9)


def test_few_scores_have_a_knot_each_where_rows_suffice():
    """101 scores are too many; so are scores with fewer than 10 rows but for the most frequent."""
    for scores, rows, knots in ((60, 10, 60), (100, 10, 100), (60, 9, 0), (101, 10, 0)):
        count = np.full((1, scores), float(rows))
        count[0, 3] = 500.0  # does not help the others
        t = basis.positions(count, np.linspace(0, 1, scores)[None])
        every = np.array([scores])
        found = basis.choose_knots(t, count, count, every, 9, basis.LEAST_ROWS)
        assert found.sum() == knots or (knots == 0 and found.sum() <= 9)


def tree(rng, rows, prior, depth=5):
    """Leaves of a tree as scores, none near its neighbours' frequency, and outcomes."""
    leaves = 2**depth
    frequency = np.random.default_rng(7).uniform(0.1, 0.9, leaves)
    size = np.random.default_rng(8).dirichlet(np.full(leaves, 5.0))
    y = (rng.random(rows) < prior).astype(int)
    share = size * np.where(y[:, None], frequency, 1 - frequency)
    share /= share.sum(axis=1, keepdims=True)
    leaf = np.minimum((rng.random(rows)[:, None] > share.cumsum(axis=1)).sum(axis=1), leaves - 1)
    base = size @ frequency  # shares of a population in which the frequencies are these
    odds = frequency / (1 - frequency) * prior / (1 - prior) * (1 - base) / base
    wrong = np.clip(frequency + 0.15 * np.where(np.arange(leaves) % 2, 1, -1), 0.02, 0.98)
    return wrong[leaf], y, (odds / (1 + odds))[leaf] - wrong[leaf]


@pytest.mark.parametrize("depth", [4, 5])
def test_the_error_of_a_trees_scores_has_no_bias(depth):
    """Errors jump from leaf to leaf, which hats over several leaves would miss by half or more.

    60 draws of 4000 : 4000 rows, weights known: the mean is within 4 of its standard errors, beside
    what a target's sample adds to the square of a mean: under 1e-4.
    """
    w, found, truth = np.array([0.6 / 0.5, 0.4 / 0.5]), [], []
    for draw in range(60):
        rng = np.random.default_rng([9, draw])
        p, y, _ = tree(rng, 4000, 0.5, depth)
        q, _, apart = tree(rng, 4000, 0.4, depth)
        found.append(
            calshift.target_calibration_error(
                p, y, q, weights=w / w[y].mean(), check=False, interval=None
            ).estimate
        )
        truth.append(np.mean(apart**2))
    difference = np.subtract(found, truth)
    assert abs(difference.mean()) < 4 * difference.std(ddof=1) / np.sqrt(60) + 1e-4
    assert abs(difference.mean()) < 0.05 * np.mean(truth)


def test_hats_fit_is_weighted_least_squares_with_its_leverages():
    """Against a dense fit on rows, from the matrix formulas of docs/mathematics.md 4."""
    simulation = calshift.simulate.BetaSimulation()
    p, y = simulation.source(400, rng=5)
    q, _ = simulation.target(300, rng=6)
    w_class = simulation.class_weights
    edges = calshift.bin_edges(q, kind="binary")
    sums = calshift.accumulate(p, y, q, edges=edges)
    fit = fits.fit_residuals(bin_sums_of(sums, w_class / w_class.max()), sums.edges)
    design = design_of(fit.basis)
    X, Xt = design[edges.locate(0, p)], design[edges.locate(0, q)]
    w, u = w_class[y], y - p
    A, M = X.T @ (w[:, None] * X), Xt.T @ Xt / len(q)
    inverse = np.linalg.inv(A)
    alpha = inverse @ (X.T @ (w * u))
    e = u - X @ alpha
    leverage = w * np.einsum("ni,ij,nj->n", X, inverse, X)
    o = (X * (w * e)[:, None]) @ inverse
    square = (w * e) ** 2 / (1 - leverage)  # expected square of a weighted residual
    fitted = (X @ inverse @ X.T) ** 2 @ square  # variance of the fit at each row
    each = square * (1 + leverage) - w**2 * fitted
    near = X @ ((X.T @ w**2) / (X.T @ w)) * leverage / w  # of rows with this score
    noise = np.trace(M @ inverse @ (X.T @ (each[:, None] * X)) @ inverse)
    pull = 2 * (leverage - near) / (1 - leverage) @ (o @ M @ alpha)
    expected = alpha @ M @ alpha + pull - noise
    result = calshift.target_calibration_error_from(sums, weights=_fitting(w_class, y))
    # the floor on eigenvalues does not bind here: source and target agree on the mass
    assert result.estimate == pytest.approx(expected, rel=1e-9)


def _fitting(w: np.ndarray, y: np.ndarray) -> np.ndarray:
    """The same weights to scale, which does not matter, without the warning about it."""
    return w / w[y].mean()


def test_the_floor_keeps_a_fit_without_source_rows_from_exploding():
    rng = np.random.default_rng(0)
    p = rng.uniform(0, 0.3, 400)
    y = (rng.random(400) < p).astype(int)
    q = rng.uniform(0, 1, 400)
    result = calshift.target_calibration_error(p, y, q, weights=[1, 1], check=False)
    assert abs(result.estimate) < 0.05
