"""A standard output that is closed is no place for an output."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import numpy as np
import pytest

from tests.prediction_files import P_SOURCE, P_TARGET, Y_SOURCE


@pytest.fixture(scope="module")
def both(tmp_path_factory):
    path = tmp_path_factory.mktemp("files") / "both.npz"
    np.savez(path, p_source=P_SOURCE, y_source=Y_SOURCE, p_target=P_TARGET)
    return str(path)


def run_closed(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "calshift", *arguments],
        stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
        preexec_fn=lambda: os.close(1), timeout=60,
    )  # fmt: skip


@pytest.mark.parametrize(
    "command",
    [
        ["check", "{}", "{}", "--json", "-"],
        ["check", "{}", "{}", "--markdown", "-"],
        ["weights", "{}", "{}", "--json", "-"],
        ["monitor", "{}", "{}", "--json", "-"],
        ["recalibrate", "{}", "{}", "-o", "-"],
    ],
)
def test_an_output_that_would_be_lost_is_refused(command, both):
    done = run_closed(*(part.format(both) for part in command))
    assert done.returncode == 2
    assert "standard output is closed" in done.stderr
    assert done.stderr.count("\n") == 1


def test_a_verdict_that_is_not_shown_has_its_status(both):
    assert run_closed("check", both, both).returncode == 0


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no /dev/full")
def test_a_standard_error_that_is_full_leaves_status_and_output(both, tmp_path):
    for command, status in (
        (["check", both, both, "--json", "-"], 0),
        (["check", both, "no such.npz"], 2),
        (["check", both, both, "--json", "-", "--max-error", "0"], 1),
    ):
        with open("/dev/full", "w") as full:
            done = subprocess.run(
                [sys.executable, "-m", "calshift", *command],
                stdout=subprocess.PIPE, stderr=full, text=True, timeout=60,
            )  # fmt: skip
        assert done.returncode == status
        assert (status == 2) or json.loads(done.stdout)["schema_version"]


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no /dev/full")
def test_a_standard_output_that_is_full_is_named(both):
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "calshift", "check", both, both],
            stdout=full, stderr=subprocess.PIPE, text=True, timeout=60,
        )  # fmt: skip
    assert done.returncode == 2
    assert "standard output cannot be written" in done.stderr
