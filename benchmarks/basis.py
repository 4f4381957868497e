"""Which basis for bins="auto"? Bins or hats, how many, and how guarded.

    python benchmarks/basis.py [--draws 60]

Every candidate estimates the debiased label-free error, L2 and L1, with true weights on draws of
simulations with known truth; noise.py uses four of them again, the tests and other studies none.
Shown over all of them: |bias| / sd (mean and worst), and the RMSE divided by the best candidate's
on the same simulation (mean and worst). Hats are named by scale (x n^(1/4) of them), least count
between knots, and eigenvalue floor.
"""

from __future__ import annotations

import argparse
import warnings
from multiprocessing import Pool

import numpy as np
from tables import write_table

import calshift
from calshift import target_calibration_error_from as error_from
from calshift.binning import hat_basis as basis
from calshift.estimators import regression as fits
from calshift.simulate import BetaSimulation, GaussianSimulation

BINS = {"15 equal-mass bins": 15, "40 equal-mass bins": 40, "100 equal-mass bins": 100}
HATS = {
    f"hats {scale:g}, {least:g}, {floor:g}": (scale, least, floor)
    for scale, least, floor in (
        (1.0, 10, 0.25), (1.35, 10, 0.25), (1.7, 3, 0.25), (1.7, 5, 0.25), (1.7, 10, 0.25),
        (1.7, 20, 0.25), (1.7, 40, 0.25), (2.2, 3, 0.25), (2.2, 5, 0.25), (2.2, 10, 0.25),
        (2.2, 20, 0.25), (3.0, 5, 0.25), (3.0, 10, 0.25), (4.0, 10, 0.25),
        (2.2, 5, 0.02), (2.2, 10, 0.02), (2.2, 5, 0.5), (2.2, 10, 0.5), (2.2, 10, 0.8),
    )
}  # fmt: skip


def gaussian(K: int, imbalance: float, temperature: float, **more: object) -> GaussianSimulation:
    return GaussianSimulation(n_classes=K, imbalance=imbalance, temperature=temperature, **more)


SIMULATIONS = [
    (BetaSimulation(0.3, 0.6, (3, 1.5), (1.5, 4)), 400, 700),
    (BetaSimulation(0.5, 0.2, (2, 2), (1, 3)), 1500, 1500),
    (BetaSimulation(0.1, 0.3, (4, 2), (1, 8)), 3000, 800),
    (gaussian(3, 5, 0.7, dimensions=3, seed=11), 800, 800),
    (gaussian(3, 5, 1.4, dimensions=2, seed=12), 2500, 2500),
    (gaussian(6, 20, 0.5, dimensions=6, seed=13), 1500, 1500),
    (gaussian(8, 10, 1.0, dimensions=8, seed=14), 1200, 3000),
    (gaussian(12, 10, 1.6, dimensions=10, seed=15), 2000, 2000),
    (gaussian(12, 50, 0.7, dimensions=10, seed=16), 4000, 1500),
    (gaussian(12, 10, 0.7, dimensions=10, seed=17, long_tail="source"), 3000, 3000),
    (gaussian(15, 10, 0.6, dimensions=10, seed=18), 15000, 15000),
    (gaussian(30, 10, 0.7, dimensions=12, seed=19), 3000, 3000),
    (gaussian(40, 10, 0.6, dimensions=10, seed=21, spread=2.0), 3000, 3000),
    (gaussian(60, 100, 0.7, dimensions=12, seed=20, spread=1.5), 4000, 1000),
]


def candidates(seed: int, which: int) -> np.ndarray:
    """(candidates, 2) estimates of one draw: L2 and L1."""
    simulation, n, m = SIMULATIONS[which]
    p, y = simulation.source(n, rng=[seed, which, 1])
    q, _ = simulation.target(m, rng=[seed, which, 2])

    def both(bins: object) -> list[float]:
        return [
            error_from(sums[bins], weights=simulation.class_weights, norm=p).estimate
            for p in (2, 1)
        ]

    kind = "binary" if q.ndim == 1 else "classwise"
    sums = {
        bins: calshift.accumulate(p, y, q, edges=calshift.bin_edges(q, kind=kind, bins=bins))
        for bins in ("auto", *BINS.values())
    }
    found = [both(bins) for bins in BINS.values()]
    for scale, least, floor in HATS.values():  # the constants of the library, one by one
        basis.HATS_SCALE, fits.EIGENVALUE_FLOOR = scale, floor
        fits.LEAST_ROWS = (basis.LEAST_DISTINCT, least, basis.LEAST_TARGET)
        found.append(both("auto"))
    return np.array(found)


def work(job: tuple[int, int]) -> np.ndarray:
    warnings.simplefilter("ignore", calshift.UnreliableWeights)  # true weights, sampled shares
    return candidates(*job)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--draws", type=int, default=60)
    draws = parser.parse_args().draws
    quotient, relative = [], []
    with Pool() as pool:
        for which, (simulation, n, m) in enumerate(SIMULATIONS):
            truth = np.array([simulation.true_error(norm) for norm in (2, 1)])
            found = np.array(pool.map(work, [(seed, which) for seed in range(draws)]))
            bias, sd = found.mean(axis=0) - truth, found.std(axis=0, ddof=1)
            rmse = np.sqrt(((found - truth) ** 2).mean(axis=0))
            quotient.append(np.abs(bias) / sd)
            relative.append(rmse / rmse.min(axis=0))
            print(f"{simulation} {n}:{m} done", flush=True)
    rows = []
    for k, name in enumerate([*BINS, *HATS]):
        row = [name]
        for norm in (0, 1):
            for figures in (np.array(quotient)[:, k, norm], np.array(relative)[:, k, norm]):
                row += [f"{figures.mean():.2f}", f"{figures.max():.2f}"]
        rows.append(row)
    head = ["basis"]
    for norm in ("L2", "L1"):
        head += [f"{norm} bias/sd", "worst", f"{norm} RMSE/best", "worst"]
    write_table(
        "basis", f"{__doc__}\nDraws: {draws}, of {len(SIMULATIONS)} simulations.", head, rows
    )


if __name__ == "__main__":
    main()
