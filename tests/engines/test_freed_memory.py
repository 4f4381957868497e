"""Passes over rows reuse freed memory instead of getting it from the system again."""

from __future__ import annotations

import os
import platform
import subprocess
import sys

import pytest

CALLS = """
import resource, warnings
import calshift
warnings.simplefilter("ignore")
simulation = calshift.simulate.GaussianSimulation(n_classes=10, imbalance=4)
p, y = simulation.source(10_000, rng=1)
q, _ = simulation.target(10_000, rng=2)
faults = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range(2):
    calshift.target_calibration_error(p, y, q)
before = faults()
for _ in range(5):
    calshift.target_calibration_error(p, y, q)
print((faults() - before) / 5)
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="how glibc keeps freed memory")
def test_a_call_takes_few_pages_from_the_system():
    # some 4000 to 7000 pages of 4 kB a call if freed memory is returned, else below 10
    plain = {name: v for name, v in os.environ.items() if not name.startswith("MALLOC_")}
    environment = {**plain, "OPENBLAS_NUM_THREADS": "1", "CALSHIFT_COMPILED": "0"}
    done = subprocess.run(
        [sys.executable, "-c", CALLS], capture_output=True, check=True, env=environment
    )
    assert float(done.stdout) < 500
