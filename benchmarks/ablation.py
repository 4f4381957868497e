"""What each step of the default contributes: the same draws without it.

    python benchmarks/ablation.py [--draws 60] [--jobs 2] [--write]

Simulations of shift_simulations.py, and one of explosion.py. "default" is the default call. Without
lack of fit: standard errors are not multiplied. em-bcts, matched: these weights in place of auto.
Full shrinkage: the calibrator of auto takes the whole strength of its prior. Linear bias: the bias
of estimated weights to first order in place of draws, for auto and for em-bcts. Counts in both
parts: the noise of class counts, which is that of residuals, with the draws of priors too. Plain
noise: e^2 / (1 - l) without the correction C and the bias of the ratio.

Cells: coverage among trusted draws (among all in the last column), the bias in standard deviations
of the default, and the RMSE over that of the default, of all draws. Set OPENBLAS_NUM_THREADS=1.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack, contextmanager
from functools import cache, partial
from typing import Any
from unittest.mock import patch

import numpy as np
from explosion import simulated
from shift_simulations import CASES
from tables import write_table

import calshift
from calshift.results import ClassWeights
from calshift.simulate import GaussianSimulation

NAMED = {case.name: case for case in CASES}
NAMES = (
    "t-linear-3", "t-linear-5", "forest-8", "slopes-3", "rare-2-in-100", "gaussian-2", "gaussian-4",
    "gaussian-15", "gaussian-20", "gaussian-50", "gaussian-100", "covariances-30", "explosion-30",
)  # fmt: skip
ORDINARY = "calshift.results.class_weights.ORDINARY_LACK_OF_FIT"
SHRINKAGE = "calshift.weights.auto.RELAXATION"


def first_order(fits: Any, by_label: Any, values: Any, draws: Any) -> None:
    """In place of draw_changes: none are drawn."""


def counts_in_both(tables: Any, _: Any, own: Any, cross: Any, of_weights: Any) -> np.ndarray:
    """In place of _bias_with_draws: the noise of priors with the covariance of weights."""
    from calshift.inference.error_distributions import _bound_cross

    drawn = tables.weight_draws
    both = _bound_cross(cross, own, of_weights, drawn.plugin.mean(axis=0))
    return np.asarray(own + drawn.changes(own).mean(axis=0) + both)


def plain_noise(fits: Any, sums: np.ndarray) -> Any:
    """In place of regression_noise."""
    from calshift.estimators.debiased import RegressionNoise

    covariance = fits.covariance(sums[0])
    return RegressionNoise(fits, covariance, 0 * covariance, np.zeros_like(fits.gradient))


@contextmanager
def changed(*patches: Any) -> Iterator[None]:
    with ExitStack() as stack:
        for one in patches:
            stack.enter_context(one)
        yield


BIAS = "calshift.inference.error_distributions._bias_with_draws"
LINEAR = "calshift.inference.estimate.draw_changes"
NOISE = (
    "calshift.inference.error_distributions.regression_noise",
    "calshift.estimators.debiased.regression_noise",
)
STEPS: dict[str, tuple[str, Callable[[], list[Any]]]] = {
    "default": ("auto", list),
    "without lack of fit": ("auto", lambda: [patch(ORDINARY, 1e9)]),
    "full shrinkage": ("auto", lambda: [patch(SHRINKAGE, (1.0, 1.0))]),
    "em-bcts": ("em-bcts", list),
    "matched": ("matched", list),
    "linear bias": ("auto", lambda: [patch(LINEAR, first_order)]),
    "linear bias, em-bcts": ("em-bcts", lambda: [patch(LINEAR, first_order)]),
    "counts in both parts": ("auto", lambda: [patch(BIAS, counts_in_both)]),
    "plain noise": ("auto", lambda: [patch(name, plain_noise) for name in NOISE]),
}


@cache
def true_error(name: str) -> float:
    if name in NAMED:
        return NAMED[name].true_error()
    simulation = GaussianSimulation(n_classes=30, imbalance=100.0, spread=2.0, seed=30)
    return float(simulation.true_error(rows=200_000))


def measure(name: str, seed: int) -> dict[str, tuple[float, bool, bool]]:
    """Error, whether covered, whether trusted, by step."""
    warnings.simplefilter("ignore")
    if name in NAMED:
        sample = NAMED[name].draw(np.random.default_rng([seed, 17]))[:3]
    else:
        sample = simulated(30, 2000, 500, seed)[:3]
    found = {}
    for step, (weights, patches) in STEPS.items():
        with changed(*patches()):
            result = calshift.target_calibration_error(*sample, weights=weights)
        assert isinstance(result.class_weights, ClassWeights)
        low, high = result.confidence_interval()
        truth = true_error(name)
        found[step] = (result.estimate - truth, bool(low <= truth <= high), result.trusted)
    return found


def table_row(name: str, draws: list[dict[str, Any]], step: str) -> list[str]:
    error, covered, trusted = (np.array([one[step][k] for one in draws]) for k in range(3))
    default = np.array([one["default"][0] for one in draws])
    among = f"{covered[trusted].mean():.2f}" if trusted.any() else "-"
    return [
        name, step, f"{trusted.mean():.2f}", among, f"{error.mean() / default.std():+.2f}",
        f"{np.sqrt((error**2).mean() / (default**2).mean()):.2f}", f"{covered.mean():.2f}",
    ]  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--draws", type=int, default=60)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--write", action="store_true", help="keep the table under results/")
    asked = parser.parse_args()
    head = ["case", "step", "trusted", "covers if trusted", "bias", "RMSE", "covers"]
    table = []
    for name in NAMES:
        true_error(name)
        with ProcessPoolExecutor(asked.jobs) as pool:
            draws = list(pool.map(partial(measure, name), range(asked.draws), chunksize=2))
        for step in STEPS:
            table.append(table_row(name, draws, step))
            print("  ".join(f"{cell:>12}" for cell in table[-1]), flush=True)
    if asked.write:
        write_table("ablation", f"{__doc__}\nDraws: {asked.draws}.", head, table)


if __name__ == "__main__":
    main()
