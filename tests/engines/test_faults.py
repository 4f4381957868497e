"""What goes wrong around a long run: signals, full disks, damaged parts."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import calshift
from calshift import InvalidInput
from calshift.cli.main import status
from tests.engines.samples import P_SOURCE, P_TARGET, Y_SOURCE, folder_of, source_batches

pytestmark = pytest.mark.filterwarnings("ignore::calshift.UnreliableWeights")
CHECKPOINT_FAILED = (
    "the checkpoint could not be written either: run.npz cannot be written (File too large)"
)

# a command whose batches take their time, and that says so when the third one of a pass is read
SLOW = """
import sys, time
from calshift.cli.main import main
from calshift.io.file_reader import FileReader
real, count = FileReader._validate, [0]
def slow(self, rows, number):
    count[0] += 1
    if count[0] == {after}:
        print("reading", file=sys.stderr, flush=True)
    time.sleep({pause} if count[0] >= {after} else 0)
    return real(self, rows, number)
FileReader._validate = slow
main()
"""
LIMITED = """
import resource, sys
from calshift.cli.main import main
import calshift.cli.commands, numpy, scipy.special, pyarrow.parquet
resource.setrlimit(resource.RLIMIT_FSIZE, ({size}, {size}))
main()
"""


@pytest.fixture
def folders(tmp_path):
    return [
        folder_of(tmp_path / "source", P_SOURCE, Y_SOURCE),
        folder_of(tmp_path / "target", P_TARGET),
    ]


def run(code: str, *arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", code, *arguments], capture_output=True, text=True, cwd=cwd
    )


def answer(path: Path) -> dict:
    found = json.loads(path.read_text(encoding="utf-8"))
    return {k: v for k, v in found.items() if k not in ("created", "command")}


def interrupted(arguments: list[str], after: int, cwd: Path) -> tuple[int, str]:
    """Exit status and standard error of a command that gets a SIGINT while it reads."""
    child = subprocess.Popen(
        [sys.executable, "-c", SLOW.format(after=after, pause=5), *arguments],
        stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True, cwd=cwd,
    )  # fmt: skip
    assert child.stderr is not None
    assert child.stderr.readline() == "reading\n"
    time.sleep(0.2)
    child.send_signal(signal.SIGINT)
    rest = child.communicate(timeout=60)[1]
    return child.returncode, rest


# --- Ctrl-C


@pytest.mark.slow
@pytest.mark.parametrize("after", [3, 30])
@pytest.mark.parametrize("command", ["check", "weights"])
def test_ctrl_c_says_how_to_go_on_and_the_same_command_does(command, after, folders, tmp_path):
    arguments = [command, *folders, "--engine", "batches", "--json"]
    assert status([*arguments, str(tmp_path / "whole.json")]) in (0, 3)
    out, kept = tmp_path / "out.json", tmp_path / "run.npz"
    stopped = [*arguments, str(out), "--checkpoint", str(kept)]
    code, told = interrupted(stopped, after, tmp_path)
    assert code == 130
    assert told.strip() == f"calshift: stopped; the same command goes on from {kept}"
    assert kept.exists()
    assert not out.exists()
    assert status(stopped) in (0, 3)
    assert not kept.exists()
    assert answer(out) == answer(tmp_path / "whole.json")
    assert not list(tmp_path.glob(".*"))


def test_ctrl_c_without_a_checkpoint_is_plain(folders, tmp_path):
    code, told = interrupted(["check", *folders, "--engine", "batches"], 3, tmp_path)
    assert code == 130
    assert told.strip() == "calshift: stopped"


def test_ctrl_c_before_a_batch_was_summed_up(folders, tmp_path):
    arguments = ["check", *folders, "--checkpoint", "run.npz"]
    code, told = interrupted(arguments, 1, tmp_path)
    assert code == 130
    assert (
        told.strip()
        == "calshift: stopped before the first sums were complete; no checkpoint was written"
    )
    assert not (tmp_path / "run.npz").exists()


# --- damaged parts


@pytest.mark.parametrize("engine", ["arrays", "batches"])
@pytest.mark.parametrize("side", ["source", "target"])
def test_a_truncated_part_is_named_and_nothing_half_written(
    engine, side, folders, tmp_path, capsys
):
    part = tmp_path / side / "part-2.parquet"
    part.write_bytes(part.read_bytes()[:3000])
    out = tmp_path / "report.html"
    code = status(["check", *folders, "--engine", engine, "--report", str(out)])
    err = capsys.readouterr().err
    assert code == 2
    assert re.fullmatch(rf"calshift: {re.escape(str(part))} cannot be read .*\n", err)
    assert not out.exists()


def test_a_part_that_goes_away_between_two_passes_is_named(folders):
    source = calshift.scan(folders[0])
    assert source.summary.rows == 1500
    Path(folders[0], "part-1.parquet").unlink()
    with pytest.raises(InvalidInput, match=r"part-1\.parquet: no such file"):
        source.total(len)


# --- full disks


def check_one_line(done: subprocess.CompletedProcess[str], name: str) -> None:
    assert done.returncode == 2, done.stderr
    assert done.stderr.count("\n") == 1
    assert re.match(rf"calshift: .*{name} cannot be written \(File too large\)", done.stderr)


@pytest.mark.slow
@pytest.mark.parametrize("face", ["report", "json"])
def test_a_full_disk_under_the_report(face, folders, tmp_path):
    old = tmp_path / "out"
    old.write_text("the last one")
    arguments = ["check", *folders, "--engine", "batches", f"--{face}", "out"]
    done = run(LIMITED.format(size=2000), *arguments, cwd=tmp_path)
    check_one_line(done, "out")
    assert old.read_text() == "the last one"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out", "source", "target"]


@pytest.mark.slow
def test_a_report_that_cannot_be_written_leaves_the_sums(folders, tmp_path):
    arguments = ["check", *folders, "--checkpoint", "run.npz", "--report", "/dev/full"]
    done = run("from calshift.cli.main import main; main()", *arguments, cwd=tmp_path)
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert "/dev/full cannot be written (No space left on device)" in done.stderr
    assert (tmp_path / "run.npz").exists()
    again = [*arguments[:-1], "page.html"]
    code = SLOW.format(after=1, pause=0)
    done = run(code, *again, cwd=tmp_path)
    assert done.returncode in (0, 3), done.stderr
    assert done.stderr == ""  # nothing was read again
    assert not (tmp_path / "run.npz").exists()
    assert (tmp_path / "page.html").exists()


@pytest.mark.slow
@pytest.mark.parametrize("reported", [False, True])
def test_a_full_disk_under_the_checkpoint(reported, folders, tmp_path):
    """The run goes on; only if its answer is lost too, it tells that the sums are."""
    code = (
        "import calshift.engines.checkpoint\ncalshift.engines.checkpoint.EVERY = 0.0\n"
        + LIMITED.format(size=2000)
    )
    report = ["--report", "page.html"] if reported else []
    done = run(code, "check", *folders, "--checkpoint", "run.npz", *report, cwd=tmp_path)
    if reported:
        check_one_line(done, "page.html")
        assert CHECKPOINT_FAILED in done.stderr
    else:
        assert done.returncode in (0, 3)
        assert done.stderr == ""
    assert sorted(path.name for path in tmp_path.iterdir()) == ["source", "target"]


def test_a_checkpoint_that_cannot_be_written_hides_no_ctrl_c(tmp_path, monkeypatch):
    def full(path, content):
        msg = f"{path} cannot be written (No space left on device); nothing was left behind"
        raise InvalidInput(msg)

    def failing():
        yield source_batches()[0]
        raise KeyboardInterrupt

    monkeypatch.setattr("calshift.engines.checkpoint.write_content", full)
    with pytest.raises(KeyboardInterrupt) as raised:
        calshift.calibration_error(calshift.scan(failing), checkpoint=tmp_path / "run.npz")
    assert "No space left" in raised.value.__notes__[0]


def test_a_full_disk_under_the_batches_of_a_generator(tmp_path):
    code = f"""
import resource, sys, tempfile
import numpy as np, calshift
tempfile.tempdir = {str(tmp_path)!r}
resource.setrlimit(resource.RLIMIT_FSIZE, (2000, 2000))
p = np.full((1000, 2), 0.5)
try:
    calshift.scan(iter([p]))
except calshift.InvalidInput as problem:
    print(problem)
"""
    done = run(code, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert re.match(
        r"data comes only once, .*(File too large|disk full).*fresh iterator\n$", done.stdout
    )
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_memory_stays_far_below_the_data(tmp_path):
    """Ten parts of 24 MB: a child that scans them grows by less than two."""
    p = np.random.default_rng(0).dirichlet(np.ones(100), 60_000).astype(np.float32)
    np.savez(tmp_path / "0.npz", p=p, y=np.arange(60_000) % 100)
    for k in range(1, 10):
        os.link(tmp_path / "0.npz", tmp_path / f"{k}.npz")
    code = f"""
import resource, calshift
calshift.scan({str(tmp_path / "0.npz")!r}).summary  # what is loaded for the first time
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
rows = calshift.scan({str(tmp_path)!r}).summary.rows
print(rows, (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024)
"""
    rows, grown = run(code, cwd=tmp_path).stdout.split()
    assert int(rows) == 600_000
    assert float(grown) < 48
