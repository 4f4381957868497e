"""Coverage and width of 95% intervals of CE_2^2, calshift beside what others do, on the same draws.

    python benchmarks/coverage_others.py [--draws 300] [--boot 200] [--jobs 2]

influence: the default. both-sides bootstrap: interval="bootstrap". target-only bootstrap: the
target alone is resampled, the source is kept, weights are refitted; percentiles of the debiased
estimate, and of the paper's. Algorithm 1: the paper's estimate +- 1.96 standard errors by its
variance, and by the corrected one. Weights em-bcts throughout. Cells: coverage, and in brackets the
median width over that of the default. Set OPENBLAS_NUM_THREADS=1: work is spread over processes.
"""

from __future__ import annotations

import argparse
import warnings
from concurrent.futures import ProcessPoolExecutor
from typing import Any

import numpy as np
from tables import write_table

import calshift
from calshift import Predictions
from calshift.simulate import BetaSimulation, GaussianSimulation

CALIBRATED = {"n_classes": 2, "dimensions": 2, "temperature": 1.0}
OVERCONFIDENT = {"n_classes": 5, "dimensions": 5, "temperature": 0.6}
CASES: list[tuple[str, Any, int, int]] = [
    ("Beta (the paper's)", BetaSimulation(), 500, 500),
    ("Beta (the paper's)", BetaSimulation(), 2000, 400),
    ("Beta, other", BetaSimulation(0.4, 0.2, (3.0, 1.5), (1.5, 3.0)), 1000, 1000),
    ("2 classes, calibrated, no shift",
     GaussianSimulation(imbalance=1, seed=31, **CALIBRATED), 1000, 1000),
    ("2 classes, calibrated, shift 5",
     GaussianSimulation(imbalance=5, seed=32, **CALIBRATED), 500, 2500),
    ("5 classes, overconfident, shift 10",
     GaussianSimulation(imbalance=10, seed=33, **OVERCONFIDENT), 1000, 1000),
]  # fmt: skip
METHODS = ("influence", "both-sides bootstrap", "target-only bootstrap",
           "target-only, paper's", "Algorithm 1", "Algorithm 1, corrected")  # fmt: skip


def ends(case: tuple[int, int, int]) -> np.ndarray:
    """Lower and upper ends of every method on one draw."""
    which, seed, boot = case
    _, simulation, n, m = CASES[which]
    warnings.simplefilter("ignore", calshift.UnreliableWeights)
    rng = np.random.default_rng([seed, which])
    p, y = simulation.source(n, rng)
    q, _ = simulation.target(m, rng)
    options: dict[str, Any] = {"check": False}
    default = calshift.target_calibration_error(p, y, q, **options)
    both = calshift.target_calibration_error(
        p, y, q, interval="bootstrap", n_boot=boot, rng=seed, **options
    )
    weights = default.class_weights
    paper = calshift.target_calibration_error(
        p, y, q, estimator="paper", weights=weights, interval=None, **options
    ).estimate
    variance = calshift.variance_algorithm1(p, y, q, weights=weights)
    reach = 1.96 * np.sqrt([variance.variance, variance.corrected])
    return np.array([
        default.confidence_interval(), both.confidence_interval(),
        *target_only(p, y, q, boot, rng), *[(paper - r, paper + r) for r in reach],
    ])  # fmt: skip


def target_only(p: Any, y: Any, q: Any, boot: int, rng: np.random.Generator) -> np.ndarray:
    """Percentiles over targets drawn again, of the debiased and of the paper's estimate."""
    found = []
    for _ in range(boot):
        again = Predictions(q, sample_weight=np.bincount(rng.integers(len(q), size=len(q)),
                                                         minlength=len(q)))  # fmt: skip
        weights = calshift.label_shift_weights(p, y, again)
        found.append([
            calshift.target_calibration_error(
                p, y, again, weights=weights, estimator=name, interval=None, check=False
            ).estimate
            for name in ("debiased", "paper")
        ])  # fmt: skip
    return np.quantile(found, [0.025, 0.975], axis=0).T


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--draws", type=int, default=300)
    parser.add_argument("--boot", type=int, default=200)
    parser.add_argument("--jobs", type=int, default=2)
    arguments = parser.parse_args()
    rows = []
    with ProcessPoolExecutor(arguments.jobs) as pool:
        for which, (name, simulation, n, m) in enumerate(CASES):
            cases = [(which, seed, arguments.boot) for seed in range(arguments.draws)]
            found = np.array(list(pool.map(ends, cases, chunksize=2)))
            truth = max(simulation.true_error(), 0.0)
            truth = 0.0 if truth < 1e-12 else truth
            hit = ((found[..., 0] <= truth) & (truth <= found[..., 1])).mean(axis=0)
            width = np.median(found[..., 1] - found[..., 0], axis=0)
            cells = [f"{h:.3f} ({w:.2f})" for h, w in zip(hit, width / width[0], strict=True)]
            rows.append([name, f"{n}:{m}", f"{truth:.3g}", *cells])
            print(*rows[-1], flush=True)
    about = f"{__doc__}\nDraws: {arguments.draws}, of the bootstraps: {arguments.boot}."
    write_table("coverage_others", about, ["simulation", "n:m", "truth", *METHODS], rows)


if __name__ == "__main__":
    main()
