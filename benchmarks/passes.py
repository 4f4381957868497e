"""How often a call reads its samples, by the method of weights.

    python benchmarks/passes.py

target_calibration_error of scanned batches, 20 000 rows each, Gaussian classes; passes over the
source and over the target. Iterative methods stop when they have converged, so that other data may
take a few passes more or less.
"""

from __future__ import annotations

import warnings

import numpy as np
from tables import write_table

import calshift

ROWS, BATCH = 20_000, 5_000
METHODS = ("auto", "given", "bbse", "bbse-soft", "rlls", "elsa", "em", "em-bcts", "map")
CASES = {
    "bins=auto": {"check": False},
    "with the test of label shift": {"check": True},
    "15 bins": {"check": False, "bins": 15},
}


class Counted:
    """Batches that know how often they were read."""

    def __init__(self, *columns: np.ndarray) -> None:
        self.columns, self.passes = columns, 0

    def __call__(self):  # type: ignore[no-untyped-def]
        self.passes += 1
        for start in range(0, ROWS, BATCH):
            yield tuple(column[start : start + BATCH] for column in self.columns)


def passes(K: int, method: str, options: dict) -> str:
    simulation = calshift.simulate.GaussianSimulation(n_classes=K, seed=1)
    (p, y), (q, z) = simulation.source(ROWS, rng=1), simulation.target(ROWS, rng=2)
    source, target = Counted(p, y), Counted(q)
    weights = calshift.weights_from_labels(y, z, K).values if method == "given" else method
    calshift.target_calibration_error(
        calshift.scan(source), None, calshift.scan(target, labelled=False), weights=weights,
        **options,
    )  # fmt: skip
    return f"{source.passes} + {target.passes}"


def main() -> None:
    warnings.simplefilter("ignore", calshift.UnreliableWeights)
    rows = [
        [method, str(K), *(passes(K, method, options) for options in CASES.values())]
        for method in METHODS
        for K in (2, 10, 100)
    ]
    write_table("passes", __doc__, ["weights", "classes", *CASES], rows)


if __name__ == "__main__":
    main()
