"""The page of a recalibration: what it says, and that it says it as text."""

from __future__ import annotations

import copy
import json
import re

import numpy as np
import pytest

import calshift
from calshift import Predictions
from calshift.recalibration.assessment.predicted_classes import PredictedClasses
from calshift.report import recalibration_dict, render_json, render_recalibration_html
from calshift.report.page.document import security_policy
from calshift.report.page.recalibration_view import view_recalibration
from calshift.report.verdict import Gate
from calshift.simulate import GaussianSimulation
from tests.report.test_metrics_page import text_of

pytestmark = pytest.mark.filterwarnings("ignore::calshift.UnreliableWeights")
NAMES = ("cat", "dog", "ferret")
MANY = GaussianSimulation(n_classes=3, imbalance=4, temperature=0.5, seed=2)
TWO = GaussianSimulation(n_classes=2, imbalance=4, temperature=0.5, seed=1)


def recalibrated(simulation, names, sharpen=1.0, **options):
    """A result and its dict, free to be changed."""
    p, y = simulation.source(1500, rng=1)
    q = simulation.target(1200, rng=2)[0] ** sharpen
    q /= q.sum(axis=1, keepdims=True)
    source, target = Predictions(p, y, classes=names), Predictions(q, classes=names)
    found = calshift.recalibrate(source, None, target, **options)
    rows = PredictedClasses.of(len(names), names, "argmax", None)
    rows.add(target, found.recalibrator.transform(target))
    made = recalibration_dict(found, Gate(), predicted=rows.to_dict(), curves=True)
    return found, json.loads(render_json(made))


@pytest.fixture(scope="module")
def many():
    return recalibrated(MANY, NAMES)


@pytest.fixture(scope="module")
def two():
    return recalibrated(TWO, ("healthy", "ill"))


@pytest.fixture
def report(many):
    return copy.deepcopy(many[1])


def section(html: str, name: str) -> str:
    found = re.search(rf'<section id="{name}".*?</section>', html, re.DOTALL)
    assert found is not None
    return text_of(found[0])


def distrust(report):
    report.update(trusted=False, status="untrusted", gist="Not reliable", fallback="unchanged")
    report["warnings"] = ["something else has changed"]


def test_the_verdict_and_the_errors_come_first(report, many):
    said = text_of(render_recalibration_html(report))
    found = many[0]
    assert said.index(report["verdict"]) < said.index("Calibration error before and after")
    errors = section(render_recalibration_html(report), "errors")
    for name, one in (("before", found.before), ("after", found.after)):
        low, high = one.confidence_interval(root=True)
        assert f"Error {name} {one.root:.4f} 95% interval {low:.4f} to {high:.4f}" in errors
    low, high = found.change.confidence_interval(root=True)
    assert f"Change {found.change.root:+.4f} 95% interval {low:+.4f} to {high:+.4f}" in errors
    low, high = found.log_loss.confidence_interval()
    assert f"log loss {low:+.4f} to {high:+.4f}." in errors
    assert "cross-fitted (5 folds)" in errors


def test_metrics_are_those_before_and_after_in_the_words_of_the_check(report, many):
    said = section(render_recalibration_html(report), "metrics")
    assert said.strip().startswith("How good is it before and after")
    one = many[0].metric_changes["accuracy"]
    numbers = f"{100 * one.before.estimate:.1f}% {{}} {100 * one.after.estimate:.1f}% {{}} "
    ends = [
        "{:.1f} to {:.1f}%".format(*(100 * end for end in each.confidence_interval()))
        for each in (one.before, one.after)
    ]
    head = "Accuracy of all cases, the share predicted correctly "
    assert head + numbers.format(*ends) + f"{100 * one.change:+.1f}" in said
    assert "The predicted class is the most probable one." in said
    assert said.count("not trusted") == 0


def test_of_1000_cases_both_are_shown(two):
    found, report = two
    said = section(render_recalibration_html(report), "metrics")
    panel = said.partition("Of 1000 cases like those of the target")[2].partition(" metric ")[0]
    found_after = 1000 * found.metrics_after.confusion[1, 1]
    found_before = 1000 * found.metrics_before.confusion[1, 1]
    now, before = re.search(r"(\d+) Found .*? before: ([\d.]+)", panel).groups()
    assert float(now) == pytest.approx(found_after, abs=1)
    assert float(before) == pytest.approx(found_before, abs=1)
    assert found_before != pytest.approx(found_after, abs=2)


def test_rows_that_change_their_class_are_counted_from_what_to_what(report):
    predicted = report["predicted_classes"]
    said = section(render_recalibration_html(report), "predicted").replace("\xa0", " ")
    share = f"{100 * predicted['share']:.1f}%"
    assert f"{predicted['changed']:g} of 1,200 target rows ({share}) change their" in said
    for one in predicted["classes"]:
        to = [f"{e['to']} {e['rows']:g}" for e in predicted["pairs"] if e["from"] == one["class"]]
        line = f"{one['class']} {one['before']:g} {one['after']:g} {', '.join(to) or 'none'}"
        assert line in said
    assert predicted["changed"] > 0


def test_of_many_classes_those_with_the_most_changes_are_shown(report):
    classes = [{"class": f"c{k}", "before": 50.0, "after": 50.0} for k in range(12)]
    pairs = [{"from": "c11", "to": f"c{k}", "rows": 2.0} for k in range(7)]
    report["predicted_classes"].update(classes=classes, pairs=pairs, changed=14.0)
    lines = view_recalibration(report)["predicted"]["lines"]
    assert [one["class"] for one in lines[:2]] == ["c11", "c0"]
    assert len(lines) == 10
    said = section(render_recalibration_html(report), "predicted").replace("\xa0", " ")
    assert "c11 50 50 c0 2, c1 2, c2 2, c3 2, c4 2 and 2 more" in said
    assert "of the 10 classes with the most changes" in said


def test_fractions_of_rows_have_a_decimal(report):
    report["predicted_classes"].update(changed=12.25, rows=1200.5)
    assert "12.2 of 1200.5 target rows" in section(render_recalibration_html(report), "predicted")


def test_without_changes_a_sentence_says_so(report):
    report["predicted_classes"].update(changed=0.0, share=0.0, pairs=[])
    said = section(render_recalibration_html(report), "predicted")
    assert "No target row changes its predicted class ." in said
    report["fallback"] = "unchanged"
    said = section(render_recalibration_html(report), "predicted")
    assert "changes its predicted class : the probabilities are unchanged." in said
    report["predicted_classes"] = None
    assert 'id="predicted"' not in render_recalibration_html(report)


def test_diagrams_are_of_the_target_before_and_after(report, many):
    assert report["curves"][0]["of"] == "the predicted class"
    before = many[0].before._curves.curves()[0][1]
    after = many[0].after._curves.curves()[0][1]
    assert report["curves"][0]["before"]["score"] == before.score.tolist()
    assert report["curves"][0]["after"]["frequency"] == after.frequency.tolist()
    html = render_recalibration_html(report)
    assert html.count("<figure>") == len(report["curves"]) > 1
    source, target = view_recalibration(report)["diagrams"][0]["parts"]
    x = source["line"].split(" ")[0].split(",")[0]
    assert float(x) == pytest.approx(100 * before.score[0], abs=0.01)
    assert target["line"] != source["line"]
    report["curves"] = []
    assert "<figure>" not in render_recalibration_html(report)


def test_conditions_have_both_outcomes_and_failed_ones_come_first(report):
    one = report["diagnostics"]["after"][5]
    one.update(passed=False, failed=True, text="far too few rows")
    report["diagnostics"]["before"][7].update(passed=False, waived=True, failed=False)
    html = render_recalibration_html(report)
    lines = view_recalibration(report)["conditions"]
    assert lines[0]["name"] == one["name"]
    assert (lines[0]["before"], lines[0]["after"]) == ("met", "not met")
    assert lines[0]["words"] == ["far too few rows"]
    assert lines[1]["before"] == "waived"
    assert f"{one['name']} met not met far too few rows" in section(html, "trust")
    report["diagnostics"]["before"][5].update(failed=True, text="even fewer")
    assert view_recalibration(report)["conditions"][0]["words"] == [
        "even fewer",
        "far too few rows",
    ]
    one.update(passed=True, failed=False)
    assert view_recalibration(report)["conditions"][0]["words"] == ["even fewer"]
    assert len(lines) == len(report["diagnostics"]["before"])


def test_what_is_not_reliable_is_said_everywhere(report):
    distrust(report)
    html = render_recalibration_html(report)
    said = text_of(html)
    assert said.index("something else has changed") < said.index("Error before")
    metrics = section(html, "metrics")
    assert "Not reliable The numbers of this section may be wrong" in metrics
    assert metrics.count("not trusted") == len(report["metrics"])
    assert "After is what was asked for, which was not applied." in metrics
    assert section(html, "errors").count("not trusted") == 3
    assert "of the target (not reliable)" in section(html, "reliability")
    assert "better" not in re.findall(r'class="big([^"]*)"', html)


def test_a_clear_change_is_marked_by_its_direction(report):
    for interval, word in (([-0.2, -0.1], " better"), ([0.1, 0.2], " worse"), ([-0.1, 0.1], "")):
        report["change"]["interval"] = interval
        html = render_recalibration_html(report)
        assert word in re.findall(r'<div class="big([^"]*)">[+-]', html)


def test_names_warnings_and_files_are_text(report):
    html = json.dumps(report).replace("cat", "<img src=x>")
    report = json.loads(html)
    report["warnings"] = ["<s>`<q>`"]
    report["command"] = "<script>1</script>"
    report["inputs"] = {
        role: {"path": f"/a/<{role}>.csv", "sha256": "0"} for role in ("source", "target")
    }
    page = render_recalibration_html(report)
    assert not re.search(r"<img|<s>|<q>|<script|<source>", page)
    assert "recalibration of <target>.csv against <source>.csv" in text_of(page)
    assert "<code>&lt;q&gt;</code>" in page


def test_the_page_forbids_scripts_and_all_else(report):
    html = render_recalibration_html(report)
    policy = re.search(r'http-equiv="Content-Security-Policy" content="([^"]*)"', html)[1]
    assert "default-src &#39;none&#39;" in policy
    assert "script-src" not in policy
    assert html.index("Content-Security-Policy") < html.index("<style>")
    assert "script-src 'sha256-" in security_policy("let one = 1;")


def test_unknown_numbers_are_words(report):
    one = report["metrics"][0]
    one["before"].update(estimate=None, interval=None)
    one.update(change=None, interval=None)
    said = section(render_recalibration_html(report), "metrics")
    assert "unknown" in said
    assert not re.search(r"\b(None|nan)\b", text_of(render_recalibration_html(report)))


def test_fashion_mnist_has_ten_lines():
    source, target = calshift.data.fashion_mnist()
    found = calshift.recalibrate(source, None, Predictions(target.p, classes=target.classes))
    rows = PredictedClasses.of(10, source.classes, "argmax", None)
    rows.add(target, found.recalibrator.transform(target))
    report = recalibration_dict(found, Gate(), predicted=rows.to_dict())
    before, after = (one.argmax(axis=1) for one in (target.matrix, found.probabilities))
    assert report["predicted_classes"]["changed"] == np.sum(before != after)
    said = section(render_recalibration_html(report), "predicted").replace("\xa0", " ")
    assert said.count(" none") + said.count(", ") >= 8
    for name in source.classes:
        assert name in said
