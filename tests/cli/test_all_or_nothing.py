"""All outputs of a command are written, or none."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from tests.prediction_files import NAMES, P_SOURCE, P_TARGET, Y_SOURCE, named, table, write

FULL = "/dev/full"


@pytest.fixture
def inputs(tmp_path):
    place = tmp_path / "in"
    place.mkdir()
    return [
        write(place / "s.csv", table(P_SOURCE, named(Y_SOURCE))),
        write(place / "t.csv", table(P_TARGET)),
    ]


def run(*arguments: str, **more) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "calshift", *arguments], capture_output=True, text=True, timeout=60,
        **more,
    )  # fmt: skip


COMMANDS = {
    "check": ["check", "{s}", "{t}", "--report", "{o}/r.html", "--json", FULL],
    "check, three": [
        "check", "{s}", "{t}", "--markdown", "{o}/m.md", "--prometheus", "{o}/p", "--report", FULL,
    ],
    "recalibrate": ["recalibrate", "{s}", "{t}", "-o", "{o}/m.csv", "--json", FULL],
    "recalibrate, save": ["recalibrate", "{s}", "{t}", "-o", "{o}/m.csv", "--save", FULL],
    "monitor": ["monitor", "{s}", "{t}", "--rows", "300", "--plot", "{o}/p.png", "--json", FULL],
    "demo": ["demo", "--files", "{o}", "--report", FULL],
}  # fmt: skip


@pytest.mark.skipif(not os.path.exists(FULL), reason="no /dev/full")
@pytest.mark.parametrize("command", COMMANDS)
def test_one_output_that_fails_leaves_none(command, inputs, tmp_path):
    out = tmp_path / "out"
    out.mkdir()
    names = {"s": inputs[0], "t": inputs[1], "o": out}
    done = run(*(part.format(**names) for part in COMMANDS[command]))
    assert done.returncode == 2
    assert f"{FULL} cannot be written (No space left on device); nothing was left" in done.stderr
    assert list(out.iterdir()) == []


@pytest.mark.skipif(not os.path.exists(FULL), reason="no /dev/full")
def test_standard_output_that_is_full_leaves_no_file(inputs, tmp_path):
    out = tmp_path / "m.csv"
    with open(FULL, "w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "calshift", "recalibrate", *inputs, "-o", out, "--json", "-"],
            stdout=full, stderr=subprocess.PIPE, text=True, timeout=60,
        )  # fmt: skip
    assert done.returncode == 2
    assert not out.exists()


def test_a_pipe_without_a_reader_leaves_no_file(inputs, tmp_path):
    os.mkfifo(tmp_path / "pipe")
    out, pipe = tmp_path / "m.csv", str(tmp_path / "pipe")
    done = run("recalibrate", *inputs, "-o", str(out), "--json", pipe)
    assert done.returncode == 2
    assert "no program reads" in done.stderr
    assert not out.exists()


def test_everything_is_written_where_all_is_well(inputs, tmp_path):
    names = [str(tmp_path / name) for name in ("m.csv", "saved.json", "told.json")]
    asked = ["-o", names[0], "--save", names[1], "--json", names[2]]
    assert run("recalibrate", *inputs, *asked).returncode == 0
    assert all(Path(name).stat().st_size > 100 for name in names)
    np.testing.assert_equal(len(Path(names[0]).read_text().splitlines()), 601)
    assert NAMES[0] in Path(names[1]).read_text()
    assert sorted(p.name for p in tmp_path.iterdir()) == ["in", "m.csv", "saved.json", "told.json"]
