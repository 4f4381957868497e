"""How the process of the command line starts, before it imports anything large."""

from __future__ import annotations

import gc
import os
import sys

from calshift.cli.process_exit import guard_process

PROGRAMS = ("calshift", "calshift.exe", "calshift-script.py")
COLLECTED_AFTER = 50_000  # new objects; most are modules and functions, which stay
THREADS = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS")


def prepare_command() -> None:
    """Prepare the process if it is the command line: the imports that follow may fail."""
    if _is_command():
        guard_process()
        limit_threads()
        gc.set_threshold(COLLECTED_AFTER)


def limit_threads() -> None:
    """One thread of OpenBLAS unless the user decided: others wait busily for small matrices.

    It takes as much CPU time as all else in a short command; --jobs asks for threads that pay.
    """
    if not any(name in os.environ for name in THREADS):
        os.environ["OPENBLAS_NUM_THREADS"] = "1"


def _is_command() -> bool:
    program = os.path.basename(sys.argv[0]) if sys.argv else ""
    if program == "-m":  # of python -m, which has not found its module yet
        after = sys.orig_argv[sys.orig_argv.index("-m") + 1 :] if "-m" in sys.orig_argv else []
        program = after[0] if after else ""
    return program in PROGRAMS
