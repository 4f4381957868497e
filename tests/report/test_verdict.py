"""The answer in a sentence, thresholds, advice."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import calshift
from calshift.report.verdict import EXIT_CODES, Gate, advice, change, gist, verdict
from calshift.results import Diagnostic
from calshift.simulate import GaussianSimulation

FEW_TARGET_ROWS = "Collect more target rows: these are too few to estimate the class priors."


@pytest.fixture(scope="module")
def result():
    simulation = GaussianSimulation(n_classes=3, imbalance=6, temperature=0.6, seed=3)
    q, _ = simulation.target(2000, rng=2)
    return calshift.target_calibration_error(*simulation.source(2000, rng=1), q, check=False)


@pytest.fixture(scope="module")
def calibrated():
    simulation = GaussianSimulation(n_classes=3, imbalance=1, temperature=1.0, seed=3)
    q, _ = simulation.target(1500, rng=12)
    return calshift.target_calibration_error(*simulation.source(1500, rng=11), q, check=False)


def test_a_breach_is_judged_by_the_end_that_the_gate_names(result):
    low, high = result.confidence_interval(root=True)
    inside = (low + high) / 2
    assert Gate(low * 0.99).breached(result)
    assert not Gate(inside).breached(result)
    assert Gate(inside, "upper").breached(result)
    assert not Gate(high, "upper").breached(result)
    assert not Gate().breached(result)


def test_the_gate_is_in_units_of_the_root(result):
    low, _ = result.confidence_interval()
    root, _ = result.confidence_interval(root=True)
    assert low < root  # squares of an error below 1
    assert not Gate((low + root) / 2 + root).breached(result)
    assert Gate((low + root) / 2).breached(result)


def test_a_wider_level_breaches_less(result):
    low, _ = result.confidence_interval(0.8, root=True)
    assert not Gate(low * 0.999, level=0.999).breached(result)
    assert Gate(low * 0.999, level=0.8).breached(result)


def test_distrust_outranks_a_breach(result):
    failed = Diagnostic("overlap", 0.6, 0.5, passed=False, text="nothing is as it was")
    doubted = replace(result, diagnostics=(failed,), warnings=(failed.text,))
    assert Gate(0.0001).status(result) == "breached"
    assert Gate(0.0001).status(doubted) == "untrusted"
    assert verdict(doubted, Gate(0.0001)).startswith("Not reliable: nothing is as it was.")
    assert EXIT_CODES == {"fine": 0, "breached": 1, "untrusted": 3}


@pytest.mark.parametrize("bad", [-0.1, 1.5, np.nan, "0.1", True])
def test_a_threshold_that_is_no_probability_is_refused(bad):
    with pytest.raises(calshift.InvalidInput, match="max_error must be a probability"):
        Gate(bad)


def test_other_gates_and_levels_are_refused():
    with pytest.raises(calshift.InvalidInput, match="gate must be one of lower, upper"):
        Gate(0.1, "middle")
    with pytest.raises(calshift.InvalidInput, match="level must lie between"):
        Gate(0.1, level=95)


def test_the_verdict_says_the_numbers_of_the_result(result):
    low, high = result.confidence_interval(root=True)
    said = verdict(result, Gate())
    assert said.startswith("Miscalibrated on the target")
    for number in (result.root, low, high, result.source.root):
        assert f"{number:.4f}" in said
    assert "95% interval" in said
    assert "90% interval" in verdict(result, Gate(level=0.9))


def test_the_verdict_follows_the_comparison_with_the_source(result):
    low, high = change(result).confidence_interval(root=True)
    said = verdict(result, Gate())
    assert ("larger than the source's" in said) == (low > 0)
    assert ("smaller than the source's" in said) == (high < 0)
    assert ("not clearly different" in said) == (low <= 0 <= high)
    assert change(replace(result, _influence=None)) is None
    assert ", compared with the source's" in verdict(replace(result, _influence=None), Gate())


def test_the_verdict_places_the_threshold(result):
    low, high = result.confidence_interval(root=True)
    assert "above the" in verdict(result, Gate(round(low / 2, 4)))
    assert "within the" in verdict(result, Gate(round(high * 2, 4)))
    inside = round((low + high) / 2, 4)
    assert "not counted as a breach" in verdict(result, Gate(inside))
    assert ": counted as a breach" in verdict(result, Gate(inside, "upper"))


def test_a_calibrated_model_is_not_called_miscalibrated(calibrated):
    assert calibrated.confidence_interval()[0] == 0
    assert verdict(calibrated, Gate()).startswith("No miscalibration detected")
    assert any("No action needed yet" in line for line in advice(calibrated, Gate()))


def test_advice_names_classes_that_nothing_is_known_about():
    simulation = GaussianSimulation(n_classes=4, imbalance=2, seed=1)
    p, y = simulation.source(1500, rng=1)
    q, _ = simulation.target(1500, rng=2)
    kept = y != 2
    with pytest.warns(calshift.UnreliableWeights):
        result = calshift.target_calibration_error(p[kept], y[kept], q, check=False)
    assert any("labelled rows of class 2" in line for line in advice(result, Gate()))


def test_without_an_interval_a_threshold_cannot_be_judged():
    result = calshift.target_calibration_error(
        np.linspace(0.1, 0.9, 60), np.arange(60) % 2, np.linspace(0.2, 0.8, 60), interval=None,
        weights=[1, 1], check=False,
    )  # fmt: skip
    assert "no interval" in verdict(result, Gate())
    with pytest.raises(calshift.InvalidInput, match="no interval was computed"):
        Gate(0.1).breached(result)


def test_within_the_limit_nothing_calls_for_a_change(result):
    high = result.confidence_interval(root=True)[1]
    gate = Gate(round(high * 2, 3))
    assert gist(result, gate) == "Within the limit"
    assert not any("Recalibrate the probabilities" in line for line in advice(result, gate))
    assert any("Recalibrate the probabilities" in line for line in advice(result, Gate()))


def test_an_upper_gate_that_is_reached_is_not_called_above(calibrated):
    high = calibrated.confidence_interval(root=True)[1]
    gate = Gate(high / 2, "upper")
    assert gate.breached(calibrated)
    assert gist(calibrated, gate) == "Not shown to be within the limit"


def test_estimates_with_their_noise_left_in_are_not_called_miscalibrated(result):
    assert gist(replace(result, estimator="plugin"), Gate()) == "Estimate"


def test_a_model_without_a_single_mistake_proves_little():
    y = np.arange(60) % 3
    result = calshift.target_calibration_error(
        np.eye(3)[y], y, np.eye(3)[y], weights=np.ones(3), check=False
    )
    assert result.confidence_interval(root=True) == (0, 0)
    assert "no residual at all" in " ".join(result.warnings)
    assert Gate(0.01, "upper").breached(result)
    assert not Gate(0.01).breached(result)


@pytest.mark.filterwarnings("ignore::calshift.UnreliableWeights")
def test_a_target_of_a_few_rows_is_never_trusted():
    simulation = GaussianSimulation(n_classes=3, seed=3)
    p, y = simulation.source(500, rng=1)
    q, _ = simulation.target(40, rng=2)
    for rows in (2, 5, 29):
        few = calshift.target_calibration_error(p, y, q[:rows], weights=np.ones(3), check=False)
        assert not few.trusted
        assert f"the target has {rows} rows" in few.warnings[0]
        assert advice(few, Gate()) == [FEW_TARGET_ROWS]
    enough = calshift.target_calibration_error(p, y, q, weights=np.ones(3), check=False)
    assert enough.trusted


@pytest.mark.filterwarnings("ignore::calshift.UnreliableWeights")
def test_an_error_that_is_extrapolated_is_not_trusted():
    rng = np.random.default_rng(0)
    p = np.where(rng.random(600) < 0.5, 0.4, 0.6)
    y = (rng.random(600) < p).astype(int)
    result = calshift.target_calibration_error(p, y, rng.beta(5, 1, 600))
    assert not result.trusted
    assert any("of the target has almost no source support" in w for w in result.warnings)


@pytest.mark.parametrize("estimator", ["debiased", "plugin"])
def test_gist_sentence_and_status_agree_on_the_limit(result, estimator):
    low, high = result.confidence_interval(root=True)
    before = replace(result.source, estimator=estimator)
    shown = replace(result, estimator=estimator, _source=lambda: before)
    places = {low / 2: "above", (low + high) / 2: "open", high * 1.5: "within"}
    for limit, place in places.items():
        for side in ("lower", "upper"):
            gate = Gate(limit, side)
            assert gate.place(shown) == place
            assert gate.breached(shown) == (place == "above" or (side, place) == ("upper", "open"))
            assert (gist(shown, gate) == "Above the limit") == (place == "above")
            assert (gist(shown, gate) == "Within the limit") == (place == "within")
            assert ("is inside the interval" in verdict(shown, gate)) == (place == "open")


def test_what_is_not_proven_is_not_called_within():
    y = np.arange(60) % 3
    perfect = calshift.target_calibration_error(
        np.eye(3)[y], y, np.eye(3)[y], weights=np.ones(3), check=False, waive=["residual-rows"]
    )
    said = verdict(perfect, Gate(0.01, "upper"))
    assert said.startswith("Not shown to be within the limit")
    assert "cannot be tested: counted as a breach" in said
    assert "That is within" not in said
