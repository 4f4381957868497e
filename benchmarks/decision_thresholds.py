"""Cost of decisions with thresholds chosen without target labels, and with them.

    python benchmarks/decision_thresholds.py [--half judge] [--draws 50] [--write]

Exact label shift, two classes; n source rows, m target rows, positives source -> target. The
problems "choose" took part in choices, "judge" did not. A missed case costs as much as ``ratio``
false alarms. "realised": the cost of the threshold of `decision_threshold(cost=)` on a large
labelled pool of the target, relative to the best threshold for that pool, mean over draws (and its
standard error); "labels": the same of the best threshold for the m target rows with their labels;
"source": of the best threshold for the source rows; "unchanged": of the model's own probabilities
with the threshold that the costs imply. Set OPENBLAS_NUM_THREADS=1.
"""

from __future__ import annotations

import argparse
import warnings
from concurrent.futures import ProcessPoolExecutor
from functools import cache, partial
from typing import NamedTuple

import numpy as np
from shift_simulations import Case, World
from tables import write_table

import calshift

POOL = 1_000_000
HEAD = [
    "case", "n", "m", "shares", "ratio", "trusted", "realised", "if trusted", "labels", "source",
    "unchanged",
]  # fmt: skip


class Problem(NamedTuple):
    """A simulation with the cost of a missed case relative to a false alarm."""

    case: Case
    ratio: float


def problem(
    name: str, n: int, m: int, tails: tuple[float, float], learner: str, ratio: float, **more: str
) -> Problem:
    """One problem; ``tails`` are negatives for each positive."""
    world = World(2, 3, 1.1, sum(map(ord, name)), scales=2.0 if learner != "posterior" else 1.0)
    case = Case(name, "judge", n, m, world, learner, tails=tails, rows=20_000, **more)
    return Problem(case, ratio)


CHOOSE = (
    problem("screening", 50_000, 50_000, (999, 999), "logistic", 200),
    problem("screening, outbreak", 50_000, 50_000, (999, 99), "logistic", 50),
    problem("outbreak", 10_000, 10_000, (99, 9), "logistic", 10),
    problem("outbreak, posterior", 10_000, 5_000, (99, 9), "posterior", 20, change="sharp-biased"),
    problem("outbreak, boosting", 20_000, 10_000, (99, 9), "boosting", 10),
    problem("outbreak over", 10_000, 10_000, (9, 99), "logistic", 20),
)
JUDGE = (
    problem("screening, second", 40_000, 40_000, (999, 999), "naive", 300),
    problem("screening, rise", 60_000, 30_000, (999, 199), "network", 100),
    problem("rise, forest", 15_000, 10_000, (99, 9), "forest", 10),
    problem("rise, sharp", 10_000, 10_000, (99, 9), "posterior", 15, change="sharp"),
    problem("rise, one fifth", 10_000, 4_000, (99, 4), "naive", 5),
    problem("fall, boosting", 10_000, 20_000, (4, 99), "boosting", 30),
    problem("rise, boosting", 30_000, 10_000, (99, 9), "boosting", 20),
)


@cache
def pool(case: Case) -> tuple[np.ndarray, np.ndarray]:
    """Scores of the positive class and labels of the target."""
    p, y = case.pool(POOL, np.random.default_rng([case.world.seed, 5]))
    return p[:, 1], y


def cost_of(threshold: float, score: np.ndarray, y: np.ndarray, ratio: float) -> float:
    """Mean cost of a threshold."""
    alarm = score >= threshold
    return float((alarm & (y == 0)).mean() + ratio * (~alarm & (y == 1)).mean())


def best_threshold(score: np.ndarray, y: np.ndarray, ratio: float) -> float:
    """The threshold of least cost on labelled rows."""
    order = np.argsort(-score, kind="stable")
    ones = y[order] == 1
    cost = ratio * (ones.sum() - np.cumsum(ones)) + np.cumsum(~ones)
    last = np.append(np.flatnonzero(np.diff(score[order])), len(score) - 1)
    if ratio * ones.sum() <= cost[last].min():
        return float(np.nextafter(1.0, 2.0))
    return float(score[order][last[np.argmin(cost[last])]])


def measure(task: Problem, seed: int) -> list[float]:
    """One draw: trust, and costs relative to the best."""
    warnings.simplefilter("ignore")
    case, ratio = task
    p, y, q, z = case.draw(np.random.default_rng([case.world.seed, 6, seed]))
    cost = {"false_positive": 1.0, "false_negative": ratio}
    found = calshift.decision_threshold(p, y, q, cost=cost)
    thresholds = (
        found.threshold,
        best_threshold(q[:, 1], z, ratio),
        best_threshold(p[:, 1], y, ratio),
        1 / (1 + ratio),
    )
    score, labels = pool(case)
    least = cost_of(best_threshold(score, labels, ratio), score, labels, ratio)
    costs = [cost_of(t, score, labels, ratio) / least for t in thresholds]
    return [float(found.trusted), *costs]


def main() -> None:
    """Run, print and write the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--half", choices=("choose", "judge"), default="judge")
    parser.add_argument("--draws", type=int, default=50)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--write", action="store_true", help="keep the table under results/")
    asked = parser.parse_args()
    table = []
    with ProcessPoolExecutor(asked.jobs) as processes:
        for task in CHOOSE if asked.half == "choose" else JUDGE:
            work = partial(measure, task)
            found = np.array(list(processes.map(work, range(asked.draws), chunksize=5)))
            mean, error = found.mean(axis=0), found.std(axis=0) / np.sqrt(len(found))
            case = task.case
            shares = " -> ".join(f"{1 / (1 + tail):.1%}" for tail in case.tails)
            row = [case.name, f"{case.n:,}", f"{case.m:,}", shares, f"{task.ratio:g}"]
            costs = [f"{mean[k]:.3f} ({error[k]:.3f})" for k in range(1, 5)]
            costs.insert(1, f"{found[found[:, 0] > 0, 1].mean():.3f}")
            table.append([*row, f"{mean[0]:.2f}", *costs])
            print("  ".join(table[-1]), flush=True)
    if asked.write:
        about = f"Half: {asked.half}. Draws: {asked.draws}."
        write_table(f"decision_thresholds_{asked.half}", f"{__doc__}\n{about}", HEAD, table)


if __name__ == "__main__":
    main()
