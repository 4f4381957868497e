"""Recalibration does no harm: fallbacks, and the scores that are estimated without labels."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

import calshift
from calshift import Predictions
from calshift.recalibration import make_recalibrator
from calshift.recalibration.assessment.fragility import describe_fragility
from calshift.recalibration.assessment.scores import ClassDistribution, Scores, Strata
from calshift.simulate import GaussianSimulation

pytestmark = pytest.mark.filterwarnings("ignore::calshift.UnreliableWeights")
MODEL = GaussianSimulation(3, dimensions=3, imbalance=4, temperature=0.5, seed=4)
P, Y = MODEL.source(2000, rng=0)
Q, TRUTH = MODEL.target(2000, rng=1)
CERTAIN = np.eye(3)[Q.argmax(axis=1)]  # a target that is not usable


def test_accuracy_and_log_loss_are_those_with_labels():
    found = calshift.recalibrate(P, Y, Q, check=False)
    assert found.trusted
    assert found.fallback is None
    assert found.recalibrator is found.requested
    before, after = (Scores.of(Predictions(p, TRUTH)) for p in (Q, found.probabilities))
    pairs = (
        (found.accuracy, before.hit, after.hit),
        (found.log_loss, *(s[1] for s in (before, after))),
    )
    for score, old, new in pairs:
        change = new - old
        labelled = change.std() / np.sqrt(len(change))
        # 4 standard errors of the difference of two independent estimates
        assert abs(score.change - change.mean()) < 4 * np.hypot(labelled, score.standard_error)
        assert score.standard_error < 3 * labelled


def test_the_standard_error_of_a_change_is_that_of_repetition():
    rng = np.random.default_rng(0)
    q, n = np.array([0.5, 0.3, 0.2]), 300
    covariance = 1e-3 * (np.diag(q) - np.outer(q, q))
    changes, errors = [], []
    for _ in range(400):
        y = rng.integers(0, 3, n)
        rows = Predictions(np.full((n, 3), 1 / 3), y)
        shares = rng.multivariate_normal(q, covariance)
        gain = rng.normal(np.array([0.0, 1.0, 4.0])[y], 1.0)
        none = Scores(np.zeros(n), np.zeros(n))
        found = Strata(rows).changes(
            none, Scores(gain, gain), ClassDistribution(shares, covariance)
        )
        changes.append(found.accuracy.change)
        errors.append(found.accuracy.standard_error)
    # a standard deviation of 400 draws has a relative standard error of 3.5%
    assert np.mean(errors) == pytest.approx(np.std(changes), rel=0.12)


@pytest.mark.parametrize("target", [CERTAIN], ids=["certain"])
def test_without_trust_the_source_alone_is_followed(target):
    found = calshift.recalibrate(P, Y, target, check=False)
    assert not found.trusted
    assert found.gist() == "Not reliable"
    assert found.fallback == "source"
    assert type(found.recalibrator).__name__ in ("TemperatureScaling", "VectorScaling")
    plain = make_recalibrator(found.recalibrator).fit(P, Y)
    np.testing.assert_allclose(found.probabilities, plain.transform(target), atol=1e-9)
    np.testing.assert_array_equal(found.recalibrator.transform(target), found.probabilities)
    assert found.applied in str(found)
    assert found.to_dict()["fallback"] == "source"


def test_a_calibrated_source_leaves_the_input_unchanged():
    calibrated = GaussianSimulation(3, dimensions=3, imbalance=4, temperature=1.0, seed=4)
    p, y = calibrated.source(1000, rng=0)
    found = calshift.recalibrate(p, y, CERTAIN, check=False)
    assert found.fallback == "unchanged"
    np.testing.assert_array_equal(found.probabilities, CERTAIN)
    back = calshift.Recalibrator.from_dict(found.recalibrator.to_dict())
    np.testing.assert_array_equal(back.transform(CERTAIN), CERTAIN)


def confused(rng, shares, n=4000):
    """Class 0 is recognised, a third of the others are taken for it, with confidence."""
    y = rng.choice(3, n, p=shares)
    seen = np.where(rng.random(n) < 1 / 3, 0, y)
    z = 3.5 * np.eye(3)[seen] + 0.7 * rng.normal(size=(n, 3))
    p = np.exp(z - z.max(axis=1, keepdims=True))
    return p / p.sum(axis=1, keepdims=True), y


def test_a_calibration_of_the_source_that_harms_the_target_is_not_applied():
    """Less confidence suits the even source, and costs log loss where class 0 dominates."""
    rng = np.random.default_rng(0)
    p, y = confused(rng, np.ones(3) / 3)
    q, truth = confused(rng, [0.96, 0.02, 0.02])
    q = q**1.15 / (q**1.15).sum(axis=1, keepdims=True)  # not label shift
    found = calshift.recalibrate(p, y, q)
    assert not found.trusted
    assert found.fallback is not None
    cooler = make_recalibrator("temperature").fit(p, y).transform(q)
    before, plain, applied = (
        Scores.of(Predictions(x, truth)).log_loss.mean() for x in (q, cooler, found.probabilities)
    )
    assert plain > before + 0.02
    assert applied <= before


def test_a_recalibration_that_makes_a_score_worse_is_not_applied():
    wrong = calshift.PriorCorrection(weights=[1.0, 0.001, 0.001])
    found = calshift.recalibrate(P, Y, Q, method=wrong, check=False)
    assert found.trusted
    assert found.log_loss.is_worse()
    assert found.gist() == "Worse"
    assert found.fallback is not None
    assert type(found.recalibrator) is not type(wrong)
    kept = (Q.argmax(axis=1) == TRUTH).mean()
    assert (found.probabilities.argmax(axis=1) == TRUTH).mean() >= kept - 0.01


def majority(seed, target_share):
    """Three classes, the first predicted for 97% of the source's rows; weak features."""
    rng = np.random.default_rng(seed)
    prior = np.array([0.9, 0.05, 0.05])

    def draw(shares, n=4000):
        y = rng.choice(3, n, p=shares)
        x = rng.normal(size=(n, 3)) + 1.4 * np.eye(3)[y]
        z = 1.4 * x + np.log(prior)
        p = np.exp(z - z.max(axis=1, keepdims=True))
        return p / p.sum(axis=1, keepdims=True), y

    return (*draw(prior), draw(np.array([1 - target_share, target_share - 0.05, 0.05]))[0])


def test_a_model_of_one_class_does_not_follow_a_shift_that_it_hardly_shows():
    p, y, q = majority(0, 0.3)
    found = calshift.recalibrate(p, y, q)
    assert (p.argmax(axis=1) == 0).mean() > 0.9
    assert found.before.trusted
    assert not found.trusted
    assert found.gist() == "Not reliable"
    assert found.fallback is not None
    assert found.warnings[0].startswith("the model predicts one class for")
    insisted = calshift.recalibrate(p, y, q, waive="amplification")
    assert insisted.trusted
    assert insisted.fallback is None
    small = calshift.recalibrate(*majority(1, 0.12))
    assert not any(note.startswith("the model predicts one class") for note in small.warnings)


@pytest.mark.parametrize(
    ("values", "change", "name"),
    [
        ({"amplification": 2.4, "lack-of-fit": 2.4}, 0.2, None),
        ({"amplification": 2.6, "lack-of-fit": 1.0}, 0.2, "amplification"),
        ({"amplification": 1.5, "lack-of-fit": 1.0}, 0.3, "amplification"),
        ({"amplification": 1.5, "lack-of-fit": 2.6}, 0.2, "lack-of-fit"),
        ({}, 0.3, None),  # both waived
    ],
)
def test_reasons_not_to_follow_a_shift_with_a_model_of_one_class(values, change, name):
    rows = Predictions(np.tile([0.9, 0.1], (100, 1)), np.arange(100) % 2)
    before = SimpleNamespace(
        diagnostics=[SimpleNamespace(name=k, value=v, waived=False) for k, v in values.items()],
        class_weights=SimpleNamespace(
            prior_source=np.array([0.5, 0.5]), prior_target=np.array([0.5 + change, 0.5 - change])
        ),
    )
    found = describe_fragility(rows, before)
    assert (f'waive "{name}"' in found) if name else found == ""
    mixed = Predictions(np.array([[0.9, 0.1], [0.1, 0.9]] * 50), np.arange(100) % 2)
    assert describe_fragility(mixed, before) == ""
