"""The command line, as benchmarks/run.py measures it: `python -m calshift` on parquet files."""

from __future__ import annotations

import subprocess
import sys
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyarrow import parquet
from speed_clock import Cases, Run

import calshift

FOLDER = Path(__file__).parent / "cache"
OPTIONS = {
    "check": [],
    "recalibrate": ["--output", "{}/recalibrated.parquet"],
    "monitor": ["--rows", "200"],
}
USAGE = 2  # the status of a command that is wrong; others say what was found


def table(p: np.ndarray, y: np.ndarray | None = None) -> pa.Table:
    """Columns p_0, p_1, ... in float32, and the labels."""
    columns = {f"p_{k}": column for k, column in enumerate(p.astype(np.float32).T)}
    return pa.table(columns if y is None else {**columns, "label": y})


def files(n: int, K: int) -> Path:
    """A folder with source.parquet and target.parquet."""
    folder = FOLDER / f"files-{n}-{K}"
    folder.mkdir(parents=True, exist_ok=True)
    simulation = calshift.simulate.GaussianSimulation(n_classes=K, imbalance=4)
    parquet.write_table(table(*simulation.source(n, rng=1)), folder / "source.parquet")
    parquet.write_table(table(simulation.target(n, rng=2)[0]), folder / "target.parquet")
    return folder


def command(n: int, K: int, name: str) -> Run:
    folder = files(n, K)
    options = [option.format(folder) for option in OPTIONS[name]]
    asked = [name, str(folder / "source.parquet"), str(folder / "target.parquet")]
    words = [sys.executable, "-m", "calshift", *asked, "--label", "label", *options]

    def run() -> float:
        done = subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, text=True)
        if done.returncode >= USAGE and not done.stdout:
            raise RuntimeError(done.stderr)
        return np.nan

    return run


COMMANDS: Cases = {f"calshift {name}": partial(command, name=name) for name in OPTIONS}
