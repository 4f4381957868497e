"""Importing calshift is silent and loads no heavy package."""

from __future__ import annotations

import json
import subprocess
import sys

HEAVY = (
    "scipy",
    "narwhals",
    "matplotlib",
    "torch",
    "pandas",
    "polars",
    "pyarrow",
    "click",
    "tqdm",
    "numba",
    "pyspark",
)
PROBE = """
import json, logging, sys, warnings
import numpy  # which adds filters of its own
before = list(warnings.filters), list(logging.getLogger().handlers)
import calshift
after = list(warnings.filters), list(logging.getLogger().handlers)
print(json.dumps({"modules": sorted(sys.modules), "unchanged": before == after}))
"""


def fresh_python(code: str) -> dict:
    """What a new interpreter prints, which must be one line of JSON and nothing else."""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    return json.loads(done.stdout)


def heavy(modules: list[str]) -> list[str]:
    return [name for name in modules if name.split(".")[0] in HEAVY]


def test_importing_is_silent_and_light():
    found = fresh_python(PROBE)
    assert "calshift.api" in found["modules"]
    assert heavy(found["modules"]) == []
    assert found["unchanged"]


def test_the_probe_sees_heavy_packages():
    found = fresh_python(PROBE.replace("import calshift", "import calshift, scipy.special"))
    assert "scipy.special" in heavy(found["modules"])


def test_arrays_need_no_frame_library():
    code = """
import json, sys
import numpy as np
import calshift
p = np.linspace(0.1, 0.9, 50)
y = np.arange(50) % 2
calshift.target_calibration_error(p, y, p, weights=[1, 1])
calshift.target_calibration_error(p.tolist(), y.tolist(), p.tolist(), weights=[1, 1], bins=5)
calshift.reliability_curve(p, y)
print(json.dumps({"modules": sorted(sys.modules)}))
"""
    loaded = heavy(fresh_python(code)["modules"])  # scipy is needed: an interval is asked for
    expected = ("scipy", "numba")  # and numba, where it is installed, for the loops
    assert [name for name in loaded if name.split(".")[0] not in expected] == []
