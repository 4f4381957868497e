"""The command line, as a person runs it."""

from __future__ import annotations

import re
import subprocess
import sys


def run(*arguments: str, code: str | None = None) -> subprocess.CompletedProcess[str]:
    start = ["-m", "calshift"] if code is None else ["-c", code]
    return subprocess.run([sys.executable, *start, *arguments], capture_output=True, text=True)


def test_demo_prints_the_estimate_beside_the_truth():
    done = run("demo")
    assert done.returncode == 0
    assert done.stderr == ""
    estimate, truth = map(float, re.search(r": (0\.\d+) .*truth: (0\.\d+)", done.stdout).groups())
    # sd of the squared error 0.016 at 4000 rows is about 0.001, so 0.004 of its root
    assert abs(estimate - truth) < 4 * 0.004
    assert max(map(len, done.stdout.splitlines())) <= 100


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
    assert done.stderr == "calshift's command line needs: pip install 'calshift[cli]'\n"


def test_without_matplotlib_drawing_says_what_to_install():
    hidden = (
        "import sys; sys.modules['matplotlib'] = None; sys.modules['matplotlib.figure'] = None\n"
        "import calshift\n"
        "calshift.reliability_curve([0.1, 0.9], [0, 1], bins=1).plot()"
    )
    done = run(code=hidden)
    assert "pip install 'calshift[plot]'" in done.stderr
