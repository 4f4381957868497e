"""calshift recalibrate --report: the page, and the rows that change their predicted class."""

from __future__ import annotations

import json
from importlib.resources import files

import jsonschema
import numpy as np
import pytest

import calshift
from calshift.cli.main import status
from calshift.cli.samples import read_pair
from tests.prediction_files import NAMES, OTHER, P_SOURCE, P_TARGET, Y_SOURCE, named, table, write
from tests.report.test_metrics_page import text_of
from tests.report.test_recalibration_page import section

WEIGHT = (np.arange(600) % 3).astype(float)  # 0, 1, 2


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    folder = tmp_path_factory.mktemp("report")
    ones = {"w": [1.0] * 600}
    write(folder / "source.csv", table(P_SOURCE, named(Y_SOURCE), **ones))
    write(folder / "target.csv", table(P_TARGET, w=WEIGHT.tolist()))
    write(folder / "other.csv", table(OTHER))
    return folder


def run(place, *arguments: str, code: int = 0, target: str = "target.csv") -> tuple[str, dict]:
    """The page and the JSON."""
    page, plain = place / "page.html", place / "out.json"
    asked = [str(place / "source.csv"), str(place / target), "-o", str(place / "out.csv")]
    outputs = ["--report", str(page), "--json", str(plain)]
    assert status(["recalibrate", *asked, *outputs, *arguments]) == code
    found = json.loads(plain.read_text(encoding="utf-8"))
    text = (files("calshift.report") / "schemas" / "recalibration.json").read_text("utf-8")
    jsonschema.validate(found, json.loads(text))
    return page.read_text(encoding="utf-8"), found


def test_the_page_has_the_numbers_of_the_json(place):
    html, found = run(place, "--columns", "p_*")
    assert found["verdict"] in text_of(html)
    low, high = found["after"]["root_interval"]
    ends = f"95% interval {low:.4f} to {high:.4f}"
    assert f"Error after {found['after']['root']:.4f} {ends}" in section(html, "errors")
    accuracy = next(one for one in found["metrics"] if one["name"] == "accuracy")
    assert f"{100 * accuracy['after']['estimate']:.1f}%" in section(html, "metrics")
    assert "recalibration of target.csv against source.csv" in text_of(html)
    assert html.count("<figure>") == len(found["curves"]) > 0


def test_rows_that_change_are_those_of_the_file_that_is_written(place):
    html, found = run(place, "--columns", "p_*")
    written = read_pair(place / "source.csv", place / "out.csv").target.p
    before, after = P_TARGET.argmax(axis=1), written.argmax(axis=1)
    predicted = found["predicted_classes"]
    assert predicted["rows"] == 600
    assert predicted["changed"] == np.sum(before != after) > 0
    for one in predicted["pairs"]:
        pair = NAMES.index(one["from"]), NAMES.index(one["to"])
        assert one["rows"] == np.sum((before == pair[0]) & (after == pair[1]))
    assert f"{predicted['changed']:g} of 600 target rows" in section(html, "predicted")


def test_frequency_weights_count(place):
    _, found = run(place, "--sample-weight", "w")
    saved = calshift.Recalibrator.from_dict(found["recalibrator"])
    changed = saved.transform(P_TARGET).argmax(axis=1) != P_TARGET.argmax(axis=1)
    predicted = found["predicted_classes"]
    assert predicted["rows"] == WEIGHT.sum()
    assert predicted["changed"] == WEIGHT[changed].sum() > 0


def test_a_threshold_decides_what_changes(tmp_path):
    simulation = calshift.simulate.BetaSimulation()
    p, y = simulation.source(1000, rng=1)
    q = simulation.target(1000, rng=2)[0]
    write(tmp_path / "source.csv", {"p_ill": p.tolist(), "label": y.tolist()})
    write(tmp_path / "target.csv", {"p_ill": q.tolist()})
    html, found = run(tmp_path, "--decision-threshold", "0.3", code=found_code(p, y, q))
    written = read_pair(tmp_path / "source.csv", tmp_path / "out.csv").target.p
    predicted = found["predicted_classes"]
    assert predicted["changed"] == np.sum((q >= 0.3) != (written >= 0.3))
    assert "Predicted positive at a probability of at least 0.3." in section(html, "metrics")
    assert "Of 1000 cases like those of the target" in section(html, "metrics")


def found_code(p, y, q) -> int:
    """0, or 3 where the recalibration is not applied."""
    found = calshift.recalibrate(p, y, q, decision=0.3)
    return 0 if found.trusted and found.fallback is None else 3


def test_what_is_not_trusted_says_so(place):
    html, found = run(place, target="other.csv", code=3)
    assert found["gist"] == "Not reliable"
    said = text_of(html)
    assert said.index("Not reliable") < said.index("Calibration error before and after")
    assert "The numbers of this section may be wrong" in section(html, "metrics")


def test_without_report_and_json_nothing_is_counted(place, monkeypatch):
    def refuse(*_):
        raise AssertionError

    name = "calshift.recalibration.assessment.predicted_classes.PredictedClasses.add"
    monkeypatch.setattr(name, refuse)
    asked = [str(place / "source.csv"), str(place / "target.csv"), "--columns", "p_*"]
    assert status(["recalibrate", *asked, "-o", str(place / "out.csv")]) == 0


def test_the_page_may_be_standard_output_but_no_input(place, capfdbinary):
    asked = [str(place / "source.csv"), str(place / "target.csv"), "--columns", "p_*"]
    asked += ["-o", str(place / "out.csv"), "--report"]
    assert status(["recalibrate", *asked, "-"]) == 0
    shown = capfdbinary.readouterr()
    assert shown.out.startswith(b"<!doctype html>")
    assert b"before" in shown.err
    assert status(["recalibrate", *asked, str(place / "source.csv")]) == 2
    assert b"is an input" in capfdbinary.readouterr().err
