"""Windows over time: each is `target_calibration_error` on its rows, and lies where it is said."""

from __future__ import annotations

import json
import warnings
from datetime import UTC, datetime, timedelta, timezone

import numpy as np
import pandas as pd
import polars as pl
import pytest

import calshift
from calshift import InvalidInput
from calshift.cli.main import status
from calshift.diagnostics.label_shift_check import least_draws
from calshift.errors import UnreliableWeights
from tests.prediction_files import P_SOURCE, P_TARGET, Y_SOURCE, table, write

# Friday to Sunday, 200 rows a day, over the end of a month
START = np.datetime64("2026-01-30T00:00:00", "s")
OFFSETS = np.random.default_rng(5).integers(0, 86_400, 600) + np.repeat([0, 1, 2], 200) * 86_400
TIMES = START + np.sort(OFFSETS).astype("timedelta64[s]")
DAYS = ["2026-01-30T00:00:00.000000", "2026-01-31T00:00:00.000000", "2026-02-01T00:00:00.000000"]


def monitored(time=TIMES, p_target=P_TARGET, **asked) -> calshift.MonitoringResult:
    return calshift.monitor(P_SOURCE, Y_SOURCE, p_target, time, **asked)


def starts(series) -> list[str]:
    return [str(window.start) for window in series.windows]


def check_slices(series, times=TIMES, p_target=P_TARGET, **asked):
    """Every window's numbers are those of its rows alone."""
    assert len(series) == len(series.results) == len(series.windows)
    for window, result in zip(series.windows, series.results, strict=True):
        inside = (times >= window.start) & (times < window.end)
        assert window.rows == inside.sum() == result.n_target
        check_equal(result, p_target[inside], **asked)


def check_equal(result, p_target, **asked):
    asked = {"check": result.assumption is not None} | asked  # a series has a level of its own
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UnreliableWeights)
        alone = calshift.target_calibration_error(P_SOURCE, Y_SOURCE, p_target, **asked)
    assert result.estimate == pytest.approx(alone.estimate, rel=1e-9, abs=1e-15)
    assert result.confidence_interval() == pytest.approx(alone.confidence_interval(), rel=1e-9)
    assert result.source.estimate == alone.source.estimate
    np.testing.assert_allclose(result.class_weights.values, alone.class_weights.values, rtol=1e-9)


def failed(result) -> list[str]:
    return [one.name for one in result.diagnostics if one.failed]


# --- the library


def test_each_window_is_the_estimate_on_its_rows():
    series = monitored(window="1d")
    assert starts(series) == DAYS
    check_slices(series)


def test_each_window_of_rows_is_the_estimate_on_its_rows():
    series = monitored(None, rows=250)
    assert [(w.start, w.end, w.rows) for w in series.windows] == [
        (0, 250, 250), (250, 500, 250), (500, 600, 100),
    ]  # fmt: skip
    for window, result in zip(series.windows, series.results, strict=True):
        check_equal(result, P_TARGET[window.start : window.end])


@pytest.mark.filterwarnings("ignore::calshift.UnreliableWeights")
def test_rows_of_a_window_count_by_their_weights():
    weight = np.arange(600) % 3 + 1.0
    series = monitored(p_target=calshift.Predictions(P_TARGET, sample_weight=weight), window="1d")
    for k, (window, result) in enumerate(zip(series.windows, series.results, strict=True)):
        assert window.rows == result.n_target == weight[200 * k : 200 * (k + 1)].sum()


@pytest.mark.slow
@pytest.mark.parametrize(
    "asked",
    [
        {"kind": "top-label"},
        {"norm": 1},
        {"weights": "bbse"},
        {"interval": "bootstrap", "n_boot": 20, "rng": 3, "weights": "bbse"},
    ],
    ids=str,
)
def test_options_are_those_of_the_estimate(asked):
    check_slices(monitored(window="1d", **asked), **asked)


def test_without_window_and_rows_all_rows_are_one_window():
    series = monitored(None)
    assert len(series) == 1
    check_equal(series.results[0], P_TARGET)


def test_the_order_of_rows_does_not_matter():
    order = np.random.default_rng(1).permutation(600)
    series = monitored(TIMES[order], P_TARGET[order], window="12h")
    in_order = monitored(window="12h")
    assert starts(series) == starts(in_order)
    assert series.roots == pytest.approx(in_order.roots, rel=1e-9)


def test_rows_are_counted_in_the_order_of_time():
    order = np.random.default_rng(1).permutation(600)
    series = monitored(TIMES[order], P_TARGET[order], rows=200)
    assert series.roots == pytest.approx(monitored(None, rows=200).roots, rel=1e-9)


@pytest.mark.parametrize(
    ("window", "expected"),
    [
        ("1d", DAYS),
        ("12h", [f"{day[:11]}{hour}:00:00.000000" for day in DAYS for hour in ("00", "12")]),
        ("1w", ["2026-01-26T00:00:00.000000"]),  # a Monday
        ("1mo", ["2026-01-01T00:00:00.000000", "2026-02-01T00:00:00.000000"]),
        ("3mo", ["2026-01-01T00:00:00.000000"]),
        ("1440min", DAYS),
        (timedelta(days=1), DAYS),
        (np.timedelta64(24, "h"), DAYS),
    ],
    ids=str,
)
def test_windows_begin_where_people_expect(window, expected):
    series = monitored(window=window, check=False)
    assert starts(series) == expected
    check_slices(series)
    for before, after in zip(series.windows, series.windows[1:], strict=False):
        assert before.end == after.start


NO_LENGTHS = {
    "none": np.timedelta64(0, "s"), "negative": timedelta(days=-1),
    "unknown": np.timedelta64("NaT", "s"),
    "below a microsecond": np.timedelta64(999, "ns"), "a month": np.timedelta64(1, "M"),
    "a year": np.timedelta64(1, "Y"), "no unit": np.array(5).view("timedelta64")[()],
    "wraps to 0": np.timedelta64(2**62, "D"), "wraps": np.timedelta64(2**40, "D"),
    "text": "0d", "long text": "9" * 18 + "w", "number": 86_400,
}  # fmt: skip


@pytest.mark.parametrize("window", NO_LENGTHS.values(), ids=list(NO_LENGTHS))
def test_windows_have_a_fixed_length_that_numpy_can_date(window):
    with pytest.raises(InvalidInput, match="window must be"):
        monitored(window=window)


def test_windows_before_1970_are_aligned_too():
    early = TIMES - (TIMES[0].astype("datetime64[D]") - np.datetime64("1969-12-26"))
    assert starts(monitored(early, window="1d"))[0] == "1969-12-26T00:00:00.000000"
    assert starts(monitored(early, window="1mo")) == ["1969-12-01T00:00:00.000000"]
    assert starts(monitored(early, window="1w")) == ["1969-12-22T00:00:00.000000"]


def test_a_row_at_midnight_belongs_to_the_day_that_begins():
    times = np.repeat(np.array(["2026-01-30", "2026-01-31"], "datetime64[us]"), 300)
    assert [window.rows for window in monitored(times, window="1d").windows] == [300, 300]


def test_too_few_rows_are_skipped_and_listed():
    times = TIMES.copy()
    times[:29] = np.datetime64("2026-01-20T05:00:00")
    series = monitored(times, window="1d")
    assert starts(series) == DAYS
    (skipped,) = series.skipped
    assert str(skipped.window.start) == "2026-01-20T00:00:00.000000"
    assert skipped.window.rows == 29
    assert "30" in skipped.reason
    assert "2026-01-20" in str(series)
    check_slices(series, times)


def test_thirty_rows_are_enough():
    times = TIMES.copy()
    times[:30] = np.datetime64("2026-01-20T05:00:00")
    with pytest.warns(calshift.UnreliableWeights, match="1 of 4 windows are not reliable"):
        series = monitored(times, window="1d")
    assert len(series) == 4
    assert not series.skipped
    # an estimate is made, but so few rows do not exclude a large distance from label shift
    assert failed(series.results[0]) == ["label-shift-distance"]
    assert all(not failed(result) for result in series.results[1:])


def test_windows_without_rows_are_left_out():
    times = TIMES.copy()
    times[400:] += np.timedelta64(50, "D")
    series = monitored(times, window="1d")
    assert len(series) == 3
    assert not series.skipped


def test_only_short_windows_are_a_mistake():
    with pytest.raises(InvalidInput, match="at least 30 rows"):
        monitored(window="1h")
    with pytest.raises(InvalidInput, match="at least 30 rows"):
        monitored(None, rows=29)


@pytest.mark.parametrize(
    "window", ["1x", "0d", "-1d", "1.5d", "d", "", 5, timedelta(0), "0mo", "9" * 30 + "w"]
)
def test_a_window_that_is_none_is_a_mistake(window):
    with pytest.raises(InvalidInput, match="window"):
        monitored(window=window)


@pytest.mark.parametrize("rows", [0, 1, -5, 2.5, True])
def test_rows_that_are_none_are_a_mistake(rows):
    with pytest.raises(InvalidInput, match="rows"):
        monitored(None, rows=rows)


def test_window_needs_time_and_excludes_rows():
    with pytest.raises(InvalidInput, match="time"):
        monitored(None, window="1d")
    with pytest.raises(InvalidInput, match="rows"):
        monitored(window="1d", rows=100)


def seconds() -> np.ndarray:
    return TIMES.astype("int64")


@pytest.mark.parametrize(
    "time",
    [
        [moment.item() for moment in TIMES],
        list(TIMES.astype(str)),
        TIMES.astype(str),
        seconds(),
        seconds().astype(float),
        seconds().tolist(),
        pd.Series(pd.to_datetime(TIMES)),
        pd.to_datetime(TIMES),
        pd.Series(pd.to_datetime(TIMES).tz_localize("UTC")),
        pl.Series(TIMES.astype("datetime64[us]")),
        [moment.item().replace(tzinfo=UTC) for moment in TIMES],
        [f"{moment}Z" for moment in TIMES],
        [f"{moment + np.timedelta64(2, 'h')}+02:00" for moment in TIMES],
        [
            (moment.item() + timedelta(hours=2)).replace(tzinfo=timezone(timedelta(hours=2)))
            for moment in TIMES
        ],
    ],
    ids=[
        "datetimes", "texts", "array of texts", "seconds", "float seconds", "list of seconds",
        "pandas", "index", "pandas UTC", "polars", "datetimes UTC", "texts Z", "texts +02:00",
        "datetimes +02:00",
    ],
)  # fmt: skip
def test_times_come_in_many_forms_and_zones_end_in_utc(time):
    series = monitored(time, window="1d", check=False)
    assert starts(series) == DAYS
    assert series.roots == pytest.approx(monitored(window="1d", check=False).roots)


@pytest.mark.parametrize(
    "time",
    [
        ["noon"] * 600,
        TIMES[:9],
        np.where(np.arange(600) == 7, np.datetime64("NaT", "us"), TIMES),
        np.where(np.arange(600) == 7, np.nan, seconds()),
        np.where(np.arange(600) == 7, np.inf, seconds()),
        seconds() * 10**9,
        np.ones(600, bool),
    ],
    ids=["text", "too few", "NaT", "NaN", "inf", "nanoseconds", "bool"],
)
def test_times_that_are_none_are_a_mistake(time):
    with pytest.raises(InvalidInput, match="time"):
        monitored(time, window="1d")


def test_the_level_of_the_test_is_shared_by_the_windows():
    series = monitored(window="12h")
    assert len(series) == 6
    for result in series.results:
        assert result.assumption.level == pytest.approx(0.05 / 6)


def test_progress_is_told_once_a_window():
    told = []
    monitored(window="1d", progress=lambda *parts: told.append(parts))
    assert told == [(1, 3), (2, 3), (3, 3)]


def test_the_band_is_that_of_the_results():
    series = monitored(window="1d")
    low, high = series.band(0.8)
    for a, b, result in zip(low, high, series.results, strict=True):
        assert (a, b) == result.confidence_interval(0.8, root=True)


def test_a_series_without_intervals_can_be_printed_and_stored():
    series = monitored(window="1d", interval=None, waive=["interval-width"])
    for result in series.results:
        assert f"{result.root:.4f}" in str(series)
    assert series.to_dict()["windows"][0]["root_interval"] is None


def test_the_end_of_a_window_is_not_part_of_it():
    series = monitored(rows=200)
    for before, after in zip(series.windows, series.windows[1:], strict=False):
        assert before.end <= after.start
    assert series.windows[-1].end > TIMES[-1]


# --- the command


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    return write(
        tmp_path_factory.mktemp("source") / "source.csv", table(P_SOURCE, Y_SOURCE.tolist())
    )


@pytest.fixture(scope="module")
def target(tmp_path_factory):
    when = list(TIMES.astype(str))
    return write(tmp_path_factory.mktemp("target") / "target.csv", table(P_TARGET, when=when))


def written(folder, *arguments: str, codes=(0,)) -> dict:
    out = folder / "series.json"
    assert status(["monitor", *map(str, arguments), "--json", str(out)]) in codes
    return json.loads(out.read_text(encoding="utf-8"))


def test_the_command_gives_the_numbers_of_the_library(source, target, tmp_path, capsys):
    found = written(tmp_path, source, target, "--time", "when", "--window", "1d")
    series = monitored(window="1d")
    out = capsys.readouterr().out
    low, high = series.band()
    for k, (record, result) in enumerate(zip(found["windows"], series.results, strict=True)):
        assert record["start"] == DAYS[k]
        assert record["rows"] == 200
        assert record["estimate"] == result.estimate
        assert record["root"] == result.root
        assert record["root_interval"] == [low[k], high[k]]
        line = next(line for line in out.splitlines() if line.startswith(DAYS[k][:10]))
        assert line.split()[1:] == [
            "200", f"{result.root:.4f}", f"{low[k]:.4f}", "to", f"{high[k]:.4f}",
        ]  # fmt: skip
    assert out.startswith(found["verdict"])


def test_rows_in_the_place_of_time(source, target, tmp_path):
    found = written(tmp_path, source, target, "--rows", "200")
    assert [one["start"] for one in found["windows"]] == [0, 200, 400]
    assert [one["root"] for one in found["windows"]] == monitored(None, rows=200).roots.tolist()


def test_one_window_is_what_check_answers(source, target, tmp_path):
    found = written(tmp_path, source, target)
    (window,) = found["windows"]
    out = tmp_path / "check.json"
    status(["check", source, target, "-q", "--json", str(out)])
    checked = json.loads(out.read_text(encoding="utf-8"))["target"]
    assert window["estimate"] == checked["estimate"]
    assert window["root_interval"] == checked["root_interval"]


def test_a_short_window_is_listed_in_table_and_json(source, tmp_path, capsys):
    when = TIMES.copy()
    when[:10] = np.datetime64("2026-01-20T05:00:00")
    short = write(tmp_path / "t.csv", table(P_TARGET, when=list(when.astype(str))))
    found = written(tmp_path, source, short, "--time", "when", "--window", "1d")
    (skipped,) = found["skipped"]
    assert skipped["start"].startswith("2026-01-20")
    assert skipped["rows"] == 10
    assert "fewer than 30 rows" in capsys.readouterr().out


DAILY = ("--time", "when", "--window", "1d", "--no-check")
FORMS = {
    "texts": lambda: list(TIMES.astype(str)),
    "texts with a space": lambda: [str(one).replace("T", " ") for one in TIMES],
    "texts Z": lambda: [f"{one}Z" for one in TIMES],
    "texts +02:00": lambda: [f"{one + np.timedelta64(2, 'h')}+02:00" for one in TIMES],
    "seconds": lambda: seconds().tolist(),
    "float seconds": lambda: seconds().astype(float).tolist(),
}


@pytest.mark.parametrize("ending", ["csv", "jsonl", "parquet", "npz"])
@pytest.mark.parametrize("form", list(FORMS))
def test_files_hold_times_in_many_forms(form, ending, source, tmp_path):
    path = write(tmp_path / f"t.{ending}", table(P_TARGET, when=FORMS[form]()))
    found = written(tmp_path, source, path, *DAILY)
    assert [one["start"] for one in found["windows"]] == DAYS
    assert [one["rows"] for one in found["windows"]] == [200, 200, 200]


@pytest.mark.parametrize("ending", ["parquet", "arrow"])
@pytest.mark.parametrize("zone", [None, "UTC", "Asia/Tokyo"])
@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
def test_files_hold_datetimes_with_and_without_a_zone(unit, zone, ending, source, tmp_path):
    import pyarrow as pa

    when = pa.array(TIMES).cast(pa.timestamp(unit)).cast(pa.timestamp(unit, zone))
    path = write(tmp_path / f"t.{ending}", table(P_TARGET, when=when))
    found = written(tmp_path, source, path, *DAILY)
    assert [one["start"] for one in found["windows"]] == DAYS


def test_files_hold_dates(source, tmp_path):
    dates = [datetime.fromisoformat(str(one)).date() for one in TIMES]
    path = write(tmp_path / "t.parquet", table(P_TARGET, when=dates))
    found = written(tmp_path, source, path, *DAILY)
    assert [one["start"] for one in found["windows"]] == DAYS


@pytest.mark.parametrize(
    "when",
    [
        ["noon"] * 600,
        [None, *TIMES[1:].astype(str)],
        [float("nan"), *seconds()[1:].astype(float)],
        (seconds() * 10**9).tolist(),
        (seconds() * 1000).tolist(),
        ["17"] * 600,
    ],
    ids=["text", "missing", "NaN", "nanoseconds", "milliseconds", "few digits"],
)
@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_times_in_a_file_that_are_none_are_named_with_it(when, ending, source, tmp_path, capsys):
    path = write(tmp_path / f"t.{ending}", table(P_TARGET, when=when))
    assert status(["monitor", source, path, "--time", "when", "--window", "1d"]) == 2
    err = capsys.readouterr().err
    assert err.count("\n") == 1
    assert path in err
    assert "'when'" in err


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        (["--window", "1d"], "--time"),
        (["--time", "zz", "--window", "1d"], "'when'"),
        (["--time", "when", "--window", "1x"], "1d"),
        (["--time", "when", "--window", "1d", "--rows", "9"], "rows"),
        (["--rows", "1"], "rows"),
        (["--rows", "20"], "longer"),
        (["--time", "when", "--window", "9999999999999999w"], "window"),
    ],
)
def test_wrong_usage_is_told_in_one_line(asked, told, source, target, capsys):
    assert status(["monitor", source, target, *asked]) == 2
    err = capsys.readouterr().err
    assert err.count("\n") == 1
    assert told in err


def halves() -> tuple[np.ndarray, float]:
    """Target rows whose first half is the worse one, and a limit between their lower ends."""
    low = monitored(None, rows=300).band()[0]
    rows = P_TARGET if low[0] > low[1] else np.concatenate([P_TARGET[300:], P_TARGET[:300]])
    assert abs(low[0] - low[1]) > 1e-3
    return rows, float(low.mean())


@pytest.mark.parametrize(
    ("turned", "alert", "code"),
    [(False, "any", 1), (False, "last", 0), (True, "any", 1), (True, "last", 1)],
)
def test_alert_on_any_window_or_on_the_last(turned, alert, code, source, tmp_path, capsys):
    rows, limit = halves()
    rows = np.concatenate([rows[300:], rows[:300]]) if turned else rows
    path = write(tmp_path / "t.csv", table(rows))
    asked = ["--rows", "300", "--max-error", repr(limit), "--alert", alert]
    found = written(tmp_path, source, path, *asked, codes=(code,))
    statuses = [one["status"] for one in found["windows"]]
    assert statuses == (["fine", "breached"] if turned else ["breached", "fine"])
    assert found["exit_code"] == code
    out = capsys.readouterr().out
    assert "1 above" in out
    assert out.count("above the limit") == 1


def test_the_upper_gate_marks_its_breaches_in_the_table(source, target, tmp_path, capsys):
    asked = ["--rows", "300", "--max-error", "0.08", "--gate", "upper"]
    found = written(tmp_path, source, target, *asked, codes=(1,))
    breached = sum(one["status"] == "breached" for one in found["windows"])
    assert breached == 2
    assert capsys.readouterr().out.count("not shown to be within the limit") == breached


@pytest.mark.parametrize(
    ("ending", "begins"), [("png", b"\x89PNG"), ("svg", b"<?xml"), ("pdf", b"%PDF")]
)
def test_the_plot_is_written(ending, begins, source, target, tmp_path):
    place = tmp_path / f"plot.{ending}"
    asked = ["--time", "when", "--window", "1d", "--max-error", "0.2", "--plot", str(place)]
    assert status(["monitor", source, target, *asked]) == 0
    assert place.read_bytes().startswith(begins)
    assert list(tmp_path.iterdir()) == [place]


def test_the_plot_shows_errors_band_and_the_line_of_the_limit():
    series = monitored(window="1d")
    axes = series.plot(max_error=0.15)
    drawn = [line.get_ydata() for line in axes.lines]
    assert any(np.allclose(y, series.roots) for y in drawn if len(y) == 3)
    assert any(np.allclose(y, 0.15) for y in drawn)
    assert axes.collections or axes.containers
    import matplotlib.pyplot as plt

    plt.close("all")


def test_a_plot_that_cannot_be_drawn_is_refused_before_anything_is_written(
    source, target, tmp_path, capsys
):
    asked = ["--rows", "300", "--plot", tmp_path / "plot.frob", "--json", tmp_path / "out.json"]
    assert status(["monitor", source, target, *map(str, asked)]) == 2
    assert "png" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_json_on_standard_output_is_alone_there(source, target, capsys):
    assert status(["monitor", source, target, "--rows", "300", "--json", "-"]) == 0
    out, err = capsys.readouterr()
    found = json.loads(out)
    assert err.startswith(found["verdict"])


def test_many_windows_fit_the_screen(source, target, capsys):
    assert status(["monitor", source, target, "--rows", "30", "--no-check"]) in (0, 3)
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) < 70
    assert max(map(len, lines)) <= 100


def test_a_newest_window_without_an_answer_is_no_pass(source, tmp_path, capsys):
    """With --alert last an older window does not speak for the newest."""
    times = np.r_[TIMES[:580], np.repeat(TIMES[-1] + np.timedelta64(3, "D"), 20)]
    path = write(tmp_path / "t.csv", table(P_TARGET, when=times.astype(str)))
    asked = ["monitor", source, path, "--time", "when", "--window", "1d"]
    assert status([*asked, "--alert", "last", "--no-check"]) == 3
    out = capsys.readouterr().out
    assert "1 more with too few rows" in out
    assert "the last with an estimate" in out
    assert out.strip().splitlines()[-1].endswith("fewer than 30 rows")
    assert status([*asked, "--no-check"]) == 0


@pytest.mark.filterwarnings("ignore::calshift.UnreliableWeights")  # one of six may be rejected
def test_the_seed_is_that_of_every_window_s_test():
    for seed in (3, 4):
        series = monitored(window="1d", rng=seed)
        for result, start in zip(series.results, (0, 200, 400), strict=True):
            rows = np.argsort(TIMES, kind="stable")[start : start + 200]
            level = result.assumption.level
            own = calshift.check_label_shift(
                P_SOURCE, Y_SOURCE, P_TARGET[rows], level=level, rng=seed
            )
            assert own.p_value == result.assumption.p_value


def test_hundreds_of_windows_are_tested_at_a_level_their_draws_can_reach():
    model = calshift.simulate.GaussianSimulation(n_classes=2)
    q, _ = model.target(30 * 210, rng=2)
    with pytest.warns(calshift.UnreliableWeights, match="of 210 windows are not reliable"):
        series = calshift.monitor(*model.source(500, rng=1), q, rows=30)
    levels = {result.assumption.level for result in series.results}
    assert len(series) == 210
    assert levels == {0.05 / 210}
    for windows in range(1, 3000):
        assert 1 / (1 + least_draws(0.05 / windows)) <= 0.05 / windows
