"""Warnings and trust of a result: its conditions, worst first, and waivers."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import calshift
from calshift.diagnostics.trust import collect_warnings
from calshift.diagnostics.weight_conditions import check_class_weights, check_effective_size
from calshift.simulate import BetaSimulation, GaussianSimulation


@pytest.fixture(scope="module")
def sample():
    simulation = GaussianSimulation(n_classes=4, imbalance=4, seed=1)
    p, y = simulation.source(1500, rng=1)
    q, _ = simulation.target(1500, rng=2)
    return p, y, q


def outcome(result, name):
    return {one.name: one for one in result.diagnostics}[name]


def failures(result):
    return [one.name for one in result.diagnostics if one.failed]


def test_a_sound_result_has_no_warning(sample):
    result = calshift.target_calibration_error(*sample)
    assert result.warnings == ()
    assert result.trusted
    assert all(one.passed and not one.waived for one in result.diagnostics)
    assert result.source.trusted
    assert result.to_dict()["diagnostics"] == [one.to_dict() for one in result.diagnostics]


def test_a_result_of_which_nothing_was_checked_is_not_trusted(sample):
    assert not replace(calshift.target_calibration_error(*sample), diagnostics=()).trusted


def test_a_rejected_assumption_comes_first_and_breaks_trust(sample):
    p, y, q = sample
    flat = 0.6 * q + 0.4 * q.mean(axis=0)  # the model has lost much of what it knew
    with pytest.warns(calshift.UnreliableWeights, match="More than the class priors changed"):
        result = calshift.target_calibration_error(p, y, flat)
    assert result.assumption.rejected
    assert result.warnings[0].startswith("more than the class distribution has changed")
    assert not result.trusted
    assert "label-shift-test" in failures(result)
    assert "! more than the class distribution" in str(result)


def test_without_the_check_there_is_no_assumption_and_it_is_waived(sample):
    result = calshift.target_calibration_error(*sample, check=False)
    assert result.assumption is None
    assert result.to_dict()["assumption"] is None
    assert "no sign of other changes" not in str(result)
    test = outcome(result, "label-shift-test")
    assert (test.waived, test.passed, test.value) == (True, False, None)
    assert result.trusted
    assert result.warnings == ()
    same = calshift.target_calibration_error(*sample, waive=["label-shift-test"])
    assert same.diagnostics == result.diagnostics
    assert same.assumption is None


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
    found = check_effective_size(weights)
    assert found.passed == trusted
    assert found.value == pytest.approx(ess)
    notes = collect_warnings([found], weights)
    assert any(f"effective sample size of the weighted source is {ess}" in n for n in notes) == said


def test_unreliable_weights_break_trust_by_the_share_of_their_classes(sample):
    weights = calshift.label_shift_weights(*sample)
    assert check_class_weights(weights).passed
    first = replace(weights, reasons=("few", "", "", ""))  # half of the target is of class 0
    assert first.prior_target[0] > 0.25
    found = check_class_weights(first)
    assert "is in classes whose weight is not trusted" in found.text
    assert (found.passed, found.value) == (False, pytest.approx(first.prior_target[0]))
    last = replace(weights, reasons=("", "", "", "few"))
    assert last.prior_target[3] < 0.25
    assert check_class_weights(last).passed


def test_weights_that_did_not_converge_break_trust(sample):
    weights = calshift.label_shift_weights(*sample)
    stuck = replace(weights, converged=False, warnings=("em did not converge",))
    found = check_class_weights(stuck)
    assert (found.passed, found.text) == (False, "em did not converge")
    slow = replace(weights, warnings=("one thing",))
    assert collect_warnings([], slow, (0.6, 0.2)) == (
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
    assert not outcome(result, "unseen-classes").passed
    assert not result.trusted
    assert result.warnings[0].startswith("the source lacks class 2")


def test_an_assumption_that_cannot_be_tested_is_not_trusted_unless_waived():
    simulation = GaussianSimulation(n_classes=3, seed=1)
    p, y = simulation.source(1500, rng=1)
    q, _ = simulation.target(1500, rng=2)
    hard = np.eye(3)[q.argmax(axis=1)]
    result = calshift.target_calibration_error(p, y, hard)
    assert result.assumption.p_value is None
    assert outcome(result, "label-shift-test").value is None
    assert not result.trusted
    assert any('waive "label-shift-test"' in note for note in result.warnings)
    assert "could not be tested" in str(result)
    waived = calshift.target_calibration_error(p, y, hard, waive="label-shift-test")
    assert "label-shift-test" not in failures(waived)


def test_few_rows_a_class_are_said_and_not_trusted():
    simulation = GaussianSimulation(n_classes=20, dimensions=10, seed=1)
    p, y = simulation.source(240, rng=1)
    for options, said in (({}, True), ({"kind": "top-label"}, False)):
        result = calshift.calibration_error(p, y, **options)
        notes = result.warnings
        assert any("12 source rows a class are few" in note for note in notes) == said
        assert ("sample-size" in failures(result)) == said


def test_waived_conditions_do_not_break_trust_but_are_reported(sample):
    p, y, _ = sample
    few = calshift.calibration_error(p[:20], y[:20], kind="top-label")
    assert failures(few) == ["sample-size", "interval-width"]
    waived = calshift.calibration_error(
        p[:20], y[:20], kind="top-label", waive=("sample-size", "interval-width")
    )
    assert waived.trusted
    assert outcome(waived, "sample-size").waived
    assert waived.warnings == few.warnings


def test_without_an_interval_its_width_is_not_checked(sample):
    result = calshift.target_calibration_error(*sample, interval=None)
    assert failures(result) == ["interval-width"]
    assert outcome(result, "interval-width").value is None
    waived = calshift.target_calibration_error(*sample, interval=None, waive=["interval-width"])
    assert waived.trusted


def test_an_interval_that_says_almost_nothing_is_not_trusted():
    """15 rows: the interval of the error is wider than a quarter."""
    p, y = BetaSimulation().source(15, rng=1)
    result = calshift.calibration_error(p, y, waive=["sample-size"])
    low, high = result.confidence_interval(0.95, root=True)
    width = outcome(result, "interval-width")
    assert high - low > 0.25
    assert (width.passed, width.value) == (False, pytest.approx(high - low))
    assert "limit 0.25" in width.text


def test_given_weights_need_no_conditions_of_estimated_ones(sample):
    result = calshift.target_calibration_error(*sample, weights=np.ones(4))
    names = {one.name for one in result.diagnostics}
    assert names == {
        "label-order", "sample-size", "unseen-classes", "label-shift-test",
        "label-shift-direction", "label-shift-distance", "effective-sample-size", "residual-rows",
        "overlap", "interval-width",
    }  # fmt: skip


def test_what_cannot_be_checked_from_sums_fails_unless_waived(sample):
    p, y, q = sample
    sums = calshift.accumulate(p, y, q, edges=calshift.bin_edges(q))
    result = calshift.target_calibration_error_from(sums, weights=np.ones(4))
    unknown = [one.name for one in result.diagnostics if one.value is None]
    assert failures(result) == unknown
    assert {"label-order", "label-shift-test", "interval-width"} <= set(unknown)
    assert "overlap" not in unknown
    waived = calshift.target_calibration_error_from(sums, weights=np.ones(4), waive=unknown)
    assert waived.trusted


def test_weights_alone_are_judged_on_request(sample):
    plain = calshift.label_shift_weights(*sample)
    assert plain.diagnostics == ()
    assert not plain.trusted
    found = calshift.label_shift_weights(*sample, diagnose=True)
    assert found.trusted
    assert found.assumption == calshift.check_label_shift(*sample)
    assert "interval-width" not in {one.name for one in found.diagnostics}


@pytest.mark.parametrize("waive", [("nonsense",), "nonsense", 3, (None,), ("overlap", 1)])
def test_unknown_conditions_are_refused_with_the_names_allowed(sample, waive):
    calls = (calshift.target_calibration_error, calshift.recalibrate, calshift.monitor)
    for call in calls:
        with pytest.raises(calshift.InvalidInput, match="waive must name conditions among label-"):
            call(*sample, waive=waive)


def test_a_condition_of_another_call_is_refused(sample):
    with pytest.raises(calshift.InvalidInput, match="among label-order, sample-size, interval-w"):
        calshift.calibration_error(*sample[:2], waive=["overlap"])


def test_monitor_reports_the_first_failed_condition_of_a_window(sample):
    p, y, q = sample
    rest = {"p_target": q, "rows": 750}
    series = calshift.monitor(p, y, **rest)
    assert series.reasons == ("", "")
    with pytest.warns(calshift.UnreliableWeights, match="2 of 2 windows"):
        series = calshift.monitor(p, y, **rest, interval=None)
    assert series.reasons == ("interval-width: not checked",) * 2
    assert calshift.monitor(p, y, **rest, interval=None, waive=["interval-width"]).trusted.all()


def test_recalibration_waives_by_name_in_both_errors(sample):
    result = calshift.recalibrate(*sample, folds=2, waive=["overlap"], check=False)
    for one in (result.before, result.after):
        assert outcome(one, "overlap").waived
        assert outcome(one, "label-shift-test").waived
