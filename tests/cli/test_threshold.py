"""calshift threshold: numbers of the library, exit status, outputs."""

from __future__ import annotations

import json
from importlib.resources import files

import jsonschema
import numpy as np
import pytest

import calshift
from calshift.cli.main import status
from tests.prediction_files import write

MODEL = calshift.simulate.GaussianSimulation(
    n_classes=2, dimensions=2, imbalance=9, long_tail="source", temperature=0.8, seed=5
)
MANY = calshift.simulate.GaussianSimulation(n_classes=3, dimensions=3, imbalance=3, seed=2)
COSTS = "false_positive=1,false_negative=5"
COST = {"false_positive": 1, "false_negative": 5}
TABLE = 1 - np.eye(3)


@pytest.fixture(scope="module")
def two():
    return (*MODEL.source(2000, rng=1), MODEL.target(1500, rng=2)[0])


@pytest.fixture(scope="module")
def folder(tmp_path_factory, two):
    place = tmp_path_factory.mktemp("threshold")
    p, y, q = two
    write(
        place / "s.csv", {"p_ok": p[:, 0].tolist(), "p_ill": p[:, 1].tolist(), "label": y.tolist()}
    )
    write(place / "t.csv", {"p_ill": q[:, 1].tolist(), "p_ok": q[:, 0].tolist()})
    sharper = q**3 / (q**3).sum(axis=1, keepdims=True)
    write(place / "other.csv", {"p_ok": sharper[:, 0].tolist(), "p_ill": sharper[:, 1].tolist()})
    p, y = MANY.source(1500, rng=1)
    np.savez(place / "many.npz", p_source=p, y_source=y, p_target=MANY.target(1000, rng=2)[0])
    np.savetxt(place / "cost.csv", TABLE, delimiter=",")
    scores = np.random.default_rng(0).choice([0.1, 0.3, 0.6], (2, 2000))
    y = (np.random.default_rng(1).uniform(size=2000) < scores[0]).astype(int)
    np.savez(place / "coarse.npz", p_source=scores[0], y_source=y, p_target=scores[1])
    return place


@pytest.fixture(scope="module")
def asked(folder):
    return [str(folder / "s.csv"), str(folder / "t.csv")]


@pytest.fixture(scope="module")
def many(folder):
    return [str(folder / "many.npz")] * 2


def report_of(tmp_path, *arguments: str, code: int = 0) -> dict:
    out = tmp_path / "out.json"
    assert status(["threshold", *arguments, "-q", "--json", str(out)]) == code
    found = json.loads(out.read_text(encoding="utf-8"))
    jsonschema.validate(found, schema())
    return found


def schema() -> dict:
    text = (files("calshift.report") / "schemas" / "threshold.json").read_text(encoding="utf-8")
    return json.loads(text)


def same_numbers(found: dict, expected: calshift.DecisionThreshold, level: float = 0.95) -> None:
    """Those of the library."""
    assert found["threshold"] == expected.threshold
    assert found["recalibrated_threshold"] == expected.recalibrated_threshold
    for one in found["metrics"]:
        name = one["name"]
        change, ends = expected.change(name, level)
        assert one["present"]["estimate"] == expected.unchanged[name].estimate
        assert one["new"]["estimate"] == expected.achieved[name].estimate
        assert one["new"]["interval"] == list(expected.achieved[name].confidence_interval(level))
        assert (one["change"], one["interval"]) == (change, list(ends))


# --- numbers


def test_costs_give_the_threshold_of_the_library(asked, two, tmp_path):
    found = report_of(tmp_path, *asked, "--cost", COSTS, "--level", "0.9")
    expected = calshift.decision_threshold(*two, cost=COST, rng=0)
    same_numbers(found, expected, 0.9)
    assert [one["name"] for one in found["metrics"]] == list(expected.achieved)
    assert found["positive"] == "ill"
    assert found["cost"] == [[0, 5], [1, 0]]
    saved = calshift.Recalibrator.from_dict(found["recalibrator"])
    again = expected.recalibrator.transform(two[2])
    np.testing.assert_allclose(saved.transform(two[2]), again, rtol=1e-12)


def test_a_metric_is_kept_and_the_present_threshold_compared(asked, two, tmp_path):
    more = ["--decision-threshold", "0.2", "--metric", "f1", "--method", "temperature"]
    goal = ["--keep", "recall", "--at", "0.8"]
    found = report_of(tmp_path, *asked, *goal, *more[:4])
    expected = calshift.decision_threshold(
        *two, keep="recall", at=0.8, decision=0.2, metrics=["recall", "f1"], rng=0
    )
    same_numbers(found, expected)
    assert [one["name"] for one in found["metrics"]] == ["recall", "f1"]
    assert found["rule"]["present"] == "positive at a probability of at least 0.2"
    by_method = report_of(tmp_path, *asked, "--cost", COSTS, *more)
    assert by_method["recalibrator"]["name"] == "TemperatureScaling"


def test_options_of_classes_and_weights_are_passed_on(asked, two, tmp_path):
    more = ["--positive", "ok", "--weights", "bbse", "--waive", "agreement"]
    found = report_of(tmp_path, *asked, "--cost", COSTS, *more)
    expected = calshift.decision_threshold(
        *two, cost=COST, positive=0, weights="bbse", waive="agreement", rng=0
    )
    same_numbers(found, expected)
    assert found["positive"] == "ok"
    assert found["class_weights"]["method"] == "bbse"


def test_more_classes_have_a_rule_instead_of_a_threshold(many, folder, tmp_path, capsys):
    cost = ["--cost", str(folder / "cost.csv")]
    found = report_of(tmp_path, *many, *cost)
    assert found["threshold"] is None
    with np.load(many[0]) as data:
        arrays = [data[name] for name in ("p_source", "y_source", "p_target")]
    expected = calshift.decision_threshold(*arrays, cost=TABLE, rng=0)
    same_numbers(found, expected)
    capsys.readouterr()
    assert status(["threshold", *many, *cost]) == 0
    said = capsys.readouterr().out
    assert said.startswith("Predict the class of least expected cost")
    assert "to apply it: `calshift recalibrate`" in said


# --- texts and exit status


def test_the_text_has_the_threshold_and_the_table(asked, two, capsys):
    assert status(["threshold", *asked, "--keep", "precision", "--at", "0.8"]) == 0
    said = capsys.readouterr().out
    source = calshift.Predictions(two[0], two[1], classes=["ok", "ill"])
    expected = calshift.decision_threshold(source, None, two[2], keep="precision", at=0.8, rng=0)
    order = ["precision", *(name for name in expected.achieved if name != "precision")]
    shown = {line.split()[0]: line for line in said.splitlines() if line}
    for line in expected.table().splitlines()[1:]:
        assert shown[line.split()[0]] == line
    assert [name for name in shown if name in expected.achieved] == order
    low, high = expected.achieved["precision"].confidence_interval()
    assert " ".join(said.split("\n\n")[0].split()) == (
        f"P{expected.description[1:]} (precision kept at 0.8): precision on "
        f"the target {expected.achieved['precision'].estimate:.4g} (95% "
        f"interval {low:.4g} to {high:.4g}), smaller than the "
        f"{expected.unchanged['precision'].estimate:.4g} of the present rule."
    )
    assert max(map(len, said.splitlines())) <= 100


def test_1_if_no_threshold_keeps_the_metric(folder, tmp_path, capsys):
    coarse = [str(folder / "coarse.npz")] * 2
    goal = ["--keep", "precision", "--at", "0.9"]
    found = report_of(tmp_path, *coarse, *goal, code=1)
    assert not found["reached"]
    assert (found["status"], found["trusted"]) == ("breached", False)
    assert found["threshold"] == 0.6
    capsys.readouterr()
    assert status(["threshold", *coarse, *goal]) == 1
    said = capsys.readouterr().out
    assert said.startswith("No threshold keeps precision at 0.9: this one comes nearest. Predict")
    assert said.count("comes nearest") == 1


def test_3_and_not_trusted_first(folder, asked, tmp_path, capsys):
    other = [asked[0], str(folder / "other.csv"), "--cost", COSTS]
    found = report_of(tmp_path, *other, code=3)
    assert not found["trusted"]
    assert found["status"] == "untrusted"
    capsys.readouterr()
    assert status(["threshold", *other]) == 3
    assert capsys.readouterr().out.startswith("NOT TRUSTED: ")
    unreached = [*other[:2], "--keep", "alarm_rate", "--at", "0.0001"]
    found = report_of(tmp_path, *unreached, code=3)  # outranks 1
    assert not found["reached"]


def test_3_where_a_metric_asked_for_is_not_trusted(folder, tmp_path, two):
    few = folder / "few.npz"
    np.savez(few, p_source=two[0][:400], y_source=two[1][:400], p_target=two[2][:150])
    goal = ["--keep", "alarm_rate", "--at", "0.01"]
    found = report_of(tmp_path, str(few), str(few), *goal)
    assert not {one["name"]: one for one in found["metrics"]}["precision"]["trusted"]
    found = report_of(tmp_path, str(few), str(few), *goal, "--metric", "precision", code=3)
    assert found["verdict"].startswith("NOT TRUSTED: the 95% interval of precision")
    decisive = ["--keep", "precision", "--at", "0.5", "--metric", "alarm_rate"]
    found = report_of(tmp_path, str(few), str(few), *decisive, code=3)
    assert found["verdict"].startswith("NOT TRUSTED: ")


def test_no_check_omits_the_test(asked, tmp_path):
    found = report_of(tmp_path, *asked, "--keep", "recall", "--at", "0.8", "--no-check")
    assert found["assumption"] is None
    assert found["trusted"]


def test_the_decision_curve_is_drawn(asked, tmp_path):
    picture = tmp_path / "curve.svg"
    goal = ["--keep", "recall", "--at", "0.8"]
    assert status(["threshold", *asked, *goal, "-q", "--plot", str(picture)]) == 0
    assert "net benefit" in picture.read_text(encoding="utf-8")


def test_standard_output_has_the_json_alone(asked, capfdbinary):
    assert status(["threshold", *asked, "--cost", COSTS, "--json", "-"]) == 0
    shown = capfdbinary.readouterr()
    assert json.loads(shown.out)["schema"] == "calshift-threshold"
    assert b"present rule: most probable class" in shown.err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], "give either --cost, or --keep (precision, recall, specificity, alarm_rate) with"),
        (["--cost", COSTS, "--keep", "recall", "--at", "0.5"], "give either --cost"),
        (["--cost", COSTS, "--at", "0.5"], "--at belongs to --keep"),
        (["--keep", "recall"], "--keep recall needs --at, a value between 0 and 1"),
        (["--keep", "recall", "--at", "90"], "such as 0.9; got 90"),
        (["--keep", "recall", "--at", "nan"], "got nan"),
        (["--keep", "recall", "--at", "0.5", "--method", "shift"], "--method belongs to --cost"),
        (["--keep", "recall", "--at", "0.5", "--decision", "cost"], "--decision cost needs --cost"),
        (["--keep", "recall", "--at", "0.5", "--decision-threshold", "2"], "from 0 to 1"),
        (["--cost", COSTS, "--positive", "sick"], "--positive must be one of the classes ok, ill"),
        (["--cost", COSTS, "--metric", "acuracy"], "did you mean accuracy"),
        (["--cost", COSTS, "--json", "{0}/t.csv"], "is an input"),
        (["--cost", "false_positive=1,false_positive=2"], "--cost must be a csv file"),
    ],
)
def test_2_and_one_line_that_says_what_to_do(asked, folder, arguments, words, capsys):
    assert status(["threshold", *asked, *(one.format(folder) for one in arguments)]) == 2
    said = capsys.readouterr().err
    assert words in said
    assert said.count("\n") == 1


def test_2_where_there_are_more_classes(many, folder, tmp_path, capsys):
    cost = ["--cost", str(folder / "cost.csv")]
    for arguments, words in (
        (["--keep", "recall", "--at", "0.5"], "--keep is for two classes; there are 3: use --cost"),
        ([*cost, "--plot", str(tmp_path / "a.png")], "--plot draws the decision curve of two"),
        ([*cost, "--decision-threshold", "0.5"], "leave out --decision-threshold"),
        (["--cost", COSTS], "is for two classes; there are 3"),
    ):
        assert status(["threshold", *many, *arguments]) == 2
        assert words in capsys.readouterr().err


@pytest.mark.parametrize(
    "spoil",
    [
        lambda one: one.pop("threshold"),
        lambda one: one["metrics"][0].pop("interval"),
        lambda one: one["rule"].pop("new"),
        lambda one: one.update(schema_version=1),
        lambda one: one.update(metrics=[]),
    ],
)
def test_the_schema_can_be_broken(spoil, asked, tmp_path):
    jsonschema.Draft202012Validator.check_schema(schema())
    found = report_of(tmp_path, *asked, "--keep", "recall", "--at", "0.8")
    spoil(found)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(found, schema())
