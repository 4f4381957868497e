"""The bias that estimated class weights add to the error."""

from __future__ import annotations

import numpy as np
import pytest

import calshift
from calshift.simulate import GaussianSimulation


@pytest.mark.filterwarnings("ignore::calshift.UnreliableWeights")
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_the_correction_does_not_explode_with_many_rare_classes(seed):
    """30 classes, 3000:600 rows, shares of 1 to 100.

    The estimate is within 4 standard errors of that with true weights, which are as noisy.
    """
    simulation = GaussianSimulation(n_classes=30, imbalance=100, temperature=0.6, seed=24)
    p, y = simulation.source(3000, rng=seed)
    q, _ = simulation.target(600, rng=seed + 100)
    found = calshift.target_calibration_error(p, y, q, check=False)
    known = calshift.target_calibration_error(
        p, y, q, weights=simulation.class_weights, check=False
    )
    assert abs(found.estimate - known.estimate) < 4 * known.standard_error
    whole = found._distribution
    assert 0 <= whole.bias < 2 * whole.plug


def test_draws_equal_to_the_weights_change_nothing():
    from calshift._core.addable import Tally
    from calshift.binning.hat_basis import HatBasis
    from calshift.estimators.regression import BinSums, ResidualRegression
    from calshift.estimators.row_sums import excess_by_label, weigh_labels
    from calshift.estimators.weight_bias import draw_changes

    rng = np.random.default_rng(0)
    rows = rng.integers(20, 40, (1, 4, 2)).astype(float)
    sums = Tally(rows=rows, residual=rng.normal(size=(1, 4, 2)) * rows / 5)
    w, share = np.array([1.0, 0.5]), np.ones((1, 4))
    bins = BinSums(**weigh_labels(sums, w), count=30 * share, score=15 * share)
    t = np.linspace(0, 1, 4)[None]
    fits = ResidualRegression(bins, HatBasis.of_hats(t, share > 0), 0, 0.5 * share)
    by_label = excess_by_label(sums, fits, w)
    draws = np.array([w, 3 * w, [1.0, 0.4]])  # the scale of weights does not matter
    found = draw_changes(fits, by_label, w, draws)
    np.testing.assert_allclose(found.plugin[:2], 0, atol=1e-15)
    np.testing.assert_allclose(found.noise[:2], 1, rtol=1e-12)
    # by hand: every score has a knot, so g is the mean residual of a bin
    v = np.array([1.0, 0.4])
    g = (sums["residual"][0] @ v) / (rows[0] @ v)
    expected = np.mean(g**2) - np.mean(fits.value[0] ** 2)  # the target's shares are equal
    assert found.plugin[2, 0] == pytest.approx(expected, rel=1e-9)
