"""CPU time of this version against another one, in interleaved pairs of runs.

    git worktree add ../other 9571bf2
    python benchmarks/against.py --source ../other/src [--other PYTHON] [--pairs 5] [--write]

The other version is the source folder given, or what is installed in the environment of the
interpreter PYTHON; 9571bf2 precedes the conditions of trust. A run is a process of its
own; it makes each call once before it is timed. Default call, weights given, and labelled call,
float32; ratios are the median over the pairs of (this version / other). Set OPENBLAS_NUM_THREADS=1.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
import warnings
from pathlib import Path
from statistics import median

SOURCE = Path(__file__).parents[1] / "src"
SIZES = [(1000, 3, 30), (10_000, 10, 6), (10_000, 100, 2), (100_000, 2, 3)]  # rows, classes, calls


def measure() -> dict[str, float]:
    """Milliseconds of CPU time by call and size."""
    import numpy as np

    import calshift

    warnings.simplefilter("ignore")
    found = {}
    for n, K, repeats in SIZES:
        simulation = calshift.simulate.GaussianSimulation(n_classes=K, imbalance=4)
        p, y = simulation.source(n, rng=1)
        q, _ = simulation.target(n, rng=2)
        p, q, w = p.astype(np.float32), q.astype(np.float32), np.linspace(0.8, 1.2, K)
        calls = {
            "default": (calshift.target_calibration_error, (p, y, q), {}),
            "given": (calshift.target_calibration_error, (p, y, q), {"weights": w, "check": False}),
            "labelled": (calshift.calibration_error, (p, y), {}),
        }
        for name, (function, data, options) in calls.items():
            function(*data, **options)
            times = repeats if name == "default" else 5 * repeats
            start = time.process_time()
            for _ in range(times):
                function(*data, **options)
            found[f"{name}, {n} x {K}"] = 1e3 * (time.process_time() - start) / times
    return found


def run(python: str, source: Path | None) -> dict[str, float]:
    """Times of a version: of the source folder, or of what is installed."""
    around = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    if source is not None:
        around["PYTHONPATH"] = str(source.resolve())
    command = [python, __file__, "--measure"]
    done = subprocess.run(command, stdout=subprocess.PIPE, check=True, env=around)
    return json.loads(done.stdout)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--other", default=sys.executable)
    parser.add_argument("--source", type=Path)
    parser.add_argument("--write", action="store_true", help="keep the table under results/")
    parser.add_argument("--pairs", type=int, default=5)
    parser.add_argument("--measure", action="store_true")
    asked = parser.parse_args()
    if asked.measure:
        print(json.dumps(measure()))
        return
    from tables import write_table

    pairs = [
        (run(asked.other, asked.source), run(sys.executable, SOURCE)) for _ in range(asked.pairs)
    ]
    rows = []
    for name in pairs[0][0]:
        other, this = ([pair[k][name] for pair in pairs] for k in (0, 1))
        ratios = [b / a for a, b in zip(other, this, strict=True)]
        span = f"{min(ratios):.2f} to {max(ratios):.2f}"
        rows.append(
            [name, f"{median(other):.1f}", f"{median(this):.1f}", f"{median(ratios):.2f}", span]
        )
    head = ["call", "other, ms", "this, ms", "ratio, median", "range"]
    if asked.write:
        write_table("against", f"{__doc__}\nPairs: {asked.pairs}.", head, rows)
        return
    for row in [head, *rows]:
        print("  ".join(row))


if __name__ == "__main__":
    main()
