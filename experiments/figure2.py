"""Figure 2: how far off the error is under each weight estimator, many classes.

    python -m experiments figure2 [--predictions FOLDER ...] [--splits 5]

|CE_t without labels - CE_t with labels|, each estimator against its own value with labels, mean
over splits, x 100; classwise CE_2^2. The paper trains a ResNet-110 on CIFAR-100 with a long tail
(imbalance 10). Here test sets with saved predictions are divided in halves at random: one with a
long tail is the source, the other, balanced, the target.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import calshift
from experiments.measures import METHODS, measured
from experiments.running import PAPER, Cases, Experiment, hundred, run, table
from experiments.saved import test_sets
from experiments.shifts import task_a, test_set_title

ESTIMATORS = {"paper": "paper's estimator", "default": "default"}
COLOURS = {"printed": "#bbbbbb", "paper": "#d9730d", "default": "#0b3c6f"}


def cases(asked: dict[str, Any]) -> Cases:
    return {
        f"{test_set_title(name)}, split {split}": partial(row, sample, [asked["seed"], split])
        for name, sample in test_sets(asked["predictions"]).items()
        for split in range(asked["splits"])
    }


def row(sample: calshift.Predictions, seed: list[int]) -> dict[str, Any]:
    """One split of a test set."""
    return measured(*task_a(sample, 10, np.random.default_rng(seed)))


def distances(rows: dict[str, Any]) -> dict[str, dict[str, dict[str, float]]]:
    """By test set, estimator and weights: mean distance over the splits that have an answer."""
    found: dict[str, dict[str, dict[str, float]]] = {}
    for name in dict.fromkeys(key.rsplit(", ", 1)[0] for key in rows):
        here = [one for key, one in rows.items() if key.rsplit(", ", 1)[0] == name]
        found[name] = {e: {w: distance(here, e, w) for w in METHODS} for e in ESTIMATORS}
    return found


def distance(rows: list[dict[str, Any]], estimator: str, weights: str) -> float:
    parts = [one[estimator] for one in rows if one[estimator]["without"][weights] is not None]
    return float(
        np.mean([abs(p["without"][weights]["estimate"] - p["target"]["estimate"]) for p in parts])
    )


def page(rows: dict[str, Any]) -> str:
    printed = [f"{PAPER['figure2'][w]:.3f}" for w in METHODS]
    lines = [["CIFAR-100-LT ResNet-110", "paper", *printed]]
    for name, found in distances(rows).items():
        for estimator, label in ESTIMATORS.items():
            cells = [hundred(found[estimator][w], 3) for w in METHODS]
            lines.append([name, f"{label}, here", *cells])
    return table(["data and model", "", *METHODS], lines)


def draw(rows: dict[str, Any], path: Path) -> None:
    """Bars for the test sets of most classes, on a logarithmic scale: bad weights are far off."""
    from matplotlib.figure import Figure

    found, most = distances(rows), max(one["classes"] for one in rows.values())
    shown = [name for name in found if rows[f"{name}, split 0"]["classes"] == most]
    canvas = Figure(figsize=(4.5 * len(shown) + 1, 4), layout="constrained")
    axes = np.atleast_1d(canvas.subplots(1, len(shown), sharey=True))
    at = np.arange(len(METHODS))
    for ax, name in zip(axes, shown, strict=True):
        bars = {"printed": [PAPER["figure2"][w] for w in METHODS]}
        bars |= {e: [100 * found[name][e][w] for w in METHODS] for e in ESTIMATORS}
        for k, (kind, heights) in enumerate(bars.items()):
            label = "printed in the paper (another network)" if k == 0 else ESTIMATORS[kind]
            ax.bar(at + (k - 1) * 0.27, heights, 0.25, color=COLOURS[kind], edgecolor="black",
                   linewidth=0.6, hatch=("", "//", "")[k], label=label)  # fmt: skip
        ax.set(title=name, xticks=at, xticklabels=list(METHODS), yscale="log")
        ax.spines[["top", "right"]].set_visible(False)
    axes[0].set_ylabel("100 x |without - with labels|")
    canvas.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=3,
                  frameon=False)  # fmt: skip
    canvas.savefig(path, dpi=150)


def main(arguments: list[str]) -> None:
    run(Experiment("figure2", __doc__ or "", cases, page, draw, {"splits": 5}), arguments)
