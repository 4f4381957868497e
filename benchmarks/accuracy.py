"""Bias and error of the estimators on simulations with known truth.

    python benchmarks/accuracy.py beta [--draws 1200]        the paper's simulation
    python benchmarks/accuracy.py gaussian [--seeds 5]       10 classes, long-tailed target

beta: n = m = 500, 1000, 10 000, true weights; mean over the truth, RMSE, and the ratio of the
paper's RMSE to it. "labelled" rows use the labels of the sample named.
gaussian: unit Gaussians in 10 dimensions, imbalance factor 10, overconfident (temperature 0.6),
bins="auto", true weights; bias over the Monte Carlo standard deviation, its own standard error
1/sqrt(draws) beside it.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable
from multiprocessing import Pool

import numpy as np
from tables import write_table

import calshift
from calshift.simulate import BetaSimulation, GaussianSimulation

BETA = BetaSimulation()
DRAWS = {1000: 400, 3000: 200, 10000: 120, 30000: 60}


def beta_draw(job: tuple[int, int]) -> list[float]:
    """Label-free L2 (paper, plugin, debiased), L1, then labelled L2 and L1 on both samples."""
    n, seed = job
    quiet()
    p, y = BETA.source(n, rng=[seed, n, 1])
    q, z = BETA.target(n, rng=[seed, n, 2])
    w = BETA.class_weights
    free = [("paper", 2), ("plugin", 2), ("debiased", 2), ("paper", 1), ("debiased", 1)]
    found = [
        calshift.target_calibration_error(p, y, q, weights=w, estimator=e, norm=norm).estimate
        for e, norm in free
    ]
    for sample in ((p, y), (q, z)):
        found += [calshift.calibration_error(*sample, norm=norm).estimate for norm in (2, 1)]
    return found


def beta_table(draws: int) -> None:
    target2, target1 = BETA.true_error(2), BETA.true_error(1)
    source2, source1 = BETA.true_error(2, "source"), BETA.true_error(1, "source")
    names = [
        ("label-free L2, paper", target2), ("label-free L2, plugin", target2),
        ("label-free L2, debiased", target2), ("label-free L1, paper", target1),
        ("label-free L1, debiased", target1), ("labelled source L2, debiased", source2),
        ("labelled source L1, debiased", source1), ("labelled target L2, debiased", target2),
        ("labelled target L1, debiased", target1),
    ]  # fmt: skip
    rows = []
    for n in (500, 1000, 10000):
        found = np.array(in_parallel(beta_draw, [(n, seed) for seed in range(draws)]))
        truth = np.array([value for _, value in names])
        rmse = np.sqrt(((found - truth) ** 2).mean(axis=0))
        error = found.std(axis=0) / np.sqrt(draws) / truth
        for k, (name, value) in enumerate(names):
            papers = {1: rmse[0], 2: rmse[0], 4: rmse[3]}.get(k)
            ratio = "" if papers is None else f"{papers / rmse[k]:.1f}"
            rows.append(
                [str(n), name, f"{value:.6f}", f"{found[:, k].mean() / value:.3f}",
                 f"{error[k]:.3f}", f"{rmse[k]:.5f}", ratio]
            )  # fmt: skip
    head = ["n = m", "estimate", "truth", "mean / truth", "+-", "RMSE", "paper's RMSE / it"]
    write_table("accuracy_beta", f"{__doc__}\nDraws: {draws}.", head, rows)


def gaussian_draw(job: tuple[int, int, int]) -> list[float]:
    seed, n, draw = job
    quiet()
    simulation = GaussianSimulation(seed=seed)
    p, y = simulation.source(n, rng=[seed, n, draw, 1])
    q, _ = simulation.target(n, rng=[seed, n, draw, 2])
    w = simulation.class_weights
    return [
        calshift.target_calibration_error(p, y, q, weights=w, norm=norm).estimate for norm in (2, 1)
    ]


def gaussian_table(seeds: int) -> None:
    rows = []
    for seed in range(seeds):
        simulation = GaussianSimulation(seed=seed)
        # the mean of three draws of the truth: its own noise is small beside the estimates'
        truth = np.array(
            [np.mean([simulation.true_error(norm, rng=k) for k in range(3)]) for norm in (2, 1)]
        )
        for n, draws in DRAWS.items():
            found = np.array(in_parallel(gaussian_draw, [(seed, n, k) for k in range(draws)]))
            bias, sd = found.mean(axis=0) - truth, found.std(axis=0, ddof=1)
            rmse = np.sqrt(((found - truth) ** 2).mean(axis=0)) / truth
            rows.append(
                [str(seed), str(n), f"{truth[0]:.5f}", f"{bias[0] / sd[0]:+.2f}", f"{rmse[0]:.3f}",
                 f"{truth[1]:.5f}", f"{bias[1] / sd[1]:+.2f}", f"{rmse[1]:.3f}",
                 f"{1 / np.sqrt(draws):.2f}"]
            )  # fmt: skip
            print(*rows[-1], flush=True)
    head = ["seed", "n = m", "CE_2^2", "bias / sd", "RMSE / truth", "CE_1", "bias / sd",
            "RMSE / truth", "+- on bias / sd"]  # fmt: skip
    write_table("accuracy_gaussian", f"{__doc__}\nDraws: {DRAWS}.", head, rows)


def in_parallel(draw: Callable, jobs: list) -> list:
    with Pool() as pool:
        return pool.map(draw, jobs, chunksize=4)


def quiet() -> None:
    """True weights never fit sampled class shares to the last digit; that is no news here."""
    warnings.simplefilter("ignore", calshift.UnreliableWeights)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("simulation", choices=["beta", "gaussian"])
    parser.add_argument("--draws", type=int, default=1200)
    parser.add_argument("--seeds", type=int, default=5)
    arguments = parser.parse_args()
    if arguments.simulation == "beta":
        beta_table(arguments.draws)
    else:
        gaussian_table(arguments.seeds)


if __name__ == "__main__":
    main()
