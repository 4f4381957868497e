"""How often is a result trusted under exact label shift, and which condition fails otherwise?

    python benchmarks/trust_gaussian.py [--draws 60]

Gaussian classes whose predictions are miscalibrated by a temperature and biases, so that the
default weights are well specified. Set OPENBLAS_NUM_THREADS=1.
"""

from __future__ import annotations

import argparse
import warnings
from collections import Counter

import numpy as np
from tables import write_table

import calshift
from calshift.simulate import GaussianSimulation

CLASSES = {2: 2, 3: 3, 10: 8, 20: 12}  # K: dimensions
IMBALANCES, ROWS = (2, 10), (1000, 2000)


def measure(K: int, imbalance: float, rows: int, draws: int) -> list[str]:
    """One line: the share trusted and the draws in which a condition failed, by name."""
    simulation = GaussianSimulation(n_classes=K, dimensions=CLASSES[K], imbalance=imbalance, seed=3)
    trusted, failed = 0, Counter[str]()
    for draw in range(draws):
        rng = np.random.default_rng([draw, K, rows])
        p, y = simulation.source(rows, rng=rng)
        q, _ = simulation.target(rows, rng=rng)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            result = calshift.target_calibration_error(p, y, q)
        trusted += result.trusted
        failed.update(one.name for one in result.diagnostics if one.failed)
    names = ", ".join(f"{name} {count}" for name, count in failed.most_common())
    return [str(K), f"{imbalance:g}", str(rows), str(draws), f"{trusted / draws:.2f}", names]


def main() -> None:
    """Measure all cells and print or write the table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--draws", type=int, default=60)
    asked = parser.parse_args()
    cells = [(K, imbalance, n) for K in CLASSES for imbalance in IMBALANCES for n in ROWS]
    lines = [measure(*cell, asked.draws) for cell in cells]
    head = ["K", "imbalance", "n = m", "draws", "trusted", "conditions that failed (draws)"]
    write_table("trust_gaussian", str(__doc__), head, lines)


if __name__ == "__main__":
    main()
