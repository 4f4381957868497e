"""The interval of an error whose class weights are estimated."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from calshift.results import EstimatedWeightsDistribution, SquaredErrorDistribution

LEVELS = (0.5, 0.8, 0.9, 0.95, 0.99)


def distribution(changes, plug=0.04, bias=0.002, first=4e-6, second=1e-9):
    """``first`` and ``second`` are those of the residuals; linear ones of the weights are added."""
    half = len(changes) // 2
    even = (changes[:half] + changes[half:]) / 2
    moments = plug, bias, first + changes.var(), second + even.var() / 2
    whole = SquaredErrorDistribution(*map(np.array, moments))
    return EstimatedWeightsDistribution.of(whole, np.maximum(bias - changes.mean(), 0.0), changes)


def antithetic(scale, curvature, pairs=2000):
    """Changes that are linear and quadratic in a normal variable, at its quantiles."""
    z = stats.norm.ppf((np.arange(pairs) + 0.5) / pairs)
    return np.concatenate([scale * z + curvature * z**2, -scale * z + curvature * z**2])


@pytest.mark.parametrize("scale", [1e-4, 1e-3, 3e-3])
def test_linear_changes_give_the_linear_interval(scale):
    """Both parts are nearly normal, and distances of normal quantiles add in squares.

    The root of a plug-in is normal with variance sd^2 / (4 plug), so that squared ends are moved by
    z^2 sd / (4 plug) standard errors, and the mean by as much as for z = 1; less where a part is
    linear. 2% are for the steps of the quantiles.
    """
    found = distribution(antithetic(scale, 0.0))
    error, plug = float(found.whole.standard_error), float(found.plug)
    for level in LEVELS:
        z = stats.norm.ppf((1 + level) / 2)
        skew = (1 + z**2) / 4 * error / plug
        expected, atol = found.whole.interval(level), (skew + 0.02) * error
        np.testing.assert_allclose(found.interval(level), expected, rtol=0, atol=atol)
    assert found.standard_error == pytest.approx(float(found.whole.standard_error), rel=1e-3)


@pytest.mark.parametrize("curvature", [0.0, 1e-4, 1e-3])
@pytest.mark.parametrize("plug", [0.0015, 0.004, 0.04])
def test_intervals_nest_and_contain_the_estimate(plug, curvature):
    found = distribution(antithetic(1e-3, curvature), plug=plug)
    estimate, last = max(float(found.plug - found.bias), 0.0), (np.inf, -np.inf)
    for level in LEVELS:
        low, high = map(float, found.interval(level))
        assert 0 <= low <= estimate <= high
        assert low <= last[0]
        assert high >= last[1]
        last = low, high


def test_noise_in_one_direction_may_be_all_of_the_bias_and_in_many_it_is_known():
    one = distribution(antithetic(0.0, 5e-4))
    assert one.leading == pytest.approx(5e-4, rel=0.02)  # mean and spread of z^2: 1 and sqrt 2
    rng = np.random.default_rng(0)
    z = rng.normal(size=(4000, 50))
    many = distribution(np.tile(1e-5 * (z**2).sum(axis=1), 2))
    assert many.leading == pytest.approx(1e-5, rel=0.1)  # of 5e-4; 4000 draws, spread within 1.1%
    assert one.interval(0.95)[1] > many.interval(0.95)[1]


def test_a_multiple_has_a_multiple_of_everything():
    found = distribution(antithetic(1e-3, 1e-4))
    twice = found.scaled(2.0)
    np.testing.assert_allclose(twice.interval(0.9), 2 * np.array(found.interval(0.9)), rtol=1e-6)
    assert twice.standard_error == pytest.approx(2 * float(found.standard_error))
