"""The binning kernel on the simplex: its cells, and estimators on them from their definitions."""

from __future__ import annotations

import numpy as np
import pytest

import calshift
from calshift import Predictions
from calshift.binning.simplex_cells import planned_cells, split_simplex
from calshift.simulate import BetaSimulation, GaussianSimulation

# of class weights that are round numbers
pytestmark = pytest.mark.filterwarnings("ignore:the weights do not fit the source")

CELLS = {"kind": "canonical", "kernel": "binning"}
ESTIMATORS = ("debiased", "plugin", "paper")


def sample(K=3, n=400, m=300, seed=1, digits=None):
    model = GaussianSimulation(n_classes=K, dimensions=3, seed=2, imbalance=4)
    p, y = model.source(n, rng=[seed, 1])
    q, _ = model.target(m, rng=[seed, 2])
    if digits is not None:
        p, q = (one.round(digits) for one in (p, q))
        p, q = (one / one.sum(axis=1, keepdims=True) for one in (p, q))
    return p, y, q


def same_cell(p, q, bins):
    """(m, n) whether a row of q and one of p fall in the same cell of q."""
    tree = split_simplex(Predictions(q), bins).tree
    return tree.locate(q)[:, None] == tree.locate(p)


@pytest.mark.parametrize(
    ("K", "m", "bins"), [(2, 100, 7), (3, 300, 16), (5, 301, 13), (40, 97, 30)]
)
def test_cells_have_equally_many_rows(K, m, bins):
    q = np.random.default_rng(0).dirichlet(np.ones(K), m)
    cells = split_simplex(Predictions(q), bins)
    counts = np.bincount(cells.tree.locate(q), minlength=bins)
    assert cells.max_bins == bins
    assert counts.sum() == m
    assert set(counts) <= {m // bins, m // bins + 1, -(-m // bins)}


def test_equal_rows_are_in_one_cell_whatever_their_order():
    p, _, q = sample(digits=1, m=2000)
    tree = split_simplex(Predictions(q), 20).tree
    order = np.random.default_rng(0).permutation(len(q))
    again = split_simplex(Predictions(q[order]), 20).tree
    _, first, place = np.unique(q, axis=0, return_index=True, return_inverse=True)
    cell = tree.locate(q)
    assert (cell == cell[first][place.ravel()]).all()
    assert (again.locate(p) == tree.locate(p)).all()
    assert (tree.locate(p.astype(np.float32)) < tree.cells).all()


def test_weights_are_so_many_rows():
    _, _, q = sample(m=50)
    copies = np.random.default_rng(1).integers(1, 5, 50)
    weighted = split_simplex(Predictions(q, sample_weight=copies), 7)
    repeated = split_simplex(Predictions(np.repeat(q, copies, axis=0)), 7)
    assert (weighted.tree.locate(q) == repeated.tree.locate(q)).all()


def test_rows_that_are_all_equal_make_one_cell():
    tree = split_simplex(Predictions(np.full((10, 3), 1 / 3)), 5).tree
    assert tree.cells == 1
    for estimator in ESTIMATORS:
        p, y = np.full((10, 3), 1 / 3), [0, 1, 2, 0, 1, 2, 0, 1, 2, 0]
        found = calshift.calibration_error(p, y, **CELLS, bins=5, estimator=estimator)
        assert np.isfinite(found.estimate)


@pytest.mark.parametrize("digits", [None, 2, 1])
@pytest.mark.parametrize("norm", [1, 2, 3])
@pytest.mark.parametrize("estimator", ["debiased", "plugin"])
def test_two_classes_are_the_binary_error_twice(estimator, norm, digits):
    model = BetaSimulation()
    (p, y), (q, _) = model.source(900, rng=1), model.target(1100, rng=2)
    if digits is not None:
        p, q = p.round(digits), q.round(digits)
    asked = {"bins": 13, "estimator": estimator, "norm": norm}
    pairs = [np.stack([1 - one, one], axis=1) for one in (p, q)]
    for two in (pairs, (p, q)):
        cells = calshift.target_calibration_error(two[0], y, two[1], check=False, **CELLS, **asked)
        bins = calshift.target_calibration_error(p, y, q, check=False, kind="binary", **asked)
        assert cells.estimate == pytest.approx(2 * bins.estimate, rel=1e-9)
        assert cells.merged_bins == bins.merged_bins
        assert cells.has_interval is (norm < 3)
        if cells.has_interval:
            assert cells.standard_error == pytest.approx(2 * bins.standard_error, rel=1e-6)
            ends = np.array(bins.confidence_interval())
            assert cells.confidence_interval() == pytest.approx(2 * ends, rel=1e-6, abs=1e-9)


def test_two_labelled_classes_are_the_binary_error_twice_for_the_paper_too():
    p, y = BetaSimulation().source(900, rng=1)
    for norm in (1, 2, 3):
        asked = {"bins": 13, "estimator": "paper", "norm": norm}
        cells = calshift.calibration_error(p, y, **CELLS, **asked)
        bins = calshift.calibration_error(p, y, kind="binary", **asked)
        assert cells.estimate == pytest.approx(2 * bins.estimate, rel=1e-9)


@pytest.mark.parametrize("norm", [1, 2, 3])
def test_the_papers_estimator_without_labels_by_its_double_loop(norm):
    p, y, q = sample(n=150, m=90)
    w, k, total = np.array([0.5, 1.0, 1.7]), same_cell(p, q, 6), 0.0
    n, m, others = len(p), len(q), same_cell(q, q, 6)
    for j in range(m):
        top, below = np.zeros(3), 0.0
        for i in range(n):
            top[y[i]] += k[j, i] * w[y[i]] / n
        for i in range(m):
            below += (i != j) * others[j, i] / (m - 1)
        total += (np.abs(top / below - q[j]) ** norm).sum() / m
    found = calshift.target_calibration_error(
        p, y, q, weights=w, check=False, **CELLS, bins=6, estimator="paper", norm=norm
    )
    assert found.estimate == pytest.approx(total, rel=1e-10)


def test_the_papers_estimator_with_labels_by_its_double_loop():
    p, y, _ = sample(n=90)
    k, total, one_hot = same_cell(p, p, 6), 0.0, np.eye(3)[y]
    for j in range(len(p)):
        others = [i for i in range(len(p)) if i != j and k[j, i]]
        total += ((one_hot[others].mean(axis=0) - p[j]) ** 2).sum() / len(p)
    found = calshift.calibration_error(p, y, **CELLS, bins=6, estimator="paper")
    assert found.estimate == pytest.approx(total, rel=1e-10)


@pytest.mark.parametrize("estimator", ["debiased", "plugin"])
def test_errors_on_cells_by_a_direct_loop(estimator):
    p, y, q = sample(n=300, m=200)
    w, cells = np.array([0.5, 1.0, 1.7]), split_simplex(Predictions(q), 8).tree
    source, target, total = cells.locate(p), cells.locate(q), 0.0
    for b in range(8):
        rows, share = np.flatnonzero(source == b), (target == b).mean()
        assert len(rows) > 2
        W = w[y[rows]].sum()
        U = sum(w[y[i]] * (np.eye(3)[y[i]] - p[i]) for i in rows) / W
        leverage = w[y[rows]] / W
        gap, L = np.maximum(1 - leverage, 0.1), leverage @ leverage
        o = leverage[:, None] * (np.eye(3)[y[rows]] - p[rows] - U)
        square = (o * o).sum(axis=1) / gap
        noise = 0.0
        for i in range(len(rows)):  # docs/mathematics.md 4
            noise += square[i] * (1 + leverage[i]) - leverage[i] ** 2 * square.sum()
            noise -= 2 * (leverage[i] - L) * U @ o[i] / gap[i]
        total += share * (U @ U - noise * (estimator == "debiased"))
    found = calshift.target_calibration_error(
        p, y, q, weights=w, check=False, **CELLS, bins=8, estimator=estimator
    )
    assert found.estimate == pytest.approx(total, rel=1e-9)


def test_cells_without_source_rows_are_merged_with_a_neighbour():
    p, y, q = sample(n=40, m=300)
    for estimator in ESTIMATORS:
        found = calshift.target_calibration_error(
            p, y, q, weights=[1, 1, 1], check=False, **CELLS, bins=60, estimator=estimator
        )
        assert np.isfinite(found.estimate)
        assert (found.merged_bins > 0) is (estimator != "paper")
    finest = calshift.calibration_error(p, y, **CELLS, bins=len(p))
    assert 0 < finest.merged_bins < len(p)


def test_the_number_of_cells_follows_the_smaller_sample():
    p, y, q = sample(n=400, m=200)
    auto = calshift.target_calibration_error(p, y, q, check=False, **CELLS)
    assert planned_cells(200) == 10
    assert (
        auto.estimate
        == calshift.target_calibration_error(p, y, q, check=False, **CELLS, bins=10).estimate
    )
    paper = calshift.calibration_error(p, y, **CELLS, estimator="paper")
    assert dict(paper.settings)["bins"] == 15


def test_the_standard_error_is_that_of_many_draws():
    model = GaussianSimulation(n_classes=4, dimensions=4, seed=2, imbalance=3)
    found = [
        calshift.target_calibration_error(
            *model.source(600, rng=[seed, 1]), model.target(600, rng=[seed, 2])[0], check=False,
            **CELLS, bins=20,
        )
        for seed in range(60)
    ]  # fmt: skip
    spread = np.std([one.estimate for one in found], ddof=1)
    # the standard deviation of 60 draws has an error of 9%
    assert np.mean([one.standard_error for one in found]) == pytest.approx(spread, rel=0.3)
    assert found[0].source.has_interval


def test_a_class_that_the_source_lacks_is_left_out():
    p, y, q = sample(n=400)
    kept = y != 2
    for estimator in ESTIMATORS:
        with pytest.warns(calshift.UnreliableWeights, match="lacks class 2"):
            found = calshift.target_calibration_error(
                p[kept], y[kept], q, check=False, **CELLS, bins=6, estimator=estimator
            )
        assert np.isfinite(found.estimate)


def test_batches_are_refused():
    p, y, q = sample(n=400)
    batches = calshift.scan([(p[:150], y[:150]), (p[150:], y[150:])])
    with pytest.raises(calshift.InvalidInput, match="needs all rows at once"):
        calshift.target_calibration_error(batches, None, Predictions(q), check=False, **CELLS)


def test_differences_of_canonical_errors_have_intervals():
    p, y, q = sample(n=800, m=800)
    result = calshift.target_calibration_error(p, y, q, check=False, **CELLS)
    change = calshift.compare(result, result.source)
    assert np.isfinite(change.standard_error)
    assert abs(change.correlation) <= 1


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"kind": "classwise", "kernel": "binning"}, 'is for kind="canonical"'),
        ({**CELLS, "bandwidth": 0.1}, "no bandwidth"),
        ({**CELLS, "binning": "width"}, "no bandwidth"),
        ({**CELLS, "bins": [0.5]}, "a number of cells"),
        ({**CELLS, "bins": 0}, "bins must be"),
        ({"kind": "canonical", "kernel": "cells"}, "kernel must be"),
        ({"kind": "canonical", "bins": 5}, 'kernel="binning"'),
    ],
)
def test_options_that_do_not_fit_are_refused(options, message):
    p, y, _ = sample(n=50)
    with pytest.raises(calshift.InvalidInput, match=message):
        calshift.calibration_error(p, y, **options)
