"""Conditions of class weights: each passes on a sound case, and fails on its own."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

import calshift
from calshift.diagnostics.boundary import check_boundary
from calshift.diagnostics.label_tables import tabulate_labels
from calshift.diagnostics.sample_conditions import (
    check_direction,
    check_distance,
    check_label_shift_tests,
)
from calshift.diagnostics.weight_conditions import (
    check_agreement,
    check_amplification,
    check_conditioning,
    check_discrimination,
)
from calshift.engines.open import open_source
from calshift.simulate import GaussianSimulation

pytestmark = pytest.mark.filterwarnings("ignore::calshift.UnreliableWeights")


@pytest.fixture(scope="module")
def sample():
    simulation = GaussianSimulation(n_classes=4, imbalance=4, seed=1)
    return (*simulation.source(1500, rng=1), simulation.target(1500, rng=2)[0])


def majority_model(rows, mean, rng):
    """Calibrated probabilities that favour class 0 of 4, and labels, for a normal covariate."""
    x = rng.normal(mean, size=rows)
    z = np.stack([np.full(rows, 2.4), 0.5 * x, 0.1 - 0.4 * x, 0.3 * x - 0.2], axis=1)
    p = np.exp(z)
    p /= p.sum(axis=1, keepdims=True)
    return p, np.minimum((rng.random(rows)[:, None] > p.cumsum(axis=1)).sum(axis=1), 3)


def tables_of(p, y):
    return tabulate_labels(open_source(calshift.Predictions(p, y), None), means=True)


@pytest.mark.parametrize("mean", [-2, -1, 0.5, 1, 2])
@pytest.mark.parametrize("seed", [0, 1])
def test_a_majority_model_with_a_share_at_its_boundary_fails(mean, seed):
    """Covariate shift: a class of about a tenth is estimated at 100%."""
    rng = np.random.default_rng(seed)
    source, (q, labels) = majority_model(3000, 0, rng), majority_model(3000, mean, rng)
    result = calshift.target_calibration_error(*source, q, check=False)
    prior, truth = result.class_weights.prior_target, np.bincount(labels, minlength=4) / 3000
    if np.abs(prior - truth).max() > 0.5:
        failed = [one.name for one in result.diagnostics if one.failed]
        assert {"boundary", "conditioning", "class-weights"} & set(failed)
    assert not result.trusted


def test_a_class_that_is_absent_or_alone_passes_if_predictions_agree(sample):
    """Under exact label shift shares of 0 and 1 are nothing suspicious."""
    p, y, _ = sample
    rng = np.random.default_rng(3)
    for kept in ((0, 1), (2,)):
        rows = rng.permutation(np.flatnonzero(np.isin(y, kept)))
        half, others = rows[: len(rows) // 2], np.setdiff1d(np.arange(len(y)), rows[::2])
        weights = calshift.label_shift_weights(p[others], y[others], p[half])
        found = check_boundary(weights, tables_of(p[others], y[others]), len(half))
        assert weights.prior_target.min() < 0.03
        assert found.passed, found.text


def test_a_share_that_the_mean_prediction_contradicts_fails(sample):
    p, y, q = sample
    weights = calshift.label_shift_weights(p, y, q)
    tables = tables_of(p, y)
    assert check_boundary(weights, tables, 1500).passed
    none = np.r_[0.0, weights.prior_target[1:] / weights.prior_target[1:].sum()]
    found = check_boundary(replace(weights, prior_target=none), tables, 1500)
    assert not found.passed
    assert found.value > found.limit
    assert "class 0 is estimated at 0% of the target" in found.text
    little = weights.prior_target.copy()
    little[1] += little[3]
    little[3] = 0.0  # a share of about a tenth: only the mixture of predictions shows it
    found = check_boundary(replace(weights, prior_target=little), tables, 1500)
    assert not found.passed
    assert "with a share of 0.0% the mean prediction of class 3 would be" in found.text
    assert check_boundary(weights, None, 1500).value is None


def test_an_undetermined_prior_fails(sample):
    weights = calshift.label_shift_weights(*sample)
    found = check_conditioning(weights)
    assert found.passed
    assert found.value == pytest.approx(0.4 * weights.standard_error.sum())
    assert check_conditioning(replace(weights, prior_distance=0.3)).value == 0.3
    wide = replace(weights, covariance=400 * weights.covariance)
    assert not check_conditioning(wide).passed
    assert check_conditioning(SimpleNamespace(expected_distance=None)).value is None


@pytest.mark.parametrize(("p", "passed"), [(0.5, True), (0.02, True), (0.019, False)])
def test_methods_that_disagree_fail(p, passed):
    assert check_agreement(SimpleNamespace(agreement_p_value=p)).passed == passed


def test_methods_that_were_not_compared_fail():
    found = check_agreement(SimpleNamespace(agreement_p_value=None, method="em"))
    assert (found.value, found.passed) == (None, False)


def test_rare_positives_with_information_pass_and_noise_fails():
    """1% positives: the entropy is .056, so that an absolute limit of .01 would be far too much."""
    rng = np.random.default_rng(1)
    z = rng.normal(-5.2, 1.1, size=20_000)
    p = 1 / (1 + np.exp(-z))
    y = (rng.random(20_000) < p).astype(int)
    assert 0.005 < y.mean() < 0.02
    weights = calshift.label_shift_weights(p[:10_000], y[:10_000], p[10_000:])
    found = check_discrimination(weights)
    assert found.passed
    assert 0.01 < found.value < 0.3
    useless = calshift.label_shift_weights(p[:10_000], rng.permutation(y[:10_000]), p[10_000:])
    found = check_discrimination(useless)
    assert not found.passed
    assert "does not discriminate" in found.text


@pytest.mark.parametrize(
    ("p", "joint", "direction", "passed"),
    [
        (0.2, 0.06, 0.04, (True, True)),  # the smaller of two p-values is not below the joint level
        (0.2, 0.02, 0.01, (False, False)),
        (0.01, 0.02, 0.6, (False, True)),
        (0.2, 0.2, None, (True, True)),  # no contrast of confidences
        (0.03, None, None, (False, True)),  # a test of one part
    ],
)
def test_the_level_is_that_of_both_parts_of_the_test(p, joint, direction, passed):
    rejected = (p if joint is None else joint) <= 0.05
    check = SimpleNamespace(
        p_value=p, joint_p_value=joint, direction_p_value=direction, level=0.05, rejected=rejected
    )
    found = next(check_label_shift_tests(check)), check_direction(check)
    assert tuple(one.passed for one in found) == passed


@pytest.mark.parametrize(("bound", "passed"), [(0.0, True), (0.2, True), (0.21, False)])
def test_a_distance_from_label_shift_that_may_be_large_fails(bound, passed):
    found = check_distance(SimpleNamespace(distance_bound=bound))
    assert (found.passed, found.value) == (passed, bound)
    assert ("limit 20%" in found.text) is not passed


def test_a_distance_that_is_not_known_fails():
    found = check_distance(SimpleNamespace(distance_bound=None))
    assert (found.passed, found.value) == (False, None)


def amplified(change, moved):
    """Priors that change that much in total variation, and mean predictions that moved."""
    prior = np.array([0.5, 0.5])
    tables = SimpleNamespace(
        counts=np.array([60.0, 60.0]), means=np.array([[0.55, 0.45], [0.45, 0.55]])
    )
    turn = np.array([1.0, -1.0])
    weights = SimpleNamespace(
        predicted=prior + moved * turn, prior_source=prior, prior_target=prior + change * turn
    )
    return check_amplification(weights, tables)


@pytest.mark.parametrize(
    ("change", "moved", "passed"),
    [(0.3, 0.3, True), (0.3, 0.051, True), (0.3, 0.049, False), (0.09, 0.0, True)],
)
def test_a_change_of_priors_that_predictions_hardly_show_fails(change, moved, passed):
    """0.3 / 0.049 is above 6; a change of less than a tenth may be noise."""
    found = amplified(change, moved)
    assert found.passed is passed
    assert found.value == pytest.approx(change / moved if change > 0.1 else 1.0)


def test_amplification_that_was_not_looked_at_fails():
    found = check_amplification(SimpleNamespace(predicted=None), None)
    assert (found.passed, found.value) == (False, None)


@pytest.mark.parametrize(("found", "passed"), [(None, True), (0.31, True), (0.29, False)])
def test_a_share_within_its_error_of_zero_needs_a_model_that_discriminates(sample, found, passed):
    p, y, q = sample
    weights = calshift.label_shift_weights(p, y, q)
    tables = tables_of(p, y)
    inside = replace(weights, discrimination=0.05)
    assert check_boundary(inside, tables, 1500).passed  # no share is near 0 or 1
    covariance = weights.covariance.copy()
    covariance[3, 3] = weights.prior_target[3] ** 2 * 1.01
    near = replace(weights, covariance=covariance, discrimination=found)
    outcome = check_boundary(near, tables, 1500)
    assert outcome.passed is passed
    if not passed:
        assert (outcome.value, outcome.limit) == (found, 0.3)
        assert "class 3 is estimated within its error of 0 or 1" in outcome.text
    zero = weights.prior_target * np.array([1.0, 1, 1, 0])
    at_zero = replace(near, prior_target=zero / zero.sum())
    if found is not None:  # more is needed for a share of 0
        assert check_boundary(at_zero, tables, 1500).limit == 0.5


def test_priors_far_from_the_corrected_mean_prediction_fail():
    """The priors move by .49, the mean prediction by .09, or by .02 in the other direction."""
    assert amplified(0.49, 0.09).passed
    far = amplified(0.49, -0.02)
    assert not far.passed
    assert (round(far.value, 2), far.limit) == (0.51, 0.5)
    assert "differ by 51%" in far.text
