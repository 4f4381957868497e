"""Plots draw what the results hold."""

from __future__ import annotations

import numpy as np
import pytest

import calshift


@pytest.fixture
def simulation():
    return calshift.simulate.GaussianSimulation(n_classes=3)


@pytest.fixture
def sample(simulation):
    return *simulation.source(500, rng=0), simulation.target(500, rng=1)[0]


def fitting(simulation, y):
    return simulation.class_weights / simulation.class_weights[y].mean()


def test_source_and_target_share_one_picture(simulation, sample, tmp_path):
    p, y, q = sample
    before = calshift.reliability_curve(p, y)
    after = calshift.reliability_curve(p, y, q, weights=fitting(simulation, y))
    ax = before.plot()
    assert calshift.plot_reliability(after, ax=ax) is ax
    drawn = [line.get_xydata() for line in ax.lines]
    assert len(drawn) == 3  # one diagonal, two curves
    np.testing.assert_allclose(drawn[1], np.stack([before.score, before.frequency], axis=1))
    np.testing.assert_allclose(drawn[2], np.stack([after.score, after.frequency], axis=1))
    assert [text.get_text() for text in ax.get_legend().get_texts()] == [before.name, after.name]
    ax.figure.savefig(tmp_path / "curve.svg")


def test_bars_are_the_roots_of_the_errors(simulation, sample):
    p, y, q = sample
    result = calshift.target_calibration_error(p, y, q, weights=fitting(simulation, y))
    heights = [bar.get_height() for bar in result.plot().patches]
    expected = [
        *np.sqrt(np.maximum(result.source.per_class, 0)),
        *np.sqrt(np.maximum(result.per_class, 0)),
    ]
    np.testing.assert_allclose(heights, expected)
    single = calshift.calibration_error(p, y, kind="top-label")
    assert [bar.get_height() for bar in single.plot().patches] == [pytest.approx(single.root)]


def test_a_class_the_source_lacks_has_no_bar(sample):
    p, y, q = sample
    p, y = p[y != 1], y[y != 1]
    with pytest.warns(calshift.UnreliableWeights, match="lacks class 1"):
        result = calshift.target_calibration_error(p, y, q, weights=[1, np.nan, 1], check=False)
    bars = result.plot().patches
    assert len(bars) == 4  # source and target of two classes
    middles = {round(bar.get_x() + bar.get_width() / 2) for bar in bars}
    assert middles == {0, 2}


def test_only_curves_are_curves():
    with pytest.raises(calshift.InvalidInput, match="ReliabilityCurve"):
        calshift.plot_reliability([0.1, 0.2])


def test_weights_have_points_and_intervals(simulation, sample):
    weights = calshift.label_shift_weights(*sample)
    ax = weights.plot()
    assert calshift.plot_weights(weights, ax=ax) is ax
    points = ax.collections[1].get_offsets()
    np.testing.assert_allclose(points[:, 1], weights.values)
    ends = np.array(ax.collections[0].get_segments())[:, :, 1]
    np.testing.assert_allclose(ends[:, 1], weights.values + 1.96 * weights.values_error)
    np.testing.assert_allclose(
        ends[:, 0], np.maximum(weights.values - 1.96 * weights.values_error, 0)
    )


def test_doubted_and_missing_classes_look_different(sample):
    p, y, q = sample
    few = np.flatnonzero(y == 0)[:5]
    kept = np.concatenate([few, np.flatnonzero(y == 2)])
    with pytest.warns(calshift.UnreliableWeights):
        weights = calshift.label_shift_weights(p[kept], y[kept], q)
    labels = [text.get_text() for text in weights.plot().get_legend().get_texts()]
    assert labels == ["weight, 95% interval", "not reliable", "not in the source"]


def test_given_weights_have_no_interval():
    p = np.array([[0.8, 0.2], [0.4, 0.6], [0.3, 0.7]])
    found = calshift.target_calibration_error(p, [0, 1, 1], p, weights=[1.0, 1.0], check=False)
    weights = found.class_weights
    labels = [text.get_text() for text in weights.plot().get_legend().get_texts()]
    assert labels == ["weight"]
    with pytest.raises(calshift.InvalidInput, match="ClassWeights"):
        calshift.plot_weights([1, 2])


@pytest.mark.parametrize("classes", [2, 4, 60])
def test_only_whole_numbers_stand_for_classes(classes):
    ax = calshift.plot_weights(calshift.weights_from_labels(range(classes), range(classes)))
    ticks = ax.get_xticks()
    assert np.array_equal(ticks, np.round(ticks))
