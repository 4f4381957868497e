"""Which kernel for the canonical error?

    python benchmarks/canonical.py [--draws 8]

Label-free canonical CE_2^2 with the bandwidth of the leave-one-out likelihood, or with cells of the
simplex ("binning"), on Gaussian simulations in which the prediction determines the posterior, so
that the truth is the plain mean of ||posterior - prediction||^2. Mean over the draws, divided by
the truth.
"""

from __future__ import annotations

import argparse
import warnings
from multiprocessing import Pool

import numpy as np
from tables import write_table

import calshift
from calshift.simulate import GaussianSimulation

CASES = [
    (3, 0.6, 1000),
    (3, 1.6, 1000),
    (4, 0.7, 1000),
    (5, 0.6, 2000),
    (10, 0.6, 1000),
    (10, 0.6, 4000),
]
CHOICES = [
    (k, e) for k in ("triweight", "dirichlet", "binning") for e in ("debiased", "plugin", "paper")
]


def simulation(K: int, temperature: float) -> GaussianSimulation:
    return GaussianSimulation(n_classes=K, dimensions=K, temperature=temperature, seed=2)


def truth(K: int, temperature: float) -> float:
    prediction, _, posterior = simulation(K, temperature).draw(400_000, "target", rng=0)
    return float(((posterior - prediction) ** 2).sum(axis=1).mean())


def draw(job: tuple[int, float, int, int]) -> list[float]:
    warnings.simplefilter("ignore", calshift.UnreliableWeights)
    K, temperature, n, seed = job
    model = simulation(K, temperature)
    p, y = model.source(n, rng=[seed, 1])
    q, _ = model.target(n, rng=[seed, 2])
    return [
        calshift.target_calibration_error(
            p, y, q, weights=model.class_weights, kind="canonical", kernel=kernel, estimator=name
        ).estimate
        for kernel, name in CHOICES
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--draws", type=int, default=8)
    draws, rows = parser.parse_args().draws, []
    for K, temperature, n in CASES:
        with Pool() as pool:
            found = np.array(pool.map(draw, [(K, temperature, n, seed) for seed in range(draws)]))
        value = truth(K, temperature)
        ratios = [f"{mean / value:.2f}" if mean < 100 else "> 100" for mean in found.mean(axis=0)]
        rows.append([str(K), f"{temperature:g}", str(n), f"{value:.4f}", *ratios])
        print(*rows[-1], flush=True)
    head = ["K", "temperature", "n = m", "truth", *(f"{k} {e}" for k, e in CHOICES)]
    write_table("canonical", f"{__doc__}\nDraws: {draws}.", head, rows)


if __name__ == "__main__":
    main()
