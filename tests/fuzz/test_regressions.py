"""Inputs that failed once, in `findings/`: damaged files, and calls in `calls.py` there.

Below are pairs of calls whose results differed.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import calshift
from calshift import Predictions
from tests.fuzz.findings.calls import P, Y
from tests.fuzz.test_fuzz import run

FOLDER = Path(__file__).parent / "findings"


def test_inputs_that_failed_once_are_answered_or_refused():
    """In processes of their own, which some of these inputs ended by a signal or filled."""
    ended = run("--replay", str(FOLDER))
    assert ended.returncode == 0, ended.stdout + ended.stderr


def test_labels_are_matched_with_numeric_classes():
    for kind in (int, float):
        made = Predictions(P, Y.astype(kind), classes=[kind(k) for k in (2, 0, 1)])
        assert np.array_equal(made.y, np.array([1, 2, 0])[Y])


def draw_tied(seed, n):
    """Rows with three different predictions: p, y, q, and the generator."""
    rng = np.random.default_rng(seed)
    p, q = (rng.dirichlet(np.full(2, 0.7), 3)[rng.integers(0, 3, n)] for _ in range(2))
    y = rng.integers(0, 2, n)
    y[:2] = 0, 1
    return p, y, q, rng


def estimate(p, y, q, **options):
    known = {"weights": np.ones(2), "check": False, "interval": None, **options}
    return calshift.target_calibration_error(p, y, q, **known).estimate


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("kind", ["canonical", "top-label"])
@pytest.mark.parametrize("bandwidth", ["auto", 0.3])
@pytest.mark.filterwarnings("ignore::calshift.UnreliableWeights")
def test_kernels_do_not_depend_on_the_order_of_equal_rows(seed, kind, bandwidth):
    options = {"kernel": "triweight", "kind": kind, "bandwidth": bandwidth}
    for n in (13, 49, 57):
        p, y, q, rng = draw_tied(seed, n)
        a, b = rng.permutation(n), rng.permutation(n)
        expected = pytest.approx(estimate(p, y, q, **options), rel=1e-6, abs=1e-8)
        assert estimate(p[a], y[a], q[b], **options) == expected


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("kind", ["canonical", "top-label"])
@pytest.mark.parametrize("bandwidth", ["auto", 0.3])
@pytest.mark.filterwarnings("ignore::calshift.UnreliableWeights")
def test_kernels_count_sample_weights_as_repeated_rows(seed, kind, bandwidth):
    options = {"kernel": "triweight", "kind": kind, "bandwidth": bandwidth}
    p, y, q, rng = draw_tied(seed, 49)
    a, b = rng.integers(1, 4, 49), rng.integers(1, 4, 49)
    weighted = Predictions(p, y, sample_weight=a), None, Predictions(q, sample_weight=b)
    repeated = np.repeat(p, a, axis=0), np.repeat(y, a), np.repeat(q, b, axis=0)
    expected = pytest.approx(estimate(*repeated, **options), rel=1e-6, abs=1e-8)
    assert estimate(*weighted, **options) == expected


@pytest.mark.parametrize("seed", [4, 6, 7])
@pytest.mark.filterwarnings("ignore::calshift.UnreliableWeights")  # others than the one asked for
def test_shift_scaling_says_where_it_depends_on_the_order_of_rows(seed):
    """Labels unrelated to predictions next to certainty; probabilities differ by 0.99."""
    rng = np.random.default_rng(seed)
    p = np.full((100, 3), 1e-300)
    p[np.arange(100), rng.integers(0, 3, 100)] = 1
    y, q, order = rng.integers(0, 3, 100), rng.dirichlet(np.ones(3), 60), rng.permutation(100)
    for rows in (slice(None), order):
        with pytest.warns(calshift.UnreliableWeights, match="does not discriminate"):
            calshift.ShiftScaling().fit(p[rows], y[rows], q)
