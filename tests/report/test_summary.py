"""The report's dict, and what a result keeps for it."""

from __future__ import annotations

import copy
import json
import pickle

import numpy as np
import pytest

import calshift
from calshift import report
from calshift.report.verdict import Gate
from calshift.simulate import GaussianSimulation


@pytest.fixture(scope="module")
def sample():
    simulation = GaussianSimulation(n_classes=4, imbalance=5, temperature=0.7, seed=2)
    p, y = simulation.source(900, rng=1)
    q, _ = simulation.target(900, rng=2)
    return p, y, q


@pytest.fixture(scope="module")
def result(sample):
    return calshift.target_calibration_error(*sample, check=False)


def test_curves_are_those_of_reliability_curve(sample, result):
    found = report.summarize(result)["curves"]
    assert len(found) == 5  # the predicted class, and each of four
    worst = int(np.argmax(result.per_class))
    for drawn, asked in ((found[0], {"kind": "top-label"}), (found[1], {"label": worst})):
        before = calshift.reliability_curve(*sample[:2], **asked)
        after = calshift.reliability_curve(*sample, weights=result.class_weights, **asked)
        for shown, curve in ((drawn["source"], before), (drawn["target"], after)):
            low, high = curve.band()
            for name, values in (("frequency", curve.frequency), ("low", low), ("high", high)):
                assert shown[name] == pytest.approx(values.tolist(), abs=1e-12)


def test_a_pickled_result_is_equal_small_and_draws_no_curves(result):
    loaded = pickle.loads(pickle.dumps(result))
    assert loaded == result
    assert report.summarize(loaded)["curves"] == []
    assert "<svg" not in report.render_html(report.summarize(loaded))
    rows = result.n_source + result.n_target
    assert len(pickle.dumps(result)) < 16 * rows + 120_000


def test_a_copied_result_still_draws(result):
    for other in (copy.copy(result), copy.deepcopy(result)):
        assert other == result
        assert report.summarize(other)["curves"]


def test_the_source_is_a_view_of_the_callers_array(sample, result):
    assert np.shares_memory(result._curves.source.p, sample[0])


def test_the_dict_is_plain_and_knows_its_settings(result):
    found = report.summarize(result, Gate(0.05, "upper", 0.9), command="calshift check a b")
    assert json.loads(report.render_json(found)) == found
    assert found["settings"]["bins"] == "auto"
    assert found["settings"]["interval"] == "influence"
    assert found["level"] == 0.9
    assert found["threshold"] == {
        "max_error": 0.05,
        "gate": "upper",
        "breached": result.confidence_interval(0.9, root=True)[1] > 0.05,
    }
    assert found["target"]["root_interval"] == list(result.confidence_interval(0.9, root=True))


@pytest.mark.parametrize("bins", [7, [0.2, 0.5, 0.8], [[0.5], [0.3], [0.4], [0.1, 0.2]]])
def test_bins_are_kept_as_they_were_asked_for(sample, bins):
    found = calshift.target_calibration_error(*sample, bins=bins, check=False, weights=np.ones(4))
    assert dict(found.settings)["bins"] == bins
    assert json.dumps(found.to_dict())


def test_edges_given_as_an_array_are_kept_as_a_list(sample):
    edges = np.array([0.25, 0.5])
    found = calshift.target_calibration_error(*sample, bins=edges, check=False, weights=np.ones(4))
    assert dict(found.settings)["bins"] == [0.25, 0.5]


def test_to_dict_has_the_level_that_is_asked_for(result):
    found = result.to_dict(0.8)
    assert found["interval"]["level"] == 0.8
    assert found["interval"]["power"] == list(result.confidence_interval(0.8))
    assert found["class_intervals"][0] == result.class_intervals(0.8)[0].tolist()
    with pytest.raises(calshift.InvalidInput, match="level"):
        result.to_dict(80)


def test_shares_of_the_source_have_wilsons_interval(sample, result):
    counts, n = np.bincount(sample[1]), len(sample[1])
    for one, count in zip(report.summarize(result)["classes"], counts, strict=True):
        low, high = one["prior_source_interval"]
        # Wilson's ends are where the test of a share is at its border: |p - q| = z sd(q)
        for end in (low, high):
            reach = 1.959964 * np.sqrt(end * (1 - end) / n)
            assert abs(count / n - end) == pytest.approx(reach, rel=1e-6)


def test_a_class_that_the_source_lacks_is_unknown_everywhere(sample):
    p, y, q = sample
    kept = y != 2
    with pytest.warns(calshift.UnreliableWeights):
        found = calshift.target_calibration_error(p[kept], y[kept], q, check=False)
    shown = report.summarize(found)
    one = shown["classes"][2]
    for name in ("weight", "prior_target", "prior_target_interval", "root", "root_interval"):
        assert one[name] is None
    for text in (
        report.render_text(shown),
        report.render_markdown(shown),
        report.render_html(shown).split("<script>")[0],
    ):
        assert "nan" not in text.lower().split()
        assert "None" not in text


def test_the_page_is_made_from_the_dict_alone(result):
    found = report.summarize(result)
    assert report.render_html(json.loads(report.render_json(found))) == report.render_html(found)


def test_a_notebook_shows_the_verdict_and_escapes_names(sample):
    p, y, q = sample
    names = ("<b>", "&", "c", "d")
    found = calshift.target_calibration_error(
        calshift.Predictions(p, y, classes=names), None, calshift.Predictions(q, classes=names)
    )
    shown = found._repr_html_()
    assert "on the target" in shown
    assert "&lt;b&gt;" in shown
    assert "<b>" not in shown
    assert found.source._repr_html_().startswith("<pre>")


def test_without_jinja2_a_notebook_shows_text_and_a_page_says_what_to_install(
    result, monkeypatch, tmp_path
):
    monkeypatch.setitem(__import__("sys").modules, "jinja2", None)
    assert result._repr_html_().startswith("<pre>")
    with pytest.raises(ImportError, match=r"calshift\[report\]"):
        calshift.write_report(result, tmp_path / "page.html")
    assert list(tmp_path.iterdir()) == []


def test_only_label_free_errors_have_a_report(result, tmp_path):
    with pytest.raises(calshift.InvalidInput, match="target_calibration_error"):
        calshift.write_report(result.source, tmp_path / "page.html")
    with pytest.raises(calshift.InvalidInput, match="there is no folder"):
        calshift.write_report(result, tmp_path / "nowhere" / "page.html")


def test_prometheus_text_is_well_formed(sample):
    p, y, q = sample
    names = ('a"b', "c\\d", "e\nf", "g")
    found = calshift.target_calibration_error(
        calshift.Predictions(p, y, classes=names), None, calshift.Predictions(q, classes=names)
    )
    text = report.render_prometheus(report.summarize(found))
    assert text.endswith("\n")
    assert r'class="a\"b"' in text
    assert r'class="c\\d"' in text
    assert r'class="e\nf"' in text
    for line in text.splitlines():
        if not line.startswith("#"):
            float(line.rpartition(" ")[2])


def test_metrics_of_classes_that_differ_by_a_control_character_differ(sample):
    p, y, q = sample
    names = ("a\x1b", r"a\x1b", "a\nb", r"a\nb")
    found = calshift.target_calibration_error(
        calshift.Predictions(p, y, classes=names), None, calshift.Predictions(q, classes=names)
    )
    text = report.render_prometheus(report.summarize(found))
    series = [line.rpartition(" ")[0] for line in text.splitlines() if line[0] != "#"]
    assert len(set(series)) == len(series)
    assert "\x1b" not in text
