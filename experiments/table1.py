"""Table 1: networks trained on a long tail (imbalance 10), tested on a balanced target.

    python -m experiments table1 [--predictions FOLDER ...]

Every saved pair that was trained so is a line; "python -m experiments train" makes them. CE is
classwise CE_2^2 x 100, without labels under the true weights w* and under those of RLLS. Three
lines a model: printed in the paper, the paper's estimator here, and the default one here. A network
of ours is not the paper's: compare with labels against without, not line against line.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from experiments.imagenet_lt import COUNTED, restricted
from experiments.lines import intervals, tabled
from experiments.measures import TRUE, measured
from experiments.running import PAPER, Cases, Experiment, run
from experiments.saved import Pair, pairs
from experiments.shifts import title

METHODS, IMAGENET = {"RLLS": "rlls"}, "imagenet-lt"


def cases(asked: dict[str, Any]) -> Cases:
    found = [one for one in pairs(asked["predictions"]) if long_tailed(one.origin)]
    return {title(one): partial(row, one) for one in found}


def long_tailed(origin: dict[str, Any]) -> bool:
    """Whether it is a network of the table's kind, trained at imbalance 10 or on ImageNet-LT."""
    return ("depth" in origin and origin["imbalance"] == 10) or origin.get("data") == IMAGENET


def row(pair: Pair) -> dict[str, Any]:
    """Of ImageNet-LT with the classes that the paper counts."""
    if pair.origin["data"] == IMAGENET:
        pair = restricted(pair, *COUNTED)
    return measured(pair.source, pair.target, 2, METHODS)


def page(rows: dict[str, Any]) -> str:
    lines = tabled(rows, PAPER["table1"], (TRUE, "RLLS"))
    return f"{lines}\n\nThe default estimate with its interval:\n\n{intervals(rows, 'RLLS')}"


def main(arguments: list[str]) -> None:
    run(Experiment("table1", __doc__ or "", cases, page), arguments)
