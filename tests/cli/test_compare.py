"""calshift compare: two models on the same rows."""

from __future__ import annotations

import json
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
    named,
    table,
    write,
)

TURNED = (2, 0, 1)  # cow, ant, bee


def milder(p: np.ndarray) -> np.ndarray:
    """The predictions of model B."""
    q = p**0.5 * np.array([1.0, 1.5, 0.7])
    return q / q.sum(axis=1, keepdims=True)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Models A and B, B with its classes in another order too, and both in one table."""
    place = tmp_path_factory.mktemp("compare")
    for name, change in (("a", np.array), ("b", milder)):
        write(place / f"{name}_source.csv", table(change(P_SOURCE), named(Y_SOURCE)))
        write(place / f"{name}_target.csv", table(change(P_TARGET)))
    order = np.argsort(TURNED)
    turned = {"p_source": milder(P_SOURCE)[:, TURNED], "p_target": milder(P_TARGET)[:, TURNED]}
    names = [NAMES[k] for k in TURNED]
    np.savez(place / "turned.npz", y_source=order[Y_SOURCE], classes=names, **turned)
    for role, p, y in (("source", P_SOURCE, named(Y_SOURCE)), ("target", P_TARGET, None)):
        columns = table(p, y, prefix="a_") | table(milder(p), prefix="b_")
        write(place / f"both_{role}.parquet", columns)
    return place


@pytest.fixture(scope="module")
def asked(folder):
    """The arguments of a comparison of A and B."""
    first = [str(folder / f"a_{role}.csv") for role in ("source", "target")]
    second = ["--other-source", str(folder / "b_source.csv")]
    return [*first, *second, "--other-target", str(folder / "b_target.csv")]


@pytest.fixture(scope="module")
def expected():
    pairs = (P_SOURCE, P_TARGET), (milder(P_SOURCE), milder(P_TARGET))
    errors = (calshift.target_calibration_error(p, Y_SOURCE, q, rng=0) for p, q in pairs)
    metrics = (calshift.target_metrics(p, Y_SOURCE, q, rng=0) for p, q in pairs)
    return calshift.compare(*errors), calshift.compare(*metrics)


def report_of(tmp_path, *arguments: str, code: int = 0) -> dict:
    out = tmp_path / "out.json"
    assert status(["compare", *arguments, "-q", "--json", str(out)]) == code
    found = json.loads(out.read_text(encoding="utf-8"))
    jsonschema.validate(found, schema())
    return found


def schema() -> dict:
    text = (files("calshift.report") / "schemas" / "comparison.json").read_text(encoding="utf-8")
    return json.loads(text)


def same_numbers(found: dict, expected, level: float = 0.95) -> None:
    """Those of the library, from the same predictions."""
    error, metrics = expected
    one = found["calibration_error"]
    assert one["difference"] == pytest.approx(error.root, rel=1e-9)
    assert one["interval"] == pytest.approx(
        error.confidence_interval(level, root=True), rel=1e-6, abs=1e-9
    )
    for shown in found["metrics"]:
        result = metrics[shown["name"]]
        assert shown["a"] == pytest.approx(result.a.estimate, rel=1e-9)
        assert shown["b"] == pytest.approx(result.b.estimate, rel=1e-9)
        ends = result.confidence_interval(level)
        assert shown["interval"] == pytest.approx(ends, rel=1e-6, abs=1e-9)
        assert shown["clear"] == result.is_clear(level)


def test_json_has_the_numbers_of_the_library(asked, expected, tmp_path):
    found = report_of(tmp_path, *asked, "--level", "0.9")
    assert [one["name"] for one in found["metrics"]] == list(expected[1])
    same_numbers(found, expected, 0.9)
    assert set(found["inputs"]) == {"source", "target", "other_source", "other_target"}


def test_classes_are_matched_by_name(folder, asked, expected, tmp_path):
    other = str(folder / "turned.npz")
    found = report_of(tmp_path, *asked[:2], "--other-source", other, "--other-target", other)
    same_numbers(found, expected)


def test_both_models_may_be_in_the_same_files(folder, expected, tmp_path):
    both = [str(folder / f"both_{role}.parquet") for role in ("source", "target")]
    found = report_of(tmp_path, *both, "--columns", "a_*", "--other-columns", "b_*")
    same_numbers(found, expected)
    assert found["metrics"][0]["difference"] != 0


def test_the_verdict_and_the_table_in_words(asked, expected, capsys):
    assert status(["compare", *asked]) == 0
    out = capsys.readouterr().out
    low, high = expected[0].confidence_interval(root=True)
    assert low > 0
    assert out.startswith("Model A has a larger RMS calibration error than model B on the target")
    lines = out.splitlines()
    assert max(map(len, lines)) <= 100
    shown = next(line for line in lines if line.startswith("calibration error"))
    assert shown.split()[2:] == [
        f"{expected[0].a.root:.4f}", f"{expected[0].b.root:.4f}", f"{expected[0].root:+.4f}*",
        f"{low:+.4f}", "to", f"{high:+.4f}",
    ]  # fmt: skip
    clear = {line.split()[0] for line in lines if "* " in line and "." in line} - {"calibration"}
    assert {name for name in clear if name in expected[1]} == {
        name for name, one in expected[1].items() if one.is_clear()
    }
    turned = [*asked[3::2], "--other-source", asked[0], "--other-target", asked[1], "-q"]
    assert status(["compare", *turned]) == 0
    assert capsys.readouterr().out.startswith("Model A has a smaller RMS calibration error")
    assert status(["compare", *asked[:2], "--other-source", asked[0], "-q"]) == 0
    assert capsys.readouterr().out.startswith("No clear difference of the RMS calibration error")


def test_metrics_costs_and_decisions_are_those_asked_for(tmp_path):
    folder = tmp_path
    for name, power in (("a", 1.0), ("b", 1.3)):
        arrays = {"p_source": SCORES**power, "y_source": FRAUD, "p_target": SCORES_NOW**power}
        np.savez(folder / f"{name}.npz", **arrays)
    a, b = (str(folder / f"{name}.npz") for name in "ab")
    asked = [a, a, "--other-source", b, "--other-target", b, "--decision-threshold", "0.3"]
    asked += ["--metric", "recall", "--metric", "missed_cases", "--positive", "0"]
    found = report_of(tmp_path, *asked)
    recall, missed = found["metrics"]
    assert (recall["name"], missed["unit"]) == ("recall", "per 1000")
    one = calshift.target_metrics(
        SCORES**1.3, FRAUD, SCORES_NOW**1.3, decision=0.3, positive=0, metrics="recall"
    )
    assert recall["b"] == pytest.approx(one["recall"].estimate, rel=1e-12)
    assert found["calibration_error"]["kind"] == "binary"


def test_3_where_one_of_them_is_not_trusted(folder, asked, tmp_path):
    other = str(folder / "other.npz")
    arrays = {"p_source": milder(P_SOURCE), "y_source": Y_SOURCE, "classes": NAMES}
    np.savez(other, p_target=milder(OTHER), **arrays)
    found = report_of(
        tmp_path, *asked[:2], "--other-source", other, "--other-target", other, code=3
    )
    assert found["verdict"].startswith("Not reliable, model B: ")
    assert not found["trusted"]
    wide = [*asked, "--drift", "0.01"]  # 1% of the rows may have any log loss
    assert report_of(tmp_path, *wide)["trusted"]
    found = report_of(tmp_path, *wide, "--metric", "log_loss", code=3)
    assert found["verdict"].endswith("Not reliable: log_loss.")


def test_other_rows_are_refused(folder, asked, capsys):
    fewer = write(folder / "fewer.csv", table(milder(P_SOURCE[:-1]), named(Y_SOURCE[:-1])))
    reverse = write(folder / "reverse.csv", table(milder(P_SOURCE[::-1]), named(Y_SOURCE[::-1])))
    for source in (fewer, reverse):
        other = ["--other-source", source, "--other-target", asked[-1]]
        assert status(["compare", *asked[:2], *other]) == 2
        assert "must be of the same rows in the same order" in capsys.readouterr().err


def test_2_and_one_line_that_says_what_is_allowed(folder, asked, capsys, monkeypatch):
    two = str(folder / "two.npz")
    np.savez(two, p_source=SCORES, y_source=FRAUD, p_target=SCORES_NOW)
    cats = str(folder / "cats.npz")
    arrays = {"p_source": P_SOURCE, "y_source": Y_SOURCE, "p_target": P_TARGET}
    np.savez(cats, classes=("cat", "dog", "cow"), **arrays)
    cases = (
        (asked[:2], "name model B: --other-source and --other-target, or --other-columns"),
        ([*asked[:2], "--other-source", two, "--other-target", two], "A has 3, B has 2"),
        ([*asked[:2], "--other-source", cats, "--other-target", cats], "the same classes; A has"),
        ([*asked, "--metric", "acuracy"], "did you mean accuracy"),
        ([*asked, "--json", asked[3]], "is an input"),
        ([*asked, "--norm", "3"], "norm"),
    )
    for arguments, message in cases:
        assert status(["compare", *arguments]) == 2
        err = capsys.readouterr().err
        assert message in err
        assert err.count("\n") == 1
    monkeypatch.setattr("calshift.metrics.row_influence.MOST_KEPT", 10)
    assert status(["compare", *asked]) == 2
    assert "Ask for fewer metrics at a time" in capsys.readouterr().err


@pytest.mark.parametrize(
    "spoil",
    [
        lambda one: one.pop("calibration_error"),
        lambda one: one["metrics"][0].pop("interval"),
        lambda one: one["calibration_error"].update(correlation=2),
        lambda one: one.update(schema_version=1),
    ],
)
def test_the_schema_can_be_broken(spoil, asked, tmp_path):
    jsonschema.Draft202012Validator.check_schema(schema())
    found = report_of(tmp_path, *asked)
    spoil(found)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(found, schema())
