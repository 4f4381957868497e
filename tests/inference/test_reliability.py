"""Reliability curves."""

from __future__ import annotations

import numpy as np
import pytest

import calshift


def test_with_labels_it_is_the_frequency_in_each_bin():
    simulation = calshift.simulate.BetaSimulation()
    p, y = simulation.source(300, rng=0)
    curve = calshift.reliability_curve(p, y, kind="binary", bins=6)
    edges = calshift.bin_edges(p, kind="binary", bins=6)
    bins = edges.locate(0, p)
    np.testing.assert_array_equal(curve.edges, edges[0])
    for b in range(6):
        assert curve.score[b] == pytest.approx(p[bins == b].mean())
        assert curve.frequency[b] == pytest.approx(y[bins == b].mean())
        assert curve.mass[b] == pytest.approx(np.mean(bins == b))


def test_without_labels_it_finds_the_targets_frequencies():
    """Against the exact posterior of the target at each bin's mean score.

    20 000 rows, about 20 bins: the binomial sd of a bin's weighted frequency is below
    0.5 / sqrt(20000 / 20 / 1.5) = 0.02; curvature inside a bin adds little.
    """
    from scipy import stats

    simulation = calshift.simulate.BetaSimulation()
    p, y = simulation.source(20_000, rng=1)
    q, z = simulation.target(20_000, rng=2)
    curve = calshift.reliability_curve(p, y, q, weights=calshift.weights_from_labels(y, z))
    one = stats.beta(2, 1).pdf(curve.score)
    posterior = one / (one + stats.beta(2, 5).pdf(curve.score))
    assert np.abs(curve.frequency - posterior).max() < 4 * 0.02
    assert curve.shifted
    assert curve.mass.sum() == pytest.approx(1)
    assert (np.diff(curve.score) > 0).all()


def test_pooled_curve_counts_every_class_and_a_label_picks_one():
    simulation = calshift.simulate.GaussianSimulation(n_classes=3)
    p, y = simulation.source(400, rng=0)
    pooled = calshift.reliability_curve(p, y, bins=[0.5])
    high = p >= 0.5
    hits = y[:, None] == np.arange(3)
    assert pooled.frequency[1] == pytest.approx(hits[high].mean())
    assert pooled.mass[1] == pytest.approx(high.mean())
    single = calshift.reliability_curve(p, y, label=2, bins=[0.5])
    assert single.frequency[1] == pytest.approx((y == 2)[high[:, 2]].mean())
    assert "class 2" in single.name
    top = calshift.reliability_curve(p, y, kind="top-label", bins=3)
    assert top.mass @ top.frequency == pytest.approx((p.argmax(axis=1) == y).mean())


def test_it_prints_and_becomes_a_dict():
    curve = calshift.reliability_curve([0.1, 0.2, 0.8, 0.9], [0, 0, 1, 0], bins=2)
    assert "0.8500" in str(curve)
    assert curve.to_dict()["frequency"] == [0.0, 0.5]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"label": 2}, "label must be"),
        ({"label": 0, "kind": "top-label"}, "label must be"),
        ({"kind": "canonical"}, "pairs of rows"),
    ],
)
def test_bad_requests_are_named(options, message):
    p = np.array([[0.1, 0.9], [0.6, 0.4]])
    with pytest.raises(calshift.InvalidInput, match=message):
        calshift.reliability_curve(p, [0, 1], **options)


def test_a_target_needs_weights():
    with pytest.raises(calshift.InvalidInput, match="weights must be"):
        calshift.reliability_curve([0.1, 0.9], [0, 1], [0.5, 0.6], weights=None)


def test_weights_are_estimated_unless_they_are_given():
    simulation = calshift.simulate.BetaSimulation()
    p, y = simulation.source(500, rng=0)
    q, _ = simulation.target(500, rng=1)
    weights = calshift.label_shift_weights(p, y, q)
    given = calshift.reliability_curve(p, y, q, weights=weights)
    assert calshift.reliability_curve(p, y, q) == given
    other = calshift.reliability_curve(p, y, q, weights="bbse")
    assert np.abs(other.frequency - given.frequency).max() > 1e-6


def test_bands_are_wilsons_where_rows_are_counted_and_where_hardly_an_event_came():
    """Of 30 rows one event; of 200 none, or nothing else, whatever little noise the weights add."""
    frequency, worth = np.array([0.0, 1 / 30, 1.0]), np.array([200.0, 30.0, 200.0])
    error = np.array([1e-4, np.sqrt(1 / 30 * 29 / 30 / 30), 1e-4])
    curve = calshift.ReliabilityCurve(
        np.array([0.1, 0.2, 0.9]), frequency, np.full(3, 1 / 3), np.array([0.15, 0.5]), error,
        worth, kind="binary",
    )  # fmt: skip
    z = 1.959963984540054
    middle = (frequency + z**2 / (2 * worth)) / (1 + z**2 / worth)
    reach = z * np.sqrt(frequency * (1 - frequency) / worth + z**2 / (4 * worth**2))
    reach /= 1 + z**2 / worth
    low, high = curve.band(0.95)
    np.testing.assert_allclose(low, middle - reach, atol=1e-12)
    np.testing.assert_allclose(high, middle + reach, atol=1e-12)
