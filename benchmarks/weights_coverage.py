"""Coverage of the intervals of the target prior.

    python benchmarks/weights_coverage.py [--repeats 400]

Gaussian simulations with as many target rows as source rows. Share of 95% intervals that hold the
true share of a class, mean over the classes and (the worst class). em, em-ts and em-nbvs take the
mean prediction for the source's prior, which a miscalibrated model may miss; rlls and map are drawn
to the source on purpose. Set OPENBLAS_NUM_THREADS=1: work is spread over processes.
"""

from __future__ import annotations

import argparse
import warnings
from concurrent.futures import ProcessPoolExecutor
from typing import Any

import numpy as np
from tables import write_table

import calshift
from calshift.weights import METHODS

COVERAGE: list[tuple[str, dict[str, Any], int]] = [
    ("3 classes", {"n_classes": 3, "dimensions": 5, "imbalance": 5, "seed": 21}, 500),
    ("3, A", {"n_classes": 3, "dimensions": 4, "imbalance": 4, "long_tail": "source",
              "temperature": 1.5, "seed": 22}, 500),
    ("3, near each other", {"n_classes": 3, "dimensions": 2, "imbalance": 3, "seed": 23}, 500),
    ("10 classes", {"n_classes": 10, "dimensions": 10, "imbalance": 10, "seed": 24}, 1000),
    ("10, A", {"n_classes": 10, "dimensions": 10, "imbalance": 5, "long_tail": "source",
               "temperature": 1.0, "seed": 25}, 1000),
    ("10, near each other", {"n_classes": 10, "dimensions": 5, "imbalance": 5, "seed": 26}, 1000),
]  # fmt: skip


def interval_hits(case: tuple[dict[str, Any], int, int]) -> dict[str, np.ndarray]:
    """Which classes' true shares the 95% intervals of each method contain."""
    asked, n, seed = case
    simulation = calshift.simulate.GaussianSimulation(**asked)
    rng = np.random.default_rng([seed, n])
    p, y = simulation.source(n, rng)
    q, _ = simulation.target(n, rng)
    truth, found = simulation.prior("target"), {}
    warnings.simplefilter("ignore", calshift.UnreliableWeights)
    for name in METHODS:
        low, high = calshift.label_shift_weights(p, y, q, method=name).confidence_interval()
        found[name] = (low <= truth) & (truth <= high)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=400)
    arguments = parser.parse_args()
    rows = []
    with ProcessPoolExecutor() as pool:
        for name, asked, n in COVERAGE:
            cases = [(asked, n, seed) for seed in range(arguments.repeats)]
            found = list(pool.map(interval_hits, cases, chunksize=5))
            hits = [np.array([one[method] for one in found]) for method in METHODS]
            cells = [f"{h.mean():.3f} ({h.mean(axis=0).min():.2f})" for h in hits]
            rows.append([name, str(n), *cells])
            print(*rows[-1], flush=True)
    error = np.sqrt(0.05 * 0.95 / arguments.repeats)
    about = (
        f"{__doc__}\nDraws: {arguments.repeats}; the standard error of one class is {error:.3f}."
    )
    write_table("weights_coverage", about, ["simulation", "n", *METHODS], rows)


if __name__ == "__main__":
    main()
