"""Algorithm 1 and its correction against Monte Carlo, where the paper's estimator is redrawn.

    python benchmarks/algorithm1.py [--draws 1000]

beta: the paper's simulation, p = 1. Class counts are drawn ("iid") or fixed at their shares; class
weights are the true ones, or estimated by bbse, which no formula here accounts for.
gaussian: K classes, imbalance factor 5 in the target, n = m = 1000, iid, true weights, classwise.
"labelled" is the error with labels on the source, "shifted" the one without on the target. Columns:
the Monte Carlo variance and its relative standard error, then the mean of each formula over it;
"largest" is the bound of the paper's variance over all dependence between classes.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from tables import write_table

import calshift
from calshift.simulate import BetaSimulation, GaussianSimulation

BETA = BetaSimulation()
Sample = tuple[np.ndarray, np.ndarray]
Drawing = Callable[[int, int], tuple[Sample, Sample]]  # seed, n -> source and target


def iid(seed: int, n: int) -> tuple[Sample, Sample]:
    return BETA.source(n, rng=[seed, n, 1]), BETA.target(n, rng=[seed, n, 2])


def fixed(seed: int, n: int) -> tuple[Sample, Sample]:
    rng = np.random.default_rng([seed, n, 3])
    samples = []
    for share in (BETA.prior_source, BETA.prior_target):
        y = (np.arange(n) < round(n * share)).astype(int)
        p = np.where(y == 1, rng.beta(*BETA.positive, n), rng.beta(*BETA.negative, n))
        samples.append((p, y))
    return samples[0], samples[1]


def gaussian(simulation: GaussianSimulation) -> Drawing:
    def draw(seed: int, n: int) -> tuple[Sample, Sample]:
        return simulation.source(n, rng=[seed, n, 1]), simulation.target(n, rng=[seed, n, 2])

    return draw


def study(
    draw: Drawing, n: int, draws: int, weights: Any, norm: float, stratified: bool
) -> list[list[str]]:
    """Cells of the labelled error and of the shifted one."""
    labelled, shifted = np.empty((draws, 4)), np.empty((draws, 4))
    for seed in range(draws):
        (p, y), (q, _) = draw(seed, n)
        w = weights
        if isinstance(w, str):
            w = calshift.label_shift_weights(p, y, q, method=w)
        error = calshift.target_calibration_error(
            p, y, q, weights=w, norm=norm, estimator="paper", bins=15
        )
        here = calshift.variance_algorithm1(p, y, norm=norm)
        there = calshift.variance_algorithm1(p, y, q, weights=w, norm=norm, stratified=stratified)
        labelled[seed] = error.source.estimate, float(here), np.nan, here.largest
        shifted[seed] = error.estimate, float(there), there.corrected, there.largest
    return [["labelled", *cells(labelled)], ["shifted", *cells(shifted)]]


def cells(found: np.ndarray) -> list[str]:
    squares = (found[:, 0] - found[:, 0].mean()) ** 2
    variance = squares.sum() / (len(found) - 1)
    error = squares.std() / np.sqrt(len(found)) / variance
    over = found[:, 1:].mean(axis=0) / variance
    return [f"{variance:.2e}", f"{error:.0%}", *("" if np.isnan(r) else f"{r:.2f}" for r in over)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--draws", type=int, default=1000)
    draws = parser.parse_args().draws
    warnings.simplefilter("ignore", calshift.UnreliableWeights)
    rows = []
    for draw in (iid, fixed):
        for weights, name in ((BETA.class_weights, "true"), ("bbse", "bbse")):
            for n in (500, 1000, 3000, 10000):
                asked = ["beta", "1", draw.__name__, name, str(n)]
                found = study(draw, n, draws, weights, 1, draw is fixed)
                rows += [[*asked, *line] for line in found if name == "true" or "shifted" in line]
                print(*rows[-1], flush=True)
    for K in (2, 4, 10):
        simulation = GaussianSimulation(n_classes=K, imbalance=5, seed=1)
        for norm in (1, 2):
            asked = [f"gaussian, K = {K}", str(norm), "iid", "true", "1000"]
            w = simulation.class_weights
            found = study(gaussian(simulation), 1000, draws, w, norm, stratified=False)
            rows += [[*asked, *line] for line in found]
            print(*rows[-1], flush=True)
    head = ["simulation", "p", "class counts", "weights", "n = m", "error", "Monte Carlo", "+-"]
    head += ["Algorithm 1 / it", "corrected / it", "largest / it"]
    write_table("algorithm1", f"{__doc__}\nDraws: {draws}.", head, rows)


if __name__ == "__main__":
    main()
