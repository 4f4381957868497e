"""Coverage, bias and trust of the default call on simulations of exact label shift.

    python benchmarks/trust_simulations.py --half judge [--draws 200] [--weights auto,em-bcts]
        [--cases NAME,...] [--rows FILE] [--write]

The cases are in shift_simulations.py: half of them took part in choices ("choose"), half did not
("judge"). The last lines are totals by weights: of all cases, and of ordinary ones (K <= 20, 1000
rows or more in both samples, class shares that differ by a factor of 10 at most), with the largest
bias and RMSE of any case. Draws that FILE has are not made again: delete it after a change of the
code. Set OPENBLAS_NUM_THREADS=1: two processes share the work.
"""

from __future__ import annotations

import argparse
import json
import warnings
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
from shift_simulations import CASES
from tables import write_table

import calshift

NAMED = {case.name: case for case in CASES}
REFERENCE = "em-bcts"  # maximum likelihood, consistent and efficient where BCTS is right
MOST_CLASSES, LEAST_ROWS, MOST_IMBALANCE = 20, 1000, 10  # of an ordinary case
HEAD = [
    "case", "BCTS right", "K", "n", "m", "weights", "draws", "trusted", "coverage, trusted",
    "coverage, all", "bias / sd, trusted", "bias / sd, all", "RMSE / em-bcts", "prior TV",
    "prior bias",
]  # fmt: skip


def measure(task: tuple[str, str, int]) -> dict[str, Any]:
    """One draw: error of the estimate, whether the interval covers, trust and diagnostics."""
    name, weights, seed = task
    case = NAMED[name]
    p_source, y_source, p_target, _ = case.draw(np.random.default_rng([seed, 17]))
    asked: Any = weights
    if weights == "true":
        asked = case.prior("target") / case.prior("source")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        result = calshift.target_calibration_error(p_source, y_source, p_target, weights=asked)
    low, high = result.confidence_interval()
    root_low, root_high = result.confidence_interval(root=True)
    truth, prior = case.true_error(), result.class_weights.prior_target
    return {
        "case": name,
        "weights": weights,
        "seed": seed,
        "error": result.estimate - truth,
        "standard_error": result.standard_error,
        "covered": bool(low <= truth <= high),
        "width": root_high - root_low,
        "trusted": bool(result.trusted),
        "prior": (prior - case.prior("target")).tolist(),
        "failed": [one.name for one in getattr(result, "diagnostics", ()) if one.failed],
        "values": {one.name: one.value for one in getattr(result, "diagnostics", ())},
    }


def figures(case: Any, rows: list[dict[str, Any]], others: list[dict[str, Any]]) -> dict[str, Any]:
    """Summaries of all draws of a case, ``others`` being the same draws with the reference."""
    error, covered, trusted = (
        np.array([row[key] for row in rows]) for key in ("error", "covered", "trusted")
    )
    prior = np.array([row["prior"] for row in rows])
    ratio = ratio_error = np.nan
    if others:
        ratio, ratio_error = rmse_ratio(error, np.array([row["error"] for row in others]))
    return {
        "case": case,
        "trusted": trusted,
        "covered": covered,
        "bias": error.mean() / (error.std() or 1.0),
        "trusted bias": error[trusted].mean() / (error[trusted].std() or 1.0)
        if trusted.any()
        else np.nan,
        "ratio": ratio,
        "ratio error": ratio_error,
        "distance": np.abs(prior).sum(axis=1).mean() / 2,
        "prior bias": np.abs(prior.mean(axis=0)).max(),
    }


def rmse_ratio(error: np.ndarray, other: np.ndarray) -> tuple[float, float]:
    """Ratio of two root mean squares over the same draws, and its standard error."""
    a, b = error**2, other**2
    ratio = float(np.sqrt(a.mean() / b.mean()))
    relative = (a / a.mean() - b / b.mean()).std(ddof=1) / np.sqrt(len(a)) if len(a) > 1 else np.nan
    return ratio, ratio * float(relative) / 2


def ordinary(case: Any) -> bool:
    """Whether nine tenths of the results ought to be trusted."""
    imbalance = max(max(factor, 1 / factor) for factor in case.tails)
    sizes = case.classes <= MOST_CLASSES and min(case.n, case.m) >= LEAST_ROWS
    return bool(sizes and imbalance <= MOST_IMBALANCE)


def shares(trusted: np.ndarray, covered: np.ndarray) -> list[str]:
    """Draws, share trusted, coverage among them and among all."""
    among = f"{covered[trusted].mean():.3f}" if trusted.any() else "-"
    return [str(len(trusted)), f"{trusted.mean():.2f}", among, f"{covered.mean():.3f}"]


def table_row(weights: str, found: dict[str, Any]) -> list[Any]:
    """A line of the table."""
    case, ratio = found["case"], f"{found['ratio']:.2f} +- {found['ratio error']:.2f}"
    return [
        case.name, "yes" if case.bcts else "no", case.classes, case.n, case.m, weights,
        *shares(found["trusted"], found["covered"]),
        "-" if np.isnan(found["trusted bias"]) else f"{found['trusted bias']:+.2f}",
        f"{found['bias']:+.2f}", ratio, f"{found['distance']:.3f}", f"{found['prior bias']:.3f}",
    ]  # fmt: skip


def totals(title: str, weights: str, found: list[dict[str, Any]]) -> list[Any]:
    """A line for several cases: shares over all draws, and the largest of the other figures."""
    trusted, covered = (
        np.concatenate([one[key] for one in found]) for key in ("trusted", "covered")
    )

    def largest(key: str, only: list[dict[str, Any]] = found) -> str:
        values = [abs(one[key]) for one in only if np.isfinite(one[key])]
        return f"{max(values):.2f}" if values else "-"

    right = largest("ratio", [one for one in found if one["case"].bcts])
    return [
        title, "", "", "", "", weights, *shares(trusted, covered), largest("trusted bias"),
        largest("bias"), f"{right}, BCTS right", largest("distance"), largest("prior bias"),
    ]  # fmt: skip


def kept_rows(path: Path | None) -> dict[tuple[str, str, int], dict[str, Any]]:
    """Draws made before, by what was asked."""
    if path is None or not path.exists():
        return {}
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    return {(row["case"], row["weights"], row["seed"]): row for row in rows}


def main() -> None:
    """Run, print and write the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--half", default="judge", choices=["choose", "judge"])
    parser.add_argument("--draws", type=int, default=200)
    parser.add_argument("--weights", default="auto")
    parser.add_argument("--cases", default=None)
    parser.add_argument("--rows", type=Path, default=None)
    parser.add_argument("--write", action="store_true")
    asked = parser.parse_args()
    chosen = [case for case in CASES if case.half == asked.half]
    if asked.cases is not None:
        chosen = [NAMED[name] for name in asked.cases.split(",")]
    table, methods = [], asked.weights.split(",")
    found: dict[str, list[dict[str, Any]]] = {name: [] for name in methods}
    kept = kept_rows(asked.rows)
    with ProcessPoolExecutor(2) as pool:
        for case in chosen:
            case.true_error()
            draws = {}
            for weights in methods:
                tasks = [(case.name, weights, seed) for seed in range(asked.draws)]
                missing = [task for task in tasks if task not in kept]
                for task, row in zip(missing, pool.map(measure, missing, chunksize=4), strict=True):
                    kept[task] = row
                    if asked.rows is not None:
                        with asked.rows.open("a") as file:
                            file.write(json.dumps(row) + "\n")
                draws[weights] = [kept[task] for task in tasks]
            for weights, rows in draws.items():
                found[weights].append(figures(case, rows, draws.get(REFERENCE, [])))
                table.append(table_row(weights, found[weights][-1]))
                print(*(f"{cell!s:>8}" for cell in table[-1]), flush=True)
                failed = [name for row in rows for name in row["failed"]]
                print("   ", {name: failed.count(name) for name in sorted(set(failed))})
    for weights, cases in found.items():
        table.append(totals("all", weights, cases))
        if usual := [one for one in cases if ordinary(one["case"])]:
            table.append(totals("ordinary", weights, usual))
    for row in table[-2 * len(methods) :]:
        print(*(f"{cell!s:>8}" for cell in row))
    if asked.write:
        about = f"""{__doc__}
Half: {asked.half}; {asked.draws} draws a case. "trusted": share of draws; coverage of the 95%
interval among trusted draws and among all; bias in standard deviations of the estimate (trusted:
of the trusted estimates); RMSE of the error relative to that with em-bcts on the same draws, where
that was run, +- its standard error; total variation and largest bias of the priors."""
        write_table(f"trust_{asked.half}", about, HEAD, table)


if __name__ == "__main__":
    main()
