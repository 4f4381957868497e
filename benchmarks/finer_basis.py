"""How much of the error does the basis of the default estimator smooth away?

    python benchmarks/finer_basis.py [--draws 40]

The debiased L2 error with true weights, from the same sums, with the hats of bins="auto", and with
twice and four times as many planned. Fewer than 5 source rows are never between two knots.

Cells: bias in standard deviations of the default +- 1 / sqrt(draws), and in brackets the RMSE over
that of the default. Simulations of shift_simulations.py. Set OPENBLAS_NUM_THREADS=1.
"""

from __future__ import annotations

import argparse
from unittest.mock import patch

import numpy as np
from shift_simulations import CASES, Case
from tables import write_table

import calshift
from calshift.binning.hat_basis import planned_hats
from calshift.estimators import regression
from calshift.estimators.debiased import from_statistics

FACTORS = (1, 2, 4)
NAMES = ("wiggly-2", "wiggly-4", "gaussian-3", "gaussian-20", "slopes-50", "gaussian-100")


def draw(case: Case, seed: int) -> list[float]:
    """The mean over the classes with each number of hats."""
    p, y, q, _ = case.draw(np.random.default_rng([seed, 5]))
    sums = calshift.accumulate(p, y, q, edges=calshift.bin_edges(q))
    weights = case.prior("target") / case.prior("source")
    found = []
    for factor in FACTORS:
        more = lambda n, factor=factor: factor * (planned_hats(n) - 1) + 1  # noqa: E731
        with patch.object(regression, "planned_hats", more):
            found.append(float(from_statistics(sums, weights, 2, debias=True)[0].mean()))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--draws", type=int, default=40)
    draws = parser.parse_args().draws
    rows = []
    for name in NAMES:
        case = next(case for case in CASES if case.name == name)
        truth = case.true_error()
        found = np.array([draw(case, seed) for seed in range(draws)])
        bias = (found.mean(axis=0) - truth) / found[:, 0].std(ddof=1)
        rmse = np.sqrt(((found - truth) ** 2).mean(axis=0))
        cells = [f"{b:+.2f} ({r:.2f})" for b, r in zip(bias, rmse / rmse[0], strict=True)]
        rows.append([name, case.classes, f"{case.n}:{case.m}", f"{truth:.3g}", *cells])
        print(*rows[-1], flush=True)
    head = ["case", "K", "n:m", "truth", *(f"{factor} x hats" for factor in FACTORS)]
    write_table("finer_basis", f"{__doc__}\nDraws: {draws}.", head, rows)


if __name__ == "__main__":
    main()
