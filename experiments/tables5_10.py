"""Tables 5-10: Task A under four weight estimators, L2 and L1, imbalance 10, 5 and 2.

    python -m experiments tables5-10 [--predictions FOLDER ...]

Classwise CE_p^p x 100. A network trained at that imbalance is used where there is one; else the
source of the one trained at 10 is subsampled to that imbalance ("resampled": the shift is the
paper's, the network is not, and the source is smaller). Otherwise as table1.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from experiments.lines import intervals, tabled
from experiments.measures import measured
from experiments.running import PAPER, Cases, Experiment, run
from experiments.saved import Pair, pairs
from experiments.shifts import long_tail, title

IMBALANCES, NORMS = (10, 5, 2), (2, 1)


def cases(asked: dict[str, Any]) -> Cases:
    trained = [one for one in pairs(asked["predictions"]) if "depth" in one.origin]
    known = {(title(one), one.origin["imbalance"]): one for one in trained}
    return {
        f"{name}, imbalance {imbalance}, norm {norm}": partial(
            row, known, name, imbalance, norm, asked["seed"]
        )
        for name in dict.fromkeys(name for name, imbalance in known if imbalance == 10)
        for imbalance in IMBALANCES
        for norm in NORMS
    }


def row(
    known: dict[tuple[str, float], Pair], name: str, imbalance: int, norm: int, seed: int
) -> dict[str, Any]:
    """With the network of that imbalance, or with a subsampled source."""
    if (name, imbalance) in known:
        pair = known[name, imbalance]
        return {**measured(pair.source, pair.target, norm), "resampled": False}
    pair = known[name, 10]
    source = long_tail(pair.source, imbalance, np.random.default_rng(seed))
    return {**measured(source, pair.target, norm), "resampled": True}


def page(rows: dict[str, Any]) -> str:
    parts = []
    for number, (norm, imbalance) in enumerate(((n, i) for n in NORMS for i in IMBALANCES), 5):
        ending = f", imbalance {imbalance}, norm {norm}"
        here = {k.removesuffix(ending): one for k, one in rows.items() if k.endswith(ending)}
        printed = PAPER["tables5-10"][f"norm {norm}, imbalance {imbalance}"]
        parts.append(
            f"## Table {number}: L{norm}, imbalance {imbalance}\n\n{tabled(here, printed)}"
        )
        parts.append(intervals(here, "RLLS"))
    return "\n\n".join(parts)


def main(arguments: list[str]) -> None:
    run(Experiment("tables5-10", __doc__ or "", cases, page), arguments)
