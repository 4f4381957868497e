"""calshift metrics: numbers of the library, requirements, costs, outputs, exit status."""

from __future__ import annotations

import json
import re
from importlib.resources import files

import jsonschema
import numpy as np
import pytest

import calshift
from calshift.cli.main import status
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

COST = np.array([[0.0, 2.0, 2.0], [1.0, 0.0, 1.0], [3.0, 3.0, 0.0]])  # ant, bee, cow


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("metrics")
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


@pytest.fixture(scope="module")
def expected():
    """The usual metrics of three classes."""
    source = calshift.Predictions(P_SOURCE, Y_SOURCE, classes=NAMES)
    target = calshift.Predictions(P_TARGET, classes=NAMES)
    return calshift.target_metrics(source, None, target, rng=0)


def report_of(tmp_path, *arguments: str, code: int = 0) -> dict:
    out = tmp_path / "out.json"
    assert status(["metrics", *arguments, "-q", "--json", str(out)]) == code
    found = json.loads(out.read_text(encoding="utf-8"))
    jsonschema.validate(found, schema())
    return found


def schema() -> dict:
    text = (files("calshift.report") / "schemas" / "metrics.json").read_text(encoding="utf-8")
    return json.loads(text)


# --- numbers


def test_json_has_the_numbers_of_the_library(three, expected, tmp_path):
    found = report_of(tmp_path, *three, "--level", "0.9")
    assert [one["name"] for one in found["metrics"]] == list(expected)
    for one in found["metrics"]:
        result = expected[one["name"]]
        assert one["estimate"] == result.estimate
        assert one["interval"] == list(result.confidence_interval(0.9))
        assert one["source"] == result.source
        assert one["difference_interval"] == list(result.difference_interval(0.9))
    assert found["confusion"] == expected.confusion.tolist()
    assert found["classes"] == list(NAMES)
    assert found["level"] == 0.9


def test_batches_and_arrays_agree(three, tmp_path):
    asked = ["--metric", "accuracy", "--metric", "f1_macro", "--decision", "argmax"]
    found = [report_of(tmp_path, *three, *asked, "--engine", one) for one in ("arrays", "batches")]
    for one, other in zip(*(each["metrics"] for each in found), strict=True):
        assert one["estimate"] == pytest.approx(other["estimate"], rel=1e-9)
        assert one["interval"] == pytest.approx(other["interval"], rel=1e-9)


def test_the_unit_of_a_metric_follows_from_it(two, tmp_path):
    units = {one["name"]: one["unit"] for one in report_of(tmp_path, *two)["metrics"]}
    assert units["missed_cases"] == "per 1000"
    assert units["precision"] == units["prevalence"] == "share"
    assert units["log_loss"] == units["oe_ratio"] == "number"


def test_the_table_has_at_most_100_columns_and_the_numbers(two, capsys):
    assert status(["metrics", *two]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= 100
    found = calshift.target_metrics(SCORES, FRAUD, SCORES_NOW, rng=0)
    shown = next(line for line in lines if line.startswith("recall "))
    one = found["recall"]
    low, high = one.confidence_interval()
    pattern = rf"recall +{one.estimate:.4f} +{low:.4f} to {high:.4f} +{one.source:.4f} +"
    assert re.fullmatch(rf"{pattern}\{one.difference:+.4f}\*?", shown)
    missed = next(line for line in lines if line.startswith("missed_cases (per 1000 rows)"))
    assert f" {1000 * found['missed_cases'].estimate:.2f} " in missed
    starred = {line.split()[0] for line in lines if re.search(r"[-+]\d+\.\d+\*", line)}
    assert starred == {
        name for name, one in found.items() if np.prod(np.sign(one.difference_interval())) > 0
    }


def test_a_metric_of_a_long_class_name_does_not_break_the_table(tmp_path, capsys):
    names = ("x" * 300, "line\nbreak", "\x1b[31mred")
    path = str(tmp_path / "odd.npz")
    np.savez(path, p_source=P_SOURCE, y_source=Y_SOURCE, p_target=P_TARGET, classes=names)
    text = ["--markdown", str(tmp_path / "a.md"), "--prometheus", str(tmp_path / "a.prom")]
    assert status(["metrics", path, path, "--metric", "recall_per_class", *text]) == 0
    out = capsys.readouterr().out
    assert "\x1b" not in out
    assert max(map(len, out.splitlines()[-8:])) <= 100
    for name in ("a.md", "a.prom"):
        written = (tmp_path / name).read_text(encoding="utf-8")
        assert "\x1b" not in written
        assert "nan" not in written


def test_many_requirements_are_cut_short_those_not_met_first(tmp_path, capsys):
    simulation = calshift.simulate.GaussianSimulation(n_classes=30, imbalance=1, seed=1)
    p, y = simulation.source(3000, rng=1)
    path = str(tmp_path / "many.npz")
    np.savez(path, p_source=p, y_source=y, p_target=simulation.target(3000, rng=2)[0])
    asked = ["--require", "recall_per_class>=0.01", "--require", "accuracy>=0.999"]
    waived = [part for name in WAIVED for part in ("--waive", name)]
    assert status(["metrics", path, path, "--no-check", *waived, *asked]) == 1
    out = capsys.readouterr().out
    lines = out.splitlines()
    assert max(map(len, lines)) <= 100
    required = [line for line in lines if line.startswith("required: ")]
    assert len(required) == 20
    assert required[0] == "required: accuracy>=0.999: violated"
    assert "... and 11 more requirements (--json has all)" in lines
    assert " and 25 more." in " ".join(out.split())


WAIVED = ("agreement", "boundary", "interval-width", "lack-of-fit", "amplification")


# --- requirements and the exit status


@pytest.mark.parametrize(
    ("required", "code", "outcome"),
    [("accuracy>=0.9", 0, "met"), ("accuracy>=0.96", 1, "not shown"),
     ("accuracy>=0.99", 1, "violated"), ("log_loss<=0.3", 0, "met"),
     ("log_loss<0.15", 1, "not shown")],
)  # fmt: skip
def test_1_where_a_requirement_is_not_shown_to_be_met(
    required, code, outcome, three, expected, tmp_path, capsys
):
    name, limit = re.split("[<>]=?", required)
    low, high = expected[name].confidence_interval()
    place = "met" if ">" in required and low >= float(limit) else ""
    place = place or ("met" if "<" in required and high <= float(limit) else "")
    assert (outcome == "met") == (place == "met")
    found = report_of(tmp_path, *three, "--require", required, code=code)
    assert [(one["text"], one["status"]) for one in found["requirements"]] == [(required, outcome)]
    words = {"met": "Met", "not shown": "Not shown to be met", "violated": "Violated"}
    assert f"{words[outcome]}: {required}" in " ".join(capsys.readouterr().out.split())


def test_a_required_metric_is_computed_beside_the_usual_ones(three, expected, tmp_path):
    found = report_of(tmp_path, *three, "--require", "cohen_kappa>=0.1")
    assert [one["name"] for one in found["metrics"]] == [*expected, "cohen_kappa"]
    asked = ["--metric", "accuracy", "--require", "cohen_kappa>=0.1"]
    found = report_of(tmp_path, *three, *asked)
    assert [one["name"] for one in found["metrics"]] == ["accuracy", "cohen_kappa"]


def test_3_outranks_1(folder, tmp_path):
    other = [str(folder / "other.npz")] * 2
    found = report_of(tmp_path, *other, "--require", "accuracy>=0.999", code=3)
    assert found["status"] == "untrusted"
    assert found["requirements"][0]["status"] == "not trusted"
    assert found["verdict"].startswith("Not reliable: more than the class distribution")


def test_3_where_a_metric_asked_for_by_name_has_a_wide_interval(three, capsys):
    """1% of the rows outside label shift may have any log loss; accuracy changes by 1% at most."""
    asked = [*three, "--drift", "0.01"]
    found = calshift.target_metrics(P_SOURCE, Y_SOURCE, P_TARGET, drift=0.01, rng=0)
    assert found.trusted
    assert found["accuracy"].trusted
    assert not found["log_loss"].trusted
    assert status(["metrics", *asked]) == 0
    assert re.search(r"log_loss .* not trusted\n", capsys.readouterr().out)
    assert status(["metrics", *asked, "--metric", "accuracy"]) == 0
    assert status(["metrics", *asked, "--metric", "log_loss", "-q"]) == 3
    assert "interval of log_loss has a width" in " ".join(capsys.readouterr().out.split())
    assert status(["metrics", *asked, "--metric", "log_loss", "--waive", "interval-width"]) == 0
    assert status(["metrics", *asked, "--require", "log_loss<=50"]) == 3


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--require", "accuracy"], "--require must be the name of a metric, one of >=, >, <=, <"),
        (["--require", "accuracy>=90"], "accuracy is from 0 to 1; got 'accuracy>=90'"),
        (["--require", "acuracy>=0.9"], "there is no metric 'acuracy': did you mean accuracy"),
        (["--metric", "precision"], "or name the class by --positive"),
        (["--metric", "expected_cost"], "needs --cost, a table of costs"),
        (["--decision", "cost"], "needs --cost, a table of costs"),
        (["--decision-threshold", "0.3"], "leave out --decision-threshold"),
        (["--decision-threshold", "3", "--decision", "cost"], "cannot be combined with"),
        (["--positive", "dog"], "--positive must be one of the classes ant, bee, cow"),
        (["--cost", "false_positive=1"], "is for two classes; there are 3: name a csv file"),
        (["--cost", "gone.csv"], "gone.csv: no such file"),
        (["--interval", "bootstrap", "--drift", "0.1"], "needs --interval influence"),
        (["--level", "2"], "--level must lie between 0 and 1"),
        (["--plot", "figure.gif"], "its extension must be one of"),
    ],
)
def test_2_and_one_line_that_says_what_is_allowed(options, message, three, capsys):
    assert status(["metrics", *three, *options]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert message in err
    assert err.count("\n") == 1


def test_a_malformed_requirement_is_refused_before_files_are_read(capsys):
    assert status(["metrics", "gone.npz", "gone.npz", "--require", "accuracy"]) == 2
    assert "--require must be" in capsys.readouterr().err


# --- decisions and costs


def write_cost(path, cells: list[list[str]], separator: str = ",") -> str:
    path.write_text("\n".join(separator.join(row) for row in cells) + "\n", encoding="utf-8")
    return str(path)


def cost_cells(order=(0, 1, 2)) -> list[list[str]]:
    """Named rows and columns, in an order of the classes."""
    head = ["predicted", *(NAMES[k] for k in order)]
    return [head, *([NAMES[i], *(str(COST[i, j]) for j in order)] for i in order)]


@pytest.mark.parametrize("separator", [",", ";", "\t"])
@pytest.mark.parametrize("decision", ["argmax", "cost"])
def test_costs_are_matched_by_class_name(decision, separator, three, tmp_path):
    expected = calshift.target_metrics(
        P_SOURCE, Y_SOURCE, P_TARGET, cost=COST, decision=decision, metrics="expected_cost", rng=0
    )["expected_cost"]
    plain = [[str(value) for value in row] for row in COST]
    for cells in (cost_cells(), cost_cells((2, 0, 1)), plain):
        path = write_cost(tmp_path / "cost.csv", cells, separator)
        asked = ["--cost", path, "--decision", decision, "--metric", "expected_cost"]
        (one,) = report_of(tmp_path, *three, *asked)["metrics"]
        assert one["estimate"] == pytest.approx(expected.estimate, rel=1e-12)
        assert one["interval"] == pytest.approx(expected.confidence_interval(), rel=1e-12)


def spoilt(row: int, column: int, value: str) -> list[list[str]]:
    cells = cost_cells()
    cells[row][column] = value
    return cells


@pytest.mark.parametrize(
    ("cells", "message"),
    [
        (spoilt(0, 1, "dog"), "its header must name each of the classes ant, bee, cow once"),
        (spoilt(2, 0, "ant"), "its first column must name each of the classes ant, bee, cow once"),
        (spoilt(1, 2, "two"), "the cost in row 0, column 1 must be a number; it is 'two'"),
        (spoilt(1, 2, "nan"), "must be a number; it is 'nan'"),
        (cost_cells()[:3], "must have 3 rows of 3 costs"),
        ([["1", "2"], ["3", "4"]], "must have 3 rows of 3 costs"),
        ([[""]], "must have 3 rows of 3 costs"),
    ],
)
def test_a_table_of_costs_that_cannot_be_is_refused(cells, message, three, tmp_path, capsys):
    path = write_cost(tmp_path / "cost.csv", cells)
    assert status(["metrics", *three, "--cost", path]) == 2
    assert message in capsys.readouterr().err


def test_costs_of_two_classes_by_outcome(two, tmp_path, capsys):
    cost = {"false_positive": 1, "false_negative": 20}
    expected = calshift.target_metrics(
        SCORES, FRAUD, SCORES_NOW, cost=cost, decision="cost", metrics=["expected_cost"], rng=0
    )["expected_cost"]
    asked = ["--cost", "false_positive=1, false_negative=20", "--decision", "cost"]
    found = report_of(tmp_path, *two, *asked, "--metric", "expected_cost")
    assert found["metrics"][0]["estimate"] == pytest.approx(expected.estimate, rel=1e-12)
    assert found["decision"] == "least expected cost"
    for wrong in ("false_alarm=1", "false_positive=x", "false_positive=1,false_positive=2"):
        assert status(["metrics", *two, "--cost", wrong]) == 2
        assert "--cost must be a csv file, or of two classes" in capsys.readouterr().err


@pytest.mark.parametrize("positive", [None, "0", "1"])
def test_a_threshold_and_the_positive_class(positive, two, tmp_path):
    number = 1 if positive is None else int(positive)
    expected = calshift.target_metrics(
        SCORES, FRAUD, SCORES_NOW, decision=0.3, positive=number, metrics=["recall"], rng=0
    )["recall"]
    asked = ["--decision-threshold", "0.3", "--metric", "recall"]
    asked += [] if positive is None else ["--positive", positive]
    found = report_of(tmp_path, *two, *asked)
    assert found["metrics"][0]["estimate"] == pytest.approx(expected.estimate, rel=1e-12)
    assert found["positive"] == str(number)
    assert found["decision"] == "positive at a probability of at least 0.3"


def test_the_positive_class_by_name(three, expected, tmp_path):
    found = report_of(tmp_path, *three, "--metric", "recall", "--positive", "cow")
    again = report_of(tmp_path, *three, "--metric", "recall[cow]")
    assert found["metrics"][0]["estimate"] == again["metrics"][0]["estimate"]


def test_a_cost_table_is_an_input_that_no_output_replaces(three, tmp_path, capsys):
    path = write_cost(tmp_path / "cost.csv", cost_cells())
    assert status(["metrics", *three, "--cost", path, "--markdown", path]) == 2
    assert "is an input" in capsys.readouterr().err


# --- outputs


def test_every_output_has_the_same_numbers(three, expected, tmp_path):
    names = {"json": "a.json", "markdown": "a.md", "prometheus": "a.prom", "plot": "a.png"}
    paths = {name: tmp_path / file for name, file in names.items()}
    asked = [part for name, path in paths.items() for part in (f"--{name}", str(path))]
    assert status(["metrics", *three, "--require", "accuracy>=0.9", *asked]) == 0
    one = expected["accuracy"]
    low, high = one.confidence_interval()
    markdown = paths["markdown"].read_text(encoding="utf-8")
    assert f"| accuracy | {one.estimate:.4f} | {low:.4f} to {high:.4f} |" in markdown
    assert "- Required: accuracy&gt;=0.9: **met**" in markdown
    series = prometheus_series(paths["prometheus"].read_text(encoding="utf-8"))
    assert series['calshift_metric{metric="accuracy",sample="target"}'] == one.estimate
    assert series['calshift_metric{metric="accuracy",sample="source"}'] == one.source
    labels = '{metric="accuracy",sample="target",level="0.95"}'
    assert series[f"calshift_metric_lower{labels}"] == low
    assert series[f"calshift_metric_upper{labels}"] == high
    assert series['calshift_metric_trusted{metric="accuracy"}'] == 1
    assert series['calshift_requirement_met{requirement="accuracy>=0.9"}'] == 1
    assert series["calshift_metrics_trusted"] == 1
    assert series["calshift_metrics_exit_code"] == 0
    assert paths["plot"].read_bytes().startswith(b"\x89PNG")


def prometheus_series(text: str) -> dict[str, float]:
    lines = [line for line in text.splitlines() if not line.startswith("#")]
    assert len({line.rpartition(" ")[0] for line in lines}) == len(lines)
    return {line.rpartition(" ")[0]: float(line.rpartition(" ")[2]) for line in lines}


def test_both_commands_may_write_for_prometheus(three, tmp_path):
    """A collector refuses the same series twice: files of check and metrics have none in common."""
    paths = [tmp_path / "check.prom", tmp_path / "metrics.prom"]
    for command, path in zip(("check", "metrics"), paths, strict=True):
        assert status([command, *three, "--prometheus", str(path), "-q"]) == 0
    one, other = (set(prometheus_series(path.read_text(encoding="utf-8"))) for path in paths)
    assert not one & other


def test_standard_output_has_the_json_alone(three, capsys):
    assert status(["metrics", *three, "--json", "-"]) == 0
    out, err = capsys.readouterr()
    jsonschema.validate(json.loads(out), schema())
    assert "accuracy" in err


@pytest.mark.parametrize(
    "spoil",
    [
        lambda one: one.pop("verdict"),
        lambda one: one.update(schema_version=1),
        lambda one: one["metrics"][0].pop("unit"),
        lambda one: one["metrics"][0].update(unit="percent"),
        lambda one: one["metrics"][0].update(interval=[0.1]),
        lambda one: one["requirements"][0].update(status="perhaps"),
        lambda one: one.update(exit_code=2),
    ],
)
def test_the_schema_can_be_broken(spoil, three, tmp_path):
    found = report_of(tmp_path, *three, "--require", "accuracy>=0.5")
    spoil(found)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(found, schema())


def test_an_interrupted_command_continues_from_its_checkpoint(three, expected, tmp_path, capsys):
    path = tmp_path / "state"
    asked = ["metrics", *three, "--engine", "batches", "--checkpoint", str(path), "-q"]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("calshift.api.metrics.estimate_target", interrupted)
        assert status(asked) == 130
    assert path.exists()
    out = tmp_path / "out.json"
    assert status([*asked, "--json", str(out)]) == 0
    assert not path.exists()
    (one, *_) = json.loads(out.read_text(encoding="utf-8"))["metrics"]
    assert one["estimate"] == pytest.approx(expected["accuracy"].estimate, rel=1e-9)


def interrupted(*arguments, **options):
    raise KeyboardInterrupt
