"""A short run of the fuzzer, and faults that it must find.

Runs are processes of their own: forking needs a process without threads.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from calshift.compiled import compiled_functions
from tests.fuzz import api, files
from tests.fuzz.calls import draw_call
from tests.fuzz.faults import EXPECTED
from tests.fuzz.oracles.outcomes import checksum
from tests.fuzz.strategies.corpus import build_corpus

ROOT = Path(__file__).parents[2]

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="processes are forked")


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    """The fuzzer with these arguments."""
    path = os.pathsep.join(["src", os.environ.get("PYTHONPATH", "")])
    return subprocess.run(
        [sys.executable, "-m", "tests.fuzz", *arguments],
        cwd=ROOT, env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True,
        check=False,
    )  # fmt: skip


def test_few_calls_and_files_have_no_findings():
    ended = run("--seed", "1", "--calls", "300", "--files", "150")
    assert ended.returncode == 0, ended.stdout + ended.stderr


@pytest.mark.slow
@pytest.mark.parametrize("seed", [2, 3])
def test_many_calls_and_files_have_no_findings(seed):
    ended = run("--seed", str(seed), "--calls", "3000", "--files", "2000")
    assert ended.returncode == 0, ended.stdout + ended.stderr


def test_planted_faults_are_found():
    """In two runs, whose calls together are enough for every faulty function to be called."""
    counts = ["--calls", "400", "--files", "80"]
    found = ""
    for seed in ("0", "3"):
        ended = run("--seed", seed, *counts, "--plant", "--jobs", "2", "--seconds", "0.3")
        assert ended.returncode == 1, ended.stderr
        found += ended.stdout
    missed = [name for name, signature in EXPECTED.items() if signature not in found]
    if compiled_functions() is None:
        missed.remove("sum_groups")
    assert missed == [], found


def test_a_case_depends_on_its_seed_and_number_alone():
    first = [checksum(draw_call(5, number).plain) for number in (3, 8, 11)]
    again = [checksum(draw_call(5, number).plain) for number in (11, 8, 3)]
    assert first == again[::-1]
    assert len({checksum(draw_call(seed, 3).arguments) for seed in range(8)}) == 8


def test_valid_files_of_the_corpus_are_accepted(tmp_path):
    """A corpus that cannot be read would be refused by the first check of every case."""
    for file in build_corpus():
        path = tmp_path / f"valid{file.extension}"
        path.write_bytes(file.content)
        assert files.act("scan", path, path, path, file) in (24, 80)


def test_a_report_describes_the_call():
    with_findings = api.describe(draw_call(1, 0))
    assert "expected:" in with_findings
    assert len(with_findings.splitlines()) > 1
