"""Runs on more rows than are held: `speed_streams.py case n K seconds` prints JSON.

Rows of "binary" are made anew in every pass, in a thread of their own time: what making takes is
not counted. Those of "parquet" are read from a folder of files, written before.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from speed_cases import SPREAD, Runs, answer, mild_weights, predictions, scores

import calshift

BATCH, FILES = 2**19, 10
FOLDER = Path(__file__).parent / "cache"


class Made:
    """Scores of a target, the same each time; it counts the seconds that making them takes."""

    def __init__(self, n: int) -> None:
        self.n, self.seconds = n, 0.0

    def __call__(self) -> Iterator[np.ndarray]:
        for start in range(0, self.n, BATCH):
            begun = time.perf_counter()
            rng = np.random.default_rng([3, start])
            logits = rng.standard_normal(min(BATCH, self.n - start), np.float32)
            made = 1 / (1 + np.exp(-np.float32(SPREAD) * logits))
            self.seconds += time.perf_counter() - begun
            yield made

    def apart(self) -> float:
        """Seconds since the last time it was asked."""
        seconds, self.seconds = self.seconds, 0.0
        return seconds


def binary(n: int, K: int, **options: Any) -> Runs:
    p, y = scores(min(n, 10**6), seed=1)
    made = Made(n)
    if not options:
        options = {"weights": mild_weights(y, K), "check": False}

    def run() -> float:
        target = calshift.scan(made)
        return calshift.target_calibration_error(p, y, target, **options).root

    run.apart = made.apart  # type: ignore[attr-defined]
    return {"ours": run}


def parquet(n: int, K: int) -> Runs:
    import pyarrow as pa
    from pyarrow import parquet as files

    folder = FOLDER / f"streamed-{n}-{K}"
    p, y = predictions(min(n, 10**5), K, seed=1)
    if not folder.exists():
        folder.mkdir(parents=True)
        for number in range(FILES):
            q, _ = predictions(n // FILES, K, seed=10 + number)
            column = pa.FixedSizeListArray.from_arrays(pa.array(q.ravel()), K)
            files.write_table(pa.table({"p": column}), folder / f"{number}.parquet")
    weights = mild_weights(y, K)
    del n

    def run() -> float:
        target = calshift.scan(str(folder))
        found = calshift.target_calibration_error(p, y, target, weights=weights, check=False)
        return found.root

    return {"ours": run}


CASES = {
    "binary": binary,
    "binary-default": lambda n, K: binary(n, K, weights="em-bcts"),
    "parquet": parquet,
}

if __name__ == "__main__":
    answer(CASES)
