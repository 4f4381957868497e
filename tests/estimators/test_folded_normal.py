"""The folded normal, against its closed form, integrals and simulation."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import integrate, stats

from calshift.estimators.folded_normal import absolute_moment, unfold


def test_first_moment_has_its_closed_form():
    d = np.linspace(0, 8, 50)
    closed = np.sqrt(2 / np.pi) * np.exp(-(d**2) / 2) + d * (1 - 2 * stats.norm.cdf(-d))
    np.testing.assert_allclose(absolute_moment(d, 1), closed, rtol=1e-10)


@pytest.mark.parametrize("norm", [1.5, 3, 4.2])
def test_moments_match_the_integral(norm):
    for d in (0.0, 0.7, 3.0, 12.0):
        density = stats.norm(d).pdf
        moment = integrate.quad(
            lambda x, f=density: abs(x) ** norm * f(x), d - 12, d + 12, points=[0]
        )
        assert absolute_moment(np.array(d), norm) == pytest.approx(moment[0], rel=1e-7)


@pytest.mark.parametrize("norm", [1, 1.5, 3, 5])
def test_unfolding_inverts_the_moment(norm):
    d, s = np.array([0.3, 1.0, 2.5, 10.0, 200.0]), 0.05
    value = s * absolute_moment(d, norm) ** (1 / norm)
    found = unfold(value, np.full(5, s**2), norm)
    np.testing.assert_allclose(found, (d * s) ** norm, rtol=2e-4)


def test_too_little_to_tell_from_noise_is_zero_and_no_noise_changes_nothing():
    assert unfold(np.array([0.5]), np.array([1.0]), 1).tolist() == [0.0]
    assert unfold(np.array([-0.5]), np.array([0.0]), 3).tolist() == [0.125]
    assert unfold(np.array([0.0]), np.array([0.0]), 1).tolist() == [0.0]


def test_squares_keep_their_sign():
    assert unfold(np.array([0.1]), np.array([0.04]), 2) == pytest.approx(-0.03)
