"""The command line, as a person runs it."""

from __future__ import annotations

import re
import subprocess
import sys


def run(*arguments: str, code: str | None = None) -> subprocess.CompletedProcess[str]:
    start = ["-m", "calshift"] if code is None else ["-c", code]
    return subprocess.run([sys.executable, *start, *arguments], capture_output=True, text=True)


def test_demo_prints_the_estimate_beside_the_truth(tmp_path):
    done = run("demo", "--report", str(tmp_path / "page.html"))
    assert done.returncode == 0
    assert done.stderr == ""
    truth, estimate = map(
        float, re.search(r"labels\? (0\.\d+) .*them: (0\.\d+)", done.stdout).groups()
    )
    assert abs(estimate - truth) < 0.02  # some three standard errors of the difference
    assert max(map(len, done.stdout.splitlines())) <= 100
    assert (tmp_path / "page.html").stat().st_size < 500_000


def test_version_and_help():
    import calshift

    assert run("--version").stdout == f"calshift, version {calshift.__version__}\n"
    assert "demo" in run("--help").stdout


def test_unknown_command_is_a_usage_error():
    done = run("frobnicate")
    assert done.returncode == 2
    assert "Traceback" not in done.stderr


def test_without_click_it_says_what_to_install():
    hidden = "import sys; sys.modules['click'] = None; from calshift.cli import main; main()"
    done = run(code=hidden)
    assert done.returncode == 2
    assert done.stderr == "calshift: this needs click: pip install 'calshift[cli]'\n"


def test_without_matplotlib_drawing_says_what_to_install():
    hidden = (
        "import sys; sys.modules['matplotlib'] = None; sys.modules['matplotlib.figure'] = None\n"
        "import calshift\n"
        "calshift.reliability_curve([0.1, 0.9], [0, 1], bins=1).plot()"
    )
    done = run(code=hidden)
    assert "pip install 'calshift[plot]'" in done.stderr
