"""The process of the command line has one thread of BLAS; that of a user's program is unchanged."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

PROBE = """
import gc, json, os, sys
sys.argv[0] = {program!r}
import calshift
print(json.dumps([os.environ.get("OPENBLAS_NUM_THREADS"), gc.get_threshold()[0]]))
"""


def started(program: str, **variables: str) -> list:
    names = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS")
    kept = {name: value for name, value in os.environ.items() if name not in names}
    done = subprocess.run(
        [sys.executable, "-c", PROBE.format(program=program)],
        env=kept | variables, check=False, capture_output=True, text=True,
    )  # fmt: skip
    return json.loads(done.stdout)  # the exit status of a command that has not begun is 4


@pytest.mark.parametrize("program", ["/usr/bin/calshift", "calshift.exe"])
def test_the_command_line_has_one_thread_of_blas(program):
    assert started(program) == ["1", 50_000]


def test_a_users_program_is_unchanged():
    assert started("notebook.py")[0] is None
    assert started("notebook.py")[1] < 50_000


def test_the_user_decides():
    assert started("calshift", OPENBLAS_NUM_THREADS="3")[0] == "3"
    assert started("calshift", OMP_NUM_THREADS="2")[0] is None
