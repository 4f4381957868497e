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
    assert len(chosen) <= max(hats, 1) or len(t) <= hats
    least = 2 if len(t) <= hats else basis.LEAST_SOURCE
    middle = np.argmin(np.abs(t - (t[0] + t[-1]) / 2))
    if len(chosen) > 2:
        assert chosen[-1] == len(t) - 1
        for a, b in pairwise(chosen):
            # rows are counted from the middle outwards; a knot that stood there and moved to an
            # end for lack of rows beyond it has those on both sides
            between = slice(a if a < middle else a + 1, b if b <= middle else b + 1)
            assert source[between].sum() >= least
            assert target[between].sum() >= basis.LEAST_TARGET
    design = basis.HatBasis.of_hats(t[None], knot).design.toarray()
    np.testing.assert_allclose(design.sum(axis=1), 1)
    assert design.min() >= -1e-12


def test_positions_are_halfway_between_rank_and_arcsin():
    count, score = np.array([6.0, 3.0, 1.0]), np.array([0.0, 0.25, 1.0])
    rank = np.array([0.3, 0.75, 0.95])  # the middle of each bin's ranks
    angle = np.array([0.0, 1 / 3, 1.0])  # arcsin sqrt of the score, over a quarter turn
    found = basis.positions(count[None], score[None])[0]
    np.testing.assert_allclose(found, (rank + angle) / 2)


def test_hats_reproduce_straight_lines():
    t = np.linspace(0, 1, 40)
    knot = np.isin(np.arange(40), [0, 7, 20, 39])
    design = basis.HatBasis.of_hats(t[None], knot[None]).design.toarray()
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


def test_hats_fit_is_weighted_least_squares_with_its_leverages():
    """Against a dense fit on rows, from the matrix formulas of docs/mathematics.md 4."""
    simulation = calshift.simulate.BetaSimulation()
    p, y = simulation.source(400, rng=5)
    q, _ = simulation.target(300, rng=6)
    w_class = simulation.class_weights
    edges = calshift.bin_edges(q, kind="binary")
    sums = calshift.accumulate(p, y, q, edges=edges)
    fit = fits.fit_residuals(bin_sums_of(sums, w_class / w_class.max()), sums.edges)
    design = fit.basis.design.toarray()
    X, Xt = design[edges.locate(0, p)], design[edges.locate(0, q)]
    w, u = w_class[y], y - p
    A, M = X.T @ (w[:, None] * X), Xt.T @ Xt / len(q)
    inverse = np.linalg.inv(A)
    alpha = inverse @ (X.T @ (w * u))
    e = u - X @ alpha
    leverage = w * np.einsum("ni,ij,nj->n", X, inverse, X)
    o = (X * (w * e)[:, None]) @ inverse
    quadratic = np.einsum("ni,ij,nj->n", o, M, o) - 2 * leverage * (o @ M @ alpha)
    expected = alpha @ M @ alpha - (quadratic / (1 - leverage)).sum()
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
