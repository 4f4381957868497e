"""Label-free against labelled calibration error on saved predictions of real networks.

    python benchmarks/real_predictions.py DIRECTORY [--splits 20]

DIRECTORY holds .npz files with `logits` or `probs` (n, K) and `labels`; those with "cifar" in their
name are read. Task B of the paper: a balanced source, a
long-tailed target with imbalance factor IF, true weights (class counts of both samples). Each
split halves the shuffled rows and resamples the second half.

For every estimator, 100 x CE_2^2 classwise: its value with target labels, and the mean distance of
the label-free value (i) to that, (ii) to the debiased value with target labels, the best guess of
the truth. That guess is itself noisy: its standard deviation over the splits is in the last column,
and no distance to it can be much smaller.
"""

from __future__ import annotations

import argparse
import warnings
from pathlib import Path

import numpy as np
from tables import write_table

import calshift

FACTORS = (1.25, 2, 10, 100)
ESTIMATORS = ("paper", "plugin", "debiased")


def load(path: Path) -> tuple[np.ndarray, np.ndarray]:
    with np.load(path, allow_pickle=False) as file:
        p = file["probs"] if "probs" in file else calshift.softmax(file["logits"].astype(float))
        return np.asarray(p, dtype=float), file["labels"].astype(int)


def one_split(p: np.ndarray, y: np.ndarray, factor: float, seed: int) -> dict[str, tuple]:
    """(label-free, labelled) value of each estimator."""
    rng = np.random.default_rng([seed, int(factor * 100)])
    order = rng.permutation(len(y))
    source, rest = order[: len(y) // 2], order[len(y) // 2 :]
    target = rest[calshift.resample_label_shift(y[rest], imbalance_factor=factor, rng=rng)]
    w = calshift.weights_from_labels(y[source], y[target], p.shape[1])
    values = {}
    for estimator in ESTIMATORS:
        free = calshift.target_calibration_error(
            p[source],
            y[source],
            p[target],
            weights=w,
            estimator=estimator,
            interval=None,
            check=False,
        )
        labelled = calshift.calibration_error(
            p[target], y[target], estimator=estimator, interval=None
        )
        values[estimator] = (100 * free.estimate, 100 * labelled.estimate)
    return values


def summary(splits: list[dict[str, tuple]], estimator: str) -> tuple[float, ...]:
    """Mean with labels, distances (i) and (ii), and the spread of the value with labels."""
    pairs = np.array([split[estimator] for split in splits])
    truth = np.array([split["debiased"][1] for split in splits])
    own = np.abs(pairs[:, 0] - pairs[:, 1]).mean()
    return pairs[:, 1].mean(), own, np.abs(pairs[:, 0] - truth).mean(), pairs[:, 1].std(ddof=1)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("directory", type=Path)
    parser.add_argument("--splits", type=int, default=20)
    arguments = parser.parse_args()
    warnings.simplefilter("ignore", calshift.UnreliableWeights)  # floor() of counts, missing tails
    paths, rows = sorted(arguments.directory.glob("*cifar*.npz")), []
    if not paths:
        parser.error(f"no *cifar*.npz in {arguments.directory}")
    for path in paths:
        p, y = load(path)
        for factor in FACTORS:
            splits = [one_split(p, y, factor, seed) for seed in range(arguments.splits)]
            found = {estimator: summary(splits, estimator) for estimator in ESTIMATORS}
            near = found["paper"][2] / found["debiased"][2]
            for estimator, (value, own, truth, sd) in found.items():
                ratio = f"{near:.1f}" if estimator == "debiased" else ""
                rows.append(
                    [path.stem, f"{factor:g}", estimator, f"{value:.3f}", f"{own:.4f}",
                     f"{truth:.4f}", ratio, f"{sd:.4f}"]
                )  # fmt: skip
            print(path.stem, factor, f"{near:.1f}", flush=True)
    head = ["network", "IF", "estimator", "with labels", "(i)", "(ii)", "paper / it", "sd"]
    about = f"{__doc__}\nSplits: {arguments.splits}."
    write_table("real_predictions", about, head, rows + totals(rows))


def totals(rows: list[list[str]]) -> list[list[str]]:
    """Means over the networks and factors of each data set."""
    lines = []
    for name, hundred in (("CIFAR-10", False), ("CIFAR-100", True)):
        means = {}
        for estimator in ESTIMATORS:
            part = [row for row in rows if ("100" in row[0]) == hundred and row[2] == estimator]
            means[estimator] = [np.mean([float(row[k]) for row in part]) for k in (3, 4, 5)]
        near = means["paper"][2] / means["debiased"][2]
        for estimator, figures in means.items():
            ratio = f"{near:.1f}" if estimator == "debiased" else ""
            lines.append(
                [f"mean, {name}", "all", estimator, *(f"{x:.4f}" for x in figures), ratio, ""]
            )
    return lines


if __name__ == "__main__":
    main()
