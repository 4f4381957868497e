"""What figures 3, 4 and 5 share: a binary problem, many draws, bands of standard deviations.

Each draw has the paper's estimate with labels on the target and without (weights by RLLS), with the
standard deviations of its Algorithm 1, and the default estimate with its interval.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

import calshift
from experiments.binary import POOLS, drawn, trained
from experiments.measures import measured
from experiments.running import table
from experiments.saved import Pair, load

METHODS = {"RLLS": "rlls"}
SETTINGS = {"draws": 20, "pools": ""}
LINES = ("with labels", "without labels")
COLOURS = {"with labels": "#0b3c6f", "without labels": "#d9730d"}
MARKS = {"with labels": "o", "without labels": "s"}


def pools_of(asked: dict[str, Any], ratio: int) -> Pair:
    """Those of the clothes, or those that were brought: "{}" in their path is the ratio."""
    if not asked["pools"]:
        return trained(float(ratio), asked["seed"], asked["predictions"][0] / POOLS.name)
    return load(Path(asked["pools"].format(ratio)))


def point(
    pools: Pair,
    sizes: tuple[int, int],
    shares: tuple[float, float],
    seeds: list[list[int]],
    bins: int = 15,
) -> dict[str, Any]:
    """Means over draws of n and m rows with these shares of positives, and their spreads."""
    found = [one(pools, sizes, shares, np.random.default_rng(seed), bins) for seed in seeds]
    out: dict[str, Any] = {"rows": list(sizes), "draws": len(found)}
    for key in found[0]:
        values = np.array([draw[key] for draw in found])
        out[key] = {"mean": float(values.mean()), "spread": float(values.std())}
    return out


def one(
    pools: Pair,
    sizes: tuple[int, int],
    shares: tuple[float, float],
    rng: np.random.Generator,
    bins: int,
) -> dict[str, float]:
    """One draw."""
    source = drawn(pools.source, sizes[0], shares[0], rng)
    target = drawn(pools.target, sizes[1], shares[1], rng)
    row = measured(source, target, 2, METHODS, "binary", bins)
    default, ends = row["default"], row["default"]["without"]["RLLS"]["interval"]
    truth = default["target"]["estimate"]
    return {
        "paper with labels": row["paper"]["target"]["estimate"],
        "paper without labels": row["paper"]["without"]["RLLS"]["estimate"],
        **deviations(source, target, bins),
        "default with labels": truth,
        "default without labels": default["without"]["RLLS"]["estimate"],
        "default low": ends[0],
        "default high": ends[1],
        "covers the labelled value": float(ends[0] <= truth <= ends[1]),
    }


def deviations(
    source: calshift.Predictions, target: calshift.Predictions, bins: int
) -> dict[str, float]:
    """Standard deviations by the paper's Algorithm 1."""
    asked: dict[str, Any] = {"kind": "binary", "norm": 2, "bins": bins}
    hidden = target.unlabelled()
    w = calshift.label_shift_weights(source, None, hidden, method="rlls")
    found = (
        calshift.variance_algorithm1(target, None, **asked),
        calshift.variance_algorithm1(source, None, hidden, weights=w, **asked),
    )
    return {
        f"deviation {line}": float(np.sqrt(max(float(variance), 0.0)))
        for line, variance in zip(LINES, found, strict=True)
    }


HEAD = ["", "paper, with labels", "without", "paper's estimator here, with labels", "+-", "without",
        "+-", "default, with labels", "without", "95% interval"]  # fmt: skip


def tabled(points: Mapping[str, dict[str, Any]], printed: Mapping[str, Mapping[str, float]]) -> str:
    """CE_2^2, not times 100, as in the paper's figures; means over draws."""
    rows = []
    for at, found in points.items():
        papers = [printed[line].get(at) for line in LINES]
        cells = [at, *("" if value is None else f"{value:.4f}" for value in papers)]
        for line in LINES:
            cells.append(f"{found[f'paper {line}']['mean']:.4f}")
            cells.append(f"{found[f'deviation {line}']['mean']:.4f}")
        cells += [f"{found[f'default {line}']['mean']:.4f}" for line in LINES]
        cells.append(f"{found['default low']['mean']:.4f} to {found['default high']['mean']:.4f}")
        rows.append(cells)
    return table(HEAD, rows)


def draw_panel(ax: Any, points: Mapping[str, dict[str, Any]], estimator: str) -> None:
    """Lines with and without labels, and the band of what is known about the latter."""
    at = np.arange(len(points))
    for line in LINES:
        mean = np.array([one[f"{estimator} {line}"]["mean"] for one in points.values()])
        ax.plot(at, mean, color=COLOURS[line], marker=MARKS[line], label=line,
                linestyle="-" if line == LINES[0] else "--")  # fmt: skip
        if estimator == "paper":
            width = np.array([one[f"deviation {line}"]["mean"] for one in points.values()])
            band = mean - width, mean + width
        elif line == LINES[1]:
            band = tuple(
                np.array([one[f"default {end}"]["mean"] for one in points.values()])
                for end in ("low", "high")
            )
        else:
            continue
        ax.fill_between(at, *band, color=COLOURS[line], alpha=0.2, linewidth=0)
    ax.set(xticks=at, xticklabels=list(points), ylim=(0, None))
    ax.spines[["top", "right"]].set_visible(False)
