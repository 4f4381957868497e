"""The section "How good is the model now" of the page, and the notebook's table."""

from __future__ import annotations

import json
import re
from html import unescape

import pytest

import calshift
from calshift import Predictions, UnreliableWeights
from calshift.metrics.catalogue import known_names
from calshift.report import render_html, render_json, summarize
from calshift.report.metrics_summary import metrics_section
from calshift.report.page.metric_names import name_in_words, unit_of
from calshift.report.page.metrics_view import view_metrics
from calshift.report.page.templates import mark_code
from calshift.simulate import BetaSimulation

HEADING = "How good is the model now"


def text_of(html: str) -> str:
    """What a page says, without tags."""
    body = re.sub(r"<(style|script|title).*?</\1>", " ", html, flags=re.DOTALL)
    body = re.sub(r"</?(bdi|code)\b[^>]*>", "", body)
    return re.sub(r"\s+", " ", unescape(re.sub(r"<[^>]+>", " ", body)))


def section_of(html: str) -> str:
    """What the section says; fails without it."""
    found = re.search(r'<section id="metrics".*?</section>', html, re.DOTALL)
    assert found is not None
    return text_of(found[0])


@pytest.fixture(scope="module")
def samples():
    simulation = BetaSimulation()
    source = Predictions(*simulation.source(2000, rng=1), classes=("healthy", "ill"))
    return source, Predictions(simulation.target(2000, rng=2)[0], classes=("healthy", "ill"))


@pytest.fixture(scope="module")
def result(samples):
    return calshift.target_calibration_error(samples[0], None, samples[1])


@pytest.fixture(scope="module")
def metrics(samples):
    return calshift.target_metrics(samples[0], None, samples[1], decision=0.4)


@pytest.fixture
def report(result, metrics):
    """A report's dict with metrics, free to be changed."""
    found = json.loads(render_json(summarize(result)))
    found["metrics"] = json.loads(json.dumps(metrics_section(metrics)))
    return found


def distrust(report, *texts):
    """Failed conditions with these texts."""
    section = report["metrics"]
    section["trusted"] = False
    for one in section["metrics"]:
        one["trusted"] = False
    section["diagnostics"] = [
        {"name": f"c{k}", "value": 1.0, "limit": 0.5, "passed": False, "waived": False,
         "failed": True, "text": text}
        for k, text in enumerate(texts)
    ]  # fmt: skip


def test_the_page_has_what_a_physician_looks_for(report, metrics):
    said = section_of(render_html(report))
    for name, words in (("prevalence", "Prevalence"), ("precision", "Positive predictive value")):
        low, high = (100 * end for end in metrics[name].confidence_interval())
        now, before = 100 * metrics[name].estimate, 100 * metrics[name].source
        ends = f"95% interval {low:.1f} to {high:.1f}%"
        assert f"{words} now {now:.1f}% {ends} before: {before:.1f}%" in said
    missed = metrics["missed_cases"]
    assert f"Missed cases per 1000 now {1000 * missed.estimate:.0f} " in said
    assert f"before: {1000 * missed.source:.0f} " in said


def test_every_metric_is_there_in_words_with_its_change(report, metrics):
    said = section_of(render_html(report))
    assert "Positive predictive value (PPV, precision)" in said
    assert "Sensitivity (recall)" in said
    for one in metrics.values():
        assert name_in_words(one.name, one.title).name in said
    assert f"{100 * metrics['recall'].difference:+.1f} points" in said
    assert "not trusted" not in said
    assert "Not reliable" not in said


def test_of_1000_cases_four_numbers_say_what_happens(report, metrics):
    (healthy, missed), (alarms, found) = 1000 * metrics.confusion
    said = section_of(render_html(report)).partition("Of 1000 cases like those of the target")[2]
    said = said.partition(" metric now")[0]
    numbers = re.findall(r"(\d+) (Found|Missed|False alarms|Correctly cleared) ", said)
    assert [name for _, name in numbers] == ["Found", "Missed", "False alarms", "Correctly cleared"]
    shown = [int(number) for number, _ in numbers]
    assert shown == pytest.approx([found, missed, alarms, healthy], abs=2)  # rounded, sum 1000
    assert sum(shown) == 1000
    before = [float(text) for text in re.findall(r"before: ([\d.]+)", said)]
    assert before == pytest.approx(
        (1000 * metrics.confusion_source)[[1, 0, 1, 0], [1, 1, 0, 0]], abs=2
    )


def test_the_positive_class_may_be_the_first(report):
    (a, b), (c, d) = report["metrics"]["confusion"]
    before = view_metrics(report["metrics"])["outcomes"]
    report["metrics"].update(positive="healthy", confusion=[[d, c], [b, a]])
    after = view_metrics(report["metrics"])["outcomes"]
    assert [one["now"] for one in after] == [one["now"] for one in before]


@pytest.mark.parametrize(
    ("rule", "said"),
    [
        (0.4, "Predicted positive at a probability of at least 0.4. Positive: class ill."),
        ("argmax", "Predicted positive if that is the more probable of the two classes."),
        ("cost", "The predicted class is the one of least expected cost."),
        (lambda p: p.argmax(axis=1), "Classes are predicted by a function of the probabilities."),
    ],
)
def test_the_decision_rule_is_one_sentence(samples, report, rule, said):
    found = calshift.target_metrics(
        samples[0], None, samples[1], decision=rule, metrics=["prevalence"],
        cost={"false_negative": 5, "false_positive": 1},
    )  # fmt: skip
    report["metrics"] = metrics_section(found)
    assert said in section_of(render_html(report))


def test_many_classes_have_no_panel_and_other_figures(report):
    source, target = calshift.data.fashion_mnist()
    found = calshift.target_metrics(
        source, None, Predictions(target.p, classes=target.classes),
        metrics=["accuracy", "f1_macro", "precision_per_class"],
    )  # fmt: skip
    report["metrics"] = metrics_section(found)
    said = section_of(render_html(report))
    assert "Of 1000 cases" not in said
    assert "Accuracy now" in said
    assert "Positive predictive value (PPV, precision) class Ankle boot" in said
    assert "The predicted class is the most probable one." in said


def test_an_untrusted_section_says_so_first_and_why(report):
    distrust(report, "the samples have nothing in common", "the second reason")
    html = render_html(report)
    said = section_of(html)
    assert said.strip().startswith(
        f"{HEADING} Not reliable The samples have nothing in common. The second reason."
    )
    assert said.index("may be wrong") < said.index("Prevalence")
    assert said.count("not trusted") >= len(report["metrics"]["metrics"])
    assert "Of 1000 cases like those of the target (not reliable)" in said
    assert "conditions of trust are met" not in said


def test_reasons_that_stand_in_the_warnings_are_only_counted(report):
    distrust(report, "one", "two", "three")
    report["warnings"] = ["two", "three"]
    said = section_of(render_html(report))
    assert "One. 2 more conditions are not met." in said
    assert "three" not in said.lower()


def test_the_section_comes_before_warnings_only_if_it_is_trusted(report):
    report["warnings"] = ["something to know"]
    for trusted in (True, False):
        if not trusted:
            distrust(report, "a reason")
        said = text_of(render_html(report))
        places = [said.index(one) for one in (HEADING, "something to know", "Results by class")]
        assert (places[0] < places[1]) == trusted
        assert places[0] < places[2]
        assert said.count(HEADING) == 1


def test_a_single_metric_is_not_trusted_in_words(report):
    wide, without = report["metrics"]["metrics"][4], report["metrics"]["metrics"][5]
    wide["trusted"] = without["trusted"] = False
    without["interval"] = None
    html = render_html(report)
    assert "not trusted: interval too wide" in section_of(html)
    assert "not trusted: no interval" in section_of(html)
    assert html.count('<tr class="distrusted">') == 2


def test_conditions_that_were_not_checked_are_said_not_to_be(report):
    distrust(report)
    assert "The conditions of trust were not checked." in section_of(render_html(report))


def test_waived_conditions_are_named(report):
    report["metrics"]["diagnostics"][0].update(waived=True, passed=False, failed=False)
    name = report["metrics"]["diagnostics"][0]["name"]
    said = section_of(render_html(report))
    assert f"conditions of trust waived: {name}" in said
    assert "all" not in said.partition("assume label shift")[2]


def test_requirements_have_their_status_in_words(report):
    report["metrics"]["requirements"] = [
        {"text": "recall>=0.8", "status": "not shown", "metric": "recall", "interval": [0.7, 0.9]},
        {"text": "npv>0.5", "status": "met"},
    ]
    said = section_of(render_html(report))
    assert "not shown to be met recall>=0.8 (Sensitivity (recall) now:" in said
    assert re.search(r"\bmet npv>0\.5", said)


@pytest.mark.parametrize("absent", [True, False])
def test_without_metrics_there_is_no_section(report, absent):
    report["metrics"] = None
    if absent:
        del report["metrics"]
    html = render_html(report)
    assert HEADING not in html
    assert 'id="metrics"' not in html


def test_a_section_without_units_and_requirements_is_shown(report):
    for one in report["metrics"]["metrics"]:
        one.pop("unit", None)
    report["metrics"].pop("requirements")
    assert "Missed cases per 1000 now" in section_of(render_html(report))


def test_numbers_that_are_unknown_are_words(report):
    one = report["metrics"]["metrics"][0]
    one.update(estimate=None, interval=None, difference=None, difference_interval=None, note="why")
    said = section_of(render_html(report))
    assert "Prevalence now unknown before:" in said
    assert "why" in said
    assert not re.search(r"\b(None|nan|inf)\b", said)


@pytest.mark.parametrize("table", ["confusion", "confusion_source"])
def test_an_unknown_confusion_matrix_is_not_shown(report, table):
    report["metrics"][table][0][1] = None
    assert "Of 1000 cases" not in section_of(render_html(report))


def test_names_are_text(report):
    section = report["metrics"]
    section["positive"], section["classes"] = "<i>ill</i>", ["healthy", "<i>ill</i>"]
    section["metrics"][0].update(name="<b>own</b>", title="<b>own</b>", note="<u>")
    section["warnings"] = ["<s>`<q>`"]
    html = render_html(report)
    assert not re.search(r"<i>ill|<b>own|<u>|<s>|<q>", html)
    assert "<b>own</b>" in section_of(html)
    assert "<code>&lt;q&gt;</code>" in html


def test_many_metrics_are_cut(report):
    metric = report["metrics"]["metrics"][0]
    report["metrics"]["metrics"] = [
        {**metric, "name": f"m{k}", "title": f"m{k}"} for k in range(400)
    ]
    said = section_of(render_html(report))
    assert "250 more metrics are in the JSON output" in said
    assert " m149 " in said
    assert " m150 " not in said


def test_commands_are_code_and_no_backtick_is_left(report):
    report["warnings"] = ["run `calshift weights`, then <stop>"]
    report["advice"] = ["use `calshift recalibrate` & wait"]
    html = render_html(report)
    assert "<code>calshift weights</code>, then &lt;stop&gt;" in html
    assert "<code>calshift recalibrate</code> &amp; wait" in html
    assert "`" not in html.partition("<body>")[2].partition("<script>")[0]


def test_what_is_between_backticks_is_escaped():
    assert mark_code("a `<b>` `c` ` <d>") == "a <code>&lt;b&gt;</code> <code>c</code> ` &lt;d&gt;"


def test_the_title_says_what_was_checked(report):
    titles = []
    for inputs in (None, {"source": {"path": "a/<s>.csv"}, "target": {"path": "C:\\d\\t.csv"}}):
        report["inputs"] = inputs and {k: {**v, "sha256": "0"} for k, v in inputs.items()}
        titles.append(unescape(re.search("<title>(.*)</title>", render_html(report))[1]))
    gist = report["gist"]
    assert titles[0] == f"{gist}: 2,000 target rows against 2,000 labelled source rows - calshift"
    assert titles[1] == f"{gist}: t.csv against <s>.csv - calshift"


def test_write_report_takes_metrics_of_the_same_samples(result, metrics, samples, tmp_path):
    place = tmp_path / "page.html"
    calshift.write_report(result, place, metrics=metrics, level=0.9)
    said = section_of(place.read_text(encoding="utf-8"))
    low, high = (100 * end for end in metrics["precision"].confidence_interval(0.9))
    assert f"90% interval {low:.1f} to {high:.1f}%" in said
    fewer = calshift.target_metrics(samples[0], None, samples[1].p[:1000], metrics=["accuracy"])
    with pytest.raises(calshift.InvalidInput, match="same samples; got 2,000 source and 1,000"):
        calshift.write_report(result, place, metrics=fewer)
    for wrong in (calshift.labelled_metrics(samples[0]), {"accuracy": 1.0}):
        with pytest.raises(calshift.InvalidInput, match="must come from target_metrics"):
            calshift.write_report(result, place, metrics=wrong)


def test_a_notebook_shows_the_same_words(metrics):
    said = text_of(metrics._repr_html_())
    for one in view_metrics(metrics_section(metrics))["rows"]:
        for key in ("name", "now", "interval", "before", "change", "change_interval"):
            assert one[key] in said
    assert "Of 1000 cases like those of the target: found " in said
    assert "not reliable" not in said


def test_a_notebook_says_what_is_not_reliable(samples):
    sharper = (1 - samples[1].p) ** 3
    with pytest.warns(UnreliableWeights):
        found = calshift.target_metrics(samples[0], None, sharper)
    said = text_of(found._repr_html_())
    assert "estimated without labels: not reliable" in said
    failed = next(one.text for one in found.diagnostics if one.failed)
    assert failed[1:] in said


def test_a_notebook_shows_metrics_of_labelled_rows(samples):
    said = text_of(calshift.labelled_metrics(samples[0])._repr_html_())
    assert said.strip().startswith("Metrics of labelled rows")
    assert "before" not in said
    assert "like those of the target" not in said


def test_without_jinja2_a_notebook_shows_text(metrics, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "jinja2", None)
    assert metrics._repr_html_().startswith("<pre>")


def test_every_metric_of_the_catalogue_has_a_name_in_words():
    for name in known_names():
        words = name_in_words(name.replace("_per_class", "[a]"), "?")
        assert words.name != "?" or name == "top_k_accuracy", name


def test_units():
    assert (
        unit_of("precision[a]") == unit_of("recall_macro") == unit_of("top_2_accuracy") == "share"
    )
    assert unit_of("missed_cases") == "per 1000"
    assert unit_of("roc_auc", "share") == unit_of("f1_macro", "share") == "number"
    assert unit_of("own", "share") == "share"
    assert unit_of("own") == "number"
