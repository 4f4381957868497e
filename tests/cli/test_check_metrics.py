"""Metrics within calshift check: when they are computed, with which weights, and the status."""

from __future__ import annotations

import json
import re
from importlib.resources import files

import jsonschema
import numpy as np
import pytest

import calshift
from calshift.cli import estimates
from calshift.cli.main import status
from calshift.simulate import GaussianSimulation
from tests.prediction_files import (
    FRAUD,
    NAMES,
    OTHER,
    P_SOURCE,
    P_TARGET,
    SCORES,
    SCORES_NOW,
    Y_SOURCE,
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("check")
    source = {"p_source": P_SOURCE, "y_source": Y_SOURCE, "classes": NAMES}
    np.savez(place / "three.npz", p_target=P_TARGET, **source)
    np.savez(place / "other.npz", p_target=OTHER, **source)
    np.savez(place / "two.npz", p_source=SCORES, y_source=FRAUD, p_target=SCORES_NOW)
    return place


@pytest.fixture(scope="module")
def three(folder):
    return [str(folder / "three.npz")] * 2


@pytest.fixture(scope="module")
def two(folder):
    return [str(folder / "two.npz")] * 2


def report_of(tmp_path, *arguments: str, code: int = 0) -> dict:
    out = tmp_path / "out.json"
    assert status(["check", *arguments, "-q", "--json", str(out)]) == code
    found = json.loads(out.read_text(encoding="utf-8"))
    text = (files("calshift.report") / "schemas" / "report.json").read_text(encoding="utf-8")
    jsonschema.validate(found, json.loads(text))
    return found


def test_without_being_asked_for_no_metric_is_computed(three, tmp_path, monkeypatch):
    monkeypatch.setattr(estimates, "metrics_of_target", None)
    assert report_of(tmp_path, *three)["metrics"] is None


def test_metrics_are_those_of_target_metrics(three, tmp_path):
    """The weights and the test of the error are those that target_metrics makes itself."""
    source = calshift.Predictions(P_SOURCE, Y_SOURCE, classes=NAMES)
    target = calshift.Predictions(P_TARGET, classes=NAMES)
    expected = calshift.target_metrics(source, None, target, rng=0)
    found = report_of(tmp_path, *three, "--report", str(tmp_path / "page.html"))["metrics"]
    assert [one["name"] for one in found["metrics"]] == list(expected)
    for one in found["metrics"]:
        assert one["estimate"] == pytest.approx(expected[one["name"]].estimate, rel=1e-12)
        ends = expected[one["name"]].confidence_interval()
        assert one["interval"] == pytest.approx(ends, rel=1e-12)
    assert found["trusted"] == expected.trusted
    assert found["classes"] == list(NAMES)
    assert found["confusion"] == expected.confusion.tolist()
    assert found["requirements"] == []


def test_weights_are_estimated_and_label_shift_is_tested_once(three, tmp_path, monkeypatch):
    calls = []
    estimate, check = calshift.weights.plan_weights, calshift.api.calibration.label_shift_check
    monkeypatch.setattr(
        "calshift.weights.plan_weights",
        lambda *a, **k: calls.append("weights") or estimate(*a, **k),
    )
    for module in ("calibration", "label_shift"):
        monkeypatch.setattr(
            f"calshift.api.{module}.label_shift_check",
            lambda *a, **k: calls.append("test") or check(*a, **k),
        )
    report_of(tmp_path, *three, "--metric", "accuracy")
    assert sorted(calls) == ["test", "weights"]


def test_metrics_asked_for_come_after_those_of_the_report(two, tmp_path):
    found = report_of(tmp_path, *two, "--metric", "f1", "--require", "npv>=0.01")["metrics"]
    assert [one["name"] for one in found["metrics"]] == [
        "prevalence", "precision", "recall", "missed_cases", "accuracy", "f1", "npv",
    ]  # fmt: skip
    assert found["positive"] == "1"
    cost = ["--cost", "false_positive=1,false_negative=9", "--decision", "cost"]
    found = report_of(tmp_path, *two, *cost, "--metric", "f1")["metrics"]
    assert [one["name"] for one in found["metrics"]][-2:] == ["expected_cost", "f1"]
    assert found["decision"] == "least expected cost"


@pytest.mark.parametrize(
    ("options", "code", "gist"),
    [
        (["--require", "accuracy>=0.9"], 0, "Miscalibrated"),
        (["--require", "accuracy>=0.96"], 1, "Requirement not shown to be met"),
        (["--require", "accuracy>=0.99"], 1, "Requirement violated"),
        (["--require", "accuracy>=0.9", "--max-error", "0.01"], 1, "Above the limit"),
        (["--require", "accuracy>=0.99", "--max-error", "0.01"], 1, "Above the limit"),
        (["--require", "accuracy>=0.99", "--max-error", "0.9"], 1, "Requirement violated"),
    ],
)
def test_status_and_gist_include_requirements(options, code, gist, three, tmp_path):
    found = report_of(tmp_path, *three, *options, code=code)
    assert found["gist"] == gist
    assert found["status"] == ("fine", "breached")[code]
    text = options[1]
    assert f": {text} (0.9425 to 0.972)." in found["verdict"]


def test_3_outranks_1(folder, three, tmp_path):
    other = [str(folder / "other.npz")] * 2
    found = report_of(tmp_path, *other, "--require", "accuracy>=0.999", code=3)
    assert found["metrics"]["requirements"][0]["status"] == "not trusted"
    # the error is trusted, the metric has too wide an interval: see tests/cli/test_metrics.py
    wide = [*three, "--drift", "0.01"]
    found = report_of(tmp_path, *wide, "--require", "log_loss<=50", code=3)
    assert found["trusted"]
    assert found["status"] == "untrusted"
    assert found["gist"] == "Not reliable"
    assert "Not reliable: log_loss<=50" in found["verdict"]
    assert report_of(tmp_path, *wide, "--metric", "log_loss")["status"] == "fine"


def test_waivers_are_those_of_the_command(folder, tmp_path):
    other = [str(folder / "other.npz")] * 2
    asked = ["--metric", "accuracy", "--no-check"]
    strict = report_of(tmp_path, *other, *asked, code=3)["metrics"]
    assert not strict["trusted"]
    failed = [one["name"] for one in strict["diagnostics"] if one["failed"]]
    waived = [part for name in failed for part in ("--waive", name)]
    found = report_of(tmp_path, *other, *asked, *waived, "--waive", "overlap")["metrics"]
    assert found["trusted"]


def test_a_drift_and_a_bootstrap_apply_to_metrics_too(three, tmp_path):
    ends = [
        report_of(tmp_path, *three, "--metric", "accuracy", *more)["metrics"]["metrics"][0][
            "interval"
        ]
        for more in ([], ["--drift", "0.02"], ["--interval", "bootstrap", "--draws", "60"])
    ]
    assert ends[1][0] == pytest.approx(ends[0][0] - 0.02, abs=5e-3)
    assert ends[2] != ends[0]
    assert ends[2] == pytest.approx(ends[0], abs=0.02)


def test_batches_with_a_checkpoint_give_the_same(three, tmp_path, capsys):
    path, page = tmp_path / "state", ["--report", str(tmp_path / "page.html")]
    batches = ["--engine", "batches", "--checkpoint", str(path)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("calshift.api.metrics.estimate_target", interrupted)
        assert status(["check", *three, *page, *batches]) == 130
    assert path.exists()
    one = report_of(tmp_path, *three, *page, *batches)
    assert not path.exists()
    other = report_of(tmp_path, *three, *page)
    assert one["target"]["root"] == pytest.approx(other["target"]["root"], rel=1e-9)
    for a, b in zip(one["metrics"]["metrics"], other["metrics"]["metrics"], strict=True):
        assert a["interval"] == pytest.approx(b["interval"], rel=1e-8)


def interrupted(*arguments, **options):
    raise KeyboardInterrupt


def test_a_continued_run_does_not_read_again_what_was_summed(three, tmp_path, monkeypatch):
    path, passes = tmp_path / "state", []
    asked = ["check", *three, "-q", "--metric", "accuracy", "--engine", "batches"]
    asked += ["--checkpoint", str(path)]
    inner = calshift.engines.batches.Batches._read
    monkeypatch.setattr(
        calshift.engines.batches.Batches,
        "_read",
        lambda self, skip: passes.append(self.name) or inner(self, skip),
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("calshift.api.metrics.estimate_target", interrupted)
        assert status(asked) == 130
    before = len(passes)
    assert status(asked) == 0
    assert 0 < len(passes) - before < before / 2


def test_tables_of_every_output_have_the_metrics(two, tmp_path, capsys):
    markdown, series = tmp_path / "a.md", tmp_path / "a.prom"
    asked = ["--markdown", str(markdown), "--prometheus", str(series)]
    assert status(["check", *two, "--require", "recall>=0.01", *asked]) == 0
    out = capsys.readouterr().out
    assert max(map(len, out.splitlines())) <= 100
    assert re.search(r"^recall +0\.\d{4} +0\.\d{4} to 0\.\d{4} +0\.\d{4} ", out, re.MULTILINE)
    assert "required: recall>=0.01: met" in out
    assert "| recall | 0." in markdown.read_text(encoding="utf-8")
    written = series.read_text(encoding="utf-8")
    assert 'calshift_metric{metric="recall",sample="target"} 0.' in written
    assert 'calshift_requirement_met{requirement="recall>=0.01"} 1.0' in written


def test_a_large_confusion_matrix_is_left_out(tmp_path):
    simulation = GaussianSimulation(n_classes=31, seed=1)
    p, y = simulation.source(4000, rng=1)
    path = str(tmp_path / "many.npz")
    np.savez(path, p_source=p, y_source=y, p_target=simulation.target(4000, rng=2)[0])
    out = tmp_path / "out.json"
    status(["check", path, path, "-q", "--no-check", "--metric", "accuracy", "--json", str(out)])
    found = json.loads(out.read_text(encoding="utf-8"))["metrics"]
    assert found["confusion"] is found["confusion_source"] is None
    assert len(found["classes"]) == 31


def test_write_report_takes_metrics(tmp_path):
    result = calshift.target_calibration_error(SCORES, FRAUD, SCORES_NOW, check=False)
    metrics = calshift.target_metrics(SCORES, FRAUD, SCORES_NOW, check=False)
    calshift.write_report(result, tmp_path / "page.html", metrics=metrics)
    assert (tmp_path / "page.html").exists()
    for wrong in (result, calshift.labelled_metrics(SCORES, FRAUD)):
        with pytest.raises(calshift.InvalidInput, match="metrics must come from target_metrics"):
            calshift.write_report(result, tmp_path / "page.html", metrics=wrong)
