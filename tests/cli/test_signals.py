"""Signals that end a command: the checkpoint is saved, one line printed, nothing partial left."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from calshift.cli.main import status
from calshift.simulate import GaussianSimulation

STATUS = {signal.SIGINT: 130, signal.SIGTERM: 143, signal.SIGHUP: 129}
SIGNALS = pytest.mark.parametrize("number", STATUS, ids=lambda number: number.name)


@pytest.fixture(scope="module")
def both(tmp_path_factory):
    simulation = GaussianSimulation(n_classes=5, imbalance=3)
    (p, y), q = simulation.source(60_000, rng=1), simulation.target(60_000, rng=2)[0]
    path = tmp_path_factory.mktemp("files") / "both.npz"
    np.savez(path, p_source=p, y_source=y, p_target=q)
    return str(path)


def start(*arguments: str, code: str = "") -> subprocess.Popen[str]:
    asked = ["-c", f"{code}\nfrom calshift.cli.main import main; main()"]
    return subprocess.Popen(
        [sys.executable, *asked, *arguments],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
    )  # fmt: skip


SLOW = """
import calshift.engines.batches as batches, os, sys
read = batches.Batches._read
def slow(self, skip):
    for number, batch in enumerate(read(self, skip)):
        if number == 3 and not os.path.exists(sys.argv[-1] + ".ready"):
            open(sys.argv[-1] + ".ready", "w").close()
            import time; time.sleep(60)
        yield batch
batches.Batches._read = slow
import calshift.io.file_reader as reader
reader.MOST_ROWS = reader.LEAST_ROWS = 4096
"""


@SIGNALS
def test_a_stop_saves_the_sums_and_has_its_status(number, both, tmp_path):
    place, out = tmp_path / "sums", tmp_path / "out.json"
    asked = ["check", both, both, "--engine", "batches", "--no-check", "--json", str(out)]
    running = start(*asked, "--checkpoint", str(place), code=SLOW)
    wait_for(tmp_path / "sums.ready")
    running.send_signal(number)
    told, err = running.communicate(timeout=30)
    assert running.returncode == STATUS[number]
    assert err.strip() == f"calshift: stopped; the same command goes on from {place}"
    assert told == ""
    assert sorted(path.name for path in tmp_path.iterdir()) == ["sums", "sums.ready"]
    done = start(*asked, "--checkpoint", str(place), code=SLOW)
    done.communicate(timeout=60)
    assert done.returncode == 0
    assert out.exists()


WRITING = """
import os, sys, time
def wait(*arguments):
    open(sys.argv[-1] + ".ready", "w").close()
    time.sleep(60)
os.replace = wait
"""


@SIGNALS
def test_a_stop_while_writing_leaves_no_temporary_file(number, both, tmp_path):
    out = tmp_path / "out.json"
    running = start("check", both, both, "--no-check", "--json", str(out), code=WRITING)
    wait_for(tmp_path / "out.json.ready")
    running.send_signal(number)
    _, err = running.communicate(timeout=30)
    assert running.returncode == STATUS[number]
    assert err.strip() == "calshift: stopped"
    assert [path.name for path in tmp_path.iterdir()] == ["out.json.ready"]


@pytest.mark.skipif(not os.path.exists("/proc"), reason="no /proc")
@SIGNALS
@pytest.mark.parametrize("send", [os.kill, os.killpg], ids=["to the command", "to all processes"])
def test_a_stop_ends_the_processes_of_a_bootstrap(number, send, both):
    asked = ["--interval", "bootstrap", "--jobs", "2", "--draws", "5000", "--no-check"]
    running = start("check", both, both, *asked)
    deadline = time.monotonic() + 30
    while len(members(running.pid)) < 3 and time.monotonic() < deadline:
        time.sleep(0.05)
    time.sleep(1)
    send(running.pid, number)
    _, err = running.communicate(timeout=30)
    assert running.returncode == STATUS[number]
    assert err.strip() == "calshift: stopped"
    time.sleep(0.5)
    assert members(running.pid) == []


@pytest.mark.skipif(not os.path.exists("/proc"), reason="no /proc")
def test_processes_of_a_bootstrap_end_when_the_command_is_killed(both):
    asked = ["--interval", "bootstrap", "--jobs", "2", "--draws", "100000", "--no-check"]
    running = start("check", both, both, *asked)
    deadline = time.monotonic() + 30
    while len(members(running.pid)) < 3 and time.monotonic() < deadline:
        time.sleep(0.05)
    assert len(members(running.pid)) == 3
    time.sleep(1)
    running.kill()
    while members(running.pid) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert members(running.pid) == []
    running.communicate(timeout=30)


def members(group: int) -> list[int]:
    """Processes of a session that are not dead."""
    found = []
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{name}/stat") as file:
                fields = file.read().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[3]) == group and fields[0] != "Z":
            found.append(int(name))
    return found


def wait_for(path) -> None:
    deadline = time.monotonic() + 30
    while not path.exists():
        assert time.monotonic() < deadline
        time.sleep(0.05)
    time.sleep(0.2)


def test_the_help_names_both(capsys):
    assert status(["--help"]) == 0
    out = capsys.readouterr().out
    assert "130" in out
    assert "143" in out
