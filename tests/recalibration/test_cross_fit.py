"""Folds of a sample: what is left out, and that rows are in their former order afterwards."""

from __future__ import annotations

import numpy as np
import pytest

import calshift
from calshift._core.predictions import Predictions
from calshift.recalibration.cross_fit import FoldedSample, draw_folds

RNG = np.random.default_rng(0)


def sample(n: int, labelled: bool = True) -> Predictions:
    """Every row differs from the others."""
    p = RNG.dirichlet(np.ones(3), n)
    y = RNG.permutation(np.arange(n) % 3) if labelled else None
    return Predictions(p, y, sample_weight=1 + np.arange(n) if labelled else None)


@pytest.mark.parametrize("labelled", [True, False])
@pytest.mark.parametrize(("n", "folds"), [(10, 5), (11, 5), (14, 5), (7, 7), (9, 2), (20, 3)])
def test_each_fold_is_left_out_once(n, folds, labelled):
    given = sample(n, labelled)
    before = given.p.copy()
    of = RNG.permutation(np.arange(n) % folds)
    folded = FoldedSample(given, of)
    for fold in range(folds):
        with folded.without(fold) as others:
            kept = {row.tobytes(): k for k, row in enumerate(given.p)}
            found = [kept[row.tobytes()] for row in others.p]
            assert sorted(found) == np.flatnonzero(of != fold).tolist()
            if labelled:
                assert (others.y == given.y[found]).all()
                assert (others.sample_weight == given.sample_weight[found]).all()
    assert (given.p == before).all()


class Number:
    """Stands for the fit without a fold: its rows get the number of the fold."""

    def __init__(self, fold: int) -> None:
        self.fold = fold

    def transform(self, rows: Predictions) -> Predictions:
        return rows.with_probabilities(rows.p + self.fold)


def test_recalibrated_rows_are_in_their_former_order():
    given, of = sample(23), RNG.permutation(np.arange(23) % 5)
    found = FoldedSample(given, of).recalibrate([Number(fold) for fold in range(5)])
    np.testing.assert_array_equal(found.p, given.p + of[:, None])
    np.testing.assert_array_equal(found.y, given.y)
    np.testing.assert_array_equal(found.sample_weight, given.sample_weight)


def test_folds_have_equal_sizes_and_classes():
    given, target = sample(50), sample(42, False)
    of_source, of_target = draw_folds(given, target, 5, np.random.default_rng(1))
    assert np.bincount(of_source).tolist() == [10] * 5
    assert sorted(np.bincount(of_target).tolist()) == [8, 8, 8, 9, 9]
    for c in range(3):  # 16 or 17 rows of each class in 5 folds
        assert set(np.bincount(of_source[given.y == c])) <= {3, 4}


def test_a_cross_fit_leaves_the_arrays_of_the_caller_alone():
    simulation = calshift.simulate.GaussianSimulation(n_classes=3)
    (p, y), (q, _) = simulation.source(200, rng=0), simulation.target(203, rng=1)
    kept = p.copy(), y.copy(), q.copy()
    calshift.recalibrate(p, y, q, check=False)
    for now, then in zip((p, y, q), kept, strict=True):
        np.testing.assert_array_equal(now, then)
