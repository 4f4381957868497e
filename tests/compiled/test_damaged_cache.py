"""Machine code that cannot be read back is not used, and the user is told."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("numba", reason="compiled functions need numba: calshift[fast]")

CALL = """
import numpy as np
from calshift._core.linalg import factor_band
print(factor_band(np.ones((400, 300)), np.full((400, 300), 0.1), 1e-12)[0].sum())
"""


def run(cache: Path) -> subprocess.CompletedProcess:
    env = {**os.environ, "NUMBA_CACHE_DIR": str(cache), "CALSHIFT_COMPILED": "1"}
    return subprocess.run(
        [sys.executable, "-c", CALL], env=env, capture_output=True, text=True, check=True
    )


@pytest.fixture(scope="module")
def filled(tmp_path_factory) -> tuple[Path, str]:
    cache = tmp_path_factory.mktemp("cache")
    return cache, run(cache).stdout


@pytest.mark.parametrize("ending", [".nbc", ".nbi"])
@pytest.mark.parametrize("damage", [lambda b: b[: len(b) // 2], lambda b: b"", lambda b: b"junk"])
def test_a_damaged_cache_leaves_the_numpy_version(filled, damage, ending):
    cache, expected = filled
    found = {file: file.read_bytes() for file in cache.rglob(f"*{ending}")}
    assert found
    for file, content in found.items():
        file.write_bytes(damage(content))
    try:
        again = run(cache)
    finally:
        for file, content in found.items():
            file.write_bytes(content)
    assert float(again.stdout) == pytest.approx(float(expected), rel=1e-12)
    assert again.stderr.count("compiled functions are not used") == 1
    assert str(cache) in again.stderr
