"""Figure 3: a binary problem under more shift, with more rows, and with n to m rows.

    python -m experiments figure3 [--draws 20] [--pools FILE]

CE_2^2 with and without labels, and one standard deviation by the paper's Algorithm 1. The paper has
Camelyon17 and one draw of each; here coats stand for tumours ("python -m experiments binary";
--pools names predictions of your own, with rows enough), and all numbers are means over draws from
the same pools. The source has negatives to positives 5:1. (a)
targets from 5:1 to 1:4, n = m = 10 000; (b) n = m from 1000 to 10 000, target 1:1; (c) n:m from 5:1
to 1:5 with 10 000 rows on the larger side, target 1:1.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from experiments import ablations
from experiments.running import PAPER, Cases, Experiment, run

RATIOS = ("5:1", "4:1", "3:1", "2:1", "1:1", "1:2", "1:3", "1:4")
SIZES = (1000, 2000, 4000, 6000, 8000, 10_000)
SIDES = (*RATIOS, "1:5")
SHARE, EVEN, MOST = 1 / 6, 1 / 2, 10_000
TITLES = {
    "ratio": "(a) negatives to positives of the target",
    "size": "(b) n = m",
    "n:m": "(c) n to m",
}


def settings_of(panel: str, at: str) -> tuple[tuple[int, int], tuple[float, float]]:
    """Rows of both samples and their shares of positives."""
    if panel == "size":
        return (int(at), int(at)), (SHARE, EVEN)
    first, second = map(int, at.split(":"))
    if panel == "ratio":
        return (MOST, MOST), (SHARE, second / (first + second))
    scale = MOST / max(first, second)
    return (round(first * scale), round(second * scale)), (SHARE, EVEN)


def cases(asked: dict[str, Any]) -> Cases:
    pools = ablations.pools_of(asked, 5)
    seeds = [[asked["seed"], draw] for draw in range(asked["draws"])]
    panels = {"ratio": RATIOS, "size": tuple(map(str, SIZES)), "n:m": SIDES}
    return {
        f"{panel} {at}": partial(ablations.point, pools, *settings_of(panel, at), seeds)
        for panel, places in panels.items()
        for at in places
    }


def panel_of(rows: dict[str, Any], panel: str) -> dict[str, Any]:
    return {
        key.removeprefix(f"{panel} "): row
        for key, row in rows.items()
        if key.startswith(f"{panel} ")
    }


def printed(panel: str) -> dict[str, dict[str, float]]:
    """The paper's estimates by line and place."""
    return {
        line: {str(point["at"]): point["estimate"] for point in points}
        for line, points in PAPER["figure3"][panel].items()
    }


def page(rows: dict[str, Any]) -> str:
    parts = []
    for panel, title in TITLES.items():
        here = panel_of(rows, panel)
        parts.append(f"## {title}\n\n{ablations.tabled(here, printed(panel))}")
    covered = np.mean([row["covers the labelled value"]["mean"] for row in rows.values()])
    noisy = "of the draws (that value has noise of its own)"
    parts.append(f"The default interval holds the labelled value in {covered:.0%} {noisy}.")
    return "\n\n".join(parts)


def draw(rows: dict[str, Any], path: Path) -> None:
    """The paper's estimator above, the default one below."""
    from matplotlib.figure import Figure

    canvas = Figure(figsize=(12, 6.4), layout="constrained")
    axes = canvas.subplots(2, 3, sharey="row")
    for k, estimator in enumerate(("paper", "default")):
        for ax, (panel, title) in zip(axes[k], TITLES.items(), strict=True):
            ablations.draw_panel(ax, panel_of(rows, panel), estimator)
            ax.set_xlabel(title)
        name = "the paper's estimator" if estimator == "paper" else "default, 95% interval"
        axes[k][0].set_ylabel(f"CE$_2^2$, {name}")
    axes[0][0].legend(frameon=False)
    canvas.savefig(path, dpi=150)


def main(arguments: list[str]) -> None:
    run(Experiment("figure3", __doc__ or "", cases, page, draw, ablations.SETTINGS), arguments)
