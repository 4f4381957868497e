"""How near label-free errors come to those with labels: the default and the paper's estimator.

    python -m experiments summary [--results FOLDER]

Over all kept runs of table2, tables5-10, table11 and figure2, classwise, with estimated weights.
"Own": distance of an estimate without labels to the same estimator's value with labels. "Truth":
distance of both to the debiased value with labels, the best guess of the true error. Distances of
CE_p^p x 100, means over the runs of a test set or model (imbalances, splits, weights), then over
these. p values are of Wilcoxon's signed-rank test: over the runs of one, weights averaged (splits
of one test set share rows: they are too small), and over the means of all (networks share images).
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from experiments.measures import METHODS
from experiments.running import RESULTS, table

SOURCES = ("table2", "tables5-10", "table11", "figure2")


@dataclass(frozen=True)
class Run:
    """Distances of one label-free estimate: own and truth, of the paper's and of the default."""

    name: str
    case: str
    classes: int
    norm: int
    method: str
    own: tuple[float, float]
    truth: tuple[float, float]


def runs(results: Path) -> list[Run]:
    """All that was kept."""
    found: list[Run] = []
    for source in SOURCES:
        path = results / f"{source}.json"
        if path.exists():
            for key, case in json.loads(path.read_text(encoding="utf-8"))["cases"].items():
                found += of_case(key, case)
    return found


def of_case(key: str, case: dict[str, Any]) -> Iterator[Run]:
    """Those of one case, a run for each of the weights that both estimators have an answer for."""
    name = key.split(", imbalance")[0].split(", split")[0]
    truth = case["default"]["target"]["estimate"]
    for method in METHODS:
        found = [case[e]["without"].get(method) for e in ("paper", "default")]
        if found[0] is None or found[1] is None:
            continue
        values = found[0]["estimate"], found[1]["estimate"]
        own = abs(values[0] - case["paper"]["target"]["estimate"]), abs(values[1] - truth)
        far = abs(values[0] - truth), own[1]
        yield Run(name, key, case["classes"], case["norm"], method, own, far)


def compared(found: Iterable[Run]) -> dict[str, Any]:
    """Mean distances times 100, how many times nearer, and the p value of a paired test."""
    found, out = list(found), {}
    for kind in ("own", "truth"):
        pairs = np.array([getattr(one, kind) for one in found])
        apart = by_case(found, pairs[:, 0] - pairs[:, 1])
        out[kind] = {**versus(*pairs.mean(axis=0)), "p": signed_rank(apart)}
    return {"runs": len(found), **out}


def by_case(found: list[Run], values: np.ndarray) -> np.ndarray:
    """Means over the weights of each case."""
    _, case = np.unique([one.case for one in found], return_inverse=True)
    return np.asarray(np.bincount(case, values) / np.bincount(case))


def versus(paper: float, default: float) -> dict[str, float]:
    return {"paper": 100 * paper, "default": 100 * default, "nearer": paper / default}


def signed_rank(differences: np.ndarray) -> float | None:
    """Wilcoxon's p value, two-sided; None for fewer than six, of which no test can say much."""
    from scipy.stats import wilcoxon

    return float(wilcoxon(differences).pvalue) if len(differences) >= 6 else None


def groups(found: list[Run], norm: int, methods: tuple[str, ...]) -> dict[str, list[Run]]:
    """Runs by test set or model, those of a few classes first."""
    here = [one for one in found if one.norm == norm and one.method in methods]
    ordered = sorted(here, key=lambda one: (one.classes, one.name))
    return {
        name: [one for one in ordered if one.name == name]
        for name in dict.fromkeys(one.name for one in ordered)
    }


def macro(parts: dict[str, list[Run]]) -> dict[str, Any]:
    """Means over the means of all test sets and models."""
    each = [compared(part) for part in parts.values()]
    out: dict[str, Any] = {"runs": sum(one["runs"] for one in each)}
    for kind in ("own", "truth"):
        pairs = np.array([[one[kind]["paper"], one[kind]["default"]] for one in each]) / 100
        out[kind] = {**versus(*pairs.mean(axis=0)), "p": signed_rank(pairs[:, 0] - pairs[:, 1])}
    return out


def page(found: list[Run]) -> str:
    """Tables for L2 and L1, all weights together, and the macro averages by weights."""
    parts = [f"# Summary\n\n```\n{(__doc__ or '').strip()}\n```"]
    for norm in (2, 1):
        here = groups(found, norm, tuple(METHODS))
        if not here:
            continue
        few = {name: part for name, part in here.items() if part[0].classes <= 10}
        rows = [line(name, part[0].classes, compared(part)) for name, part in here.items()]
        rows.append(line("mean, up to 10 classes", "", macro(few)) if few else [])
        rows.append(line("mean of all", "", macro(here)))
        rows += [line(f"mean of all, {m}", "", macro(groups(found, norm, (m,)))) for m in METHODS]
        parts.append(f"## L{norm}\n\n{table(HEAD, [row for row in rows if row])}")
    return "\n\n".join(parts) + "\n"


HEAD = ["data and model", "classes", "runs", "own: paper's", "default", "times nearer", "p",
        "truth: paper's", "default", "times nearer", "p"]  # fmt: skip


def line(name: str, classes: Any, found: dict[str, Any]) -> list[str]:
    cells = [name, str(classes), str(found["runs"])]
    for kind in ("own", "truth"):
        one = found[kind]
        p = "" if one["p"] is None else f"{one['p']:.2g}"
        cells += [f"{one['paper']:.3f}", f"{one['default']:.3f}", f"{one['nearer']:.2f}", p]
    return cells


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(prog="python -m experiments summary")
    parser.add_argument("--results", type=Path, default=RESULTS)
    results = parser.parse_args(arguments).results
    found = runs(results)
    if not found:
        parser.error(f"no results in {results}: run {', '.join(SOURCES)} first")
    text = page(found)
    (results / "summary.md").write_text(text, encoding="utf-8")
    print(text)
