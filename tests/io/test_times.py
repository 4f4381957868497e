"""Times as numbers: what is no number of seconds since 1970."""

from __future__ import annotations

import numpy as np
import pytest

import calshift
from calshift.cli.main import status
from calshift.errors import InvalidInput
from calshift.io.times import parse_times
from tests.prediction_files import P_SOURCE, P_TARGET, Y_SOURCE, named, table, write

NO_SECONDS = {"year": 2015, "month": 201501, "day": 20150131, "zero": 0, "index": 7}
DATES = {"hour": 2015013123, "minute": 201501312359, "second": 20150131235959}


@pytest.mark.parametrize("number", NO_SECONDS.values(), ids=list(NO_SECONDS))
@pytest.mark.parametrize("kind", [int, float, np.int32])
def test_small_numbers_are_no_seconds(number, kind):
    with pytest.raises(InvalidInput, match="write dates as 2015-01-31"):
        parse_times(np.array([1.5e9, number]).astype(kind), "time")


@pytest.mark.parametrize("number", DATES.values(), ids=list(DATES))
def test_dates_written_as_numbers_are_no_seconds(number):
    with pytest.raises(InvalidInput, match="write dates as 2015-01-31"):
        parse_times(np.array([number, number]), "time")


def test_seconds_whose_digits_might_be_a_date_are_read_beside_others():
    found = parse_times(np.array([2015013123, 2015013199]), "time")
    assert found.astype("datetime64[Y]").astype(str).tolist() == ["2033", "2033"]


def test_seconds_are_read():
    found = parse_times(np.array([1e8, 1.5e9, -2e8]), "time")
    assert found.astype("datetime64[Y]").astype(str).tolist() == ["1973", "2017", "1963"]


@pytest.mark.parametrize("ending", ["csv", "parquet", "npz"])
def test_a_column_of_years_is_no_time(ending, tmp_path, capsys):
    source = write(tmp_path / f"s.{ending}", table(P_SOURCE, named(Y_SOURCE)))
    years = [2015 + k // 300 for k in range(600)]
    target = write(tmp_path / f"t.{ending}", table(P_TARGET, year=years))
    assert status(["monitor", source, target, "--time", "year", "--window", "1d"]) == 2
    err = capsys.readouterr().err
    assert "column 'year'" in err
    assert "2015" in err


def test_years_are_no_times_in_python():
    with pytest.raises(InvalidInput, match=r"time: .*2015-01-31"):
        calshift.monitor(P_SOURCE, Y_SOURCE, P_TARGET, np.full(600, 2015), window="1d")


FAR = {
    "seconds": np.array([0, 2**62]).view("datetime64[s]"),
    "milliseconds": np.array([0, 2**61]).view("datetime64[ms]"),
    "microseconds": np.array([0, -(2**63) + 1]).view("datetime64[us]"),
    "years": np.array([0, 10**6]).view("datetime64[Y]"),
}


@pytest.mark.parametrize("times", FAR.values(), ids=list(FAR))
def test_datetimes_that_numpy_would_wrap_are_refused(times):
    with pytest.raises(InvalidInput, match=r"time: row 1 is more than 20000 years from 1970"):
        parse_times(times, "time")


@pytest.mark.parametrize("unit", ["Y", "M", "D", "h", "s", "ms", "us", "ns"])
def test_datetimes_of_every_unit_are_read(unit):
    given = np.array(["2015-01-01", "1970-01-01", "1900-01-01"], f"datetime64[{unit}]")
    assert (parse_times(given, "time") == given.astype("datetime64[us]")).all()


def test_datetimes_without_a_unit_are_refused():
    with pytest.raises(InvalidInput, match="must have a unit"):
        parse_times(np.array([1, 2]).view("datetime64"), "time")


@pytest.mark.parametrize("value", ["soon", b"2015", [1], {"a": 1}, 2 + 0j])
def test_a_value_that_is_no_time_is_named_with_its_row(value):
    times = np.empty(2, object)
    times[:] = ["2015-01-31", value]
    with pytest.raises(InvalidInput, match=r"row 8 is "):
        parse_times(times, "time", start=7)
