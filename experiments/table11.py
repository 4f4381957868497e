"""Table 11: texts and many unequal classes, under four weight estimators.

    python -m experiments table11 [--predictions FOLDER ...]

Classwise CE_2^2 x 100. The paper has Amazon reviews and iWildCam, with their natural mix in the
source and a uniform one in the target; predictions made with "python -m experiments finetune" are
lines here. What runs without those data: Reuters R52 and 20 Newsgroups ("texts"), Letter and
Shuttle ("tables").
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from experiments.lines import intervals, tabled
from experiments.measures import METHODS, measured
from experiments.running import PAPER, Cases, Experiment, run
from experiments.saved import pairs
from experiments.shifts import title


def cases(asked: dict[str, Any], methods: Mapping[str, str] = METHODS) -> Cases:
    """All pairs that are no small images."""
    networks = ("imagenet-lt", "camelyon17")  # of table1 and of figures
    known = [one for one in pairs(asked["predictions"]) if "depth" not in one.origin]
    found = [one for one in known if one.origin.get("data") not in networks]
    return {title(one): partial(measured, one.source, one.target, 2, methods) for one in found}


def page(rows: dict[str, Any]) -> str:
    lines = tabled(rows, PAPER["table11"])
    return f"{lines}\n\nThe default estimate with its interval:\n\n{intervals(rows, 'RLLS')}"


def main(arguments: list[str]) -> None:
    run(Experiment("table11", __doc__ or "", cases, page), arguments)
