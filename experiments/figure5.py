"""Figure 5: the paper's estimator with 10, 15, 20 and 50 bins.

    python -m experiments figure5 [--draws 20] [--pools FILE]

CE_2^2 with and without labels; coats stand for tumours, as in figure3. Source 5:1, target 1:1,
10 000 rows each. The default estimator has no bins to choose: its columns do not change.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

from experiments import ablations
from experiments.running import PAPER, Cases, Experiment, run

BINS, ROWS = (10, 15, 20, 50), 10_000


def cases(asked: dict[str, Any]) -> Cases:
    pools = ablations.pools_of(asked, 5)
    seeds = [[asked["seed"], draw] for draw in range(asked["draws"])]
    return {
        str(bins): partial(ablations.point, pools, (ROWS, ROWS), (1 / 6, 1 / 2), seeds, bins)
        for bins in BINS
    }


def page(rows: dict[str, Any]) -> str:
    return ablations.tabled(rows, PAPER["figure5"])


def draw(rows: dict[str, Any], path: Path) -> None:
    """The paper's estimator by bins, and the default one beside it."""
    from matplotlib.figure import Figure

    canvas = Figure(figsize=(6, 3.8), layout="constrained")
    ax = canvas.subplots()
    for k, line in enumerate(ablations.LINES):
        heights = [one[f"paper {line}"]["mean"] for one in rows.values()]
        heights.append(next(iter(rows.values()))[f"default {line}"]["mean"])
        ax.bar([i + 0.36 * (k - 0.5) for i in range(len(heights))], heights, 0.34, label=line,
               color=ablations.COLOURS[line], edgecolor="black", hatch=("", "//")[k])  # fmt: skip
    ax.set(xticks=range(len(rows) + 1), xticklabels=[*rows, "default"], ylabel="CE$_2^2$",
           xlabel="bins of the paper's estimator")  # fmt: skip
    ax.spines[["top", "right"]].set_visible(False)
    canvas.legend(loc="outside upper center", ncols=2, frameon=False)
    canvas.savefig(path, dpi=150)


def main(arguments: list[str]) -> None:
    run(Experiment("figure5", __doc__ or "", cases, page, draw, ablations.SETTINGS), arguments)
