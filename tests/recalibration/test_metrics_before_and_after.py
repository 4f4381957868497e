"""Metrics before and after recalibration: `target_metrics` of the rows, and the change of both."""

from __future__ import annotations

import gc
import json
import pickle
import weakref
from dataclasses import replace
from importlib.resources import files

import jsonschema
import numpy as np
import pytest

import calshift
from calshift import InvalidInput, Predictions
from calshift.api.metrics import MetricPlan, metrics_of_target
from calshift.cli.main import status
from calshift.engines import Arrays
from calshift.metrics import row_influence
from calshift.metrics.catalogue import OF_MANY, OF_TWO
from calshift.recalibration import recalibrate as steps
from calshift.recalibration.assessment.metrics import WITHOUT_TABLE, plan_metrics
from calshift.report import recalibration_dict
from calshift.report.verdict import Gate
from calshift.results.score_change import MetricChange, compare_metrics
from tests.prediction_files import named, table, write

pytestmark = pytest.mark.filterwarnings("ignore::calshift.UnreliableWeights")
MODEL = calshift.simulate.GaussianSimulation(3, dimensions=3, imbalance=3, temperature=0.6, seed=4)
P, Y = MODEL.source(1000, rng=0)
Q, TRUTH = MODEL.target(900, rng=1)
TWO = calshift.simulate.BetaSimulation()
NAMES = ["accuracy", "log_loss", "f1_macro"]


@pytest.fixture(scope="module")
def found() -> calshift.RecalibrationResult:
    return calshift.recalibrate(P, Y, Q, check=False)


def test_the_metrics_before_are_those_of_the_rows(found):
    alone = calshift.target_metrics(P, Y, Q, check=False)
    assert tuple(found.metrics_before) == OF_MANY == tuple(alone)
    for name, expected in alone.items():
        one = found.metrics_before[name]
        assert one.estimate == pytest.approx(expected.estimate, rel=1e-9)
        assert one.confidence_interval() == pytest.approx(expected.confidence_interval(), rel=1e-9)
    assert found.metrics_before.class_weights is found.before.class_weights


def test_the_metrics_after_are_those_of_rows_recalibrated_by_other_folds(monkeypatch):
    measured = []

    def keep(source, target, *others):
        measured.append((source, target))
        return original(source, target, *others)

    original = steps.measure_rows
    monkeypatch.setattr(steps, "measure_rows", keep)
    result = calshift.recalibrate(P, Y, Q, check=False, metrics=NAMES)
    (source, target) = measured[1]
    in_sample = result.requested.transform(Q)
    assert np.abs(target.p - in_sample).max() > 1e-6  # other fits than that to all rows
    np.testing.assert_allclose(target.p, in_sample, atol=0.2)
    alone = calshift.target_metrics(source, None, target, metrics=NAMES, check=False)
    for name, expected in alone.items():
        assert result.metrics_after[name].estimate == pytest.approx(expected.estimate, rel=1e-9)
    assert result.metrics_after.class_weights is result.after.class_weights


def test_estimates_are_near_those_with_labels(found):
    with_labels = [
        calshift.labelled_metrics(p, TRUTH, metrics=list(OF_MANY)) for p in (Q, found.probabilities)
    ]
    for one, labels in zip((found.metrics_before, found.metrics_after), with_labels, strict=True):
        for name, known in labels.items():
            error = np.hypot(one[name].standard_error, known.standard_error)
            # 4 standard errors of the difference, as if both were independent
            assert abs(one[name].estimate - known.estimate) < 4 * error


def test_the_scores_that_judge_agree_with_the_metrics(found):
    for score, name in ((found.accuracy, "accuracy"), (found.log_loss, "log_loss")):
        change = found.metric_changes[name]
        for one, value in ((change.before, score.before), (change.after, score.after)):
            # two estimates of the same number from the same rows
            assert abs(one.estimate - value) < 2 * one.standard_error
        assert change.change == pytest.approx(score.change, abs=2 * change.standard_error)


@pytest.mark.parametrize("test", [False, True])
def test_both_have_the_test_of_label_shift_of_the_error_before(test):
    result = calshift.recalibrate(P, Y, Q, check=test, metrics="accuracy")
    assert result.metrics_before.assumption is result.before.assumption
    assert result.metrics_after.assumption is result.before.assumption
    assert (result.before.assumption is not None) == test


def changed(p: np.ndarray) -> np.ndarray:
    """A recalibration that depends on no sample."""
    p = p**0.6 * np.array([1.0, 1.5, 2.0])
    return p / p.sum(axis=1, keepdims=True)


def changes_of(p, y, q, names) -> dict:
    """The metrics before and after that recalibration, compared."""
    measured = []
    for f in (lambda rows: rows, changed):
        samples = Arrays(Predictions(f(p), y)), Arrays(Predictions(f(q)))
        plan = MetricPlan.of(samples[0].summary, names, "argmax", None, None)
        measured.append(metrics_of_target(samples, plan, "auto", None, frozenset()))
    return compare_metrics(*measured)


def test_the_standard_error_of_a_change_is_that_of_repetition():
    names = ["accuracy", "log_loss", "brier_score", "roc_auc_ovr"]
    drawn = [
        changes_of(*MODEL.source(400, rng=2 * k), MODEL.target(400, rng=2 * k + 1)[0], names)
        for k in range(120)
    ]
    for name in names:
        spread = np.std([one[name].change for one in drawn], ddof=1)
        error = np.mean([one[name].standard_error for one in drawn])
        # a standard deviation of 120 draws has a relative standard error of 6.5%; the errors are
        # up to 6% too large in 200 draws of 600 rows
        assert error == pytest.approx(spread, rel=0.25), name
        alone = [np.hypot(one[name].before.standard_error, one[name].after.standard_error)
                 for one in drawn]  # fmt: skip
        assert error < 0.8 * np.mean(alone)  # the rows are shared


def test_the_correlation_is_that_of_the_influence_of_all_rows(found):
    both = found.metrics_before._influence, found.metrics_after._influence
    rows = [np.vstack([one.source, one.target]) for one in both]
    assert rows[0].shape == (len(P) + len(Q), len(OF_MANY))
    for k, change in enumerate(found.metric_changes.values()):
        one, other = (influence[:, k] for influence in rows)
        expected = one @ other / np.sqrt((one @ one) * (other @ other))
        assert change.correlation == pytest.approx(expected, rel=1e-9)


def test_no_recalibration_is_no_change():
    samples = Arrays(Predictions(P, Y)), Arrays(Predictions(Q))
    plan = MetricPlan.of(samples[0].summary, NAMES, "argmax", None, None)
    one = metrics_of_target(samples, plan, "auto", None, frozenset())
    for change in compare_metrics(one, one).values():
        assert change.correlation == pytest.approx(1)
        assert change.confidence_interval() == pytest.approx((0, 0), abs=1e-6)


def test_an_accuracy_of_1_has_a_change_that_is_not_certain():
    one = calshift.MetricEstimate("accuracy", "accuracy", 1.0, _error=0.0, _rows=(120.0, 120.0))
    low, high = MetricChange(one, one, 0.0).confidence_interval()
    # 3.84 / (120 + 3.84) is the distance from 1 of the score interval of 120 correct rows
    assert (low, high) == pytest.approx((-0.031, 0.031), abs=0.001)


def test_the_interval_of_a_change_is_normal(found):
    change = found.metric_changes["log_loss"]
    low, high = change.confidence_interval(0.9)
    # 1.6449: quantile .95 of the normal distribution
    assert (low + high) / 2 == pytest.approx(change.change)
    assert (high - low) / 2 == pytest.approx(1.6449 * change.standard_error, rel=1e-4)
    with pytest.raises(InvalidInput, match="level"):
        change.confidence_interval(0)


def test_too_many_rows_give_no_interval_of_the_change(monkeypatch, tmp_path):
    monkeypatch.setattr(row_influence, "MOST_KEPT", 1000)
    result = calshift.recalibrate(P, Y, Q, check=False, metrics=NAMES)
    assert result.metrics_before._influence is None
    assert result.metrics_after._influence is None
    change = result.metric_changes["accuracy"]
    assert not change.has_interval
    assert change.before.has_interval
    with pytest.raises(InvalidInput, match="too many rows"):
        change.confidence_interval()
    assert change.to_dict()["interval"] is None
    assert f"{change.change:+.4f}" in result.table()
    jsonschema.validate(json.loads(json.dumps(report_of(result))), schema())


def report_of(result) -> dict:
    """Parts of the report that a file has besides."""
    made = recalibration_dict(result, Gate(), seed=0)
    return made | {"schema_version": 2, "created": "now"}


def schema() -> dict:
    path = files("calshift.report") / "schemas" / "recalibration.json"
    return json.loads(path.read_text(encoding="utf-8"))


def test_defaults_depend_on_the_number_of_classes():
    p, y = TWO.source(600, rng=1)
    q, _ = TWO.target(500, rng=2)
    result = calshift.recalibrate(p, y, q, check=False)
    assert tuple(result.metrics_before) == OF_TWO == tuple(result.metrics_after)
    many = type("Summary", (), {"n_classes": 2001, "classes": None})
    planned = plan_metrics(many, None, "argmax", None, None)
    assert tuple(one.name for one in planned.metrics) == WITHOUT_TABLE


def test_the_decision_is_applied_before_and_after():
    p, y = TWO.source(800, rng=1)
    q, _ = TWO.target(700, rng=2)
    asked = {"metrics": ["alarm_rate", "recall", "expected_cost"], "positive": 0}
    asked |= {"cost": {"false_negative": 4.0}, "check": False}
    result = calshift.recalibrate(p, y, q, decision=0.2, **asked)
    assert result.metrics_before.decision == result.metrics_after.decision
    assert "0.2" in result.metrics_before.decision
    alone = calshift.target_metrics(p, y, q, decision=0.2, **asked)
    for name, expected in alone.items():
        assert result.metrics_before[name].estimate == pytest.approx(expected.estimate, rel=1e-9)
    alarms = result.metrics_after["alarm_rate"].estimate
    share = np.mean(1 - result.probabilities.reshape(len(q), -1)[:, -1] >= 0.2)
    # cross-fitted probabilities differ a little from those of the fit to all rows
    assert alarms == pytest.approx(share, abs=0.03)
    assert abs(alarms - np.mean(1 - result.probabilities.reshape(len(q), -1)[:, -1] >= 0.5)) > 0.1


def test_what_is_judged_does_not_depend_on_the_metrics(found):
    other = calshift.recalibrate(P, Y, Q, check=False, metrics="brier_score")
    assert other.accuracy == found.accuracy
    assert other.log_loss == found.log_loss
    assert other.gist() == found.gist()
    assert tuple(other.metric_changes) == ("brier_score",)


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"metrics": "acuracy"}, "acuracy"),
        ({"decision": 0.5}, "a threshold decides between two classes"),
        ({"decision": "cost"}, "cost="),
        ({"positive": 7}, "positive must be"),
    ],
)
def test_wrong_metrics_are_refused_before_anything_is_fitted(asked, said):
    with pytest.raises(InvalidInput, match=said):
        calshift.recalibrate(P, Y, Q, progress=pytest.fail, **asked)


def test_the_table_has_each_metric_before_and_after(found):
    lines = found.table(0.9).splitlines()
    assert max(map(len, lines)) <= 100
    for name, one in found.metric_changes.items():
        cells = next(line for line in lines if line.startswith(f"{name} ")).split()
        low, high = one.confidence_interval(0.9)
        numbers = (one.before.estimate, one.after.estimate)
        assert cells[1:3] == [f"{number:.4f}" for number in numbers]
        assert cells[3:7] == [f"{one.change:+.4f}", f"{low:+.4f}", "to", f"{high:+.4f}"]
    assert found.table() in str(found)


def test_metrics_of_long_names_and_of_many_classes_fit():
    long = {"a" * 80: lambda p, y: 1e7 * p[:, 0]}
    result = calshift.recalibrate(P, Y, Q, check=False, metrics=[long, "precision_per_class"])
    assert max(map(len, result.table().splitlines())) <= 100


def test_the_report_is_that_of_the_schema(found):
    report = json.loads(json.dumps(report_of(found)))
    jsonschema.validate(report, schema())
    for record, one in zip(report["metrics"], found.metric_changes.values(), strict=True):
        assert record == json.loads(json.dumps(one.to_dict()))
        assert record["before"]["estimate"] == one.before.estimate
        assert record["interval"] == list(one.confidence_interval())
    report["metrics"][0]["change"] = None
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(report, schema())


def test_rows_are_not_kept_by_metrics():
    p, y, q = P.copy(), Y.copy(), Q.copy()
    result = calshift.recalibrate(p, y, q, check=False)
    kept = weakref.ref(q)
    del q
    gc.collect()
    assert kept() is None
    metrics = result.metrics_after
    numbers = len(P) * len(metrics) + len(Q) * len(metrics)
    # the influence of rows, and little besides
    assert len(pickle.dumps(replace(metrics, class_weights=None))) < 8 * numbers + 20_000


def test_the_samples_are_released_before_the_fits(monkeypatch):
    """The list is emptied, so that only the caller's own variables keep the rows."""
    samples = [Predictions(P.copy(), Y.copy()), Predictions(Q.copy())]
    kept, seen = weakref.ref(samples[1].p), []

    def look(*parts):
        gc.collect()
        seen.append(kept() is None)
        return original(*parts)

    original = steps.fit_folds
    monkeypatch.setattr(steps, "fit_folds", look)
    steps.recalibrate_samples(samples, check=False)
    assert samples == []
    assert seen[0]


# --- the command


@pytest.fixture(scope="module")
def both(tmp_path_factory) -> list[str]:
    folder = tmp_path_factory.mktemp("files")
    p, y = TWO.source(600, rng=1)
    q, _ = TWO.target(500, rng=2)
    p, q = (np.stack([1 - rows, rows], axis=1) if rows.ndim == 1 else rows for rows in (p, q))
    names = ("no", "yes")
    write(folder / "s.csv", table(p, named(y, names), names=names))
    write(folder / "t.csv", table(q, names=names))
    return [str(folder / "s.csv"), str(folder / "t.csv")]


def test_the_command_shows_the_metrics_of_the_library(both, tmp_path, capsys):
    out = tmp_path / "report.json"
    asked = ["--metric", "recall", "--metric", "log_loss", "--positive", "no"]
    asked += ["--decision-threshold", "0.3", "--no-check", "--json", str(out)]
    assert status(["recalibrate", *both, "-o", str(tmp_path / "o.csv"), *asked]) in (0, 3)
    shown = capsys.readouterr().out
    assert max(map(len, shown.splitlines())) <= 100
    report = json.loads(out.read_text(encoding="utf-8"))
    jsonschema.validate(report, schema())
    p, y = TWO.source(600, rng=1)
    q, _ = TWO.target(500, rng=2)
    expected = calshift.recalibrate(
        p, y, q, metrics=["recall", "log_loss"], positive=0, decision=0.3, check=False
    )
    assert report["positive"] == "no"
    assert [one["name"] for one in report["metrics"]] == ["recall", "log_loss"]
    for record, one in zip(report["metrics"], expected.metric_changes.values(), strict=True):
        assert record["change"] == pytest.approx(one.change, rel=1e-4)
        assert record["interval"] == pytest.approx(one.confidence_interval(), rel=1e-3, abs=1e-6)
        assert f"{one.change:+.4f}" in shown


def test_a_metric_that_does_not_exist_writes_nothing(both, tmp_path, capsys):
    out = tmp_path / "o.csv"
    assert status(["recalibrate", *both, "-o", str(out), "--metric", "acuracy"]) == 2
    assert "acuracy" in capsys.readouterr().err
    assert not out.exists()
