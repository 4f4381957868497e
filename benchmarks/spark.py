"""What a default run on Spark costs: its passes, their speed, and what travels.

    python benchmarks/spark.py

target_calibration_error of two parquet tables of 8 files each, on local-cluster[2,1,2048]: two
executors of one core, each a process with a Python worker of its own. A pass is one sum over one
table; jobs are those that Spark counts from the call to its result. Core seconds are those of all
processes, driver, Java and Python, so that other work on the machine does not count; the time of
the run has it. "back" is what a partition's task sends to the
driver, "out" is the kernel that each task gets. Small tables are run first, so that no worker has
to start. Set OPENBLAS_NUM_THREADS=1. Linux only.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as parquet
from tables import write_table

import calshift
from calshift.engines import Spark
from calshift.engines.base import kernel_name
from calshift.engines.sample_summary import summary_terms
from calshift.engines.spark.partition import pack

CASES = {
    "binary scores": (2, 4_000_000, False),
    "K = 10, lists": (10, 1_000_000, False),
    "K = 10, columns": (10, 1_000_000, True),
    "K = 100, lists": (100, 500_000, False),
}  # classes, rows, one column a class
FILES = 8
PARTITIONS = (2, 16, 64, 256)


@dataclass
class Pass:
    sample: str
    kernel: str
    seconds: float
    work: float  # core seconds
    rows: int
    back: int
    out: int

    @property
    def speed(self) -> float:
        return self.rows / self.work


class Watch:
    """Notes every pass that is made while it is open."""

    def __enter__(self) -> list[Pass]:
        from pyspark import cloudpickle

        found: list[Pass] = []
        self.real = real = Spark._sum

        def noted(engine: Spark, kernel: Any) -> list[Any]:
            start, work = time.perf_counter(), core_seconds()
            total, rows, parts = real(engine, kernel)
            took = time.perf_counter() - start, core_seconds() - work
            sizes = len(pack(total)), len(cloudpickle.dumps(kernel))
            sample = "target" if engine.reading.columns.label is None else "source"
            found.append(Pass(sample, kernel_name(kernel), *took, rows, *sizes))
            return [total, rows, parts]

        Spark._sum = noted  # type: ignore[method-assign]
        return found

    def __exit__(self, *problem: object) -> None:
        Spark._sum = self.real  # type: ignore[method-assign]


def core_seconds() -> float:
    """Of this process and of all that it started."""
    children: dict[int, list[int]] = {}
    work = {}
    for place in Path("/proc").glob("[0-9]*/stat"):
        try:
            values = place.read_text(encoding="utf-8").rsplit(")", 1)[1].split()
        except OSError:  # it has ended
            continue
        number = int(place.parent.name)
        children.setdefault(int(values[1]), []).append(number)
        work[number] = sum(map(int, values[11:15]))
    found, left = 0, [os.getpid()]
    while left:
        number = left.pop()
        found += work.get(number, 0)
        left += children.get(number, [])
    return found / os.sysconf("SC_CLK_TCK")


def session() -> Any:
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    warnings.simplefilter("ignore", FutureWarning)
    from pyspark.sql import SparkSession

    python = str(Path(calshift.__file__).parents[1])
    settings = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.executorEnv.OPENBLAS_NUM_THREADS": "1",
        "spark.executorEnv.PYTHONPATH": python,
    }
    builder = SparkSession.builder.master("local-cluster[2,1,2048]")
    for name, value in settings.items():
        builder = builder.config(name, value)
    found = builder.getOrCreate()
    found.sparkContext.setLogLevel("ERROR")
    return found


def write(folder: Path, K: int, rows: int, apart: bool, seed: int) -> str:
    """Scores in double precision, more classes in single, as networks give them."""
    folder.mkdir(parents=True)
    if K == 2:
        simulation: Any = calshift.simulate.BetaSimulation()
    else:
        simulation = calshift.simulate.GaussianSimulation(n_classes=K, seed=3)
    for k in range(FILES):
        draw = simulation.source if seed == 1 else simulation.target
        p, y = draw(rows // FILES, rng=1000 * seed + k)
        p = p if K == 2 else p.astype(np.float32)
        columns = {f"p_{c}": p[:, c] for c in range(K)} if apart else {"p": as_column(p)}
        parquet.write_table(pa.table(columns | {"y": y}), folder / f"{k}.parquet")
    return str(folder)


def as_column(p: np.ndarray) -> Any:
    if p.ndim == 1:
        return pa.array(p)
    ends = pa.array(np.arange(len(p) + 1) * p.shape[1], pa.int32())
    return pa.ListArray.from_arrays(ends, pa.array(p.ravel()))


def jobs_of(spark: Any) -> int:
    """Jobs of the session so far."""
    return int(spark.sparkContext._jsc.sc().statusStore().jobsList(None).size())


def measured(
    spark: Any, folder: Path, name: str, K: int, rows: int, apart: bool
) -> tuple[list[Pass], int]:
    """The passes of a run, and its jobs."""
    places = [write(folder / f"{name} {seed}", K, rows, apart, seed) for seed in (1, 2)]
    before, after = (spark.read.parquet(place) for place in places)
    source, target = calshift.scan_spark(before), calshift.scan_spark(after, labelled=False)
    before_call = jobs_of(spark)
    with Watch() as passes:
        calshift.target_calibration_error(source, None, target)
    print(name, len(passes), f"{sum(one.seconds for one in passes):.0f} s", flush=True)
    return passes, jobs_of(spark) - before_call


def row(name: str, rows: int, passes: list[Pass], jobs: int) -> list[str]:
    count = {s: sum(one.sample == s for one in passes) for s in ("source", "target")}
    seconds, work = (
        np.array([getattr(one, which) for one in passes]) for which in ("seconds", "work")
    )
    speeds = np.array([one.speed for one in passes])
    back, out = ([getattr(one, which) for one in passes] for which in ("back", "out"))
    return [
        name,
        f"{rows:,}",
        f"{count['source']} + {count['target']}",
        str(jobs),
        f"{seconds.sum():.0f} s",
        f"{work.sum():.0f} s",
        f"{np.median(work):.2f} s",
        f"{np.median(speeds):,.0f}",
        f"{rows * len(passes) / work.sum():,.0f}",
        f"{speeds.min():,.0f}",
        f"{np.median(back) / 1e3:,.1f} kB",
        f"{max(back) / 1e3:,.0f} kB",
        f"{max(out) / 1e3:,.0f} kB",
    ]


def overhead(spark: Any) -> list[list[str]]:
    """Of tasks: ours, and those of a sum that Spark makes itself."""
    rows = []
    for parts in PARTITIONS:
        frame = spark.range(1000 * parts, numPartitions=parts).selectExpr("id % 7 / 7.0D AS p")
        sample = calshift.scan_spark(frame)
        assert sample.summary.rows == 1000 * parts  # how many partitions there are is known now
        ours = work_of(lambda sample=sample: sample.total(summary_terms))  # type: ignore[misc]
        sql = work_of(lambda frame=frame: frame.selectExpr("sum(p)").collect())  # type: ignore[misc]
        each = [f"{1e3 * work / parts:.0f} ms" for work in (ours, sql)]
        rows.append([str(parts), f"{ours:.2f} s", *each])
    return rows


def work_of(call: Callable[[], Any]) -> float:
    """Core seconds, mean of 3."""
    call()
    start = core_seconds()
    for _ in range(3):
        call()
    return (core_seconds() - start) / 3


def main() -> None:
    warnings.simplefilter("ignore", calshift.UnreliableWeights)
    spark = session()
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for name, (K, count, apart) in CASES.items():
            measured(spark, Path(folder), f"{name}, first", K, 8000, apart)
            rows.append(row(name, count, *measured(spark, Path(folder), name, K, count, apart)))
        small = overhead(spark)
    spark.stop()
    head = ["table", "rows of each", "passes, source + target", "jobs", "run", "core seconds"]
    head += ["a pass"]
    head += [f"rows a core second, {which}" for which in ("median", "mean", "slowest")]
    head += ["back, median", "back, largest", "out, largest"]
    write_table("spark", __doc__, head, rows)
    about = f"{__doc__}\nHere: a pass over 1000 rows a partition, which is all overhead.\n"
    write_table(
        "spark_partitions",
        about,
        ["partitions", "core seconds of a pass", "a task", "a task of SQL's sum"],
        small,
    )


if __name__ == "__main__":
    main()
