"""Accuracy and macro F1 of the target without its labels, beside other people's estimates.

    python benchmarks/metrics_peers.py [DIRECTORY] [--draws 20] [--first 0] [--jobs 2]
        [--cache FILE [--again METHOD ...]] [--write]

DIRECTORY has .npz files with `logits` or `probs` (n, K) and `labels` of real networks. Besides, the
two networks of this repository (recalibration.py), and two tables of natural_data.py, which says
what to install: the rows that its classifier did not learn from.
Every draw halves the shuffled rows. Task A: a long-tailed source and an even target; task B: the
reverse; imbalance 2, 10, 100. All methods have the same draws.

Mean of 100 |estimate - value with the target's labels|, over imbalances and draws, with standard
errors over the draws of the means over imbalances (and over rows, for averages). Macro F1 as in
scikit-learn. "ours" is `target_metrics` as it is called; "reweighted" and "bbse-soft" are the
source with class weights, by the default and that method. The formulas of the others are in
metrics_peer_methods.py (cbpe, atc, atc-mc, doc) and metrics_peer_tables.py (leap, o-leap, quacc).
"best" is the other method of least mean; the last column has ours less it, with paired standard
errors, and "worse" where that is more than two of them. The best of several is chosen with luck.
Set OPENBLAS_NUM_THREADS=1.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
import warnings
from collections.abc import Callable
from functools import cache, partial
from multiprocessing import Pool
from pathlib import Path

import numpy as np
from metrics_peer_errors import Draws, Errors, Job
from metrics_peer_methods import (
    Estimate,
    atc,
    atc_confidence,
    cbpe,
    contingency_table,
    doc,
    reweighted,
    source,
    table_metrics,
)
from metrics_peer_tables import leap, o_leap, quacc_by_prediction, quacc_joint
from natural_data import SOURCES
from natural_shifts import model_of, predicted
from recalibration import OWN, predictions
from tables import write_table
from weights_tasks import FACTORS, halved

import calshift

TABLES = ("letters", "diamonds")
METRICS = ("accuracy", "f1_macro")
Method = Callable[[np.ndarray, np.ndarray, np.ndarray], Estimate]


def ours(p: np.ndarray, y: np.ndarray, q: np.ndarray) -> Estimate:
    """As it is called."""
    found = calshift.target_metrics(p, y, q, metrics=METRICS)
    return found["accuracy"].estimate, found["f1_macro"].estimate


METHODS: dict[str, Method] = {
    "source": source,
    "cbpe": cbpe,
    "atc": atc,
    "atc-mc": atc_confidence,
    "doc": doc,
    "reweighted": reweighted,
    "bbse-soft": partial(reweighted, method="bbse-soft"),
    "leap": leap,
    "o-leap": o_leap,
    "quacc nxn": quacc_by_prediction,
    "quacc 1xn2": quacc_joint,
}
if hasattr(calshift, "target_metrics"):
    METHODS["ours"] = ours


@cache
def data(name: str) -> tuple[np.ndarray, np.ndarray]:
    """Predictions and labels."""
    if name not in TABLES:
        return predictions(name)
    found = SOURCES[name]()
    free = np.setdiff1d(np.arange(len(found.y)), found.train)
    return predicted(found, model_of(name), free), found.y[free]


def measure(asked: tuple[Job, dict[str, Estimate]]) -> tuple[Job, dict[str, Estimate], float]:
    """Truth and estimates of a draw, without those that are known, and seconds."""
    (name, task, factor, seed), known = asked
    warnings.simplefilter("ignore")
    p, y, q, z = halved(*data(name), task, factor, seed)
    found = {"truth": table_metrics(contingency_table(q, z))}
    start = time.perf_counter()
    for method, estimate in METHODS.items():
        found[method] = known[method] if method in known else estimate(p, y, q)
    return asked[0], found, time.perf_counter() - start


def read(kept: Path | None, again: list[str]) -> Draws:
    """What a file has of draws, without the methods to do again."""
    if kept is None or not kept.exists():
        return {}
    lines = map(json.loads, kept.read_text(encoding="utf-8").splitlines())
    return {
        tuple(job): {method: pair for method, pair in found.items() if method not in again}
        for job, found in lines
    }


def computed(jobs: list[Job], cores: int, kept: Path | None, again: list[str]) -> Draws:
    """Every draw; what the file has is not done again."""
    done = read(kept, again)
    known = [(job, done.get(job, {})) for job in jobs]
    left = [(job, found) for job, found in known if not METHODS.keys() <= found.keys()]
    with Pool(cores) as pool:
        for k, (job, found, seconds) in enumerate(pool.imap_unordered(measure, left), 1):
            done[job] = found
            if kept is not None:
                with kept.open("a", encoding="utf-8") as file:
                    file.write(json.dumps([job, found]) + "\n")
            print(
                f"{k} of {len(left)}:", title(job[0]), *job[1:], f"{seconds:.2f} s", file=sys.stderr
            )
    return {job: done[job] for job in jobs}


def title(name: str) -> str:
    """Of a data set, wherever its file is."""
    return name if name in OWN else Path(name).stem


def table(done: Draws, metric: int) -> list[list[str]]:
    """A row for each data set and task, then averages."""
    errors = Errors(done, METHODS, metric)
    lines = [
        [title(name), str(data(name)[0].shape[1]), task, *errors.cells([(name, task)])]
        for name, task in errors.rows
    ]
    lines.append(["macro average", "", "", *errors.cells(errors.rows)])
    for task in "AB":
        rows = [row for row in errors.rows if row[1] == task]
        lines.append(["macro average", "", task, *errors.cells(rows)])
    for factor in FACTORS:
        lines.append([f"macro average, IF {factor}", "", "", *errors.cells(errors.rows, (factor,))])
    return lines


def asked_for() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("directory", type=Path, nargs="?")
    parser.add_argument("--draws", type=int, default=20)
    parser.add_argument("--first", type=int, default=0, help="seed of the first draw")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--cache", type=Path, help="draws done are kept here, and not done again")
    parser.add_argument("--again", nargs="+", default=[], choices=METHODS, help="but these")
    parser.add_argument("--write", action="store_true", help="keep the tables under results/")
    return parser.parse_args()


def main() -> None:
    """Run, print and write the tables."""
    asked = asked_for()
    if "ours" not in METHODS:
        print("ours is left out: this version has no target_metrics", file=sys.stderr)
    saved = [] if asked.directory is None else sorted(map(str, asked.directory.glob("*.npz")))
    seeds = range(asked.first, asked.first + asked.draws)
    # one seed after another, so that an interrupted run has whole rounds
    jobs = [
        (name, task, factor, seed)
        for seed in seeds for name in [*saved, *OWN, *TABLES] for task in "AB" for factor in FACTORS
    ]  # fmt: skip
    done = computed(jobs, asked.jobs, asked.cache, asked.again)
    head = ["data", "K", "task", *METHODS, "best", "ours - best"]
    about = f"{__doc__}\nDraws: {asked.draws} of each task and imbalance, from seed {asked.first}."
    for k, metric in enumerate(METRICS):
        lines = table(done, k)
        if asked.write:
            write_table(f"metrics_peers_{metric}", about, head, lines)
        else:
            print(metric, *("  ".join(line) for line in [head, *lines]), sep="\n")


if __name__ == "__main__":
    main()
