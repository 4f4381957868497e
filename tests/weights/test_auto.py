"""The default weights, their agreement with other methods, and draws of the target prior."""

from __future__ import annotations

import sys

import numpy as np
import pytest
from scipy import stats

from calshift import Predictions
from calshift.engines import Arrays
from calshift.weights import estimate_weights
from calshift.weights.likelihood import fit_likelihood
from calshift.weights.prior_draws import draw_prior_ratios, truncated_error

PRIOR = np.array([0.5, 0.3, 0.2])
EQUAL = np.ones(3)
UNLIKE = np.array([0.4, 1.0, 2.5])  # slopes that biases and one temperature cannot undo


def drawn(rng, n, prior, slopes, sharpness=1.5):
    """Predictions whose logarithms have a slope for each class, of the posterior of the source."""
    y = rng.choice(3, n, p=prior)
    x = sharpness * np.eye(3)[y] + rng.normal(size=(n, 3))
    z = (sharpness * x + np.log(PRIOR)) * slopes
    p = np.exp(z - z.max(axis=1, keepdims=True))
    return p / p.sum(axis=1, keepdims=True), y


def sample(seed, n, slopes=EQUAL):
    rng = np.random.default_rng(seed)
    return Predictions(*drawn(rng, n, PRIOR, slopes)), Predictions(
        drawn(rng, n, PRIOR[::-1], slopes)[0]
    )


def weights(method, pair, **options):
    return estimate_weights(method, *map(Arrays, pair), **options)


def share_of(found):
    return found.influence.inner.share


def test_where_both_methods_coincide_the_weights_are_those_of_em_bcts(monkeypatch):
    def twice(matching, calibrate):
        asked = matching.source, matching.target, matching.counts, calibrate
        return fit_likelihood(*asked), fit_likelihood(*asked)

    monkeypatch.setattr(sys.modules["calshift.weights.auto"], "fit_both", twice)
    monkeypatch.setattr(sys.modules["calshift.weights.auto"], "RELAXATION", (1.0, 1.0))
    pair = sample(1, 600)
    found = weights("auto", pair)
    assert share_of(found) == 1
    assert found.method == "auto: 0% matched, 100% em-bcts"
    np.testing.assert_allclose(found.values, weights("em-bcts", pair).values, rtol=1e-12)


def test_the_prior_of_biases_is_relaxed_more_with_many_classes():
    from calshift.weights.auto import relaxation_of_prior

    found = [relaxation_of_prior(K) for K in (2, 10, 20, 50, 1000)]
    np.testing.assert_allclose(found, [0.1, 0.1, 0.025, 0.01, 0.01])


def test_where_em_bcts_is_biased_the_weights_are_matched():
    """Slopes of .4, 1 and 2.5: em-bcts is off by .04, many standard errors of .006 each."""
    pair = sample(2, 30_000, UNLIKE)
    found = {name: weights(name, pair) for name in ("auto", "em-bcts", "matched")}
    off = {name: np.abs(one.prior_target - PRIOR[::-1]).max() for name, one in found.items()}
    assert off["em-bcts"] > 5 * found["em-bcts"].standard_error.max()
    assert share_of(found["auto"]) < 0.2
    assert off["auto"] < 4 * found["matched"].standard_error.max()


def test_the_weights_are_between_those_of_both_methods(monkeypatch):
    monkeypatch.setattr(sys.modules["calshift.weights.auto"], "RELAXATION", (1.0, 1.0))
    pair = sample(3, 900)
    found = {name: weights(name, pair) for name in ("auto", "em-bcts", "matched")}
    share = share_of(found["auto"])
    assert 0 < share <= 1
    mixed = (1 - share) * found["matched"].values + share * found["em-bcts"].values
    np.testing.assert_allclose(found["auto"].values, mixed, rtol=1e-9)
    assert found["auto"].prior_target.sum() == pytest.approx(1)
    assert found["auto"].prior_source @ found["auto"].values == pytest.approx(1)


def test_neither_the_order_of_classes_nor_that_of_rows_matters():
    """To the tolerance of the searches of calibrator and likelihood, 1e-6 of a weight."""
    pair, order = sample(4, 700), np.array([2, 0, 1])
    found = weights("auto", pair)
    source, target = pair
    moved = Predictions(source.p[:, order], np.argsort(order)[source.y])
    other = weights("auto", (moved, Predictions(target.p[:, order])))
    np.testing.assert_allclose(other.values, found.values[order], rtol=1e-5)
    rows = np.random.default_rng(0).permutation(700)
    shuffled = Predictions(source.p[rows], source.y[rows]), Predictions(target.p[rows])
    np.testing.assert_allclose(weights("auto", shuffled).values, found.values, rtol=1e-6)


def test_p_values_of_agreement_are_uniform_under_label_shift():
    """300 draws: Kolmogorov's distance within its 1% bound, 1.63 / sqrt(300)."""
    p = [
        weights("em-bcts", sample([5, k], 600), compare=True).agreement_p_value for k in range(300)
    ]
    assert stats.kstest(p, "uniform").statistic < 1.63 / np.sqrt(300)


def test_methods_that_disagree_have_a_small_p_value():
    pair = sample(6, 30_000, UNLIKE)
    assert weights("em-bcts", pair, compare=True).agreement_p_value < 1e-4
    assert weights("auto", pair, compare=True).agreement_p_value > 1e-3  # of its matched part
    assert weights("auto", pair).agreement_p_value is None


COVARIANCE = np.array([[4.0, -3.0, -1.0], [-3.0, 3.5, -0.5], [-1.0, -0.5, 1.5]]) * 1e-4


def test_draws_have_the_moments_asked_for():
    """100 antithetic pairs: a standard error of 7% of a spread and .1 of a correlation; within 3.

    What is odd in the normal variables cancels in the mean, so that it is exact to the square of
    the relative error of a share, below .01.
    """
    ratios = draw_prior_ratios(PRIOR, COVARIANCE)
    assert ratios.shape == (200, 3)
    np.testing.assert_allclose(ratios.mean(axis=0), 1, atol=0.005)
    drawn = ratios * PRIOR
    np.testing.assert_allclose(drawn.sum(axis=1), 1, rtol=1e-12)
    error = np.sqrt(np.diag(COVARIANCE))
    np.testing.assert_allclose(drawn.std(axis=0), error, rtol=0.21)
    expected = COVARIANCE / np.outer(error, error)
    np.testing.assert_allclose(np.corrcoef(drawn.T), expected, atol=0.3)


def test_draws_are_never_negative_and_do_not_depend_on_the_order_of_classes():
    prior = np.array([0.9, 0.04, 0.06, 0.0])
    covariance = np.zeros((4, 4))
    covariance[:3, :3] = [[0.02, -0.01, -0.01], [-0.01, 0.01, 0.0], [-0.01, 0.0, 0.01]]
    ratios, order = draw_prior_ratios(prior, covariance), np.array([3, 1, 0, 2])
    assert ratios.min() >= 0
    np.testing.assert_allclose(ratios @ prior, 1)
    moved = draw_prior_ratios(prior[order], covariance[np.ix_(order, order)])
    np.testing.assert_allclose(moved, ratios[:, order], rtol=1e-9, atol=1e-12)


def test_the_error_of_an_estimate_that_cannot_be_negative():
    """Against a million draws: the standard error of a mean square is at most 3^(1/2) / 1000."""
    z = np.random.default_rng(0).normal(size=1_000_000)
    distance = np.array([0.0, 0.3, 1.0, 2.0, 6.0])
    expected = [np.sqrt(np.mean((np.maximum(t + z, 0) - t) ** 2)) for t in distance]
    np.testing.assert_allclose(truncated_error(distance), expected, atol=0.004)
    assert truncated_error(distance)[0] == pytest.approx(np.sqrt(0.5))


def test_shares_known_exactly_are_not_varied():
    np.testing.assert_array_equal(draw_prior_ratios(PRIOR, np.zeros((3, 3))), np.ones((200, 3)))


def ordered(rng, n, shares):
    """Six ordered classes, of which neighbours overlap: exact posteriors with equal priors."""
    y = rng.choice(6, n, p=shares)
    x = y + 1.2 * rng.normal(size=n)
    z = -((x[:, None] - np.arange(6)) ** 2) / (2 * 1.2**2)
    p = np.exp(z - z.max(axis=1, keepdims=True))
    return p / p.sum(axis=1, keepdims=True), y


def test_a_share_that_is_0_by_chance_makes_the_prior_no_more_certain():
    """Where a class of 10 to 20% is estimated at 0, standard errors shrink, the error does not."""
    shares = np.geomspace(1, 5, 6) / np.geomspace(1, 5, 6).sum()
    at_bound, free = [], []
    for seed in range(40):
        rng = np.random.default_rng(seed)
        p, y = ordered(rng, 1500, np.ones(6) / 6)
        pair = Predictions(p, y), Predictions(ordered(rng, 1500, shares)[0])
        found = weights("auto", pair, compare=True)
        actual = np.abs(found.prior_target - shares).sum() / 2
        naive = 0.4 * found.standard_error.sum()
        row = (naive, found.expected_distance, actual)
        if found.prior_distance is None:
            free.append(row)
        elif (found.prior_target == 0).any():
            at_bound.append(row)
    assert min(len(at_bound), len(free)) >= 5
    for naive, expected, _ in free:
        assert expected == pytest.approx(naive)
    naive, expected, actual = np.mean(at_bound, axis=0)
    assert naive < 0.8 * actual  # too small
    assert expected > actual
