"""The README's picture: the packaged predictions, what changed and what became of them.

python -m experiments picture [--out docs/picture.svg]
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np

import calshift

OUT = Path(__file__).parents[1] / "docs" / "picture.svg"
SOURCE, TARGET, TRUTH = "#c05a00", "#0b5fa5", "#222222"


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(prog="python -m experiments picture")
    parser.add_argument("--out", type=Path, default=OUT)
    draw(parser.parse_args(arguments).out)


def draw(out: Path) -> None:
    """Two panels: the mix of classes, and one class's reliability before, now and in truth."""
    import matplotlib
    from matplotlib.figure import Figure

    matplotlib.rcParams.update({"svg.hashsalt": "calshift", "svg.fonttype": "path"})
    source, target = calshift.data.fashion_mnist()
    result = calshift.target_calibration_error(source, None, target.unlabelled())
    worst = int(np.argmax(result.per_class))
    figure = Figure(figsize=(10, 4.4), layout="constrained")
    left, right = figure.subplots(1, 2, width_ratios=(1.15, 1))
    mix(left, result.class_weights)
    reliability(right, source, target, result, worst)
    figure.savefig(out, metadata={"Date": None, "Creator": None}, facecolor="white")
    print(f"wrote {out}")


def mix(ax: Any, weights: Any) -> None:
    """Shares before and now, with intervals, and the true ones."""
    at = np.arange(len(weights))[::-1]
    low, high = weights.confidence_interval()
    ax.scatter(weights.prior_source, at, marker="s", facecolor="white", edgecolor=SOURCE,
               label="source, counted")  # fmt: skip
    ax.hlines(at, low, high, color=TARGET, linewidth=2)
    ax.scatter(weights.prior_target, at, color=TARGET, zorder=3, label="target, without labels")
    ax.axvline(0.1, color=TRUTH, linewidth=0.8, linestyle=(0, (1, 2)), label="target, in truth")
    ax.set(yticks=at, yticklabels=weights.classes, xlabel="share of the class", xlim=(0, None))
    ax.set_title("What changed: the mix of classes", loc="left", fontsize=11)
    ax.legend(frameon=False, loc="lower right")


def reliability(ax: Any, source: Any, target: Any, result: Any, c: int) -> None:
    """One class's curve with labels before, without labels now, and with the hidden labels."""
    calshift.plot_reliability(calshift.reliability_curve(source, label=c), ax)
    now = calshift.reliability_curve(
        source, None, target.unlabelled(), label=c, weights=result.class_weights
    )
    calshift.plot_reliability(now, ax)
    truth = calshift.reliability_curve(target, label=c)
    ax.plot(truth.score, truth.frequency, color=TRUTH, linewidth=1, linestyle=(0, (1, 2)),
            marker="x", markersize=4, zorder=4)  # fmt: skip
    ax.set_title(
        f"What became of it: probabilities of {source.classes[c]}", loc="left", fontsize=11
    )
    ax.legend([*ax.collections[2::3], ax.lines[-1]],
              ["source, with labels", "target, without labels", "target, in truth"],
              frameon=False, loc="upper left")  # fmt: skip
