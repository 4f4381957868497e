"""One small Spark cluster with workers of its own, and tables written for it."""

from __future__ import annotations

import gc
import os
import shutil
import sys
import warnings
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import calshift

ROOT = Path(__file__).parents[2]
ONE_FILE_A_PARTITION = {"spark.sql.files.openCostInBytes": 2**27}
QUIET = {"spark.ui.enabled": "false", "spark.ui.showConsoleProgress": "false"}


def absent(what: str) -> None:
    """Skip, but in CI fail: there Spark must run."""
    reason = f"the tests of the Spark engine need {what}"
    if os.environ.get("CI") == "true":
        pytest.fail(reason, pytrace=False)
    pytest.skip(reason)


def check_spark() -> None:
    """Whether all is there that Spark needs."""
    if shutil.which("java") is None and "JAVA_HOME" not in os.environ:
        absent("java")
    for package in ("pyspark", "pandas", "pyarrow"):
        if find_spec(package) is None:
            absent(package)


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A cluster of two executors, each a process with Python workers of its own."""
    check_spark()
    with pytest.MonkeyPatch.context() as patch, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name in ("PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON"):
            patch.setenv(name, sys.executable)
        patch.setenv("SPARK_LOCAL_IP", "127.0.0.1")
        patch.delenv("SPARK_HOME", raising=False)
        session = started(tmp_path_factory.mktemp("spark"))
        try:
            yield session
        finally:
            name = session.sparkContext.applicationId
            session.stop()
            gc.collect()
            # local-cluster has no other place for its executors' folders
            work = Path(sys.modules["pyspark"].__file__ or "").parent / "work"
            shutil.rmtree(work / name, ignore_errors=True)


def started(folder: Path) -> Any:
    from pyspark.sql import SparkSession

    python = os.pathsep.join(map(str, (Path(calshift.__file__).parents[1], ROOT)))
    builder = SparkSession.builder.master("local-cluster[2,1,1024]").appName("calshift's tests")
    settings = {
        **QUIET,
        **ONE_FILE_A_PARTITION,
        "spark.executorEnv.PYTHONPATH": python,
        "spark.executorEnv.OPENBLAS_NUM_THREADS": 1,
        "spark.local.dir": folder,
        "spark.sql.warehouse.dir": folder / "warehouse",
        "spark.sql.shuffle.partitions": 4,
    }
    for name, value in settings.items():
        builder = builder.config(name, str(value))
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("OFF")  # faults are made on purpose
    return session


@pytest.fixture
def written(spark: Any, tmp_path: Path) -> Callable[..., Any]:
    """A function that writes columns to a table of so many partitions and opens it."""
    import pyarrow as pa
    import pyarrow.parquet as parquet

    def table(columns: dict[str, Any], parts: int = 4, empty: int = 0) -> Any:
        whole = pa.table({name: arrow(values) for name, values in columns.items()})
        folder = tmp_path / f"table{len(list(tmp_path.iterdir()))}"
        folder.mkdir()
        ends = np.linspace(0, len(whole), parts + 1).astype(int).tolist()
        slices = [whole[a:b] for a, b in pairwise(ends)]
        for k, part in enumerate([whole[:0]] * empty + slices):
            parquet.write_table(part, folder / f"{k:03}.parquet")
        return spark.read.parquet(str(folder))

    return table


def arrow(values: Any) -> Any:
    """(n, K) numbers as a column of lists, anything else as it is."""
    import pyarrow as pa

    if not isinstance(values, np.ndarray) or values.ndim == 1:
        return pa.array(values)
    n, K = values.shape
    return pa.ListArray.from_arrays(pa.array(np.arange(n + 1) * K, pa.int32()), values.ravel())
