"""--sample-weight: the numbers of repeated rows, and files that keep their column."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.feather
import pyarrow.json
import pyarrow.parquet
import pytest

import calshift
from calshift.cli.main import status
from tests.prediction_files import NAMES, P_SOURCE, P_TARGET, Y_SOURCE, named, table, write

pytestmark = pytest.mark.filterwarnings("ignore::calshift.UnreliableWeights")
RNG = np.random.default_rng(2)
N, M = RNG.integers(0, 4, 600), RNG.integers(0, 4, 600)
FORMATS = ("csv", "csv.gz", "tsv", "jsonl", "parquet", "arrow", "npz")
ASKED = ("--sample-weight", "p_n")  # by convention it would be the probability of a class
FOUND = (0, 3)


def write_pair(folder: Path, source, target, ending: str = "csv") -> list[str]:
    """Files of the columns of both samples."""
    names = (f"{name}.{ending}" for name in ("source", "target"))
    return [write(folder / name, one) for name, one in zip(names, (source, target), strict=True)]


def weighted(n=N, m=M) -> tuple[dict, dict]:
    """Columns of both samples, with their weights."""
    source = table(P_SOURCE) | {"p_n": n.tolist(), "label": named(Y_SOURCE)}
    return source, {"p_n": m.tolist(), **table(P_TARGET), "note": ["x,y"] * 600}


def repeated() -> tuple[dict, dict]:
    """Columns of both samples, each row as often as its weight says."""
    return table(P_SOURCE.repeat(N, 0), named(Y_SOURCE.repeat(N))), table(P_TARGET.repeat(M, 0))


def asked(command: str, files: list[str], *options: str) -> dict:
    """The JSON of a command, without what names files and times."""
    place = Path(files[0]).with_name("out.json")
    assert status([command, *files, *options, "--json", str(place)]) in FOUND
    report = json.loads(place.read_text(encoding="utf-8"))
    return {k: v for k, v in report.items() if k not in ("inputs", "command", "created")}


def numbers(value, place: str = "") -> dict[str, object]:
    """Every value of a report by its place."""
    if isinstance(value, dict):
        items = [(str(key), one) for key, one in value.items()]
    elif isinstance(value, list):
        items = [(str(key), one) for key, one in enumerate(value)]
    else:
        return {place: value}
    return {k: v for key, one in items for k, v in numbers(one, f"{place}/{key}").items()}


def check_equal(found: dict, expected: dict) -> None:
    """Numbers up to rounding, everything else exactly."""
    one, other = numbers(found), numbers(expected)
    assert one.keys() == other.keys()
    for place, value in one.items():
        if isinstance(value, float):
            assert value == pytest.approx(other[place], rel=1e-6, abs=1e-9), place
        else:
            assert value == other[place], place


@pytest.fixture
def error(capsys):
    """A function that runs a command which fails, and returns its line."""

    def run(*arguments: object) -> str:
        assert status(list(map(str, arguments))) == 2
        return capsys.readouterr().err

    return run


# --- the same numbers


@pytest.mark.parametrize(
    ("command", "options"),
    [
        ("check", ()),
        ("check", ("--engine", "batches")),
        ("check", ("--kind", "top-label", "--norm", "1", "--bins", "10")),
        ("weights", ()),
        ("weights", ("--method", "bbse", "--engine", "batches")),
        ("monitor", ()),
    ],
)
def test_integer_weights_are_repeated_rows(command, options, tmp_path):
    (tmp_path / "again").mkdir()
    found = asked(command, write_pair(tmp_path, *weighted()), *ASKED, *options)
    expected = asked(command, write_pair(tmp_path / "again", *repeated()), *options)
    if command == "monitor":  # by their numbers in the file
        assert found["windows"][0].pop("end") == np.count_nonzero(M)
        assert expected["windows"][0].pop("end") == M.sum()
    check_equal(found, expected)


@pytest.mark.parametrize("ending", FORMATS)
def test_every_format_gives_the_numbers_of_arrays(ending, tmp_path):
    source, target = weighted()
    target.pop("note")
    found = asked("check", write_pair(tmp_path, source, target, ending), *ASKED)
    source = calshift.Predictions(P_SOURCE, named(Y_SOURCE), classes=NAMES, sample_weight=N)
    target = calshift.Predictions(P_TARGET, classes=NAMES, sample_weight=M)
    result = calshift.target_calibration_error(source, None, target, rng=0)
    assert found["target"]["estimate"] == pytest.approx(result.estimate, rel=1e-9)
    assert found["target"]["interval"] == pytest.approx(result.confidence_interval(), rel=1e-9)
    assert found["target"]["rows"] == M.sum()
    assert found["source"]["rows"] == N.sum()


@pytest.mark.parametrize("command", ["check", "weights", "monitor"])
def test_a_weight_of_zero_removes_the_row(command, tmp_path):
    (tmp_path / "again").mkdir()
    files = write_pair(tmp_path, *weighted((N > 0) * 1, (M > 0) * 1))
    kept = (
        {
            name: [v for v, w in zip(values, weight, strict=True) if w]
            for name, values in one.items()
        }
        for one, weight in zip(weighted(), (N, M), strict=True)
    )
    again = write_pair(tmp_path / "again", *({**one, "p_n": [1] * len(one["p_n"])} for one in kept))
    check_equal(asked(command, files, *ASKED), asked(command, again, *ASKED))


def test_weights_are_not_ignored(tmp_path):
    files = write_pair(tmp_path, *weighted())
    one = asked("check", files, *ASKED)["target"]["estimate"]
    files = write_pair(tmp_path, *weighted(M, N))
    assert asked("check", files, *ASKED)["target"]["estimate"] != pytest.approx(one, rel=1e-3)


def test_times_of_rows_that_do_not_count_are_left_out(tmp_path):
    days = [f"2026-01-{1 + k // 200:02}" for k in range(600)]
    source, target = weighted()
    weight = M.copy()
    weight[200:400] = 0
    files = write_pair(tmp_path, source, {**target, "p_n": weight.tolist(), "day": days})
    report = asked("monitor", files, *ASKED, "--time", "day", "--window", "1d")
    assert [window["start"][:10] for window in report["windows"]] == ["2026-01-01", "2026-01-03"]
    for window, rows in zip(report["windows"], (slice(0, 200), slice(400, 600)), strict=True):
        target = calshift.Predictions(P_TARGET[rows], sample_weight=M[rows])
        source = calshift.Predictions(P_SOURCE, Y_SOURCE, sample_weight=N)
        result = calshift.target_calibration_error(source, None, target, check=False)
        assert window["estimate"] == pytest.approx(result.estimate, rel=1e-9)
        assert window["rows"] == M[rows].sum()


def test_a_large_target_of_windows_has_weights_too(tmp_path, monkeypatch):
    source, target = weighted()
    times = (np.arange(600) * 3600 + 1.7e9).tolist()
    files = write_pair(tmp_path, source, {**target, "time": times})
    options = (*ASKED, "--time", "time", "--window", "1w")
    whole = asked("monitor", files, *options)
    monkeypatch.setattr("calshift.cli.samples.LARGE", 0)
    check_equal(asked("monitor", files, *options), whole)


# --- files that are written again


def columns_of(path: Path) -> dict[str, list]:
    """All columns of a file."""
    if path.suffix == ".npz":
        with np.load(path) as arrays:
            return {name: arrays[name].tolist() for name in arrays.files}
    read = {
        ".parquet": pa.parquet.read_table,
        ".arrow": pa.feather.read_table,
        ".jsonl": pa.json.read_json,
    }
    separator = pa.csv.ParseOptions(delimiter="\t" if path.suffix == ".tsv" else ",")
    if path.suffix in read:
        return read[path.suffix](str(path)).to_pydict()
    return pa.csv.read_csv(str(path), parse_options=separator).to_pydict()


@pytest.mark.parametrize("ending", FORMATS)
def test_recalibrate_and_apply_keep_the_column(ending, tmp_path):
    source, target = weighted()
    files = write_pair(tmp_path, source, target, ending)
    out, again = (tmp_path / f"{name}.{ending}" for name in ("out", "again"))
    saved = str(tmp_path / "saved.json")
    arguments = ["recalibrate", *files, "-o", str(out), "--save", saved, *ASKED, "--no-check"]
    assert status(arguments) == 0
    assert status(["apply", saved, files[1], "-o", str(again), *ASKED]) == 0
    after = columns_of(out)
    assert list(after) == list(target)
    assert after["p_n"] == M.tolist()
    assert after["note"] == target["note"]
    assert out.read_bytes() == again.read_bytes() or after == columns_of(again)
    given = calshift.Predictions(P_SOURCE, named(Y_SOURCE), classes=NAMES, sample_weight=N)
    now = calshift.Predictions(P_TARGET, classes=NAMES, sample_weight=M)
    fitted = calshift.recalibrate(given, None, now, check=False).recalibrator
    p = np.stack([after[f"p_{name}"] for name in NAMES], axis=1)  # rows of weight 0 too
    np.testing.assert_allclose(p, fitted.transform(P_TARGET), rtol=1e-9)


def test_apply_does_not_read_the_weights(tmp_path):
    source, target = weighted()
    files = write_pair(tmp_path, source, target)
    saved = str(tmp_path / "saved.json")
    assert (
        status(["recalibrate", *files, "-o", str(tmp_path / "o.csv"), "--save", saved, *ASKED])
        in FOUND
    )
    for name, weight in (("zero", [0] * 600), ("text", ["many"] * 600)):
        new = write(tmp_path / f"{name}.csv", {**target, "p_n": weight})
        out = tmp_path / f"{name}-out.csv"
        assert status(["apply", saved, new, "-o", str(out), *ASKED]) == 0
        assert columns_of(out)["p_n"] == weight
    assert status(["apply", saved, files[1], "-o", str(tmp_path / "x.csv")]) == 2  # a 4th class


# --- errors


@pytest.mark.parametrize("command", ["check", "weights", "monitor", "recalibrate"])
@pytest.mark.parametrize("role", [0, 1])
def test_both_files_must_have_the_column(command, role, tmp_path, error):
    pair = [*weighted()]
    pair[role].pop("p_n")
    files = write_pair(tmp_path, *pair)
    output = ["-o", tmp_path / "out.csv"] if command == "recalibrate" else []
    said = error(command, *files, *output, *ASKED)
    assert f"{files[role]}: --sample-weight names 'p_n', which is not a column" in said
    assert "'p_ant', 'p_bee', 'p_cow'" in said
    assert not (tmp_path / "out.csv").exists()


def test_apply_needs_the_column_that_is_named(tmp_path, error):
    source, target = weighted()
    files, saved = write_pair(tmp_path, source, target), str(tmp_path / "saved.json")
    out = str(tmp_path / "o.csv")
    assert status(["recalibrate", *files, "-o", out, "--save", saved, *ASKED]) in FOUND
    said = error("apply", saved, files[1], "-o", tmp_path / "n.csv", "--sample-weight", "m")
    assert "target.csv: --sample-weight names 'm', which is not a column" in said


@pytest.mark.parametrize("engine", ["arrays", "batches"])
@pytest.mark.parametrize("role", [0, 1])
def test_bad_weights_are_named(engine, role, tmp_path, error):
    for value, wanted in ((-1, "row 137 is -1"), (0, "must not be all zero")):
        weight = [N.copy(), M.copy()]
        weight[role][slice(137, 138) if value else slice(None)] = value
        files = write_pair(tmp_path, *weighted(*weight))
        said = error("check", *files, *ASKED, "--engine", engine)
        assert f"{files[role]}, column 'p_n' must" in said
        assert wanted in said


def test_npy_has_no_column(tmp_path, error):
    np.save(tmp_path / "p.npy", P_SOURCE)
    np.save(tmp_path / "y.npy", Y_SOURCE)
    target = write(tmp_path / "t.csv", weighted()[1])
    said = error("check", tmp_path / "p.npy", target, "--label", tmp_path / "y.npy", *ASKED)
    assert "p.npy has no columns for --sample-weight to name" in said


def test_weights_and_labels_are_two_columns(tmp_path, error):
    files = write_pair(tmp_path, *weighted())
    said = error("check", *files, "--label", "p_n", *ASKED)
    assert "--label and --sample-weight must name two columns; both are 'p_n'" in said
