"""How light it is: time to import, to show help, of a small check and the demo; size of the wheel.

    python benchmarks/startup.py [PYTHON]

Run it with the python of an environment into which pip installed the package: pip compiles it, an
editable tree is compiled at every start where Python may not write bytecode (about 0.1 s more).
PYTHON is an interpreter of an environment without numba, for the same check there. New interpreters
in turns, the median of 9 each (3 of the demo), so that the ratios are of one run. Seconds are of
CPU time in all threads, and of the clock. The check is of two parquet files of 1000 rows and 3
classes; its caches of numba are in a folder of their own, which is empty for "cold".
Limits: importing at most 1.6 x `import numpy, scipy.linalg`; help at most 0.5 s more than
`python -c pass`, and the check at most 0.7 s more; the demo under 30 s; the wheel under 2 MB.
"""

from __future__ import annotations

import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

from tables import write_table

ROOT = Path(__file__).parents[1]
CHILD = Path(__file__).with_name("startup_child.py")
RUNS = 9
NOTHING, IMPORT = "python -c pass", "import calshift"
COMMANDS = {
    NOTHING: ["-c", "pass"],
    "import numpy, scipy.linalg": ["-c", "import numpy, scipy.linalg"],
    IMPORT: ["-c", "import calshift"],
    "calshift --help": ["-m", "calshift", "--help"],
}
BEYOND = "beyond python -c pass"
CHECK = ["-m", "calshift", "check", "source.parquet", "target.parquet"]
STAGES = """Where the CPU time of `calshift check` goes, 1000 rows of 3 classes in parquet files.

    python benchmarks/startup.py

Milliseconds, the median of 9 processes; packages are imported in this order, each with what it
needs besides those before it.
"""

Seconds = tuple[float, float]  # CPU, clock


def timed(arguments: list[str], folder: str, python: str = sys.executable, **extra: str) -> Seconds:
    def used() -> float:
        about = resource.getrusage(resource.RUSAGE_CHILDREN)
        return about.ru_utime + about.ru_stime

    work, start = used(), time.perf_counter()
    kept = {k: v for k, v in os.environ.items() if not k.startswith("OPENBLAS_NUM")}
    done = subprocess.run(
        [python, *arguments], capture_output=True, check=False, cwd=folder, timeout=120,
        env=kept | {"NUMBA_CACHE_DIR": f"{folder}/warm"} | extra,
    )  # fmt: skip
    assert done.returncode in (0, 3), done.stderr.decode()  # 3: the estimate is not trusted
    return used() - work, time.perf_counter() - start


def write_files(folder: str) -> None:
    import pyarrow as pa
    from pyarrow import parquet

    import calshift

    simulation = calshift.simulate.GaussianSimulation(n_classes=3, imbalance=4)
    p, y = simulation.source(1000, rng=1)
    q = simulation.target(1000, rng=2)[0]
    for name, rows, others in (("source", p, {"label": y}), ("target", q, {})):
        columns = {f"p_{k}": rows[:, k] for k in range(3)} | others
        parquet.write_table(pa.table(columns), f"{folder}/{name}.parquet")


def checks(folder: str, plain: str | None) -> dict[str, list[Seconds]]:
    """Seconds beyond those of `python -c pass`, by what is installed and cached."""
    cases = {
        "calshift check": {},
        "calshift check, CALSHIFT_COMPILED=0": {"CALSHIFT_COMPILED": "0"},
    }
    found: dict[str, list[Seconds]] = {}

    def note(name: str, python: str = sys.executable, **extra: str) -> None:
        one, nothing = (timed(a, folder, python, **extra) for a in (CHECK, COMMANDS[NOTHING]))
        found.setdefault(name, []).append((one[0] - nothing[0], one[1] - nothing[1]))

    for extra in cases.values():
        timed(CHECK, folder, **extra)  # fills the caches
    for _ in range(RUNS):
        for name, extra in cases.items():
            note(name, **extra)
        shutil.rmtree(f"{folder}/cold", ignore_errors=True)
        note("check, cold cache of numba", NUMBA_CACHE_DIR=f"{folder}/cold")
        if plain is not None:
            source = os.environ.get("PYTHONPATH", str(ROOT / "src"))
            note("check, numba not installed", plain, PYTHONPATH=source)
    return found


def stages(folder: str) -> list[list[str]]:
    files = [f"{folder}/{name}.parquet" for name in ("source", "target")]
    runs = []
    for _ in range(RUNS):
        done = subprocess.run(
            [sys.executable, str(CHILD), *files], capture_output=True, check=True, cwd=folder
        )
        runs.append(json.loads(done.stdout.splitlines()[-1]))
    late = ", ".join(runs[0][1])
    rows = [[name, f"{1e3 * median(run[0][name] for run in runs):.0f}"] for name in runs[0][0]]
    return [*rows, ["imported by the computation", late or "none of numba, narwhals, pandas"]]


def wheel_size(folder: str) -> int:
    asked = ["-m", "pip", "wheel", "--quiet", "--no-deps", "-w", folder, str(ROOT)]
    subprocess.run([sys.executable, *asked], capture_output=True, check=True)
    return next(Path(folder).glob("*.whl")).stat().st_size


def middle(found: list[Seconds]) -> Seconds:
    return median(one[0] for one in found), median(one[1] for one in found)


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        turns = [[timed(code, folder) for code in COMMANDS.values()] for _ in range(RUNS)]
        usual = dict(zip(COMMANDS, map(middle, zip(*turns, strict=True)), strict=True))
        write_files(folder)
        more = checks(folder, sys.argv[1] if len(sys.argv) > 1 else None)
        where = stages(folder)
        demo = min(timed(["-m", "calshift", "demo"], folder)[1] for _ in range(3))
        size = wheel_size(folder)
    rows = [[name, f"{cpu:.3f} s", f"{wall:.3f} s", "", ""] for name, (cpu, wall) in usual.items()]
    ratio = usual[IMPORT][0] / usual["import numpy, scipy.linalg"][0]
    rows[2][3:] = [f"{ratio:.2f} x numpy and scipy.linalg", "1.6 x"]
    beyond = usual["calshift --help"][0] - usual[NOTHING][0]
    rows[3][3:] = [f"{beyond:.3f} s more than nothing", "0.5 s"]
    for name, found in more.items():
        cpu, wall = middle(found)
        rows.append(
            [f"{name}, beyond python -c pass", f"{cpu:.3f} s", f"{wall:.3f} s", "", "0.7 s"]
        )
    rows.append(["calshift demo", "", f"{demo:.1f} s", "", "30 s"])
    rows.append(["wheel", f"{size / 1e6:.2f} MB", "", "", "2 MB"])
    write_table("startup", __doc__, ["what", "CPU, or size", "clock", "that is", "limit"], rows)
    write_table("startup_check", STAGES, ["stage", "ms"], where)


if __name__ == "__main__":
    main()
