"""Table 3: texts and many unequal classes, weights by RLLS.

    python -m experiments table3 [--predictions FOLDER ...]

The columns of Table 11 that the paper's main text shows; data and stand-ins are the same.
"""

from __future__ import annotations

from typing import Any

from experiments import table11
from experiments.lines import tabled
from experiments.measures import TRUE
from experiments.running import PAPER, Cases, Experiment, run


def cases(asked: dict[str, Any]) -> Cases:
    return table11.cases(asked, {"RLLS": "rlls"})


def page(rows: dict[str, Any]) -> str:
    return tabled(rows, PAPER["table3"], (TRUE, "RLLS"))


def main(arguments: list[str]) -> None:
    run(Experiment("table3", __doc__ or "", cases, page), arguments)
