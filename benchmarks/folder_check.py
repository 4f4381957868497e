"""A default check of a folder of files: how often they are read, CPU time and memory.

    python benchmarks/folder_check.py [NAME=SRC ...]

target_calibration_error of scanned files, and `calshift check`, which reads files of less than
1 GiB into memory. The target is a folder of 10 parquet files, 10 million rows of 10 classes in
float32, one column a class, besides labels and another column; the source is a file of 100,000
rows. Each version (folders that contain `calshift`; without arguments this one) has processes of
its own, in turns, the median of 3; memory is the largest of a process. Reads are those of a file
of the target. Numpy only (CALSHIFT_COMPILED=0), one thread of OpenBLAS.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median

import numpy as np
import pyarrow as pa
from pyarrow import parquet
from tables import write_table

import calshift

HERE = str(Path(calshift.__file__).parents[1])
ROWS, K, FILES, RUNS = 10**7, 10, 10, 3
CHILD = """
import json, resource, sys, time, warnings
from pyarrow.parquet import ParquetFile
made, read = ParquetFile.__init__, ParquetFile.iter_batches
reads = {}
def __init__(self, source, *args, **options):
    self.place = str(source)
    made(self, source, *args, **options)
def iter_batches(self, *args, **options):
    reads[self.place] = reads.get(self.place, 0) + 1
    return read(self, *args, **options)
ParquetFile.__init__, ParquetFile.iter_batches = __init__, iter_batches
warnings.simplefilter("ignore")
start = time.perf_counter()
work = time.process_time()
import calshift
if sys.argv[1] == "scan":
    source, target = calshift.scan("source.parquet"), calshift.scan("target", labelled=False)
    calshift.target_calibration_error(source, None, target)
else:
    import contextlib, io
    try:
        from calshift.cli.main import status
    except ImportError:  # of an older version
        from calshift.cli import status
    with contextlib.redirect_stdout(io.StringIO()):
        assert status(["check", "source.parquet", "target"]) in (0, 3)
sizes = [max(n for name, n in reads.items() if (name[:6] == "target") == of) for of in (0, 1)]
about = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
print(json.dumps([time.process_time() - work, time.perf_counter() - start, about, *sizes]))
"""


def write(path: Path, p: np.ndarray, y: np.ndarray) -> None:
    columns = {f"p_{k}": p[:, k].astype(np.float32) for k in range(K)}
    parquet.write_table(pa.table(columns | {"label": y, "id": np.arange(len(p))}), path)


def write_files(folder: Path) -> None:
    simulation = calshift.simulate.GaussianSimulation(n_classes=K, imbalance=4)
    write(folder / "source.parquet", *simulation.source(100_000, rng=1))
    (folder / "target").mkdir()
    for k in range(FILES):
        write(folder / "target" / f"{k}.parquet", *simulation.target(ROWS // FILES, rng=2 + k))


def run(folder: Path, version: str, how: str) -> list[float]:
    settings = {"PYTHONPATH": version, "CALSHIFT_COMPILED": "0", "OPENBLAS_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, "-c", CHILD, how], cwd=folder, env=os.environ | settings,
        check=True, capture_output=True,
    )  # fmt: skip
    found: list[float] = json.loads(done.stdout.splitlines()[-1])
    print(version, how, found, flush=True)
    return found


def main() -> None:
    versions = dict(one.split("=", 1) for one in sys.argv[1:]) or {"this version": HERE}
    found: dict[tuple[str, str], list[list[float]]] = {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_files(folder)
        for _ in range(RUNS):
            for how in ("scan", "check"):
                for version, place in versions.items():
                    found.setdefault((how, version), []).append(run(folder, place, how))
    rows = []
    for (how, version), runs in found.items():
        cpu, clock, memory, source, target = map(median, zip(*runs, strict=True))
        what = "scanned files" if how == "scan" else "calshift check"
        numbers = [f"{target:.0f}", f"{source:.0f}", f"{cpu:.1f} s", f"{clock:.1f} s"]
        rows.append([what, version, *numbers, f"{memory:,.0f} MB"])
    head = ["call", "version", "reads of the target", "of the source", "CPU", "clock", "memory"]
    write_table("folder_check", __doc__, head, rows)


if __name__ == "__main__":
    main()
