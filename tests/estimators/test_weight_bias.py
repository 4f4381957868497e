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


@pytest.mark.filterwarnings("ignore::calshift.UnreliableWeights")
@pytest.mark.parametrize("method", ["em-bcts", "auto"])
def test_the_correction_is_what_the_noise_of_the_weights_adds(method):
    """40 classes with 25 rows each: what is subtracted, beside what estimated weights add.

    They add the mean difference between errors with the weights given as a vector and with the mean
    of these weights over the draws. The two are equal within 2.6 standard errors of their paired
    differences (p = .01); with the noise of class counts in both parts the correction was too
    small by 7 standard errors.
    """
    simulation = GaussianSimulation(n_classes=40, imbalance=5, seed=3)
    pairs, found = [], []
    for seed in range(60):
        rng = np.random.default_rng(seed)
        pairs.append((*simulation.source(1000, rng), simulation.target(1000, rng)[0]))
        found.append(estimate(pairs[-1], method))
    weights = [one.class_weights.values for one in found]
    mean = np.mean(weights, axis=0)
    given = np.array([estimate(one, w).estimate for one, w in zip(pairs, weights, strict=True)])
    least = np.array([estimate(one, mean).estimate for one in pairs])
    added, subtracted = given - least, given - [one.estimate for one in found]
    gap = subtracted - added
    assert abs(gap.mean()) < 2.6 * gap.std() / np.sqrt(len(gap))
    assert added.mean() > 5 * gap.std() / np.sqrt(len(gap))  # there is something to correct


def estimate(pair, weights):
    options = {"weights": weights, "interval": None, "check": False}
    return calshift.target_calibration_error(*pair, **options)


def test_the_noise_of_class_counts_is_that_between_classes():
    """One bin: sum_y n_y (mean of o in y)^2, less the noise of the means, from rows."""
    from types import SimpleNamespace

    from calshift.estimators.weight_bias import WeightDraws

    rng = np.random.default_rng(0)
    counts, mean = np.array([3000, 2000, 1]), np.array([0.3, -0.2, 0.1])
    rows = [rng.normal(size=n) + m for n, m in zip(counts, mean, strict=True)]
    own = sum((one**2).sum() for one in rows)
    shares = np.array([[(one**2).sum() / own for one in rows]])
    fits = SimpleNamespace(moments=(np.ones((1, 1)), np.zeros((1, 1))))
    by_class = np.array([[[one.sum() for one in rows]]])
    draws = WeightDraws(np.zeros((2, 1)), np.ones((2, 1)), shares)
    found = draws.noise_of_counts(fits, by_class, counts, np.array([own]))
    expected = sum(
        n * (one.mean() ** 2 - one.var(ddof=1) / n)
        for n, one in zip(counts[:2], rows[:2], strict=True)
    )
    assert found[0] == pytest.approx(expected, rel=1e-9)  # a class of one row adds nothing


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
