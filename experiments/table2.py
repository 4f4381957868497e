"""Table 2: a balanced source, and a target with a longer and longer tail (Task B).

    python -m experiments table2 [--predictions FOLDER ...] [--splits 5]

Every balanced test set of 4000 rows or more with saved predictions is divided in halves at random,
each class evenly: one half is the source, the other, with fewer and fewer rows of later classes,
the target. Means over the splits of classwise CE_2^2 x 100, with labels and without (RLLS). The
paper has 10 000 rows on either side, here they are half of what the test set has.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

import calshift
from experiments.measures import measured
from experiments.running import PAPER, Cases, Experiment, hundred, run, table
from experiments.saved import test_sets
from experiments.shifts import task_b, test_set_title

IMBALANCES = (1, 1.25, 2, 10, 100)


def cases(asked: dict[str, Any]) -> Cases:
    return {
        f"{test_set_title(name)}, imbalance {imbalance:g}, split {split}": partial(
            row, sample, imbalance, [asked["seed"], split]
        )
        for name, sample in test_sets(asked["predictions"]).items()
        for imbalance in IMBALANCES
        for split in range(asked["splits"])
    }


def row(sample: calshift.Predictions, imbalance: float, seed: list[int]) -> dict[str, Any]:
    """One split of a test set."""
    return measured(*task_b(sample, imbalance, np.random.default_rng(seed)))


def page(rows: dict[str, Any]) -> str:
    names = list(dict.fromkeys(key.rsplit(", ", 2)[0] for key in rows))
    names += [name for name in PAPER["table2"] if name not in names]
    lines: list[list[str]] = []
    for name in names:
        if name in PAPER["table2"]:
            printed = PAPER["table2"][name]
            cells = [f"{printed[key]:.2f}" for key in printed if key not in ("source", "target")]
            lines.append(
                [name, "paper", f"{printed['source']:.2f}", f"{printed['target']:.2f}", "", *cells]
            )
        for estimator, label in (
            ("paper", "paper's estimator, here"),
            ("default", "default, here"),
        ):
            here = [averaged(rows, name, imbalance, estimator) for imbalance in IMBALANCES]
            if here[0] is not None:
                cells = [hundred(v) for one in here if one is not None for v in one[1:]]
                lines.append([name, label, hundred(here[0][0]), *cells])
    head = ["data and model", "", "CE_s"]
    for imbalance in IMBALANCES:
        head += [f"IF {imbalance:g}: CE_t", "without"]
    return table(head, lines)


def averaged(
    rows: dict[str, Any], name: str, imbalance: float, estimator: str
) -> tuple[float, float, float] | None:
    """Means over the splits: source, target with labels, and without."""
    start = f"{name}, imbalance {imbalance:g}, split "
    found = [one[estimator] for key, one in rows.items() if key.startswith(start)]
    if not found:
        return None
    each = ([one["source"] for one in found], [one["target"] for one in found],
            [one["without"]["RLLS"] for one in found])  # fmt: skip
    means = [float(np.mean([v["estimate"] for v in values])) for values in each]
    return means[0], means[1], means[2]


def main(arguments: list[str]) -> None:
    run(Experiment("table2", __doc__ or "", cases, page, settings={"splits": 5}), arguments)
