"""Calibrators on rows of known answer, and their likelihood against finite differences."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from calshift._core.predictions import Predictions
from calshift.engines import Arrays
from calshift.scaling.calibrator import KINDS, reweight, temper
from calshift.scaling.fit import complement_projector, fit_scaling, make_identity
from calshift.simulate import GaussianSimulation

MODEL = GaussianSimulation(3, dimensions=3, imbalance=4, temperature=0.5)
P, Y = MODEL.source(400, rng=0)
COUNTS = np.bincount(Y, minlength=3).astype(float)


def test_slopes_and_biases_by_hand():
    p = np.array([[0.25, 0.75]])
    assert temper(p, 2.0) == pytest.approx(np.array([[0.1, 0.9]]))
    assert temper(p, 1.0, np.log([3.0, 1.0])) == pytest.approx(np.array([[0.5, 0.5]]))


def test_zeros_stay_zero_and_the_input_is_left_alone():
    p = np.array([[0.0, 0.4, 0.6]])
    assert temper(p, 0.5, 1.0)[0, 0] == 0
    assert p.tolist() == [[0.0, 0.4, 0.6]]


def test_weights_by_hand():
    p = np.array([[0.6, 0.4], [1.0, 0.0]])
    assert reweight(p, np.array([1.0, 3.0])) == pytest.approx(np.array([[1 / 3, 2 / 3], [1, 0]]))
    assert reweight(p, np.array([0.0, 3.0])) == pytest.approx(np.array([[0, 1], [1, 0]]))


@pytest.mark.parametrize("kind", KINDS)
def test_the_gradient_is_that_of_the_likelihood(kind):
    start = make_identity(kind, COUNTS)
    rows = Arrays(Predictions(P, Y))

    def sums(parameters):
        return rows.total(replace(start, parameters=parameters).likelihood)

    at = start.parameters + 0.1 * np.arange(len(start.parameters))
    steps = 1e-5 * np.eye(len(at))
    slope = [(sums(at + h)["value"] - sums(at - h)["value"]) / 2e-5 for h in steps]
    assert sums(at)["gradient"] == pytest.approx(np.array(slope), rel=1e-5, abs=1e-4)


@pytest.mark.parametrize("kind", KINDS)
def test_a_fit_is_at_least_as_likely_as_no_change(kind):
    before = make_identity(kind, COUNTS)
    rows = Arrays(Predictions(P, Y))
    found = fit_scaling(kind, Arrays(Predictions(P, Y)), COUNTS)
    assert found.converged
    after = rows.total(found.likelihood)["value"]
    assert after > rows.total(before.likelihood)["value"]


def test_the_complement_of_a_span_is_a_projection():
    columns = np.random.default_rng(0).normal(size=(5, 2))
    projection = complement_projector(columns)
    assert projection @ columns == pytest.approx(np.zeros((5, 2)), abs=1e-12)
    assert projection @ projection == pytest.approx(projection)
    assert np.trace(projection) == pytest.approx(3)


def test_a_relaxed_prior_shrinks_biases_less():
    """Ten draws of 20 classes with biases from -.5 to .5, of 40 rows each.

    The slope of the fitted biases on the true ones: 1 without shrinkage.
    """
    truth = np.linspace(-0.5, 0.5, 20)
    slopes = []
    for seed in range(10):
        rng = np.random.default_rng(seed)
        y = rng.integers(20, size=800)
        z = 1.5 * (rng.normal(size=(800, 20)) + 1.5 * np.eye(20)[y])
        p = np.exp(z - truth)
        sample = Arrays(Predictions(p / p.sum(axis=1, keepdims=True), y))
        counts = np.bincount(y, minlength=20).astype(float)
        fits = [fit_scaling("bcts", sample, counts, relaxation=r) for r in (1.0, 0.1)]
        slopes.append([fit.bias @ truth / (truth @ truth) for fit in fits])
    full, relaxed = np.mean(slopes, axis=0)
    assert full < 0.9
    assert 0.93 < relaxed < 1.07
