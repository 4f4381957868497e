"""`recalibrate` as it is called, on real networks, beside vector scaling with EM.

    python benchmarks/recalibration_networks.py DIRECTORY [--repeats 4] [--jobs 2] [--before FILE]
        [--rows FILE] [--write]

Tasks of recalibration.py: every draw halves the shuffled rows of saved predictions; task A: a
long-tailed source and an even target; task B: the reverse; imbalance 2, 10, 100. "applied" are the
probabilities that `recalibrate` returns, checks and fallbacks included; "shift" is its default
recalibrator without them; "vector+prior" is vector scaling with EM. Log loss with the target's
labels, means over tasks and draws. "in se": the difference of applied and vector+prior in paired
standard errors over the draws (of the means over the tasks); positive is worse. "called": how often
the result was called better, worse, without clear change, or not reliable.

FILE of --before has rows (from --rows) of another version (2773b52, before the conditions of
trust), run on the same draws with that version on PYTHONPATH and --methods shift: "shift, before"
is the log loss of its default recalibrator.
Set OPENBLAS_NUM_THREADS=1.
"""

from __future__ import annotations

import argparse
import json
import sys
import warnings
from collections import Counter
from multiprocessing import Pool
from pathlib import Path
from typing import Any

import numpy as np
from recalibration import OWN, RIVALS, judged, mended, predictions
from tables import write_table
from weights_tasks import FACTORS, halved

import calshift

METHODS = ("none", RIVALS[0], "shift", "vector+prior", "applied")
HEAD = [
    "network", "K", *METHODS, "shift, before", "in se", "accuracy: none", "accuracy: applied",
    "called",
]  # fmt: skip

Job = tuple[str, str, int, int]


def measure(asked: tuple[Job, tuple[str, ...]]) -> dict[str, Any]:
    """Log loss and accuracy by method, and what the result was called."""
    (name, task, factor, seed), methods = asked
    warnings.simplefilter("ignore")
    sample = halved(*predictions(name), task, factor, seed)
    found: dict[str, Any] = {"job": [name, task, factor, seed]}
    for method in methods:
        if method == "applied":
            result = calshift.recalibrate(*sample[:3])
            found["called"], q = result.gist(), result.probabilities
        else:
            q = mended(method, sample)
        found[method] = judged(q, sample[3])[:3:2]
    return found


def title(name: str) -> str:
    """Of a network, wherever its file is."""
    return name if name in OWN else Path(name).stem


def values(rows: list[dict[str, Any]], name: str, method: str, k: int = 0) -> np.ndarray:
    """(seeds,) means over the tasks of a network."""
    chosen = [row for row in rows if title(row["job"][0]) == title(name) and method in row]
    seeds = sorted({row["job"][3] for row in chosen})
    return np.array(
        [np.mean([row[method][k] for row in chosen if row["job"][3] == seed]) for seed in seeds]
    )


def table_row(rows: list[dict[str, Any]], before: list[dict[str, Any]], name: str) -> list[str]:
    gap = values(rows, name, "applied") - values(rows, name, "vector+prior")
    called = Counter(row["called"] for row in rows if row["job"][0] == name)
    old = values(before, name, "shift")
    error = gap.std(ddof=1) / np.sqrt(len(gap)) if len(gap) > 1 else np.nan
    return [
        title(name), str(predictions(name)[0].shape[1]),
        *(f"{values(rows, name, method).mean():.4f}" for method in METHODS),
        f"{old.mean():.4f}" if len(old) else "-", f"{gap.mean() / error:+.1f}",
        *(f"{values(rows, name, method, 1).mean():.2f}" for method in ("none", "applied")),
        ", ".join(f"{text} {count}" for text, count in called.most_common()),
    ]  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("directory", type=Path)
    parser.add_argument("--repeats", type=int, default=4)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=METHODS)
    parser.add_argument("--rows", type=Path)
    parser.add_argument("--before", type=Path)
    parser.add_argument("--write", action="store_true", help="keep the table under results/")
    asked = parser.parse_args()
    names = [*OWN, *map(str, sorted(asked.directory.glob("*.npz")))]
    jobs = [
        ((name, task, factor, seed), tuple(asked.methods))
        for name in names for task in "AB" for factor in FACTORS for seed in range(asked.repeats)
    ]  # fmt: skip
    rows = []
    with Pool(asked.jobs) as pool:
        for k, row in enumerate(pool.imap(measure, jobs), 1):
            rows.append(row)
            print(f"{k} of {len(jobs)}", *row["job"], file=sys.stderr, flush=True)
    if asked.rows:
        asked.rows.write_text("".join(json.dumps(row) + "\n" for row in rows))
    if set(asked.methods) != set(METHODS):
        return
    before = []
    if asked.before:
        before = [json.loads(line) for line in asked.before.read_text().splitlines()]
    table = [table_row(rows, before, name) for name in names]
    means = [f"{np.mean([float(row[k]) for row in table]):.4f}" for k in range(2, len(METHODS) + 2)]
    old = [float(row[7]) for row in table if row[7] != "-"]
    worst = max(float(row[8]) for row in table)
    table.append([
        "macro average", "", *means, f"{np.mean(old):.4f}" if old else "-", f"{worst:+.1f}, worst",
        *(f"{np.mean([float(row[k]) for row in table]):.2f}" for k in (9, 10)), "",
    ])  # fmt: skip
    for line in [HEAD, *table]:
        print("  ".join(line))
    if asked.write:
        about = f"{__doc__}\nDraws: {asked.repeats} of each task."
        write_table("recalibration_networks", about, HEAD, table)


if __name__ == "__main__":
    main()
