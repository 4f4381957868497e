"""Thresholds and decision curves as a notebook shows them."""

from __future__ import annotations

import re
import warnings
from dataclasses import replace
from html import unescape

import pytest

import calshift
from calshift import Predictions, UnreliableWeights
from calshift.simulate import BetaSimulation

COST = {"false_positive": 1, "false_negative": 5}


def text_of(html: str) -> str:
    return re.sub(r"\s+", " ", unescape(re.sub(r"<[^>]+>", " ", html)))


@pytest.fixture(scope="module")
def samples():
    simulation = BetaSimulation()
    source = Predictions(*simulation.source(2000, rng=1), classes=("healthy", "<i>ill</i>"))
    return source, simulation.target(2000, rng=2)[0]


@pytest.fixture(scope="module")
def found(samples):
    return calshift.decision_threshold(samples[0], None, samples[1], cost=COST)


@pytest.fixture(scope="module")
def curve(samples):
    return calshift.decision_curve(samples[0], None, samples[1])


def test_a_threshold_has_a_table_of_both_rules(found):
    html = found._repr_html_()
    said = text_of(html)
    assert said.strip().startswith(f"Least expected cost : {found.description}.")
    assert "After recalibration that is a probability of 0.1667." in said
    assert html.count("<tr>") == 1 + len(found.achieved)
    for name, words in (("precision", "Positive predictive value"), ("accuracy", "Accuracy")):
        change, ends = found.change(name)
        assert words in said
        assert f"{100 * found.unchanged[name].estimate:.1f}%" in said
        assert f"{100 * found.achieved[name].estimate:.1f}%" in said
        assert re.search(rf"{re.escape(f'{100 * change:+.1f}')}\d* points", said)
        assert "{:+.1f} to {:+.1f}".format(*(100 * end for end in ends)) in said
    assert re.search(r"Prevalence [\d.]+% [\d. to]+% [\d.]+% [\d. to]+% same ", said)
    assert "reliable" not in said


def test_names_are_text(found, curve):
    for one in (found, curve):
        assert "<i>ill" not in one._repr_html_()
        assert "class <i>ill</i>" in text_of(one._repr_html_())


def test_what_is_not_reliable_says_so_first(samples):
    sharper = (1 - samples[1]) ** 3
    with pytest.warns(UnreliableWeights):
        found = calshift.decision_threshold(samples[0], None, sharper, cost=COST)
    said = text_of(found._repr_html_())
    assert said.strip().startswith("Not reliable: keep the present rule")
    assert found.warnings[0] in said
    assert str(found).startswith("NOT TRUSTED")
    with pytest.warns(UnreliableWeights):
        curve = calshift.decision_curve(samples[0], None, sharper)
    assert "estimated without labels: not reliable" in text_of(curve._repr_html_())
    assert str(curve).startswith("NOT TRUSTED")


def test_a_goal_that_no_threshold_achieves_is_said_first(samples):
    scores = samples[1].round(1), samples[0].p.round(1)
    source = Predictions(scores[1], samples[0].labels)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UnreliableWeights)
        found = calshift.decision_threshold(source, None, scores[0], keep="alarm_rate", at=1e-4)
    assert found.achieved.trusted
    assert not found.reached
    metrics = dict(found.achieved.metrics)
    metrics["precision"] = replace(metrics["precision"], trusted=False)
    found = replace(found, achieved=replace(found.achieved, metrics=metrics))
    said = text_of(found._repr_html_()).strip()
    assert said.startswith("No threshold achieves what was asked for Alarm rate kept at 0.0001")
    assert said.count("not trusted: interval too wide") == said.count("not trusted") == 1
    assert str(found).startswith("NOT REACHED: ")


def test_a_curve_has_a_table_of_some_thresholds(curve, samples):
    said, (low, high) = text_of(curve._repr_html_()), curve.band()
    k = curve.shown[3]
    row = f"{curve.thresholds[k]:.4g} {curve.net_benefit[k]:.4f} {low[k]:.4f} to {high[k]:.4f}"
    assert f" {row} {curve.treat_all[k]:.4f} {curve.source[k]:.4f} " in said
    assert "25 of 99 thresholds" in said
    labelled = calshift.decision_curve(samples[0], thresholds=[0.2, 0.5])
    said = text_of(labelled._repr_html_())
    assert "of labelled rows" in said
    assert "on the source" not in said
    assert " thresholds" not in said


@pytest.mark.parametrize("count", [1, 25, 26, 99, 1000])
def test_tables_of_curves_are_short(count, samples):
    curve = calshift.decision_curve(samples[0], thresholds=[k / 1001 for k in range(1, count + 1)])
    lines = str(curve).splitlines()
    assert len(lines) <= 2 + 25
    assert max(map(len, lines)) <= 100


def test_without_jinja2_text_is_shown(found, curve, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "jinja2", None)
    for one in (found, curve):
        assert one._repr_html_().startswith("<pre>")
