"""Coverage of metrics without target labels on real networks, under exact label shift.

    python benchmarks/metrics_networks.py [DIRECTORY] [--draws 20] [--jobs 2] [--write]

DIRECTORY has .npz files with `logits` or `probs` (n, K) and `labels`. Besides, the network that is
part of the package and the one in experiments/predictions. Every draw halves the shuffled rows.
Task A: a long-tailed source and an even target; task B: the reverse; imbalance 2, 10 and 100.
Default calls of `target_metrics`; costs as in metrics_coverage.py. For each metric: the share of
trusted draws whose estimate differs from the metric with target labels by at most 1.96 joint
standard errors, and in brackets the mean difference in such errors. Set OPENBLAS_NUM_THREADS=1.
"""

from __future__ import annotations

import argparse
import warnings
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from metrics_coverage import NAMES, costs
from recalibration import OWN, predictions
from tables import write_table
from weights_tasks import FACTORS, halved

import calshift

HEAD = ["network", "K", "task", "IF", "draws", "trusted", *NAMES]


def measure(name: str, task: str, factor: float, seed: int) -> dict[str, Any]:
    """One draw: differences in joint standard errors, and trust."""
    warnings.simplefilter("ignore")
    p, y, q, z = halved(*predictions(name), task, factor, seed)
    cost = costs(p.shape[1])
    found = calshift.target_metrics(p, y, q, metrics=NAMES, cost=cost)
    labelled = calshift.labelled_metrics(q, z, metrics=NAMES, cost=cost)
    pairs = [(found[one], labelled[one]) for one in NAMES]
    joint = [np.hypot(a.standard_error, b.standard_error) for a, b in pairs]
    gaps = [(a.estimate - b.estimate) for a, b in pairs]
    return {
        "z": np.array(gaps) / np.array(joint),
        "trusted": np.array([one.trusted for one in found.values()]),
    }


def cells(draws: list[dict[str, Any]]) -> list[str]:
    """The columns from "draws" on."""
    z, trusted = (np.array([one[name] for one in draws]) for name in ("z", "trusted"))
    row = [str(len(draws)), f"{trusted[:, 0].mean():.2f}"]
    for m in range(len(NAMES)):
        those = z[trusted[:, m], m]
        row.append(
            f"{(np.abs(those) <= 1.96).mean():.2f} ({those.mean():+.1f})" if len(those) else "-"
        )
    return row


def main() -> None:
    """Run, print and write the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("directory", type=Path, nargs="?")
    parser.add_argument("--draws", type=int, default=20)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--write", action="store_true", help="keep the table under results/")
    asked = parser.parse_args()
    saved = [] if asked.directory is None else sorted(asked.directory.glob("*.npz"))
    table: list[list[str]] = []
    every: dict[str, list[dict[str, Any]]] = {}
    with ProcessPoolExecutor(asked.jobs) as pool:
        for name in [*OWN, *map(str, saved)]:
            K = predictions(name)[0].shape[1]
            for task, factor in [(task, factor) for task in "AB" for factor in FACTORS]:
                work = partial(measure, name, task, factor)
                draws = list(pool.map(work, range(asked.draws), chunksize=2))
                for group in ("all", f"task {task}", f"imbalance {factor:g}"):
                    every.setdefault(group, []).extend(draws)
                title = name if name in OWN else Path(name).stem
                table.append([title, str(K), task, f"{factor:g}", *cells(draws)])
                print("  ".join(table[-1]), flush=True)
    for group, draws in sorted(every.items()):
        table.append([group, "", "", "", *cells(draws)])
        print("  ".join(table[-1]))
    if asked.write:
        write_table("metrics_networks", f"{__doc__}\nDraws: {asked.draws}.", HEAD, table)


if __name__ == "__main__":
    main()
