"""The command line on folders and patterns, in memory and in passes."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

from calshift.cli.main import status
from calshift.cli.samples import open_samples
from tests.engines.samples import P_SOURCE, P_TARGET, Y_SOURCE, folder_of
from tests.prediction_files import named, table, write


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    place = tmp_path_factory.mktemp("folders")
    return [
        folder_of(place / "source", P_SOURCE, Y_SOURCE),
        folder_of(place / "target", P_TARGET, ending="csv"),
    ]


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """The same rows in one file each."""
    place = tmp_path_factory.mktemp("files")
    return [
        write(place / "source.parquet", table(P_SOURCE, named(Y_SOURCE))),
        write(place / "target.parquet", table(P_TARGET)),
    ]


def answer(folder: Path, *arguments: str) -> dict:
    out = folder / "answer.json"
    assert status([*map(str, arguments), "--json", str(out)]) in (0, 3)
    return json.loads(out.read_text(encoding="utf-8"))


def complaint(capsys, *arguments: str) -> str:
    assert status(list(map(str, arguments))) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("calshift: ")
    assert err.count("\n") == 1
    return err


@pytest.mark.parametrize("engine", ["auto", "arrays", "batches"])
@pytest.mark.parametrize("jobs", ["1", "2"])
def test_check_gives_the_numbers_of_one_file(engine, jobs, folders, files, tmp_path):
    whole = answer(tmp_path, "check", *files, "--engine", "arrays")
    found = answer(tmp_path, "check", *folders, "--engine", engine, "--jobs", jobs)
    for name in ("target", "source"):
        assert found[name]["root"] == pytest.approx(whole[name]["root"], rel=1e-9)
        assert found[name]["root_interval"] == pytest.approx(whole[name]["root_interval"], rel=1e-9)
    assert [one["class"] for one in found["classes"]] == ["ant", "bee", "cow"]
    assert found["trusted"] == whole["trusted"]
    assert (found["curves"] == []) == (engine == "batches")


@pytest.mark.parametrize("engine", ["arrays", "batches"])
def test_weights_take_folders_and_patterns(engine, folders, files, tmp_path):
    whole = answer(tmp_path, "weights", *files)
    pattern = f"{folders[1]}/part-*.csv"
    found = answer(tmp_path, "weights", folders[0], pattern, "--engine", engine)
    for one, other in zip(found["classes"], whole["classes"], strict=True):
        assert one["weight"] == pytest.approx(other["weight"], rel=1e-9)
        assert one["weight_error"] == pytest.approx(other["weight_error"], rel=1e-9)


def test_monitor_takes_folders(folders, files, tmp_path):
    found, whole = (
        answer(tmp_path, "monitor", *both, "--rows", "650", "--no-check")
        for both in (folders, files)
    )
    assert len(found["windows"]) == 2
    assert [w["root"] for w in found["windows"]] == pytest.approx(
        [w["root"] for w in whole["windows"]], rel=1e-9
    )


def test_monitor_reads_times_of_all_parts(tmp_path):
    source = write(tmp_path / "source.parquet", table(P_SOURCE, named(Y_SOURCE)))
    (tmp_path / "days").mkdir()
    for k in range(3):
        part = P_TARGET[400 * k : 400 * k + 400]
        day = [f"2024-03-0{k + 1}T12:00:00"] * 400
        write(tmp_path / "days" / f"{k}.parquet", table(part, when=day))
    found = answer(
        tmp_path, "monitor", source, tmp_path / "days", "--time", "when", "--window", "1d",
        "--no-check",
    )  # fmt: skip
    assert [window["rows"] for window in found["windows"]] == [400, 400, 400]


def test_the_inputs_of_a_report_are_all_files_together(folders, tmp_path):
    found = answer(tmp_path, "check", *folders, "--no-check")["inputs"]
    sizes = [sum(p.stat().st_size for p in Path(one).iterdir()) for one in folders]
    assert [found[name]["bytes"] for name in ("source", "target")] == sizes
    assert len(found["source"]["sha256"]) == 64


def test_large_files_are_read_in_passes_by_themselves(folders, monkeypatch):
    from calshift.io.columns import ColumnSpec

    options = {"engine": "auto", "checkpoint": None, "jobs": 1}
    assert not open_samples(*folders, ColumnSpec(), options).in_passes
    assert open_samples(*folders, ColumnSpec(), options | {"checkpoint": "run.npz"}).in_passes
    monkeypatch.setattr("calshift.cli.samples.LARGE", 10_000)
    assert open_samples(*folders, ColumnSpec(), options).in_passes
    assert not open_samples(*folders, ColumnSpec(), options | {"engine": "arrays"}).in_passes


def test_a_page_of_a_streamed_result_says_why_it_has_no_diagrams(folders, tmp_path, capsys):
    for engine in ("arrays", "batches"):
        page = tmp_path / f"{engine}.html"
        assert status(["check", *folders, "--engine", engine, "--report", str(page)]) == 0
        text = page.read_text(encoding="utf-8")
        assert ("No reliability diagrams" in text) == (engine == "batches")
        assert ('id="reliability"' in text) == (engine == "arrays")
        assert 'id="classes"' in text
    shown = capsys.readouterr().out
    assert shown.count("without labels") == 2


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--engine", "arrays", "--checkpoint", "run.npz"], "--checkpoint needs --engine batches"),
        (["--engine", "batches", "--interval", "bootstrap"], "use --engine arrays"),
        (["--engine", "batches", "--jobs", "0"], "--jobs must be a whole number"),
        (["--engine", "batches", "--columns", "z_*"], "no column matches --columns 'z_*'"),
        (["--engine", "batches", "--label", "zz"], "--label names 'zz', which is not a column"),
        (["--engine", "batches", "--weights", "1,2"], "--weights must be 3 numbers"),
        (["--checkpoint", "gone/run.npz"], "there is no folder gone"),
    ],
)
def test_what_does_not_fit_is_said_in_the_words_of_the_options(
    options, message, folders, capsys, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    assert message in complaint(capsys, "check", *folders, *options)
    assert list(tmp_path.iterdir()) == []


def test_outputs_do_not_destroy_parts_nor_lie_among_them(folders, capsys):
    part = Path(folders[0]) / "part-1.parquet"
    before = part.read_bytes()
    for option in ("--json", "--checkpoint"):
        assert "is an input" in complaint(capsys, "check", *folders, option, part)
    inside = Path(folders[0]) / "run.npz"
    message = complaint(capsys, "check", *folders, "--checkpoint", inside)
    assert "--checkpoint must not be inside the data" in message
    assert part.read_bytes() == before


def test_a_checkpoint_of_another_run_is_refused(folders, capsys, tmp_path):
    path = tmp_path / "run.npz"
    path.write_text("something else")
    assert "not a checkpoint of calshift" in complaint(
        capsys, "check", *folders, "--checkpoint", path
    )
    assert path.read_text() == "something else"


@pytest.mark.slow
def test_a_bar_says_which_pass_it_is_on_a_terminal_only(folders):
    arguments = ["check", *folders, "--engine", "batches", "-q", "--no-check"]
    plain = subprocess.run(
        [sys.executable, "-m", "calshift", *arguments], capture_output=True, text=True
    )
    assert plain.stderr == ""
    master, slave = pty.openpty()
    child = subprocess.Popen(
        [sys.executable, "-m", "calshift", *arguments], stdout=subprocess.DEVNULL, stderr=slave
    )
    os.close(slave)
    shown = b""
    while True:
        try:
            part = os.read(master, 65_536)
        except OSError:
            break
        if not part:
            break
        shown += part
    child.wait()
    os.close(master)
    assert b"pass 1, 400 rows" in shown
    assert b"pass 12" in shown
    assert b"100%" in shown
    assert shown.count(b"\n") == 1  # one line that is written over
