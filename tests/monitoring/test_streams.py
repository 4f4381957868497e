"""Windows over batches: the same series, with a window and a batch held at a time."""

from __future__ import annotations

import json

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

import calshift
from calshift.cli import samples as openings
from calshift.cli.main import status
from calshift.monitoring import series


@pytest.fixture(scope="module")
def rows():
    simulation = calshift.simulate.GaussianSimulation(n_classes=3)
    p, y = simulation.source(800, rng=0)
    q, _ = simulation.target(1300, rng=1)
    spread = np.sort(np.random.default_rng(2).uniform(0, 6 * 86_400, len(q)))
    time = 20_000 * 86_400 + spread  # from 2024-10-04
    return p, y, q, time


def batches(q, size):
    return calshift.scan([q[start : start + size] for start in range(0, len(q), size)])


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::calshift.UnreliableWeights")
@pytest.mark.parametrize("size", [1, 97, 5000])
@pytest.mark.parametrize("asked", [{"rows": 400}, {"window": "1d"}, {"rows": 500, "timed": True}])
def test_a_scanned_target_has_the_same_series(rows, asked, size):
    p, y, q, time = rows
    asked = dict(asked)
    if asked.pop("timed", False) or "window" in asked:
        asked["time"] = time
    expected = calshift.monitor(p, y, q, check=False, **asked)
    found = calshift.monitor(p, y, batches(q, size), check=False, **asked)
    assert [r.estimate for r in found.results] == [r.estimate for r in expected.results]
    assert found.windows == expected.windows


@pytest.mark.filterwarnings("ignore::calshift.UnreliableWeights")
def test_no_more_than_a_window_and_a_batch_is_held(rows, monkeypatch):
    p, y, q, _ = rows
    held = []
    original = series.concatenate_rows

    def counting(parts):
        held.append(sum(len(part) for part in parts))
        return original(parts)

    monkeypatch.setattr(series, "concatenate_rows", counting)
    calshift.monitor(p, y, batches(q, 50), rows=200, check=False)
    assert len(held) == 7
    assert max(held) <= 200 + 2 * 50


def test_times_that_go_back_are_refused(rows):
    p, y, q, time = rows
    with pytest.raises(calshift.InvalidInput, match="sort the rows by time"):
        calshift.monitor(p, y, batches(q, 100), time[::-1], window="1d")


@pytest.mark.slow
@pytest.mark.parametrize(
    "more", [[], ["--estimator", "paper", "--weights", "bbse", "--draws", "20"]]
)
def test_a_large_file_is_read_window_by_window(rows, more, tmp_path, monkeypatch, capsys):
    p, y, q, time = rows
    columns = {f"p_{name}": p[:, k] for k, name in enumerate("abc")}
    parquet.write_table(
        pa.table({**columns, "label": list(map("abc".__getitem__, y))}), tmp_path / "s.parquet"
    )
    (tmp_path / "new").mkdir()
    for number, part in enumerate(np.array_split(np.arange(len(q)), 3)):
        columns = {f"p_{name}": q[part, k] for k, name in enumerate("abc")}
        table = pa.table({**columns, "when": time[part]})
        parquet.write_table(table, tmp_path / "new" / f"{number}.parquet")
    asked = ["monitor", str(tmp_path / "s.parquet"), str(tmp_path / "new"), "--time", "when"]
    asked += ["--window", "1d", "--json", "-", "--no-check", *more]
    answers = []
    for large in (openings.LARGE, 0):
        monkeypatch.setattr(openings, "LARGE", large)
        assert status(asked) in (0, 3)
        answers.append(json.loads(capsys.readouterr().out)["windows"])
    assert answers[0] == answers[1]
    assert all(window["root_interval"] is not None for window in answers[1])
