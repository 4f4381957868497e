"""Sums by bin and group of classes with equal weights replace passes over the rows."""

from __future__ import annotations

import numpy as np
import pytest

import calshift
from calshift.inference import estimate

SIMULATION = calshift.simulate.GaussianSimulation(n_classes=4, imbalance=3, seed=1)
SOURCE, TARGET = SIMULATION.source(900, rng=1), SIMULATION.target(700, rng=2)[0]
WEIGHTS = SIMULATION.class_weights
FREQUENCY = np.random.default_rng(3).integers(1, 4, 900).astype(float)

OPTIONS = [
    {},
    {"interval": None},
    {"interval": None, "norm": 3},
    {"norm": 1},
    {"stratified": True},
    {"estimator": "plugin"},
    {"bins": 15},
    {"kind": "top-label"},
    {"weights": "em-bcts"},
    {"weights": "em-bcts", "stratified": True},
    {"weights": "em-bcts", "interval": None},
]


def numbers(result) -> list[float]:
    found = [result.estimate, *(() if result.per_class is None else result.per_class)]
    if not result.has_interval:
        return found
    own = () if result.per_class is None else np.ravel(result.class_intervals())
    return [*found, result.standard_error, *result.confidence_interval(), *own]


@pytest.mark.filterwarnings("ignore::calshift.UnreliableWeights")
@pytest.mark.parametrize("frequency", [None, FREQUENCY])
@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_sums_by_group_give_the_numbers_of_rows(monkeypatch, options, frequency):
    source, found = calshift.Predictions(*SOURCE, sample_weight=frequency), []
    for rows in (0, 10**9):  # always by group, or only if all weights are equal
        monkeypatch.setattr(estimate, "ROWS_A_SUM", rows)
        asked = {"weights": WEIGHTS, "check": False} | options
        found.append(numbers(calshift.target_calibration_error(source, None, TARGET, **asked)))
    np.testing.assert_allclose(*found, rtol=1e-9, atol=1e-14)


@pytest.mark.parametrize("options", [{}, {"norm": 1}, {"kind": "top-label"}], ids=str)
def test_one_group_gives_the_numbers_of_rows_that_count_less_than_one(options):
    """Frequency weights of 1 and nearly 1: the latter need the rows."""
    light = np.ones(len(SOURCE[1]))
    light[0] = 1 - 1e-12
    both = (calshift.Predictions(*SOURCE, sample_weight=f) for f in (None, light))
    found = [numbers(calshift.calibration_error(one, **options)) for one in both]
    np.testing.assert_allclose(*found, rtol=1e-8, atol=1e-13)


@pytest.mark.parametrize("seed", range(4))
def test_equal_residuals_have_no_noise(seed):
    """Where every row of a bin has the same residual nothing but rounding may be left."""
    p = np.random.default_rng(seed).uniform([0.1, 0.6], [0.4, 0.9])
    result = calshift.calibration_error(np.repeat(p, 997), np.repeat([0, 1], 997), bins=2)
    assert result.estimate == pytest.approx((p[0] ** 2 + (1 - p[1]) ** 2) / 2, rel=1e-12)
    assert result._distribution.bias < 1e-25
