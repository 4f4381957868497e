"""`decision_curve`: net benefit by threshold."""

from __future__ import annotations

import json

import numpy as np
import pytest

import calshift
from calshift import InvalidInput

MODEL = calshift.simulate.BetaSimulation()
THRESHOLDS = np.array([0.1, 0.3, 0.5, 0.8])


@pytest.fixture(scope="module")
def samples():
    return (*MODEL.source(3000, rng=1), *MODEL.target(3000, rng=2))


def net_benefit(p, y, t):
    said = p >= t
    return np.mean(said & (y == 1)) - np.mean(said & (y == 0)) * t / (1 - t)


def test_of_labelled_rows_it_is_the_definition(samples):
    p, y = samples[:2]
    curve = calshift.decision_curve(p, y, thresholds=THRESHOLDS)
    expected = [net_benefit(p, y, t) for t in THRESHOLDS]
    assert curve.net_benefit == pytest.approx(expected, abs=1e-12)
    share = y.mean()
    everyone = share - (1 - share) * THRESHOLDS / (1 - THRESHOLDS)
    assert curve.treat_all == pytest.approx(everyone, abs=1e-12)
    scores = [(p >= t) * ((y == 1) - (y == 0) * t / (1 - t)) for t in THRESHOLDS]
    errors = [one.std() / np.sqrt(len(p)) for one in scores]
    assert curve.standard_error == pytest.approx(errors, rel=1e-9)
    assert curve.source is None


def test_without_labels_it_agrees_with_those_of_the_target(samples):
    p, y, q, z = samples
    curve = calshift.decision_curve(p, y, q, thresholds=THRESHOLDS)
    labelled = calshift.decision_curve(q, z, thresholds=THRESHOLDS)
    joint = np.hypot(curve.standard_error, labelled.standard_error)
    assert (np.abs(curve.net_benefit - labelled.net_benefit) < 3.5 * joint).all()
    assert curve.trusted
    assert curve.source == pytest.approx([net_benefit(p, y, t) for t in THRESHOLDS], abs=1e-12)
    low, high = curve.band()
    assert (low < curve.net_benefit).all()
    assert (curve.net_benefit < high).all()


@pytest.mark.parametrize("thresholds", [[], [0.0], [1.0], [[0.5]], ["x"], [np.nan], "many"])
def test_thresholds_lie_between_0_and_1(samples, thresholds):
    with pytest.raises(InvalidInput, match="thresholds must be"):
        calshift.decision_curve(*samples[:2], thresholds=thresholds)


def test_a_class_is_named_where_there_are_more_than_two():
    model = calshift.simulate.GaussianSimulation(n_classes=3, dimensions=3)
    p, y = model.source(500, rng=1)
    with pytest.raises(InvalidInput, match="name it by positive="):
        calshift.decision_curve(p, y)
    curve = calshift.decision_curve(p, y, positive=2, thresholds=[0.4])
    assert curve.net_benefit[0] == pytest.approx(net_benefit(p[:, 2], y == 2, 0.4), abs=1e-12)


def test_it_is_drawn_and_plain(samples):
    curve = calshift.decision_curve(*samples[:3], thresholds=THRESHOLDS)
    ax = curve.plot()
    assert ax.get_ylabel() == "net benefit"
    assert len(ax.lines) == 4
    assert [one.get_text() for one in ax.texts] == ([] if curve.trusted else ["not trusted"])
    q = samples[2]
    other = calshift.decision_curve(*samples[:2], q[:20], thresholds=THRESHOLDS, check=False)
    assert not other.trusted
    assert [one.get_text() for one in other.plot().texts] == ["not trusted"]
    plain = json.loads(json.dumps(curve.to_dict(), allow_nan=False))
    assert plain["net_benefit"] == pytest.approx(curve.net_benefit)
    assert "0.3000" in str(curve)
