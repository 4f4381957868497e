"""Bias, error and coverage of metrics without target labels, under exact label shift.

    python benchmarks/metrics_coverage.py [--half judge] [--draws 100] [--jobs 2] [--write]

The simulations of shift_simulations.py: "choose" took part in choices, "judge" did not. Default
calls of `target_metrics`. The truth is the metric of a large labelled pool of the target. Costs are
uniform on (0, 1), 0 on the diagonal. For each metric: the coverage of the 95% interval among
trusted draws, and in brackets the bias in standard deviations; below them, over all cases, the
coverage and the root mean square error relative to the standard error. Set OPENBLAS_NUM_THREADS=1.
"""

from __future__ import annotations

import argparse
import warnings
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from functools import cache, partial
from typing import Any

import numpy as np
from shift_simulations import Case, cases
from tables import write_table

import calshift

NAMES = ("accuracy", "f1_macro", "log_loss", "brier_score", "roc_auc_ovr", "expected_cost")
POOL, CELLS = 400_000, 16_000_000  # rows and probabilities of a pool, at most
HEAD = ["case", "K", "n", "m", "trusted", *NAMES]


def costs(K: int) -> np.ndarray:
    """(K, K) by predicted and true class."""
    found = np.random.default_rng(5).uniform(0, 1, (K, K))
    np.fill_diagonal(found, 0.0)
    return found


@cache
def truth(case: Case) -> np.ndarray:
    """(M,) the metrics of a labelled pool."""
    size = min(POOL, CELLS // case.classes)
    p, y = case.pool(size, np.random.default_rng([case.world.seed, 3]))
    found = calshift.labelled_metrics(
        p, y, metrics=NAMES, cost=costs(case.classes), interval=None, waive=("interval-width",)
    )
    return np.array([one.estimate for one in found.values()])


def measure(case: Case, seed: int) -> dict[str, Any]:
    """One draw: estimates, standard errors, ends of the intervals, trust."""
    warnings.simplefilter("ignore")
    p, y, q, _ = case.draw(np.random.default_rng([case.world.seed, 4, seed]))
    found = calshift.target_metrics(p, y, q, metrics=NAMES, cost=costs(case.classes))
    return {
        "estimate": [one.estimate for one in found.values()],
        "error": [one.standard_error for one in found.values()],
        "ends": [one.confidence_interval() for one in found.values()],
        "trusted": [one.trusted for one in found.values()],
        "failed": [one.name for one in found.diagnostics if one.failed],
    }


def summarize(draws: list[dict[str, Any]], true: np.ndarray) -> dict[str, np.ndarray]:
    """(draws, M) of a case."""
    value, error, ends, trusted = (
        np.array([one[name] for one in draws]) for name in ("estimate", "error", "ends", "trusted")
    )
    covered = (ends[:, :, 0] <= true) & (true <= ends[:, :, 1])
    return {
        "z": (value - true) / error, "covered": covered, "trusted": trusted,
        "bias": (value.mean(axis=0) - true) / value.std(axis=0),
    }  # fmt: skip


def cells(case: Case, found: dict[str, np.ndarray]) -> list[str]:
    """One row of the table."""
    kept = found["trusted"]
    row = [case.name, str(case.classes), str(case.n), str(case.m), f"{kept[:, 0].mean():.2f}"]
    for m in range(len(NAMES)):
        those = kept[:, m]
        share = f"{found['covered'][those, m].mean():.2f}" if those.any() else "-"
        row.append(f"{share} ({found['bias'][m]:+.1f})")
    return row


def overall(every: list[dict[str, np.ndarray]]) -> list[list[str]]:
    """Coverage among trusted and among all draws, and root mean square error in standard errors."""
    z, covered, trusted = (
        np.concatenate([one[name] for one in every]) for name in ("z", "covered", "trusted")
    )
    among = [f"{covered[trusted[:, m], m].mean():.3f}" for m in range(len(NAMES))]
    size = [f"{np.sqrt((z[trusted[:, m], m] ** 2).mean()):.2f}" for m in range(len(NAMES))]
    return [
        ["coverage, trusted", "", "", "", f"{trusted[:, 0].mean():.2f}", *among],
        ["coverage, all", "", "", "", "", *(f"{one:.3f}" for one in covered.mean(axis=0))],
        ["error / standard error", "", "", "", "", *size],
    ]


def main() -> None:
    """Run, print and write the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--half", choices=("choose", "judge"), default="judge")
    parser.add_argument("--draws", type=int, default=100)
    parser.add_argument("--worlds", type=int, default=0, help="added to the seeds of simulations")
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--most", type=int, default=1000, help="classes of a case, at most")
    parser.add_argument("--write", action="store_true", help="keep the table under results/")
    asked = parser.parse_args()
    table, every = [], []
    seeds = range(asked.first, asked.first + asked.draws)
    with ProcessPoolExecutor(asked.jobs) as pool:
        for named in cases(asked.half):
            seed = named.world.seed + asked.worlds
            case = replace(named, world=replace(named.world, seed=seed))
            if case.classes > asked.most:
                continue
            true = pool.submit(truth, case)
            draws = list(pool.map(partial(measure, case), seeds, chunksize=5))
            every.append(summarize(draws, true.result()))
            table.append(cells(case, every[-1]))
            print("  ".join(table[-1]), flush=True)
    table += overall(every)
    for row in table[-3:]:
        print("  ".join(row))
    if asked.write:
        about = f"Half: {asked.half}, worlds: {asked.worlds}. Draws: {asked.draws}."
        kind = f"{asked.half}_{asked.worlds}" if asked.worlds else asked.half
        write_table(f"metrics_coverage_{kind}", f"{__doc__}\n{about}", HEAD, table)


if __name__ == "__main__":
    main()
