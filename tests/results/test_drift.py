"""The sensitivity to drift: bounds, intervals that allow for it, and where it is shown."""

from __future__ import annotations

import json
import pickle
from dataclasses import replace

import numpy as np
import pytest

import calshift
from calshift import InvalidInput
from calshift.report import summarize
from calshift.report.verdict import Gate, verdict
from calshift.results.drift import CELLS_AN_OCTAVE, SPREAD, DriftInfluence, count_sizes
from calshift.simulate import GaussianSimulation

pytestmark = pytest.mark.filterwarnings("ignore::calshift.UnreliableWeights")
SIMULATION = GaussianSimulation(n_classes=3, imbalance=4, temperature=0.5, dimensions=4)
SOURCE, TARGET = SIMULATION.source(3000, rng=1), SIMULATION.target(3000, rng=2)


def asked(**options):
    return calshift.target_calibration_error(*SOURCE, TARGET[0], check=False, **options)


@pytest.fixture(scope="module", params=[2, 1])
def result(request):
    return asked(norm=request.param)


def test_means_of_the_largest_are_those_of_sorted_values():
    rng = np.random.default_rng(0)
    values = rng.lognormal(-3, 2, (3, 5000))
    found = DriftInfluence.of(count_sizes(values, np.ones(5000)))
    for share in (0.1, 0.37, 1.0):
        whole = int(share * 5000)
        expected = np.sort(values, axis=1)[:, -whole:].mean(axis=1)
        means = [found.mean_of_largest(k, share) for k in range(3)]
        # only within the last cell a mean stands for its values, which differ by 1/16 at most
        np.testing.assert_allclose(means, expected, rtol=1 / CELLS_AN_OCTAVE)
    exact = [found.mean_of_largest(k, 1.0) for k in range(3)]
    np.testing.assert_allclose(exact, values.mean(axis=1), rtol=1e-12)


def test_frequencies_are_rows():
    rng = np.random.default_rng(0)
    values, times = rng.lognormal(size=(3, 200)), rng.integers(1, 4, 200)
    once = count_sizes(np.repeat(values, times, axis=1), np.ones(times.sum()))
    np.testing.assert_allclose(count_sizes(values, times.astype(float)), once, rtol=1e-12)


def test_sizes_beyond_the_grid_and_below_zero():
    values = np.array([[-1.0, 0.0, 1e-300, 1e300]] * 3)
    counts, sums = count_sizes(values, np.ones(4))[0]
    assert counts[0] == 3
    assert counts[-1] == 1
    np.testing.assert_allclose(sums.sum(), 1e300)


def test_the_change_is_proportional_up_to_the_spread_and_increases(result):
    highs, lows = np.array([result._drift.change(d) for d in (0, 0.01, SPREAD, 0.5, 1)]).T
    assert (np.diff(highs) > 0).all()
    assert (np.diff(lows) > 0).all()
    assert highs[0] == lows[0] == 0
    assert highs[1] == pytest.approx(highs[2] * 0.01 / SPREAD)


def test_the_sensitivity_is_the_widening_of_the_interval(result):
    one = result.drift_sensitivity(0.002)
    low, high = result.confidence_interval(drift=0.0)
    least, most = result.confidence_interval(drift=0.002)
    assert low - least == pytest.approx(one.too_high)
    assert most - high == pytest.approx(one.too_low)
    assert one.change == max(one.too_high, one.too_low)
    ends = result.estimate - one.too_high, result.estimate + one.too_low
    roots = np.maximum(ends, 0) ** (1 / result.norm) - result.root
    assert one.root_change == pytest.approx(np.abs(roots).max())


def test_the_change_of_a_root_near_zero_is_finite(result):
    zero = replace(result, estimate=-1e-9)
    one = zero.drift_sensitivity(0.01)
    assert one.root_change == pytest.approx(one.too_low ** (1 / result.norm))


def test_a_stated_drift_widens_the_default_interval(result):
    stated = asked(norm=result.norm, drift=0.01)
    assert stated.estimate == result.estimate
    assert stated.drift == 0.01
    assert stated.confidence_interval() == result.confidence_interval(drift=0.01)
    assert stated.confidence_interval(drift=0) == result.confidence_interval()
    np.testing.assert_array_equal(stated.class_intervals(), result.class_intervals())
    assert dict(stated.settings)["drift"] == 0.01
    assert stated.to_dict()["settings"]["drift"] == 0.01
    assert "allows for 1% of the target rows" in str(stated)
    assert "allows for" not in str(result)
    assert pickle.loads(pickle.dumps(stated)).confidence_interval() == stated.confidence_interval()


def test_the_source_with_its_labels_has_no_drift():
    stated = asked(drift=0.2)
    before = asked().source
    assert stated.source.drift == 0
    assert stated.source.confidence_interval() == before.confidence_interval()
    with pytest.raises(InvalidInput, match="target without labels"):
        before.drift_sensitivity()


def test_the_break_even_drift_is_where_the_interval_starts_to_contain_zero(result):
    drift = result.break_even_drift()
    assert 0 < drift < 1
    assert result.confidence_interval(drift=drift * 0.999)[0] > 0
    assert result.confidence_interval(drift=drift * 1.001)[0] == 0


def test_the_break_even_drift_of_a_limit(result):
    low, high = result.confidence_interval(root=True)
    for limit, end, sign in ((low / 2, 0, 1), (high * 1.2, 1, -1)):
        drift = result.break_even_drift(limit)
        nearly = result.confidence_interval(root=True, drift=drift * 0.999)[end]
        beyond = result.confidence_interval(root=True, drift=drift * 1.001)[end]
        assert sign * (nearly - limit) > 0 > sign * (beyond - limit)
    assert result.break_even_drift((low + high) / 2) == 0.0
    assert result.break_even_drift(0.999, level=0.9) > 0.5


def test_a_drift_that_no_row_can_cause_is_infinite(result):
    tame = replace(result, _drift=DriftInfluence(np.ones((3, 1)), np.full((3, 1), 1e-9)))
    assert tame.break_even_drift() == np.inf
    assert summarize(tame)["drift"]["break_even"] is None
    assert "another distribution" not in verdict(tame, Gate())


@pytest.mark.parametrize("drift", [-0.1, 1.1, np.nan, "0.1", True, None])
def test_a_drift_is_a_share(drift, result):
    with pytest.raises(InvalidInput, match="drift"):
        result.drift_sensitivity(drift)
    if drift is not None:
        with pytest.raises(InvalidInput, match="drift"):
            result.confidence_interval(drift=drift)
    with pytest.raises(InvalidInput, match="drift"):
        asked(drift=drift)


@pytest.mark.parametrize(
    "options",
    [
        {"interval": None},
        {"interval": "bootstrap", "n_boot": 20, "rng": 0},
        {"estimator": "paper", "interval": None},
        {"norm": 3, "interval": None},
        {"kernel": "triweight", "interval": None, "kind": "top-label"},
    ],
)
def test_what_has_no_sensitivity_says_so(options):
    with pytest.raises(InvalidInput, match=r'drift=0.01 needs interval="influence"'):
        asked(drift=0.01, **options)
    if options != {"interval": None}:
        return
    without = asked(**options)
    assert not without.has_drift_sensitivity
    assert summarize(without)["drift"] is None
    with pytest.raises(InvalidInput, match="interval"):
        without.break_even_drift()
    with pytest.raises(InvalidInput, match='needs interval="influence"'):
        without.drift_sensitivity()


def test_the_verdict_has_a_sentence(result):
    drift = result.break_even_drift()
    sentence = f"If {drift:.1%} of the target rows came from another distribution, the interval"
    assert f"{sentence} could include 0." in verdict(result, Gate())
    low, high = result.confidence_interval(root=True)
    for limit in (low / 2, high * 1.2):
        assert "the interval could include the limit." in verdict(result, Gate(limit))
    assert "another distribution" not in verdict(result, Gate((low + high) / 2))
    wide = verdict(asked(norm=result.norm, drift=drift * 1.2), Gate())
    assert wide.startswith("Not reliable: the 95% interval has a width of")
    stated = asked(norm=result.norm, drift=drift * 1.2, waive=("interval-width",))
    said = verdict(stated, Gate())
    assert said.startswith("No miscalibration detected")
    assert "of the target rows outside label shift" in said
    assert "another distribution" not in said


def test_the_gate_allows_for_a_stated_drift(result):
    limit = result.confidence_interval(root=True)[0] * 0.98
    assert Gate(limit).breached(result)
    assert not Gate(limit).breached(asked(norm=result.norm, drift=0.02))


def test_the_summary(result):
    found = summarize(result, Gate())["drift"]
    assert found["stated"] == 0
    assert found["sensitivity"] == result.drift_sensitivity(0.01).to_dict()
    assert found["break_even"] == result.break_even_drift()
    json.dumps(found, allow_nan=False)


def test_a_difference_adds_the_drift_of_both(result):
    other = calshift.target_calibration_error(
        SOURCE[0] ** 2 / (SOURCE[0] ** 2).sum(axis=1, keepdims=True), SOURCE[1],
        TARGET[0] ** 2 / (TARGET[0] ** 2).sum(axis=1, keepdims=True),
        norm=result.norm, check=False, drift=0.001,
    )  # fmt: skip
    stated = asked(norm=result.norm, drift=0.001)
    plain = calshift.compare(result, replace(other, settings=()))
    wide = calshift.compare(stated, other)
    low, high = plain.confidence_interval()
    a, b = stated.drift_sensitivity(0.001), other.drift_sensitivity(0.001)
    expected = low - a.too_high - b.too_low, high + a.too_low + b.too_high
    np.testing.assert_allclose(wide.confidence_interval(), expected, rtol=1e-9)


def test_monitor_takes_it():
    found = calshift.monitor(*SOURCE, TARGET[0], rows=1500, check=False, drift=0.01)
    assert [one.drift for one in found.results] == [0.01, 0.01]
