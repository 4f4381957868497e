"""Figure 4: networks trained on a source of imbalance 2 to 100, tested on a balanced target.

    python -m experiments figure4 [--draws 20] [--pools FILE]

CE_2^2 with and without labels; coats stand for tumours, as in figure3. The source has all negatives
of its pool (8400) and as many positives as the imbalance leaves, the target 5000 of each.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

from experiments import ablations
from experiments.binary import SIZES
from experiments.running import PAPER, Cases, Experiment, run

IMBALANCES = (100, 50, 10, 5, 2)
TARGET = 10_000


def cases(asked: dict[str, Any]) -> Cases:
    return {str(imbalance): partial(row, imbalance, asked) for imbalance in sorted(IMBALANCES)}


def row(imbalance: int, asked: dict[str, Any]) -> dict[str, Any]:
    """With the network that was trained at that imbalance."""
    negatives = SIZES["source"][0]
    positives = min(round(negatives / imbalance), SIZES["source"][1])
    negatives = min(negatives, positives * imbalance)  # the pool has 3400 positives
    pools = ablations.pools_of(asked, imbalance)
    seeds = [[asked["seed"], draw] for draw in range(asked["draws"])]
    n = negatives + positives
    return ablations.point(pools, (n, TARGET), (positives / n, 1 / 2), seeds)


def page(rows: dict[str, Any]) -> str:
    printed = {
        line: {str(point["at"]): point["estimate"] for point in points}
        for line, points in PAPER["figure4"].items()
    }
    return ablations.tabled(rows, printed)


def draw(rows: dict[str, Any], path: Path) -> None:
    from matplotlib.figure import Figure

    canvas = Figure(figsize=(9, 3.8), layout="constrained")
    names = {"paper": "the paper's estimator", "default": "default, 95% interval"}
    for ax, (estimator, name) in zip(canvas.subplots(1, 2), names.items(), strict=True):
        ablations.draw_panel(ax, rows, estimator)
        ax.set(xlabel="imbalance of the source", ylabel="CE$_2^2$", title=name)
    canvas.axes[0].legend(frameon=False)
    canvas.savefig(path, dpi=150)


def main(arguments: list[str]) -> None:
    run(Experiment("figure4", __doc__ or "", cases, page, draw, ablations.SETTINGS), arguments)
