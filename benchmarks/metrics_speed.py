"""CPU time of ten metrics relative to that of the calibration error, on files read in passes.

    python benchmarks/metrics_speed.py [--rows 10000000] [--pairs 3] [--write]

Parquet files of source and target with scores of two classes, half of the rows each, read batch by
batch. Default calls of `target_calibration_error` and of `target_metrics` with ten metrics,
interleaved; "both": the metrics after the error, with its class weights and test, as by `calshift
check --metric`. Median of the ratios of CPU time in one run. Set OPENBLAS_NUM_THREADS=1.
"""

from __future__ import annotations

import argparse
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from tables import write_table

import calshift
from calshift.api.metrics import MetricPlan, metrics_of_target

TEN = (
    "accuracy", "precision", "recall", "f1", "specificity", "npv", "roc_auc", "log_loss",
    "brier_score", "oe_ratio",
)  # fmt: skip
PART = 1_000_000
HEAD = ["rows", "check, s", "metrics, s", "metrics / check", "both / check"]


def write_sample(path: Path, rows: int, sample: str) -> None:
    """A file with scores of two classes, and labels for the source."""
    simulation = calshift.simulate.BetaSimulation()
    fields = [("p", pa.float64()), *([("label", pa.int8())] if sample == "source" else [])]
    with pq.ParquetWriter(path, pa.schema(fields)) as writer:
        for part in range(-(-rows // PART)):
            draw = simulation.source if sample == "source" else simulation.target
            p, y = draw(min(PART, rows - part * PART), np.random.default_rng(part))
            columns = {"p": p, "label": y.astype(np.int8)}
            writer.write_table(pa.table({name: columns[name] for name, _ in fields}))


def seconds(call: Callable[[], Any]) -> tuple[float, Any]:
    """CPU time of a call, and what it returns."""
    start = time.process_time()
    found = call()
    return time.process_time() - start, found


def measure(source: Path, target: Path) -> tuple[float, float, float]:
    """CPU time of the error, of the metrics, and of metrics after the error."""
    pair = (
        calshift.scan(str(source), columns="p", label="label"),
        calshift.scan(str(target), columns="p", labelled=False),
    )
    check, error = seconds(lambda: calshift.target_calibration_error(pair[0], None, pair[1]))
    metrics, _ = seconds(lambda: calshift.target_metrics(pair[0], None, pair[1], metrics=TEN))
    plan = MetricPlan.of(pair[0].summary, TEN, "argmax", None, None)
    asked = (plan, error.class_weights, error.assumption, frozenset[str]())
    more, _ = seconds(lambda: metrics_of_target(pair, *asked))
    return check, metrics, check + more


def main() -> None:
    """Run, print and write the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--pairs", type=int, default=3)
    parser.add_argument("--write", action="store_true", help="keep the table under results/")
    asked = parser.parse_args()
    warnings.simplefilter("ignore")
    with tempfile.TemporaryDirectory() as folder:
        paths = Path(folder) / "source.parquet", Path(folder) / "target.parquet"
        for path in paths:
            write_sample(path, asked.rows // 2, path.stem)
        found = np.array([measure(*paths) for _ in range(asked.pairs)])
    ratio = np.median(found[:, 1:] / found[:, :1], axis=0)
    times = np.median(found[:, :2], axis=0)
    row = [f"{asked.rows:,}", *(f"{one:.1f}" for one in times), *(f"{one:.2f}" for one in ratio)]
    print("  ".join(row))
    if asked.write:
        write_table("metrics_speed", f"{__doc__}\nPairs: {asked.pairs}.", HEAD, [row])


if __name__ == "__main__":
    main()
