"""How near class weights come to the truth, and what it does to the calibration error.

    python benchmarks/weights_recovery.py recovery DIRECTORY [--repeats 20]
    python benchmarks/weights_recovery.py calibration DIRECTORY [--repeats 10]

DIRECTORY holds .npz files with `logits` or `probs` (n, K) and `labels`; those with "cifar" in their
name are read. Needs benchmarks/peers.txt. Set OPENBLAS_NUM_THREADS=1: processes share the work.

Task A: a long-tailed source, an even target; B: the reverse. Saved predictions are halved and
resampled; simulations have 3000 rows a side.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
from tables import write_table
from weights_tasks import FACTORS, SIMULATIONS, drawn, prior_and_weights

import calshift
from calshift.weights import DEFAULT, METHODS


def errors(case: tuple[Any, str, float, int]) -> dict[str, tuple[float, float]]:
    """Mean squared error of the weights and sum of |error| of the prior, over the classes seen."""
    sample = drawn(*case)
    _, y, _, labels = sample
    K = sample[0].shape[1]
    source, target = (np.bincount(part, minlength=K) / len(part) for part in (y, labels))
    seen = source > 0
    target = target[seen] / target[seen].sum()
    found = {}
    for name in (*METHODS, "quapy", "inverse"):
        prior, w = (part[seen] for part in prior_and_weights(name, sample))
        if not np.isfinite(w).all():  # a singular matrix has no inverse
            found[name] = (np.inf, np.inf)
            continue
        mass = prior.sum()  # a peer may give some to classes that the source lacks: no fault here
        found[name] = (
            float(np.mean((w / mass - target / source[seen]) ** 2)),
            float(np.abs(prior / mass - target).sum()),
        )
    return found


def recovery(arguments: argparse.Namespace) -> None:
    sources = [*SIMULATIONS, *sorted(arguments.directory.glob("*cifar*.npz"))]
    rows = []
    with ProcessPoolExecutor() as pool:
        for data in sources:
            for task in "AB":
                for factor in FACTORS:
                    cases = [(data, task, factor, seed) for seed in range(arguments.repeats)]
                    rows += recovery_rows(data, task, factor, list(pool.map(errors, cases)))
                    print(rows[-2][:4], rows[-2][-2:], rows[-1][-2:], flush=True)
    head = [
        "data",
        "task",
        "IF",
        "error of",
        *METHODS,
        "quapy",
        "inverse",
        "peer",
        "default - peer",
    ]
    about = f"""{__doc__}
recovery, {arguments.repeats} repeats. "weight": mean squared error of the weights; "prior": sum of
|error| of the target's shares; both against the class counts of the two samples, among the classes
that the source shows (in task A with IF 100, CIFAR-100 lacks about 18 of them). quapy is EMQ-BCTS,
inverse C^-1 mu without bounds. The last columns: the better peer, and the mean difference of
{DEFAULT} to it with its standard error over the repeats (below 0: ours is nearer)."""
    write_table("weights_recovery", about, head, rows)


def recovery_rows(
    data: Any, task: str, factor: float, found: list[dict[str, tuple[float, float]]]
) -> Iterator[list[str]]:
    for k, what in enumerate(("weight", "prior")):
        values = {name: np.array([one[name][k] for one in found]) for name in found[0]}
        peer = min(("quapy", "inverse"), key=lambda name: values[name].mean())
        gap = values[DEFAULT] - values[peer]
        error = gap.std(ddof=1) / np.sqrt(len(gap))
        cells = [f"{value.mean():.4g}" for value in values.values()]
        name = data.stem if isinstance(data, Path) else data
        yield [name, task, f"{factor:g}", what, *cells, peer, f"{gap.mean():.2g} +- {error:.1g}"]


CALIBRATION = ("true", DEFAULT, "map", "rlls", "bbse-soft", "quapy", "inverse")


def calibration_errors(case: tuple[Any, str, float, int]) -> dict[str, float]:
    """|label-free error - error with target labels|, 100 x CE_2^2 classwise, by weights."""
    sample = drawn(*case)
    p, y, q, labels = sample
    warnings.simplefilter("ignore", calshift.UnreliableWeights)
    truth = calshift.calibration_error(q, labels).estimate
    found = {}
    for name in CALIBRATION:
        if name == "true":
            w = calshift.weights_from_labels(y, labels, p.shape[1]).values
        else:
            w = prior_and_weights(name, sample)[1]
        if not np.isfinite(w[np.unique(y)]).all():
            found[name] = np.inf
            continue
        w = np.maximum(w, 0)  # no estimator takes a negative weight
        found[name] = 100 * abs(
            calshift.target_calibration_error(p, y, q, weights=w).estimate - truth
        )
    return found


def calibration(arguments: argparse.Namespace) -> None:
    rows = []
    with ProcessPoolExecutor() as pool:
        for path in sorted(arguments.directory.glob("*cifar*.npz")):
            for task in "AB":
                for factor in FACTORS:
                    cases = [(path, task, factor, seed) for seed in range(arguments.repeats)]
                    found = list(pool.map(calibration_errors, cases))
                    values = np.array([[one[name] for name in CALIBRATION] for one in found])
                    mean = values.mean(axis=0)
                    error = values.std(axis=0, ddof=1) / np.sqrt(len(values))
                    cells = [f"{a:.4f} +- {b:.4f}" for a, b in zip(mean, error, strict=True)]
                    rows.append([path.stem, task, f"{factor:g}", *cells])
                    print(*rows[-1], flush=True)
    about = f"""{__doc__}
calibration, {arguments.repeats} repeats: distance of the label-free classwise 100 x CE_2^2 to the
one with target labels (both debiased), by the weights that were used; negative weights count as 0.
CIFAR-100 has 50 source rows a class in task B."""
    write_table("weights_calibration", about, ["data", "task", "IF", *CALIBRATION], rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    commands = parser.add_subparsers(required=True)
    for run, repeats in ((recovery, 20), (calibration, 10)):
        command = commands.add_parser(run.__name__)
        command.set_defaults(run=run)
        command.add_argument("directory", type=Path)
        command.add_argument("--repeats", type=int, default=repeats)
    arguments = parser.parse_args()
    arguments.run(arguments)


if __name__ == "__main__":
    main()
