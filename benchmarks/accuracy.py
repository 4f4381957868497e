"""Bias and error of the estimators on simulations with known truth.

    python benchmarks/accuracy.py beta [--draws 1200]        the paper's simulation
    python benchmarks/accuracy.py gaussian [--seeds 5]       10 classes, long-tailed target
    python benchmarks/accuracy.py unseen [--draws 60]        other classes, shifts and sizes

beta: n = m = 500, 1000, 10 000, true weights; mean over the truth, RMSE, and the ratio of the
paper's RMSE to it. "labelled" rows use the labels of the sample named.
gaussian: unit Gaussians in 10 dimensions, imbalance factor 10, overconfident (temperature 0.6),
bins="auto", true weights; bias over the Monte Carlo standard deviation, its own standard error
1/sqrt(draws) beside it.
unseen: the same figures on a list of simulations.

The hats were found on the beta simulation and on Gaussian seeds 0 to 2, and their constants chosen
on the simulations of basis.py. The seeds here (100 on) and those of "unseen" took no part in any
choice; the beta table is not held out.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable
from multiprocessing import Pool

import numpy as np
from tables import write_table

import calshift
from calshift.simulate import BetaSimulation
from calshift.simulate import GaussianSimulation as Simulation

BETA = BetaSimulation()
ALONE = {"interval": None, "check": False}  # the estimate alone
UNSEEN = [
    (Simulation(n_classes=4, dimensions=3, temperature=0.8, imbalance=6, seed=201), 700, 1400),
    (Simulation(n_classes=7, dimensions=5, temperature=1.3, imbalance=30, seed=202), 2500, 900),
    (Simulation(n_classes=10, temperature=1.0, imbalance=100, seed=203), 5000, 5000),
    (Simulation(n_classes=15, temperature=0.5, long_tail="source", seed=204), 4000, 4000),
    (Simulation(n_classes=25, temperature=0.7, imbalance=20, spread=1.2, seed=205), 2000, 2000),
    (Simulation(n_classes=50, temperature=0.6, spread=1.4, seed=206), 10000, 2000),
    (Simulation(n_classes=50, temperature=1.5, imbalance=100, seed=207), 3000, 6000),
    (Simulation(n_classes=100, temperature=0.7, spread=1.5, seed=208), 5000, 5000),
]
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
        calshift.target_calibration_error(
            p, y, q, weights=w, estimator=e, norm=norm, **ALONE
        ).estimate
        for e, norm in free
    ]
    for sample in ((p, y), (q, z)):
        found += [
            calshift.calibration_error(*sample, norm=norm, interval=None).estimate
            for norm in (2, 1)
        ]
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


def draw(job: tuple[Simulation, int, int, int]) -> list[float]:
    """Label-free L2 and L1 with true weights."""
    simulation, n, m, k = job
    quiet()
    p, y = simulation.source(n, rng=[simulation.seed, n, k, 1])
    q, _ = simulation.target(m, rng=[simulation.seed, n, k, 2])
    w = simulation.class_weights
    return [
        calshift.target_calibration_error(p, y, q, weights=w, norm=norm, **ALONE).estimate
        for norm in (2, 1)
    ]


def study(simulation: Simulation, n: int, m: int, draws: int) -> list[str]:
    """Truth, bias / sd and relative RMSE, for L2 and L1, and the noise of bias / sd."""
    # the mean of three draws of the truth: its own noise is small beside the estimates'
    truth = np.array(
        [np.mean([simulation.true_error(norm, rng=k) for k in range(3)]) for norm in (2, 1)]
    )
    found = np.array(in_parallel(draw, [(simulation, n, m, k) for k in range(draws)]))
    bias, sd = found.mean(axis=0) - truth, found.std(axis=0, ddof=1)
    rmse = np.sqrt(((found - truth) ** 2).mean(axis=0)) / truth
    figures = zip(truth, bias / sd, rmse, strict=True)
    cells = [cell for t, b, r in figures for cell in (f"{t:.5f}", f"{b:+.2f}", f"{r:.3f}")]
    return [*cells, f"{1 / np.sqrt(draws):.2f}"]


FIGURES = ["CE_2^2", "bias / sd", "RMSE / truth", "CE_1", "bias / sd", "RMSE / truth",
           "+- on bias / sd"]  # fmt: skip


def gaussian_table(first: int, seeds: int) -> None:
    rows = []
    for seed in range(first, first + seeds):
        for n, draws in DRAWS.items():
            rows.append([str(seed), str(n), *study(Simulation(seed=seed), n, n, draws)])
            print(*rows[-1], flush=True)
    write_table(
        "accuracy_gaussian", f"{__doc__}\nDraws: {DRAWS}.", ["seed", "n = m", *FIGURES], rows
    )


def unseen_table(draws: int) -> None:
    rows = []
    for simulation, n, m in UNSEEN:
        tail = f"{simulation.long_tail} {simulation.imbalance:g}"
        asked = [str(simulation.n_classes), f"{simulation.temperature:g}", tail, f"{n}:{m}"]
        rows.append([*asked, *study(simulation, n, m, draws)])
        print(*rows[-1], flush=True)
    head = ["K", "temperature", "long tail, IF", "n:m", *FIGURES]
    write_table("accuracy_unseen", f"{__doc__}\nDraws: {draws}.", head, rows)


def in_parallel(draw: Callable, jobs: list) -> list:
    with Pool() as pool:
        return pool.map(draw, jobs, chunksize=4)


def quiet() -> None:
    """True weights never fit sampled class shares to the last digit; that is no news here."""
    warnings.simplefilter("ignore", calshift.UnreliableWeights)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("simulation", choices=["beta", "gaussian", "unseen"])
    parser.add_argument("--draws", type=int, help="1200 for beta, 60 for unseen")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--first-seed", type=int, default=100)
    asked = parser.parse_args()
    if asked.simulation == "beta":
        beta_table(asked.draws or 1200)
    elif asked.simulation == "gaussian":
        gaussian_table(asked.first_seed, asked.seeds)
    else:
        unseen_table(asked.draws or 60)


if __name__ == "__main__":
    main()
