"""Warnings of a result: what a statistician would object to, worst first."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import calshift
from calshift.diagnostics.trust import collect_warnings
from calshift.simulate import BetaSimulation, GaussianSimulation


@pytest.fixture(scope="module")
def sample():
    simulation = GaussianSimulation(n_classes=4, imbalance=4, seed=1)
    p, y = simulation.source(1500, rng=1)
    q, _ = simulation.target(1500, rng=2)
    return p, y, q


def test_a_sound_result_has_no_warning(sample):
    result = calshift.target_calibration_error(*sample)
    assert result.warnings == ()
    assert result.trusted


def test_a_rejected_assumption_comes_first_and_breaks_trust(sample):
    p, y, q = sample
    flat = 0.6 * q + 0.4 * q.mean(axis=0)  # the model has lost much of what it knew
    with pytest.warns(calshift.UnreliableWeights, match="More than the class priors changed"):
        result = calshift.target_calibration_error(p, y, flat)
    assert result.assumption.rejected
    assert result.warnings[0].startswith("more than the class distribution has changed")
    assert not result.trusted
    assert "! more than the class distribution" in str(result)


def test_without_the_check_there_is_no_assumption(sample):
    result = calshift.target_calibration_error(*sample, check=False)
    assert result.assumption is None
    assert result.to_dict()["assumption"] is None
    assert "no sign of other changes" not in str(result)


def test_the_check_is_that_of_check_label_shift(sample):
    result = calshift.target_calibration_error(*sample)
    assert result.assumption == calshift.check_label_shift(*sample)


@pytest.mark.parametrize(("ess", "trusted", "said"), [(10, False, True), (60, True, True),
                                                      (200, True, False)])  # fmt: skip
def test_a_small_effective_sample_is_said_and_a_tiny_one_is_not_trusted(ess, trusted, said):
    # two classes, one of weight 0: the effective sample size is the number of rows of the other
    n = 1000
    y = np.r_[np.ones(ess), np.zeros(n - ess)].astype(int)
    weights = calshift.weights_from_labels(y, np.ones(50, dtype=int))
    notes, sure = collect_warnings(weights, None, (0.0, 0.0), 0)
    warning = f"effective sample size of the weighted source is {ess}"
    assert (warning in notes) == said
    assert sure == trusted


def test_doubted_weights_break_trust_by_the_share_of_their_classes(sample):
    weights = calshift.label_shift_weights(*sample)
    assert collect_warnings(weights, None, (0.0, 0.0), 0) == ((), True)
    first = replace(weights, reasons=("few", "", "", ""))  # half of the target is of class 0
    assert first.prior_target[0] > 0.25
    notes, trusted = collect_warnings(first, None, (0.0, 0.0), 0)
    assert "is in classes whose weight is not trusted" in notes[0]
    assert not trusted
    last = replace(weights, reasons=("", "", "", "few"))
    assert last.prior_target[3] < 0.25
    assert collect_warnings(last, None, (0.0, 0.0), 0) == ((), True)


def test_weights_that_did_not_converge_break_trust(sample):
    weights = calshift.label_shift_weights(*sample)
    stuck = replace(weights, converged=False, warnings=("em did not converge",))
    assert collect_warnings(stuck, None, (0.0, 0.0), 0) == (("em did not converge",), False)
    slow = replace(weights, warnings=("one thing",))
    assert collect_warnings(slow, None, (0.6, 0.2), 0)[0] == (
        "one thing",
        "60% of the error has almost no source support (overlap)",
        "20% of the target has almost no source support (overlap)",
    )


def test_an_error_that_rests_on_few_source_rows_is_said():
    """High scores are missing from the source but for a handful, and it is wrong there."""
    rng = np.random.default_rng(0)
    p = np.r_[rng.uniform(0, 0.3, 1500), rng.uniform(0.7, 1, 4)]
    y = (rng.random(len(p)) < p).astype(int)
    y[-4:] = 0
    q = np.r_[rng.uniform(0, 0.3, 1000), rng.uniform(0.7, 1, 500)]
    thin = calshift.target_calibration_error(p, y, q, weights=[1, 1], check=False)
    assert any("% of the target has almost no source support" in n for n in thin.warnings)
    p, y = BetaSimulation().source(1500, rng=1)
    well = calshift.target_calibration_error(
        p, y, p, weights=[1, 1], check=False
    )  # the same rows on both sides
    assert not any("almost no source support" in note for note in well.warnings)


def test_a_source_without_the_main_class_is_not_trusted():
    """Weights of the classes seen know nothing of it; predictions do."""
    simulation = GaussianSimulation(n_classes=3, spread=3.0, seed=2)
    p, y = simulation.source(1500, rng=1)
    kept = y < 2
    with pytest.warns(calshift.UnreliableWeights, match="the source lacks class 2"):
        result = calshift.target_calibration_error(p[kept], y[kept], p[y == 2], check=False)
    assert result.class_weights.unseen_share > 0.5
    assert not result.trusted


def test_an_assumption_that_cannot_be_tested_is_said():
    simulation = GaussianSimulation(n_classes=3, seed=1)
    p, y = simulation.source(1500, rng=1)
    q, _ = simulation.target(1500, rng=2)
    result = calshift.target_calibration_error(p, y, np.eye(3)[q.argmax(axis=1)])
    assert result.assumption.p_value is None
    assert any("could not be tested" in note for note in result.warnings)
    assert "could not be tested" in str(result)


def test_few_rows_a_class_are_said():
    simulation = GaussianSimulation(n_classes=20, dimensions=10, seed=1)
    p, y = simulation.source(240, rng=1)
    for options, said in (({}, True), ({"kind": "top-label"}, False)):
        notes = calshift.calibration_error(p, y, **options).warnings
        assert any("12 source rows a class are few" in note for note in notes) == said
