"""Metrics of windows: those of `target_metrics` on the rows of each, in all outputs."""

from __future__ import annotations

import json
from importlib.resources import files

import jsonschema
import numpy as np
import pandas as pd
import pytest

import calshift
from calshift import InvalidInput
from calshift.cli.main import status
from calshift.plotting import plot_monitoring_panels

pytestmark = pytest.mark.filterwarnings("ignore::calshift.UnreliableWeights")
SIMULATION = calshift.simulate.BetaSimulation()
P, Y = SIMULATION.source(1500, rng=1)
Q, _ = SIMULATION.target(900, rng=2)
NAMES = ["accuracy", "recall", "log_loss"]


def monitored(**asked) -> calshift.MonitoringResult:
    return calshift.monitor(P, Y, Q, **{"rows": 300, "check": False, "metrics": NAMES} | asked)


@pytest.fixture(scope="module")
def found() -> calshift.MonitoringResult:
    return monitored()


@pytest.mark.parametrize(
    "asked",
    [
        {},
        {"decision": 0.3},
        {"metrics": "expected_cost", "cost": {"false_negative": 3.0}, "decision": "cost"},
        {"metrics": ["recall", "oe_ratio"], "positive": 0},
        {"drift": 0.05},
        {"weights": [1.2, 0.8]},
    ],
    ids=str,
)
def test_the_metrics_of_a_window_are_those_of_its_rows(asked):
    series = monitored(**asked)
    assert len(series.metrics) == len(series) == 3
    for k, one in enumerate(series.metrics):
        rows = Q[300 * k : 300 * (k + 1)]
        alone = calshift.target_metrics(P, Y, rows, **{"metrics": NAMES, "check": False} | asked)
        assert tuple(one) == tuple(alone)
        for name, expected in alone.items():
            assert one[name].estimate == pytest.approx(expected.estimate, rel=1e-9)
            ends = one[name].confidence_interval(0.9)
            assert ends == pytest.approx(expected.confidence_interval(0.9), rel=1e-9)
            assert one[name].source == pytest.approx(expected.source, rel=1e-12)
            assert one[name].trusted == expected.trusted
        assert one.decision == alone.decision


def test_a_window_has_one_set_of_class_weights_and_one_test_of_label_shift():
    series = monitored(check=True)
    for result, metrics in zip(series.results, series.metrics, strict=True):
        assert metrics.assumption is result.assumption
        assert metrics.assumption.level == pytest.approx(0.05 / 3)
        assert metrics.class_weights is result.class_weights


def test_a_bootstrap_is_one_of_the_metrics_too():
    series = monitored(rows=450, interval="bootstrap", n_boot=20, rng=1, metrics="accuracy")
    assert series.metrics[0]["accuracy"]._draws.shape == (2, 20)


def test_windows_keep_no_number_for_each_row_of_their_metrics(found):
    assert all(one._influence is None for one in found.metrics)
    alone = calshift.target_metrics(P, Y, Q[:300], metrics=NAMES, check=False)
    assert alone._influence is not None


def test_without_metrics_there_are_none():
    series = monitored(metrics=None)
    assert series.metrics is None
    assert series.metric_names == ()
    assert "metrics" not in series.to_dict()["windows"][0]
    with pytest.raises(InvalidInput, match="no metrics were asked for"):
        series.series("accuracy")
    for beside in ({"positive": 0}, {"cost": np.ones((2, 2))}, {"decision": 0.3}):
        with pytest.raises(InvalidInput, match="need metrics="):
            monitored(metrics=None, **beside)


def test_a_scanned_target_has_the_same_metrics(found):
    target = calshift.scan([Q[start : start + 70] for start in range(0, 900, 70)])
    scanned = calshift.monitor(P, Y, target, rows=300, check=False, metrics=NAMES)
    for name in NAMES:
        np.testing.assert_array_equal(scanned.series(name), found.series(name))


def test_a_series_has_the_estimates_and_intervals_of_the_windows(found):
    estimates, low, high = found.series("recall", 0.8)
    for k, one in enumerate(found.metrics):
        assert estimates[k] == one["recall"].estimate
        assert (low[k], high[k]) == one["recall"].confidence_interval(0.8)
    with pytest.raises(InvalidInput, match="one of accuracy, recall, log_loss; got 'f1'"):
        found.series("f1")
    with pytest.raises(InvalidInput, match="level"):
        found.series("recall", 2)


def test_a_series_without_intervals_says_so():
    series = monitored(interval=None)
    assert series.estimates_of("recall")[0].estimate > 0
    with pytest.raises(InvalidInput, match="no interval"):
        series.series("recall")
    series.plot(metric="recall")
    assert series.to_dict()["windows"][0]["metrics"][0]["interval"] is None


def test_metrics_that_do_not_exist_are_refused_before_the_first_window():
    told = []
    with pytest.raises(InvalidInput, match="acuracy"):
        monitored(metrics="acuracy", progress=lambda *parts: told.append(parts))
    assert told == []


def test_the_table_has_a_column_for_each_metric(found):
    lines = str(found).splitlines()
    assert lines[0].split()[-3:] == NAMES
    for line, metrics in zip(lines[1:], found.metrics, strict=False):
        shown = [cell.rstrip("*") for cell in line.split()[6:9]]
        assert shown == [f"{one.estimate:.4f}" for one in metrics.values()]


def test_the_table_shows_the_metrics_that_fit():
    many = ["precision_per_class", "recall_per_class", "f1_per_class", "specificity_per_class"]
    series = monitored(metrics=many)
    lines = series.table(notes=["above the limit"] * 3).splitlines()
    assert max(map(len, lines)) <= 100
    assert all(line.endswith("  above the limit") for line in lines[1:4])
    shown = len(lines[0].split("interval")[1].split())
    assert 1 <= shown < 8
    assert lines[-1] == f"{8 - shown} more metrics: --json has all"
    long = series.table(notes=["x" * 90] * 3).splitlines()
    assert max(map(len, long)) <= 100
    assert "precision[0]" in long[0]
    assert "..." in long[1]


def test_a_metric_that_is_not_reliable_has_a_star(found):
    few = calshift.monitor(P, Y, Q, rows=300, check=False, metrics=["log_loss", {"x": far}])
    assert not few.metrics[0]["x"].trusted
    assert "*" in str(few)
    assert "* not reliable" in str(few).splitlines()
    assert ("*" in str(found)) == any(not one.trusted for m in found.metrics for one in m.values())


def far(p, y):
    """A mean near 0 of large numbers: its relative width is large."""
    return 1000.0 * (np.asarray(y) - 0.5)


def test_the_plot_of_a_metric_has_its_band_and_the_value_on_the_source(found):
    ax = found.plot(metric="recall", level=0.9)
    estimates, low, high = found.series("recall", 0.9)
    drawn = [line.get_ydata() for line in ax.lines]
    np.testing.assert_array_equal(drawn[0], estimates)
    assert set(drawn[1]) == {found.metrics[0]["recall"].source}
    (area,) = [one for one in ax.collections if hasattr(one, "get_paths") and one.get_alpha()]
    corners = area.get_paths()[0].vertices[:, 1]
    assert set(low) | set(high) <= set(corners)
    assert ax.get_ylabel() == "recall (sensitivity)"
    with pytest.raises(InvalidInput, match="max_error is a limit of the calibration error"):
        found.plot(metric="recall", max_error=0.1)


def test_metrics_that_are_not_reliable_are_hollow():
    series = monitored(metrics=[{"x": far}, "accuracy"])
    names = [
        [text.get_text() for text in series.plot(metric=name).get_legend().get_texts()]
        for name in ("x", "accuracy")
    ]
    assert "not reliable" in names[0]
    assert "not reliable" not in names[1]


def test_a_figure_has_the_first_metric_below_the_error(found):
    upper, lower = plot_monitoring_panels(found, 0.95, 0.2).axes
    assert upper.get_ylabel().startswith("calibration error")
    assert lower.get_ylabel() == "accuracy"
    assert upper.get_position().y0 > lower.get_position().y0
    assert len(plot_monitoring_panels(monitored(metrics=None), 0.95, None).axes) == 1


# --- the command


@pytest.fixture(scope="module")
def both(tmp_path_factory) -> list[str]:
    folder = tmp_path_factory.mktemp("windows")
    for name, p, more in (("s", P, {"label": np.array(["no", "yes"])[Y]}), ("t", Q, {})):
        both = p if p.ndim == 2 else np.stack([1 - p, p], axis=1)
        columns = {"p_no": both[:, 0], "p_yes": both[:, 1]}
        pd.DataFrame(columns | more).to_csv(folder / f"{name}.csv", index=False)
    return [str(folder / "s.csv"), str(folder / "t.csv")]


def run(both, *arguments) -> int:
    return status(["monitor", *both, "--rows", "300", "--no-check", *map(str, arguments)])


def test_the_command_gives_the_metrics_of_the_library(both, tmp_path, capsys):
    out, drawing = tmp_path / "series.json", tmp_path / "series.svg"
    asked = [part for name in NAMES for part in ("--metric", name)]
    asked += ["--decision-threshold", "0.3", "--positive", "no", "--level", "0.9"]
    assert run(both, *asked, "--json", out, "--plot", drawing) in (0, 3)
    shown = capsys.readouterr().out
    assert max(map(len, shown.splitlines())) <= 100
    report = json.loads(out.read_text(encoding="utf-8"))
    path = files("calshift.report") / "schemas" / "monitoring.json"
    schema = json.loads(path.read_text(encoding="utf-8"))
    jsonschema.validate(report, schema)
    expected = monitored(decision=0.3, positive=0)
    assert report["positive"] == "no"
    assert report["decision"] == expected.metrics[0].decision
    for record, metrics in zip(report["windows"], expected.metrics, strict=True):
        for one, wanted in zip(record["metrics"], metrics.values(), strict=True):
            assert one["name"] == wanted.name
            assert one["estimate"] == pytest.approx(wanted.estimate, rel=1e-9)
            assert one["interval"] == pytest.approx(wanted.confidence_interval(0.9), rel=1e-9)
            assert f"{wanted.estimate:.4f}" in shown
    assert drawing.read_text(encoding="utf-8").count('id="axes_') == 2
    spoilt = json.loads(out.read_text(encoding="utf-8"))
    spoilt["windows"][0]["metrics"][0]["estimate"] = None
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(spoilt, schema)


def test_the_command_reads_costs(both, tmp_path):
    out = tmp_path / "series.json"
    cost = ("--cost", "false_positive=1, false_negative=20")
    assert run(both, "--metric", "expected_cost", *cost, "--json", out) in (0, 3)
    wanted = monitored(metrics="expected_cost", cost={"false_positive": 1, "false_negative": 20})
    found = json.loads(out.read_text(encoding="utf-8"))["windows"][0]["metrics"][0]["estimate"]
    assert found == pytest.approx(wanted.metrics[0]["expected_cost"].estimate, rel=1e-9)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--metric", "acuracy"], "acuracy"),
        (["--positive", "yes"], "need a --metric"),
        (["--metric", "recall", "--positive", "maybe"], "positive must be one of the classes"),
        (["--metric", "recall", "--decision-threshold", "1.5"], "--decision-threshold"),
        (["--metric", "expected_cost", "--cost", "false_positive"], "--cost must be like"),
        (["--metric", "expected_cost", "--cost", "blame=1"], "blame"),
    ],
)
def test_wrong_options_are_refused_in_a_line(arguments, said, both, capsys):
    assert run(both, *arguments) == 2
    told = capsys.readouterr().err
    assert said in told
    assert "Traceback" not in told
