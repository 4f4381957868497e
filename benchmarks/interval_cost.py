"""What the interval costs: time of estimate and interval over that of the estimate alone.

    python benchmarks/interval_cost.py

target_calibration_error(check=False), best of 3 runs each, in turns, in one process. Set
OPENBLAS_NUM_THREADS=1.
"""

from __future__ import annotations

import time
import warnings

from tables import write_table

import calshift

CASES = [(2, 50_000), (10, 50_000), (100, 50_000), (100, 5_000)]
RUNS = 3


def timed(p, y, q, weights, interval) -> float:  # type: ignore[no-untyped-def]
    start = time.perf_counter()
    calshift.target_calibration_error(p, y, q, weights=weights, interval=interval, check=False)
    return time.perf_counter() - start


def main() -> None:
    warnings.simplefilter("ignore", calshift.UnreliableWeights)
    rows = []
    for K, n in CASES:
        simulation = calshift.simulate.GaussianSimulation(n_classes=K, seed=3)
        p, y = simulation.source(n, rng=1)
        q, _ = simulation.target(n, rng=2)
        for name, weights in (("em-bcts", "em-bcts"), ("given", simulation.class_weights)):
            runs = [
                [timed(p, y, q, weights, interval) for interval in (None, "influence")]
                for _ in range(RUNS)
            ]
            alone, both = (min(column) for column in zip(*runs, strict=True))
            cells = [f"{alone:.2f} s", f"{both:.2f} s", f"{both / alone:.2f}"]
            rows.append([str(K), f"{n:,}", name, *cells])
            print(*rows[-1], flush=True)
    head = ["K", "n = m", "weights", "estimate alone", "with interval", "ratio"]
    write_table("interval_cost", __doc__, head, rows)


if __name__ == "__main__":
    main()
