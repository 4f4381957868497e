"""Weights from labels on both sides: their noise is part of every interval."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest

import calshift
from calshift.simulate import GaussianSimulation


@pytest.fixture(scope="module")
def simulation():
    return GaussianSimulation(n_classes=3, imbalance=6, temperature=0.6, seed=5)


def draw(simulation, seed, labels=60, n=600, m=2000):
    """Source, target, and the labels of a few other rows of the target."""
    rng = np.random.default_rng(seed)
    p, y = simulation.source(n, rng)
    q, _ = simulation.target(m, rng)
    _, z = simulation.target(labels, rng)
    return p, y, q, calshift.weights_from_labels(y, z, 3)


@pytest.mark.slow
def test_standard_errors_are_those_of_repetition(simulation):
    """400 draws: a standard deviation is known to 1 / sqrt(800) = 3.5%; asked within 4 of them."""
    found = [draw(simulation, seed) for seed in range(400)]
    weights = np.array([w.values for *_, w in found])
    errors = np.array([w.values_error for *_, w in found])
    ratio = np.sqrt((errors**2).mean(axis=0)) / weights.std(axis=0)
    assert (np.abs(ratio - 1) < 0.14).all()
    results = [
        calshift.target_calibration_error(p, y, q, weights=w, check=False) for p, y, q, w in found
    ]
    spread = np.std([r.estimate for r in results])
    assert np.sqrt(np.mean([r.standard_error**2 for r in results])) == pytest.approx(
        spread, rel=0.14
    )
    truth = simulation.true_error(2)
    covers = np.mean([a <= truth <= b for a, b in (r.confidence_interval() for r in results)])
    assert covers > 0.95 - 4 * np.sqrt(0.95 * 0.05 / 400)
    fixed = [
        calshift.target_calibration_error(p, y, q, weights=w.values, check=False).standard_error
        for p, y, q, w in found[:50]
    ]
    assert np.sqrt(np.mean(np.square(fixed))) < 0.8 * spread  # else this tests nothing


def test_curves_and_absolute_errors_know_it_too(simulation):
    p, y, q, w = draw(simulation, 1, labels=20)
    for norm in (1, 2):
        one, other = (
            calshift.target_calibration_error(p, y, q, weights=v, norm=norm, check=False)
            for v in (w, w.values)
        )
        assert one.standard_error > 1.1 * other.standard_error
        assert one.estimate == pytest.approx(other.estimate, abs=2 * one.standard_error)
    one, other = (calshift.reliability_curve(p, y, q, weights=v) for v in (w, w.values))
    assert (one.standard_error >= other.standard_error * 0.999).all()
    assert one.standard_error.mean() > 1.02 * other.standard_error.mean()


def test_of_another_source_they_are_numbers(simulation):
    p, y, q, w = draw(simulation, 1)
    with pytest.warns(calshift.UnreliableWeights, match="estimated on other rows"):
        other = calshift.target_calibration_error(p[50:], y[50:], q, weights=w, check=False)
    assert other.class_weights.influence is None


def test_estimated_weights_of_another_target_are_numbers(simulation):
    p, y, q, _ = draw(simulation, 1)
    w = calshift.label_shift_weights(p, y, q)
    same = calshift.target_calibration_error(p, y, q, weights=w, check=False)
    with pytest.warns(calshift.UnreliableWeights, match="estimated on other rows"):
        part = calshift.target_calibration_error(p, y, q[:60], weights=w, check=False)
    assert same.class_weights.influence is not None
    assert part.class_weights.influence is None
    given = calshift.target_calibration_error(p, y, q[:60], weights=w.values, check=False)
    assert part.standard_error == given.standard_error


def test_many_classes_take_no_matrix_of_pairs():
    """The peak of memory is far below 8 K^2 = 7.2 GB; numbers do not depend on the path."""
    labels = np.arange(50)
    tracemalloc.start()
    many = calshift.weights_from_labels(labels, labels, n_classes=30_000)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    few = calshift.weights_from_labels(labels, labels, n_classes=50)
    assert peak < 50e6
    assert many.covariance is None
    np.testing.assert_allclose(many.standard_error[:50], few.standard_error)
    np.testing.assert_allclose(few.standard_error**2, np.diag(few.covariance))
    np.testing.assert_allclose(many.values_error[:50], few.values_error)
    low, high = many.confidence_interval()
    assert (low <= many.prior_target).all()
    assert (many.prior_target <= high).all()
