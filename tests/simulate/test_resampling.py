"""Label shift by resampling."""

from __future__ import annotations

import numpy as np
import pytest

import calshift


@pytest.mark.parametrize(
    ("K", "each", "factor", "counts"),
    [
        (10, 1000, 1.25, [1000, 975, 951, 928, 905, 883, 861, 840, 820, 800]),
        (10, 1000, 2, [1000, 925, 857, 793, 734, 680, 629, 583, 540, 500]),
        (10, 1000, 10, [1000, 774, 599, 464, 359, 278, 215, 166, 129, 100]),
        (10, 1000, 100, [1000, 599, 359, 215, 129, 77, 46, 27, 16, 10]),
    ],
)
def test_long_tails_have_the_papers_counts(K, each, factor, counts):
    y = np.random.default_rng(0).permutation(np.repeat(np.arange(K), each))
    rows = calshift.resample_label_shift(y, imbalance_factor=factor, rng=1)
    assert np.bincount(y[rows]).tolist() == counts
    assert len(set(rows)) == len(rows)


def test_priors_and_sizes_are_met():
    y = np.repeat([0, 1, 2], [500, 300, 200])
    rows = calshift.resample_label_shift(y, prior=[0.2, 0.3, 0.5], rng=0)
    assert np.bincount(y[rows]).tolist() == [80, 120, 200]
    rows = calshift.resample_label_shift(y, prior=[0.21, 0.29, 0.5], size=101, rng=0)
    assert len(rows) == 101
    assert np.abs(np.bincount(y[rows]) - 101 * np.array([0.21, 0.29, 0.5])).max() <= 1
    rows = calshift.resample_label_shift(y, prior=[0, 0.5, 0.5], rng=0)
    assert np.bincount(y[rows]).tolist() == [0, 200, 200]
    assert len(calshift.resample_label_shift(y, imbalance_factor=10, size=60, rng=0)) == 60


def test_same_seed_same_rows_and_other_seed_other_rows():
    y = np.repeat([0, 1], 100)
    draw = [calshift.resample_label_shift(y, prior=[0.3, 0.7], rng=seed) for seed in (0, 0, 1)]
    np.testing.assert_array_equal(draw[0], draw[1])
    assert not np.array_equal(draw[0], draw[2])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "exactly one of prior and imbalance_factor"),
        ({"prior": [0.5, 0.5], "imbalance_factor": 2}, "exactly one of prior and imbalance_factor"),
        ({"imbalance_factor": 0.5}, "from 1 to"),
        ({"prior": [0.5, 0.6]}, "sum to 1"),
        ({"prior": [-0.5, 1.5]}, "not negative"),
        ({"prior": [0.5, 0.5], "size": 99}, "class 1 needs"),
    ],
)
def test_bad_requests_are_named(options, message):
    with pytest.raises(calshift.InvalidInput, match=message):
        calshift.resample_label_shift([0] * 60 + [1] * 10, **options)
