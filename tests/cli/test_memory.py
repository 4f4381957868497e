"""Want of memory, and whatever else ends the process, never has a status of a result."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from tests.prediction_files import P_SOURCE, P_TARGET, Y_SOURCE

resource = pytest.importorskip("resource")
linux = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="exit() on Linux only")
SCRIPT = shutil.which("calshift", path=str(Path(sys.executable).parent))


@pytest.fixture(scope="module")
def both(tmp_path_factory):
    path = tmp_path_factory.mktemp("files") / "both.npz"
    np.savez(path, p_source=P_SOURCE, y_source=Y_SOURCE, p_target=P_TARGET)
    return str(path)


def run(start: list[str], *arguments: str, megabytes: int = 0) -> subprocess.CompletedProcess[str]:
    def limit() -> None:
        if megabytes:
            resource.setrlimit(resource.RLIMIT_AS, (megabytes * 2**20,) * 2)

    return subprocess.run(
        [*start, *arguments], capture_output=True, text=True, timeout=30, preexec_fn=limit
    )


STARTS = {"module": [sys.executable, "-m", "calshift"]} | ({"script": [SCRIPT]} if SCRIPT else {})


@linux
@pytest.mark.parametrize("start", STARTS)
@pytest.mark.parametrize("megabytes", [24, 60, 100, 140])
def test_no_status_of_a_result_without_memory(start, megabytes, both):
    try:
        done = run(STARTS[start], "check", both, both, megabytes=megabytes)
    except subprocess.TimeoutExpired:
        pytest.skip("OpenBLAS tries for ever to allocate memory while it is loaded")
    assert done.returncode not in (0, 1, 3)
    assert done.returncode == 4 or done.returncode < 0
    assert "Traceback" not in done.stderr


def patched(what: str) -> list[str]:
    """The command with another function in place of the estimate."""
    code = (
        "import ctypes, os, sys\nimport importlib\nfrom calshift.cli.main import main\n"
        "module = importlib.import_module('calshift.cli.estimates')\n"
        f"def fail(*arguments, **options):\n    {what}\n"
        "module.target_calibration_error = fail\nmain()"
    )
    return [sys.executable, "-c", code]


@linux
@pytest.mark.parametrize("status", [0, 1, 3])
def test_a_library_that_calls_exit_has_another_status(status, both):
    done = run(patched(f"ctypes.CDLL(None).exit({status})"), "check", both, both)
    assert done.returncode == 4


def test_an_error_while_an_error_is_printed(both):
    what = "sys.stderr.write = None; raise MemoryError"
    assert run(patched(what), "check", both, both).returncode == 4


@pytest.mark.parametrize(("limit", "status"), [("0.2", 0), ("0.01", 1)])
@pytest.mark.parametrize("start", STARTS)
def test_results_have_their_status(start, limit, status, both):
    done = run(STARTS[start], "check", both, both, "--max-error", limit)
    assert (done.returncode, done.stderr) == (status, "")


def test_importing_the_library_does_not_guard_other_programs():
    code = "import sys; import calshift; assert sys.excepthook is sys.__excepthook__; sys.exit(7)"
    assert run([sys.executable, "-c", code]).returncode == 7
