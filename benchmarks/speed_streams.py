"""Targets that are read batch by batch, in every pass, as benchmarks/run.py measures them.

Rows of "made" are made anew in every pass: the CPU time of making them is not counted. Those of
"parquet" are read from a folder of files, written before.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from speed_cases import SPREAD, mild_weights, scores
from speed_clock import Cases, Run
from speed_commands import FOLDER, table

import calshift

BATCH, FILES = 2**19, 10
MADE_SOURCE, PARQUET_SOURCE = 10**6, 10**5  # rows at most


class Made:
    """Scores of a target, the same each time; it counts the seconds that making them takes."""

    def __init__(self, n: int) -> None:
        self.n, self.seconds = n, 0.0

    def __call__(self) -> Iterator[np.ndarray]:
        for start in range(0, self.n, BATCH):
            begun = time.thread_time()
            rng = np.random.default_rng([3, start])
            logits = rng.standard_normal(min(BATCH, self.n - start), np.float32)
            made = 1 / (1 + np.exp(-np.float32(SPREAD) * logits))
            self.seconds += time.thread_time() - begun
            yield made

    def apart(self) -> float:
        """Seconds since the last time it was asked."""
        seconds, self.seconds = self.seconds, 0.0
        return seconds


def made(n: int, K: int, given: bool) -> Run:
    """Scores of two classes."""
    p, y = scores(min(n, MADE_SOURCE), seed=1)
    target = Made(n)
    options: dict[str, Any] = {"weights": mild_weights(y, K), "check": False} if given else {}

    def run() -> float:
        return calshift.target_calibration_error(p, y, calshift.scan(target), **options).root

    run.apart = target.apart  # type: ignore[attr-defined]
    return run


def parquet(n: int, K: int) -> Run:
    """The default call; the source is in memory."""
    folder = FOLDER / f"streamed-{n}-{K}"
    simulation = calshift.simulate.GaussianSimulation(n_classes=K, imbalance=4)
    p, y = simulation.source(min(n, PARQUET_SOURCE), rng=1)
    p = p.astype(np.float32)
    if not folder.exists():
        write_files(folder, n // FILES, simulation)

    def run() -> float:
        return calshift.target_calibration_error(p, y, calshift.scan(str(folder))).root

    return run


def write_files(folder: Path, rows: int, simulation: Any) -> None:
    from pyarrow import parquet as files

    folder.mkdir(parents=True)
    for number in range(FILES):
        q, _ = simulation.target(rows, rng=10 + number)
        files.write_table(table(q), folder / f"{number}.parquet")


STREAMS: Cases = {
    "made, given": partial(made, given=True),
    "made, default": partial(made, given=False),
    "parquet": parquet,
}
