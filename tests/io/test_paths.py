"""Paths, folders and patterns: what is found, and what is refused before anything is read."""

from __future__ import annotations

import glob
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

import calshift
from calshift.cli.main import status
from calshift.errors import InvalidInput
from calshift.io import paths
from tests.prediction_files import P_SOURCE, P_TARGET, Y_SOURCE, named, table, write


@pytest.fixture
def source(tmp_path):
    return write(tmp_path / "source.csv", table(P_SOURCE, named(Y_SOURCE)))


@pytest.fixture
def target(tmp_path):
    return write(tmp_path / "target.csv", table(P_TARGET))


# --- the empty path


def test_the_empty_path_is_refused_on_the_command_line(source, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "saved.json").write_text("{}")
    for command in (
        ["check", source, ""], ["check", "", source], ["monitor", source, ""],
        ["recalibrate", source, "", "-o", "a.csv"], ["apply", "", source, "-o", "a.csv"],
        ["apply", "saved.json", "", "-o", "a.csv"], ["demo", "--files", ""],
        ["check", source, source, "--report", ""],
    ):  # fmt: skip
        assert status(command) == 2
        assert "the path is empty" in capsys.readouterr().err


def test_the_empty_path_is_refused_in_python(source, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for data in ("", [source, ""]):
        with pytest.raises(InvalidInput, match="the path is empty"):
            calshift.scan(data)
    with pytest.raises(InvalidInput, match="the path is empty"):
        calshift.target_calibration_error(P_SOURCE, Y_SOURCE, "")


# --- folders and patterns are searched within limits


@pytest.mark.parametrize("data", ["/", "//", "/tmp/..", Path("/")])
def test_the_root_of_the_file_system_is_refused(data):
    with pytest.raises(InvalidInput, match="whole file system"):
        calshift.target_calibration_error(P_SOURCE, Y_SOURCE, data)


@pytest.mark.parametrize("pattern", ["", "**/*.csv", "**", "*/*/*.csv", "*"])
def test_a_search_ends_after_many_entries(pattern, tmp_path, monkeypatch):
    monkeypatch.setattr(paths, "MOST_ENTRIES", 50)
    for k in range(10):
        for j in range(10):
            (tmp_path / f"{k}" / f"{j}").mkdir(parents=True)
            (tmp_path / f"{k}" / f"{j}" / "note.txt").touch()
    data = str(tmp_path / pattern) if pattern else tmp_path
    with pytest.raises(InvalidInput, match=r"more than 50 .* narrower"):
        paths.expand_paths(data)


def test_a_search_of_the_whole_disk_ends(tmp_path, monkeypatch):
    monkeypatch.setattr(paths, "MOST_ENTRIES", 200)
    with pytest.raises(InvalidInput, match="narrower"):
        paths.expand_paths("/**/no-such-file-anywhere.csv")


PATTERNS = [
    "*.csv", "**", "**/*.csv", "*/*.csv", "a/**/*.csv", "[ab]/?.csv", "a/../b/*.csv", "*/", "**/",
    "./*.csv", "**/.hidden/*.csv", ".*/*.csv", "link/*.csv", "x*y.csv", "**/**/*.csv",
    "a/x[[]y.csv",
]  # fmt: skip


@pytest.mark.parametrize("pattern", PATTERNS)
def test_patterns_match_what_glob_matches(pattern, tmp_path, monkeypatch):
    for name in (
        "a.csv", "xy.csv", "a/b.csv", "a/c/d.csv", "b/e.csv", ".hidden/f.csv", "a/x[y.csv",
    ):  # fmt: skip
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    (tmp_path / "link").symlink_to(tmp_path / "b", target_is_directory=True)
    (tmp_path / "broken.csv").symlink_to(tmp_path / "gone.csv")
    monkeypatch.chdir(tmp_path)
    for asked in (pattern, f"{tmp_path}/{pattern}"):
        expected = {os.path.normpath(name) for name in glob.glob(asked, recursive=True)}
        names = set(paths.match_pattern(asked, paths.Search(asked))) - {""}
        found = set(map(os.path.normpath, names))
        assert found == expected


def test_a_link_to_a_folder_above_does_not_count_for_ever(tmp_path):
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "one.csv").touch()
    (tmp_path / "a" / "up").symlink_to(tmp_path, target_is_directory=True)
    assert paths.expand_paths(tmp_path) == [tmp_path / "a" / "one.csv"]


# --- pipes and devices


@pytest.mark.parametrize("command", ["check", "weights", "monitor", "recalibrate"])
@pytest.mark.parametrize("place", [0, 1])
def test_a_named_pipe_is_refused_and_not_waited_for(command, place, source, target, tmp_path):
    os.mkfifo(tmp_path / "pipe.csv")
    inputs = [source, target]
    inputs[place] = str(tmp_path / "pipe.csv")
    more = ["-o", str(tmp_path / "out.csv")] if command == "recalibrate" else []
    done = subprocess.run(
        [sys.executable, "-m", "calshift", command, *inputs, *more],
        capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    assert done.returncode == 2
    assert "pipe.csv is a pipe, which cannot be read more than once: save it" in done.stderr


def test_process_substitution_is_refused_as_a_pipe(source):
    reading, writing = os.pipe()
    done = subprocess.run(
        [sys.executable, "-m", "calshift", "check", source, f"/dev/fd/{reading}"],
        capture_output=True, text=True, timeout=60, pass_fds=[reading],
    )  # fmt: skip
    os.close(reading)
    os.close(writing)
    assert done.returncode == 2
    assert "is a pipe, which cannot be read more than once: save it to a file" in done.stderr


def test_devices_and_sockets_are_refused_by_what_they_are(tmp_path, monkeypatch):
    with pytest.raises(InvalidInput, match="/dev/zero is a device"):
        calshift.scan("/dev/zero")
    monkeypatch.chdir(tmp_path)
    with socket.socket(socket.AF_UNIX) as server:
        server.bind("socket.csv")
        with pytest.raises(InvalidInput, match=r"socket\.csv is a socket"):
            calshift.scan("socket.csv")


def test_pipes_in_place_of_other_inputs_are_not_waited_for(source, target, tmp_path, capsys):
    os.mkfifo(tmp_path / "pipe.json")
    pipe = str(tmp_path / "pipe.json")
    asked = ["--weights", pipe], ["--engine", "batches", "--checkpoint", pipe]
    for options in asked:
        assert status(["check", source, target, *options]) == 2
        assert "pipe.json is a pipe" in capsys.readouterr().err
    assert status(["apply", pipe, target, "-o", str(tmp_path / "out.csv")]) == 2
    assert "pipe.json is a pipe" in capsys.readouterr().err


def test_a_file_that_is_named_twice_counts_once(source, tmp_path):
    link = tmp_path / "link.csv"
    link.symlink_to(source)
    once = calshift.scan(source).summary.rows
    assert calshift.scan([source, str(link), source]).summary.rows == once
    assert calshift.scan(str(tmp_path / "*.csv")).summary.rows == once


def test_a_pipe_or_a_folder_in_place_of_weights_is_named(source, target, tmp_path, capsys):
    os.mkfifo(tmp_path / "weights")
    for path, word in ((tmp_path / "weights", "is a pipe"), (tmp_path, "is a folder")):
        assert status(["check", source, target, "--weights", str(path)]) == 2
        assert word in capsys.readouterr().err
