"""Figure 7: rows of each class in the long tails, exactly as the paper plots them.

    python -m experiments figure7

`calshift.resample_label_shift` on the balanced test sets of CIFAR-10 and CIFAR-100: class c keeps
floor(n_max IF^(-c / (K - 1))) rows.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import calshift
from experiments.running import PAPER, Cases, Experiment, run, table

SIZES = {"CIFAR-10": (10, 1000), "CIFAR-100": (100, 100)}
STYLES = ("-", "--", "-.", ":", "-")


def cases(asked: dict[str, Any]) -> Cases:
    return {
        f"{data}, imbalance {imbalance}": partial(counts, *SIZES[data], float(imbalance))
        for data, printed in PAPER["figure7"].items()
        for imbalance in printed
    }


def counts(K: int, each: int, imbalance: float) -> list[int]:
    """Rows of each class."""
    y = np.repeat(np.arange(K), each)
    rows = calshift.resample_label_shift(y, imbalance_factor=imbalance, rng=0)
    return [int(count) for count in np.bincount(y[rows], minlength=K)]


def differing(rows: dict[str, list[int]]) -> dict[str, int]:
    """How many classes have another count than in the paper."""
    return {
        key: sum(a != b for a, b in zip(found, printed(key), strict=True))
        for key, found in rows.items()
    }


def printed(key: str) -> list[int]:
    data, imbalance = key.split(", imbalance ")
    return [int(count) for count in PAPER["figure7"][data][imbalance]]


def page(rows: dict[str, Any]) -> str:
    off = differing(rows)
    lines = [[key, str(sum(found)), str(found[0]), str(found[-1]), str(off[key])]
             for key, found in rows.items()]  # fmt: skip
    head = ["long tail", "rows", "first class", "last class", "classes unlike the paper's"]
    return table(head, lines)


def draw(rows: dict[str, Any], path: Path) -> None:
    """Rows by class, a line for each imbalance."""
    from matplotlib.figure import Figure

    canvas = Figure(figsize=(9, 3.6), layout="constrained")
    for ax, data in zip(canvas.subplots(1, len(SIZES)), SIZES, strict=True):
        here = {key: found for key, found in rows.items() if key.startswith(f"{data},")}
        for style, (key, found) in zip(STYLES, here.items(), strict=True):
            ax.plot(found, linestyle=style, color="#0b3c6f")
            ax.annotate(key.split(", imbalance ")[1], (len(found) - 1, found[-1]), (4, 0),
                        textcoords="offset points", va="center", fontsize=8)  # fmt: skip
        ax.set(title=f"{data}, by imbalance", xlabel="class", ylabel="rows", ylim=(0, None))
        ax.spines[["top", "right"]].set_visible(False)
    canvas.savefig(path, dpi=150)


def main(arguments: list[str]) -> None:
    run(Experiment("figure7", __doc__ or "", cases, page, draw), arguments)
