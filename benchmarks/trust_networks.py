"""How often the error of real networks is trusted under exact label shift, and whether rightly.

    python benchmarks/trust_networks.py [DIRECTORY] [--draws 20] [--jobs 2] [--write]

DIRECTORY has .npz files with `logits` or `probs` (n, K) and `labels`; those with up to 20 classes
are read. Besides, the network that is part of the package and the one in experiments/predictions.
Every draw halves the shuffled rows. Task A: a long-tailed source and an even target; task B: the
reverse; imbalance 2 and 10. Default calls. "right": the estimate differs from the error with target
labels by at most 1.96 joint standard errors. The last column has the conditions that failed, with
the number of draws. Set OPENBLAS_NUM_THREADS=1.
"""

from __future__ import annotations

import argparse
import warnings
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from recalibration import OWN, predictions
from tables import write_table
from weights_tasks import halved

import calshift

FACTORS, MOST_CLASSES = (2, 10), 20
HEAD = ["network", "K", "task", "IF", "draws", "trusted", "right if trusted", "right", "failed"]


def measure(name: str, task: str, factor: float, seed: int) -> dict[str, Any]:
    """One draw: whether it is trusted, whether it is right, and conditions that failed."""
    warnings.simplefilter("ignore")
    p, y, q, z = halved(*predictions(name), task, factor, seed)
    found = calshift.target_calibration_error(p, y, q)
    labelled = calshift.calibration_error(q, z)
    joint = float(np.hypot(found.standard_error, labelled.standard_error))
    return {
        "trusted": found.trusted,
        "right": abs(found.estimate - labelled.estimate) <= 1.96 * joint,
        "failed": [one.name for one in found.diagnostics if one.failed],
    }


def cells(draws: list[dict[str, Any]]) -> list[str]:
    """The columns from "draws" on."""
    trusted = [one for one in draws if one["trusted"]]
    failed = Counter(name for one in draws for name in one["failed"])
    among = f"{np.mean([one['right'] for one in trusted]):.2f}" if trusted else "-"
    return [
        str(len(draws)),
        f"{len(trusted) / len(draws):.2f}",
        among,
        f"{np.mean([one['right'] for one in draws]):.2f}",
        ", ".join(f"{name} {count}" for name, count in failed.most_common()),
    ]


def main() -> None:
    """Run, print and write the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("directory", type=Path, nargs="?")
    parser.add_argument("--draws", type=int, default=20)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--write", action="store_true", help="keep the table under results/")
    asked = parser.parse_args()
    saved = [] if asked.directory is None else sorted(asked.directory.glob("*.npz"))
    table, every = [], []
    with ProcessPoolExecutor(asked.jobs) as pool:
        for name in [*OWN, *map(str, saved)]:
            K = predictions(name)[0].shape[1]
            for task, factor in [(t, f) for t in "AB" for f in FACTORS if K <= MOST_CLASSES]:
                work = partial(measure, name, task, factor)
                draws = list(pool.map(work, range(asked.draws), chunksize=2))
                every += draws
                title = name if name in OWN else Path(name).stem
                table.append([title, str(K), task, str(factor), *cells(draws)])
                print("  ".join(table[-1]), flush=True)
    table.append(["all", "", "", "", *cells(every)])
    print("  ".join(table[-1]))
    if asked.write:
        write_table("trust_networks", f"{__doc__}\nDraws: {asked.draws}.", HEAD, table)


if __name__ == "__main__":
    main()
