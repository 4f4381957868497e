"""Recalibration without target labels, judged with the labels.

    python benchmarks/recalibration.py DIRECTORY [--repeats 10] [--jobs 2] [--cache FILE]

DIRECTORY holds .npz files with `logits` or `probs` (n, K) and `labels`: those with "cifar" in their
name, and others as a group of their own. Beside them stand the networks trained here
(src/calshift/data and experiments/predictions, source and target rows taken together).
Every draw halves the shuffled rows. Task A: a long-tailed source and an even target; task B: an
even source and a long-tailed target; imbalance factors 2, 10, 100.

"temperature, source" is temperature scaling on the source as it is. "lascal" is the temperature of
least error by the paper's estimator with rlls weights, of 100 temperatures from 0.1 to 20. "oracle"
is temperature scaling fitted to the labels of the very target that it is judged on. Log loss, Brier
score, accuracy in %, and 100 x CE_2^2 classwise with labels, debiased and by the paper's estimator.

The first table has means over the tasks of a group, with standard errors of these means over the
draws. The second has, for every task, the default less its rivals, with paired standard errors over
the draws: negative is better, and "beyond" marks a loss of more than two standard errors.
results/recalibration_rows.md has every method of every task.
"""

from __future__ import annotations

import argparse
import json
import sys
import warnings
from functools import cache
from multiprocessing import Pool
from pathlib import Path
from typing import Any

import numpy as np
from real_predictions import load
from tables import write_table
from weights_tasks import FACTORS, Sample, halved

import calshift
from calshift.binning.events import select_events
from calshift.inference.estimate import event_errors
from calshift.inference.options import Options
from calshift.recalibration import DEFAULT_RECALIBRATOR, RECALIBRATORS, make_recalibrator
from calshift.scaling.calibrator import temper
from calshift.weights import estimate_weights

ROOT = Path(__file__).parent.parent
OWN = {
    "fashion-mnist, divided anew": "src/calshift/data/fashion-mnist-lt10-resnet20-pooled.npz",
    "fashion-mnist": "experiments/predictions/fashion-mnist-lt10-resnet20.npz",
}
METRICS = ("log loss", "Brier", "accuracy", "CE", "CE, paper's")
RIVALS = ("temperature, source", "lascal")
METHODS = ("none", RIVALS[0], *RECALIBRATORS, "lascal", "oracle")
TEMPERATURES = np.linspace(0.1, 20, 100)
PAPER = Options("classwise", 2, "paper", 15, "mass", None, "auto")


@cache
def predictions(name: str) -> tuple[np.ndarray, np.ndarray]:
    if name not in OWN:
        return load(Path(name))
    with np.load(ROOT / OWN[name], allow_pickle=False) as file:
        logits = np.concatenate([file["logits_source"], file["logits_target"]]).astype(float)
        return calshift.softmax(logits), np.concatenate([file["y_source"], file["y_target"]])


def lascal(p: np.ndarray, y: np.ndarray, q: np.ndarray) -> np.ndarray:
    """The target's probabilities at the temperature of least error by the paper's estimator."""
    source, target = calshift.Predictions(p, y), calshift.Predictions(q)
    w = estimate_weights("rlls", source, target).values
    events = select_events("classwise", source)

    def error(temperature: float) -> float:
        pair = [calshift.Predictions(temper(x, 1 / temperature), z) for x, z in ((p, y), (q, None))]
        return float(np.nanmean(event_errors(*pair, events, PAPER, w).values))

    best = min(TEMPERATURES, key=error)
    return temper(q, 1 / best)


def mended(method: str, sample: Sample) -> np.ndarray:
    p, y, q, truth = sample
    if method == "none":
        return q
    if method == "lascal":
        return lascal(p, y, q)
    if method == "oracle":
        return calshift.TemperatureScaling().fit(q, truth).transform(q)
    if method == RIVALS[0]:
        return calshift.TemperatureScaling().fit(p, y).transform(q)
    return make_recalibrator(method).fit(p, y, q).transform(q)


def judged(q: np.ndarray, y: np.ndarray) -> list[float]:
    hit = q[np.arange(len(y)), y]
    errors = [
        100 * calshift.calibration_error(q, y, estimator=name, interval=None).estimate
        for name in ("debiased", "paper")
    ]
    return [
        float(-np.log(np.maximum(hit, 1e-15)).mean()),
        float(((q**2).sum(axis=1) - 2 * hit + 1).mean()),
        float(100 * (q.argmax(axis=1) == y).mean()),
        *errors,
    ]


Job = tuple[str, str, float, int]


def one_draw(asked: tuple[Job, dict[str, Any]]) -> tuple[Job, dict[str, list[float]]]:
    """Every method's figures; those that are known are not computed again."""
    job, known = asked
    name, task, factor, seed = job
    warnings.simplefilter("ignore")
    sample = halved(*predictions(name), task, factor, seed)
    return job, {
        method: known.get(method) or judged(mended(method, sample), sample[3]) for method in METHODS
    }


def group(name: str) -> str:
    if name in OWN:
        return "trained here"
    known = [g for g in ("cifar100", "cifar_100", "cifar10", "cifar_10") if g in name.lower()]
    return known[0].replace("_", "").replace("cifar", "CIFAR-") if known else "others"


def computed(jobs: list[Job], cores: int, cache_path: Path | None) -> dict[Job, Any]:
    done: dict[Job, Any] = {}
    if cache_path is not None and cache_path.exists():
        lines = [json.loads(line) for line in cache_path.read_text().splitlines()]
        done = {tuple(job): found for job, found in lines}
    known = [(job, done.get(job, {})) for job in jobs]
    left = [(job, found) for job, found in known if set(found) != set(METHODS)]
    with Pool(cores) as pool:
        for k, (job, found) in enumerate(pool.imap_unordered(one_draw, left)):
            done[job] = found
            if cache_path is not None:
                with cache_path.open("a") as file:
                    file.write(json.dumps([job, found]) + "\n")
            print(f"{k + 1} of {len(left)}: {Path(job[0]).stem} {job[1:]}", file=sys.stderr)
    return {job: done[job] for job in jobs}


def with_error(values: np.ndarray, digits: int = 4) -> str:
    spread = values.std(ddof=1) / np.sqrt(len(values)) if len(values) > 1 else np.nan
    return f"{values.mean():.{digits}f} ({spread:.{digits}f})"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("directory", type=Path)
    parser.add_argument("--repeats", type=int, default=10)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--cache", type=Path, help="draws done are kept here, and not done again")
    asked = parser.parse_args()
    names = [str(path) for path in sorted(asked.directory.glob("*.npz"))] + list(OWN)
    if len(names) == len(OWN):
        parser.error(f"no .npz in {asked.directory}")
    tasks = [(name, task, factor) for name in names for task in "AB" for factor in FACTORS]
    # one seed after another, so that an interrupted run has whole rounds
    jobs = [(*task, seed) for seed in range(asked.repeats) for task in tasks]
    done = computed(jobs, asked.jobs, asked.cache)
    methods = list(next(iter(done.values())))
    # tasks x methods x metrics x draws
    found = np.array([
        [[[done[*task, seed][m][k] for seed in range(asked.repeats)] for k in range(len(METRICS))]
         for m in methods]
        for task in tasks
    ])  # fmt: skip
    about = (
        f"{__doc__}\nDraws: {asked.repeats} of each task. The default is {DEFAULT_RECALIBRATOR!r}."
    )
    write_tables(tasks, methods, found, about)


def write_tables(tasks: list[Any], methods: list[str], found: np.ndarray, about: str) -> None:
    groups = np.array([group(name) for name, _, _ in tasks])
    rows = []
    asked = [
        ("CIFAR and trained here", groups != "others"),
        *((g, groups == g) for g in sorted(set(groups))),
    ]
    for name, part in asked:
        for m, method in enumerate(methods):
            rows.append([name, method, *map(with_error, found[part, m].mean(axis=0))])
    write_table("recalibration", about, ["tasks", "method", *METRICS], rows)
    every, versus = [], []
    ours = methods.index(DEFAULT_RECALIBRATOR)
    for t, (name, task, factor) in enumerate(tasks):
        head = [Path(name).stem, task, f"{factor:g}"]
        for m, method in enumerate(methods):
            every.append(
                [*head, method, *(with_error(found[t, m, k]) for k in range(len(METRICS)))]
            )
        cells = []
        for rival in RIVALS:
            for k in (0, 3):
                gap = found[t, ours, k] - found[t, methods.index(rival), k]
                beyond = gap.mean() > 2 * gap.std(ddof=1) / np.sqrt(len(gap))
                cells.append(with_error(gap) + (" beyond" if beyond else ""))
        versus.append([*head, *cells])
    columns = [f"{metric} less {rival}" for rival in RIVALS for metric in ("log loss", "CE")]
    write_table("recalibration_versus", about, ["predictions", "task", "IF", *columns], versus)
    write_table(
        "recalibration_rows", about, ["predictions", "task", "IF", "method", *METRICS], every
    )


if __name__ == "__main__":
    main()
