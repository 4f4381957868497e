"""What estimated weights carry, print and say about themselves."""

from __future__ import annotations

import copy
import json
import pickle

import numpy as np
import pytest

import calshift
from calshift.weights import METHODS
from calshift.weights.influence import _bound_factor


@pytest.fixture(scope="module")
def sample():
    simulation = calshift.simulate.GaussianSimulation(n_classes=4, imbalance=5)
    return *simulation.source(1500, rng=0), simulation.target(1500, rng=1)[0]


@pytest.fixture(scope="module")
def weights(sample):
    return calshift.label_shift_weights(*sample)


@pytest.fixture(scope="module")
def doubtful(sample):
    """One class missing, one with 7 rows, classes named."""
    p, y, q = sample
    kept = (y != 2) & ((y != 1) | (np.cumsum(y == 1) <= 7))
    names = ["ant", "bee", "cat", "a name that is far too long for a column of a table"]
    source = calshift.Predictions(p[kept], np.array(names)[y[kept]], classes=names)
    with pytest.warns(calshift.UnreliableWeights) as record:
        found = calshift.label_shift_weights(source, None, q)
    return found, [str(warning.message) for warning in record], q


def test_the_default_is_the_one_that_is_documented(sample, weights):
    assert weights.method.startswith("auto: ")
    assert weights == calshift.label_shift_weights(*sample, method="auto")
    result = calshift.target_calibration_error(*sample)
    assert 0 <= result.class_weights.agreement_p_value <= 1  # compared with another method here
    assert result.class_weights == weights


@pytest.mark.parametrize("method", METHODS)
def test_priors_and_weights_fit_each_other(sample, method):
    p, y, q = sample
    found = calshift.label_shift_weights(p, y, q, method=method)
    np.testing.assert_allclose(found.prior_source, np.bincount(y) / len(y))
    assert found.prior_target.sum() == pytest.approx(1)
    if method not in ("em", "em-ts", "em-nbvs"):  # relative to the mean prediction
        expected = found.values * found.prior_source
        np.testing.assert_allclose(found.prior_target, expected / expected.sum())


def test_intervals_are_normal_within_bounds_and_nest(weights):
    low, high = weights.confidence_interval(0.95)
    reach = 1.959964 * weights.standard_error
    np.testing.assert_allclose(low, np.maximum(weights.prior_target - reach, 0), rtol=1e-6)
    np.testing.assert_allclose(high, np.minimum(weights.prior_target + reach, 1), rtol=1e-6)
    wider = weights.confidence_interval(0.99)
    assert (wider[0] <= low).all()
    assert (wider[1] >= high).all()
    for level in (0, 1, 95, np.nan):
        with pytest.raises(calshift.InvalidInput, match="level must lie between 0 and 1"):
            weights.confidence_interval(level)


def test_weights_that_were_given_have_no_interval():
    p = np.array([[0.8, 0.2], [0.4, 0.6], [0.3, 0.7]])
    found = calshift.target_calibration_error(p, [0, 1, 1], p, weights=[1.0, 1.0], check=False)
    given = found.class_weights
    assert given.standard_error is None
    with pytest.raises(calshift.InvalidInput, match="no standard errors"):
        given.confidence_interval()


def test_covariance_is_that_of_shares_that_sum_to_one(weights):
    np.testing.assert_allclose(weights.covariance, weights.covariance.T, atol=1e-15)
    np.testing.assert_allclose(weights.covariance.sum(axis=1), 0, atol=1e-12)
    np.testing.assert_allclose(weights.standard_error**2, np.diag(weights.covariance))


def test_doubts_are_named_with_their_reasons(doubtful):
    found, messages, q = doubtful
    assert found.untrusted == {1: "7 source rows", 2: "not in the source"}
    assert tuple(messages) == found.warnings
    share = q.mean(axis=0)[2]
    assert f"the source lacks class cat, to which predictions give {share:.1%}" in messages[0]
    assert "class bee has fewer than 20 source rows" in messages[-1]
    assert np.isnan(found.values).tolist() == [False, False, True, False]
    assert found.prior_target[2] == 0


def test_the_table_names_classes_and_fits_the_terminal(doubtful):
    text = str(doubtful[0])
    assert max(map(len, text.splitlines())) <= 100
    assert "nan" not in text
    rows = {line.split()[0]: line for line in text.splitlines()[2:6]}
    assert rows["bee"].endswith("! 7 source rows")
    assert rows["cat"].endswith("unseen")
    assert "a name that is far to..." in text


def test_many_classes_are_cut_short():
    K = 30
    p = np.full((450, K), 0.1 / (K - 1))
    p[np.arange(450), np.arange(450) % K] = 0.9
    with pytest.warns(calshift.UnreliableWeights, match="and 20 more have fewer than 20"):
        found = calshift.label_shift_weights(p, np.arange(450) % K, p, method="bbse")
    assert "10 more classes" in str(found)


def test_a_plain_dict_holds_everything(weights, doubtful):
    for found in (weights, doubtful[0]):
        plain = json.loads(json.dumps(found.to_dict(), allow_nan=False))
        np.testing.assert_allclose(plain["standard_error"], found.standard_error)
        np.testing.assert_allclose(plain["covariance"], found.covariance)
        assert plain["condition_number"] == pytest.approx(found.condition_number)
        assert plain["converged"] is True
    assert plain["values"][2] is None
    assert plain["untrusted"] == {"1": "7 source rows", "2": "not in the source"}


@pytest.mark.parametrize("method", METHODS)
def test_they_pickle_copy_and_stay_as_they_are(sample, method):
    found = calshift.label_shift_weights(*sample, method=method)
    for twin in (pickle.loads(pickle.dumps(found)), copy.deepcopy(found)):
        assert twin == found
        with pytest.raises(ValueError, match="read-only"):
            twin.covariance[0, 0] = 1
    batch = calshift.Predictions(*sample[:2]).rows(0, 10)
    twin = pickle.loads(pickle.dumps(found))
    np.testing.assert_array_equal(twin.influence.source(batch), found.influence.source(batch))


def sharp(y, strength, rng):
    """Calibrated predictions of rows with these labels: Gaussians that far apart."""
    K = y.max() + 1
    x = strength * np.eye(K)[y] + rng.normal(size=(len(y), K))
    return calshift.softmax(strength * x)


@pytest.mark.parametrize("strength", [4, 5, 8])
@pytest.mark.parametrize("method", ["em", "em-bcts", "bbse-soft", "map", "elsa"])
def test_a_class_that_is_surely_gone_is_sure_to_be_gone(strength, method):
    """With near-perfect predictions a share has the error of counted labels, sqrt(q (1 - q) / m).

    1.6% for .4 of 1000 rows, and for none of them about 1 / m; no warning, no doubt.
    """
    rng = np.random.default_rng(strength)
    y, t = np.arange(2000) % 4, rng.choice(3, 1000, p=[0.4, 0.3, 0.3])
    p, q = sharp(y, strength, rng), sharp(np.append(t, 3), strength, rng)[:-1]
    found = calshift.label_shift_weights(p, y, q, method=method)
    counted = np.sqrt(np.maximum(found.prior_target * (1 - found.prior_target), 1e-6) / 1000)
    assert (found.standard_error < 2 * counted + 2 / 1000).all()
    if method in ("em", "em-bcts"):
        assert not 0 < found.values[3] < 1e-5  # a remainder that EM has not yet got rid of
    assert found.untrusted == {}


def test_a_share_far_below_its_bound_has_a_small_error():
    """Of a normal variable with error .1 and mean -.2 cut off at 0 little is left: .1 (.1 / .2)."""
    error, beyond = np.array([0.1, 0.1, 0.1]), np.array([0.0, 0.05, 0.2])
    np.testing.assert_allclose(_bound_factor(error, beyond), [1, 1, 0.5])


@pytest.mark.filterwarnings("ignore::calshift.UnreliableWeights")
@pytest.mark.parametrize("method", ["bbse", "bbse-soft", "em", "em-bcts", "elsa"])
def test_a_constant_predictor_leaves_every_mix_possible(method):
    """Shares that may be anything between 0 and 1 have an error of 1 / sqrt(12) = .29."""
    p = np.tile([0.5, 0.3, 0.2], (90, 1))
    found = calshift.label_shift_weights(p, np.arange(90) % 3, p, method=method)
    assert (found.standard_error > 0.28).all()
    assert len(found.untrusted) == 3


@pytest.mark.parametrize("method", ["em", "em-bcts", "bbse", "elsa", "map"])
def test_unequal_shares_alone_are_no_reason_to_doubt(method):
    """Perfect predictions tell classes apart, however rare some are."""
    rng = np.random.default_rng(0)
    share = 100.0 ** -(np.arange(10) / 9)
    y = np.repeat(np.arange(10), (8000 * share / share.sum()).astype(int) + 20)
    t = np.arange(4000) % 10
    found = calshift.label_shift_weights(sharp(y, 9, rng), y, sharp(t, 9, rng), method=method)
    assert found.untrusted == {}
    np.testing.assert_allclose(found.prior_target, 0.1, atol=0.002)
    assert found.standard_error.max() < 1.2 * np.sqrt(0.09 / 4000)


@pytest.mark.parametrize("weight", [3.8e3, 7e4, 1.5e5])
@pytest.mark.filterwarnings("ignore::calshift.UnreliableWeights")
def test_a_prior_stands_a_class_of_one_row_in_a_million(weight):
    rng = np.random.default_rng(1)
    y = np.append(np.arange(300) % 3, 3)
    p, q = sharp(y, 2, rng), sharp(np.append(np.arange(200) % 3, 3), 2, rng)[:-1]
    source = calshift.Predictions(p, y, sample_weight=np.append(np.full(300, weight), 1.0))
    target = calshift.Predictions(q, sample_weight=np.full(200, weight))
    found = calshift.label_shift_weights(source, None, target, method="map")
    assert np.isfinite(found.standard_error).all()
    np.testing.assert_allclose(found.prior_target[:3], 1 / 3, atol=0.1)


@pytest.mark.parametrize("n", [500, 1000, 5000])
@pytest.mark.parametrize("method", [m for m in METHODS if "rlls" not in m])
def test_ordinary_data_bring_no_warnings(method, n):
    simulation = calshift.simulate.GaussianSimulation()
    p, y = simulation.source(n, rng=1)  # warnings are errors here
    calshift.label_shift_weights(p, y, simulation.target(n, rng=2)[0], method=method)


@pytest.mark.filterwarnings("ignore::calshift.UnreliableWeights")
def test_rows_that_weigh_less_than_one_are_no_fewer_for_that(sample):
    p, y, q = sample
    source = calshift.Predictions(p, y, sample_weight=np.full(len(y), 0.01))
    target = calshift.Predictions(q, sample_weight=np.full(len(q), 0.01))
    for method in ("bbse-soft", "bbse"):
        plain = calshift.label_shift_weights(p, y, q, method=method)
        light = calshift.label_shift_weights(source, None, target, method=method)
        np.testing.assert_allclose(light.standard_error, plain.standard_error, rtol=1e-6)


@pytest.mark.filterwarnings("ignore::calshift.UnreliableWeights")
def test_weights_of_another_source_bring_no_standard_errors(sample, weights):
    p, y, q = sample
    result = calshift.target_calibration_error(p[y != 3], y[y != 3], q, weights=weights)
    used = result.class_weights
    assert "lacks class 3" in used.warnings[0]
    assert used.standard_error is None
    assert used.influence is None
    assert used.prior_target[3] == 0


def test_uncalibrated_predictions_are_pointed_out(sample):
    p, y, q = sample
    tilted = p * np.array([1e4, 1, 1, 1])
    tilted /= tilted.sum(axis=1, keepdims=True)
    with pytest.warns(calshift.UnreliableWeights, match="the model is not calibrated"):
        calshift.label_shift_weights(tilted, y, q, method="em")


def test_a_heavy_prior_is_pointed_out(sample):
    p, y, q = sample
    with pytest.warns(calshift.UnreliableWeights, match="map: its prior has the weight of"):
        calshift.label_shift_weights(p, y, q[:20], method="map")


def test_predictions_against_the_labels_are_pointed_out(sample):
    p, y, q = sample
    with pytest.warns(calshift.UnreliableWeights, match="unrelated to the source's labels"):
        calshift.label_shift_weights(p, (y + 1) % 4, q)


def test_predictions_that_say_nothing_are_pointed_out(sample):
    p, y, q = sample
    with pytest.warns(calshift.UnreliableWeights, match="fit the source's labels no better"):
        calshift.label_shift_weights(p, np.random.default_rng(0).permutation(y), q, method="em")


@pytest.mark.filterwarnings("ignore::calshift.UnreliableWeights")
def test_auto_leaves_out_maximum_likelihood_whose_variance_has_exploded():
    simulation = calshift.simulate.GaussianSimulation(60, imbalance=100, spread=2, seed=60)
    rng = np.random.default_rng([0, 60, 3000])
    sample = *simulation.source(3000, rng), simulation.target(600, rng)[0]
    found = calshift.target_calibration_error(*sample, check=False)
    given = calshift.target_calibration_error(
        *sample, weights=found.class_weights.values, check=False
    )
    # the standard error of either is about .0001; with a share of em-bcts the first is -.12
    assert abs(found.estimate - given.estimate) < 0.0005
