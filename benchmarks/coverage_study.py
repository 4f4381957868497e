"""Coverage of the 95% intervals of the label-free error.

    python benchmarks/coverage_study.py run [--draws 1000] [--jobs 2] [--classes 100 200]
    python benchmarks/coverage_study.py table

A cell once finished is kept: the run can be stopped and taken up again. What is kept of a draw are
the moments of its laws, from which `table` makes the intervals.

78 cells (benchmarks/coverage_design.py) of Gaussian simulations: classes, n : m, imbalance of the
target, temperature of the model (1: calibrated on the source), weights. Squared error and mean
absolute error, classwise. "truth" from 10^6 exact posteriors. A cell fails when the 99% binomial
interval of its coverage misses 93-97% (93-98.5% where the truth is 0); for L1, whose interval is
made of bounds, when it covers less than 93% by that measure. bias: of the estimate, in standard
deviations; se: standard error over standard deviation; above, below: the share of intervals that
lie wholly above or below the truth. absent: classes that the source lacks on average, about which
nothing can be known; trusted: the share of draws whose result does not say that it cannot be, and
the coverage among these where they are a fifth of the draws or more. Truths of 100 and 200 classes
are from 200 000 and 100 000 posteriors.
Set OPENBLAS_NUM_THREADS=1: work is spread over processes.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import warnings
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
from coverage_design import Cell, cells
from tables import write_table

import calshift
from calshift.binning.events import select_events
from calshift.diagnostics.label_tables import tabulate_labels
from calshift.diagnostics.sample_conditions import check_overlap
from calshift.diagnostics.weight_conditions import weight_conditions
from calshift.engines.open import open_pair
from calshift.inference.assemble import estimate_target
from calshift.inference.options import Options
from calshift.results import (
    AbsoluteErrorDistribution,
    SamplingDistribution,
    SquaredErrorDistribution,
)

KEPT = Path(os.environ.get("CALSHIFT_CACHE", Path(__file__).parent / "cache")) / "coverage"
LARGE, LARGE_DRAWS = 50_000, 0.4  # share of the draws where a sample is that large
COUNTED = 0.2  # share of trusted draws from which a cell counts among those
MOST_TRUTH = 20_000_000  # posteriors behind a truth


def moments(case: tuple[Cell, int]) -> list[float]:
    """What the laws of both errors are made of; classes absent from the source, and trust."""
    cell, seed = case
    warnings.simplefilter("ignore", calshift.UnreliableWeights)
    simulation = cell.simulation()
    rng = np.random.default_rng([seed, cell.n, cell.m, cell.classes])
    p, y = simulation.source(cell.n, rng)
    q, _ = simulation.target(cell.m, rng)
    weights = simulation.class_weights if cell.weights == "true" else cell.weights
    # the parts of target_calibration_error(norm=1), whose law holds that of the square too
    source, target = open_pair(p, y, q)
    options = Options("classwise", 1, "debiased", "auto", "mass", None, "auto", "influence")
    events = select_events("classwise", source.summary)
    found, used = estimate_target(source, target, events, options, weights, None)
    law, tables = found.distribution, tabulate_labels(source, means=True)
    conditions = [*weight_conditions(used, tables, cell.m), check_overlap(found.sparse)]
    trusted = all(one.passed for one in conditions)
    square = [law.square.plug, law.square.bias, law.square.first, law.square.second]
    absolute = [law.estimate, law.least, law.variance]
    return [float(v) for v in (*square, *absolute, np.isnan(used.values).sum(), trusted)]


def laws(found: np.ndarray) -> tuple[SquaredErrorDistribution, AbsoluteErrorDistribution]:
    """Of all draws of a cell at once."""
    square = SquaredErrorDistribution(*found[:, :4].T)
    return square, AbsoluteErrorDistribution(*found[:, 4:7].T, square)


def truth(cell: Cell) -> tuple[float, float]:
    """CE_2^2 and CE_1 on the target, kept in a file."""
    name = f"truth-{cell.classes}-{cell.imbalance}-{cell.temperature}.json"
    path = KEPT / name
    if not path.exists():
        simulation = cell.simulation()
        rows = min(1_000_000, MOST_TRUTH // cell.classes // 10_000 * 10_000)
        found = [simulation.true_error(norm, rows=rows) for norm in (2, 1)]
        path.write_text(json.dumps(found))
    square, absolute = json.loads(path.read_text())
    return square, absolute


def run(draws: int, jobs: int, classes: list[int]) -> None:
    KEPT.mkdir(parents=True, exist_ok=True)
    with ProcessPoolExecutor(jobs) as pool:
        todo = [cell for cell in cells() if not classes or cell.classes in classes]
        list(pool.map(truth, {c.simulation(): c for c in todo}.values()))
        for k, cell in enumerate(todo, 1):
            path = KEPT / f"{cell.name}.npy"
            many = int(draws * LARGE_DRAWS) if max(cell.n, cell.m) >= LARGE else draws
            if path.exists() and len(np.load(path)) >= many:
                continue
            cases = [(cell, seed) for seed in range(many)]
            found = np.array(list(pool.map(moments, cases, chunksize=4)))
            np.save(path, found)
            print(f"{k}/{len(todo)}", *row(cell), flush=True, file=sys.stderr)


def row(cell: Cell) -> list[str]:
    """A line of the table, or of dashes for a cell that is not finished."""
    shift = "none" if cell.imbalance == 1 else str(cell.imbalance)
    asked = [cell.classes, f"{cell.n}:{cell.m}", shift, cell.temperature, cell.weights]
    path = KEPT / f"{cell.name}.npy"
    if not path.exists():
        return [*map(str, asked), *["-"] * 14]
    found, true = np.load(path), truth(cell)
    square, absolute = laws(found)
    first = judged(square, square.plug - square.bias, true[0], lower_only=False)
    second = judged(absolute, absolute.estimate, true[1], lower_only=True)
    absent, trusted = found[:, 7:].mean(axis=0)
    counts = [f"{absent:.1f}", f"{trusted:.2f}", str(len(found))]
    among_trusted = covered_if_trusted(square, found[:, 8] > 0, true[0])
    return [*map(str, asked), *counts, among_trusted, *first, *second]


def covered_if_trusted(law: SquaredErrorDistribution, trusted: np.ndarray, true: float) -> str:
    """Coverage of the squared error among trusted draws, - where they are few."""
    if trusted.mean() < COUNTED:
        return "-"
    low, high = law.interval(0.95)
    true = 0.0 if abs(true) < 1e-12 else true
    hit = ((low <= true) & (true <= high))[trusted]
    fails = failed(int(hit.sum()), len(hit), 0.985 if true == 0 else 0.97, lower_only=False)
    return f"{hit.mean():.3f}{' FAILS' if fails else ''}"


def judged(
    law: SamplingDistribution, estimate: np.ndarray, true: float, lower_only: bool
) -> list[str]:
    """Truth, coverage and whether it fails, misses on either side, bias, standard error."""
    low, high = law.interval(0.95)
    error = law.standard_error
    true = 0.0 if abs(true) < 1e-12 else true
    hit = (low <= true) & (true <= high)
    spread = estimate.std()
    fails = failed(int(hit.sum()), len(hit), 0.985 if true == 0 else 0.97, lower_only)
    return [
        f"{true:.3g}",
        f"{hit.mean():.3f}{' FAILS' if fails else ''}",
        f"{(low > true).mean():.3f}/{(high < true).mean():.3f}",
        f"{(estimate.mean() - true) / spread:+.2f}",
        f"{np.sqrt((error**2).mean()) / spread:.2f}",
    ]


def failed(hits: int, draws: int, most: float, lower_only: bool) -> bool:
    """Whether the 99% interval of the share lies outside what is allowed."""
    from scipy.stats import beta

    low = beta.ppf(0.005, hits, draws - hits + 1) if hits else 0.0
    high = beta.ppf(0.995, hits + 1, draws - hits) if hits < draws else 1.0
    return bool(high < 0.93 or (low > most and not lower_only))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=["run", "table"])
    parser.add_argument("--draws", type=int, default=1000)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--classes", type=int, nargs="*", default=[])
    arguments = parser.parse_args()
    if arguments.what == "run":
        run(arguments.draws, arguments.jobs, arguments.classes)
    judged_names = ["truth", "covers", "above/below", "bias", "se"]
    head: list[Any] = ["K", "n:m", "IF", "T", "weights", "absent", "trusted", "draws"]
    head += ["L2 covers if trusted"]
    head += [f"L2 {name}" for name in judged_names] + [f"L1 {name}" for name in judged_names]
    rows = [row(cell) for cell in cells()]
    for name, at in (("L2 if trusted", 8), ("L2", 10), ("L1", 15)):
        fails = sum("FAILS" in line[at] for line in rows)
        print(f"{name}: {fails} of {sum(line[at] != '-' for line in rows)} cells fail")
    write_table("coverage", __doc__, head, rows)


if __name__ == "__main__":
    main()
