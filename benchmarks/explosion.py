"""Errors with default weights where the predictions hardly say how the rare classes are shared.

    python benchmarks/explosion.py [DIRECTORY] [--draws 100] [--splits 20] [--jobs 2] [--write]

Well separated Gaussian classes (K = 20, 30, 60) with a target of imbalance 100, from sources of
2000 to 4000 rows; and, if DIRECTORY has .npz files with `logits` or `probs` (n, K) and `labels`,
those with "cifar" in their name and 100 classes: tasks A (long-tailed source, even target) and B
(the reverse) with imbalance 2, 10 and 100, each split into halves at random.

Estimated three times: by the default call, with its class weights given as a vector, and with the
true weights. Distances from the truth are in standard deviations of the estimate with true weights,
the truth being that of the simulation, or the mean of the debiased errors with target labels over
all splits. Ratios of RMSE are of all draws and of the trusted ones. Set OPENBLAS_NUM_THREADS=1.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from tables import write_table
from weights_tasks import FACTORS, resampled, saved

import calshift
from calshift.simulate import GaussianSimulation

CLASSES, SIZES = (20, 30, 60), ((2000, 500), (3000, 600), (4000, 1000))
SPREAD = 2.0  # of the centres in ten dimensions: accuracy .99
POOL = 200_000  # rows for the true error
HEAD = [
    "case", "draws", "accuracy", "true root", "trusted", "largest, trusted", "largest, all",
    "RMSE / true weights, trusted", "all", "RMSE / vector, trusted", "all", "widest, trusted",
]  # fmt: skip
Draw = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray]  # p, y, q, z, true w


def simulated(K: int, n: int, m: int, seed: int) -> Draw:
    """Separated Gaussian classes, an even source and a long-tailed target."""
    simulation = GaussianSimulation(n_classes=K, imbalance=100.0, spread=SPREAD, seed=K)
    rng = np.random.default_rng([seed, K, n])
    return *simulation.source(n, rng), *simulation.target(m, rng), simulation.class_weights


def divided(path: Path, task: str, factor: float, seed: int) -> Draw:
    """Halves of saved predictions; the class weights are those of the class counts."""
    p, y, q, z = resampled(path, task, factor, seed)
    return p, y, q, z, calshift.weights_from_labels(y, z, p.shape[1]).values


def measure(draw: Callable[[int], Draw], seed: int) -> dict[str, float]:
    """The three estimates of a draw, and the labelled one."""
    warnings.simplefilter("ignore")
    p, y, q, z, true = draw(seed)
    found = calshift.target_calibration_error(p, y, q)
    low, high = found.confidence_interval(root=True)
    plain = partial(calshift.target_calibration_error, p, y, q, interval=None, check=False)
    return {
        "default": found.estimate,
        "vector": plain(weights=found.class_weights.values).estimate,
        "true": plain(weights=true).estimate,
        "labelled": calshift.calibration_error(q, z, interval=None).estimate,
        "accuracy": float((q.argmax(axis=1) == z).mean()),
        "trusted": float(found.trusted),
        "width": high - low,
    }


def table_row(name: str, truth: float | None, draws: list[dict[str, float]]) -> list[str]:
    """A line from the draws of a case; without a truth it is the mean of the labelled errors."""
    column = {key: np.array([one[key] for one in draws]) for key in draws[0]}
    truth = float(column["labelled"].mean()) if truth is None else truth
    trusted, sd = column["trusted"] > 0, column["true"].std(ddof=1)
    off = {key: column[key] - truth for key in ("default", "vector", "true")}
    far, width = np.abs(off["default"]) / sd, column["width"]

    def ratio(key: str, rows: np.ndarray) -> str:
        if not rows.any():
            return "-"
        return f"{np.sqrt((off['default'][rows] ** 2).mean() / (off[key][rows] ** 2).mean()):.2f}"

    every = np.ones(len(draws), dtype=bool)
    return [
        name, str(len(draws)), f"{column['accuracy'].mean():.3f}",
        f"{max(truth, 0) ** 0.5:.4f}", f"{trusted.mean():.2f}",
        f"{far[trusted].max():.1f}" if trusted.any() else "-", f"{far.max():.1f}",
        ratio("true", trusted), ratio("true", every), ratio("vector", trusted),
        ratio("vector", every), f"{width[trusted].max():.3f}" if trusted.any() else "-",
    ]  # fmt: skip


def simulations() -> Iterator[tuple[str, float, Callable[[int], Draw]]]:
    for K in CLASSES:
        simulation = GaussianSimulation(n_classes=K, imbalance=100.0, spread=SPREAD, seed=K)
        truth = simulation.true_error(rows=POOL)
        for n, m in SIZES:
            yield f"gaussian-{K}, {n}:{m}", truth, partial(simulated, K, n, m)


def networks(directory: Path) -> Iterator[tuple[str, None, Callable[[int], Draw]]]:
    for path in sorted(directory.glob("*cifar*.npz")):
        if saved(path)[0].shape[1] == 100:
            for task in "AB":
                for factor in FACTORS:
                    work = partial(divided, path, task, factor)
                    yield f"{path.stem}, {task}, {factor}", None, work


def worst(table: list[list[str]]) -> list[str]:
    """The largest figure of every column but the share trusted, which is the mean."""

    def numbers(k: int) -> list[float]:
        return [float(row[k]) for row in table if row[k] != "-"]

    largest = [f"{max(numbers(k), default=np.nan):.3g}" for k in range(5, len(HEAD))]
    return ["mean trusted, worst of others", "", "", "", f"{np.mean(numbers(4)):.2f}", *largest]


def main() -> None:
    """Run, print and write the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("directory", type=Path, nargs="?")
    parser.add_argument("--draws", type=int, default=100)
    parser.add_argument("--splits", type=int, default=20)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--write", action="store_true", help="keep the table under results/")
    asked = parser.parse_args()
    cases: list[tuple[int, Any]] = [(asked.draws, case) for case in simulations()]
    if asked.directory is not None:
        cases += [(asked.splits, case) for case in networks(asked.directory)]
    table = []
    with ProcessPoolExecutor(asked.jobs) as pool:
        for draws, (name, truth, draw) in cases:
            found = list(pool.map(partial(measure, draw), range(draws), chunksize=2))
            table.append(table_row(name, truth, found))
            print("  ".join(table[-1]), flush=True)
    table.append(worst(table))
    print("  ".join(table[-1]))
    if asked.write:
        write_table("explosion", f"{__doc__}\nDraws: {asked.draws}; {asked.splits}.", HEAD, table)


if __name__ == "__main__":
    main()
