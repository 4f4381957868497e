"""Least squares with x >= 0: the solution of scipy, which is imported only where it is needed."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
from scipy.optimize import nnls

from calshift._core import linalg
from calshift._core.linalg import nonnegative_least_squares


@pytest.mark.parametrize("K", [1, 2, 3, 10, 60])
@pytest.mark.parametrize("noise", [0, 0.1, 1])
@pytest.mark.parametrize("more", [0, 1, 5])
def test_it_is_the_solution_of_scipy(K, noise, more):
    for seed in range(20):
        rng = np.random.default_rng(seed)
        system = rng.normal(size=(K + more, K))
        wanted = system @ rng.dirichlet(np.full(K, 0.5)) + noise * rng.normal(size=K + more)
        found, expected = nonnegative_least_squares(system, wanted), nnls(system, wanted)[0]
        assert (found >= 0).all()
        assert found == pytest.approx(expected, rel=1e-8, abs=1e-9)


@pytest.mark.parametrize("noise", [0, 1])
def test_a_solution_that_is_not_unique_is_that_of_scipy(noise):
    rng = np.random.default_rng(1)
    system = rng.normal(size=(5, 3)) @ rng.normal(size=(3, 4))
    wanted = system @ np.full(4, 0.25) + noise * rng.normal(size=5)
    assert np.array_equal(nonnegative_least_squares(system, wanted), nnls(system, wanted)[0])
    wide = rng.normal(size=(3, 5))
    assert np.array_equal(nonnegative_least_squares(wide, wanted[:3]), nnls(wide, wanted[:3])[0])


def test_nothing_fits():
    assert np.array_equal(nonnegative_least_squares(np.eye(3), -np.ones(3)), np.zeros(3))
    assert np.array_equal(nonnegative_least_squares(np.zeros((3, 2)), np.ones(3)), np.zeros(2))


def test_signs_that_go_on_changing_are_left_to_scipy(monkeypatch):
    monkeypatch.setattr(linalg, "MOST_EXCHANGES", 1)
    system, wanted = np.array([[1.0, 0.9], [0.0, 1.0]]), np.array([1.0, -1.0])
    assert nonnegative_least_squares(system, wanted) == pytest.approx(nnls(system, wanted)[0])


def test_scipy_optimize_is_not_imported():
    code = (
        "import sys, numpy as np; from calshift._core.linalg import nonnegative_least_squares as f;"
        "f(np.eye(3) + 1, np.array([1.0, -2.0, 3.0])); assert 'scipy.optimize' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
