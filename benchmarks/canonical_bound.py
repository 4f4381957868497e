"""Does the lower bound of the canonical error hold?

    python benchmarks/canonical_bound.py [--draws 400]

`canonical_error_bound` on Gaussian simulations in which the prediction determines the posterior, so
that the canonical error is the plain mean of |posterior - prediction|^2 (or of the divergence, for
the log loss), and the gain of any recalibrator a mean too. "Covered" is the share of 95% intervals
that contain the gain of the recalibrators of that draw, "valid" the share of 95% bounds that are at
most the canonical error, "positive" the share of bounds above 0, and "found" the mean bound divided
by the error, both as roots. An error of 0 is that of a calibrated model. Half of the draws for
ten classes, an eighth for 50.
"""

from __future__ import annotations

import argparse
import warnings
from typing import ClassVar, NamedTuple

import numpy as np
from tables import write_table

import calshift
from calshift.bounds.recalibration_gain import FLOOR, MIXED
from calshift.simulate import GaussianSimulation

ROWS = 10_000  # of the reference draw


class Case(NamedTuple):
    """A simulation and what is asked."""

    labels: bool
    loss: str
    K: int
    n: int
    temperature: float = 0.6
    imbalance: float = 10.0

    @property
    def simulation(self) -> GaussianSimulation:
        return GaussianSimulation(
            n_classes=self.K, dimensions=min(self.K, 10), temperature=self.temperature,
            imbalance=self.imbalance, spread=0.7 if self.K > 10 else 1.0, seed=2,
        )  # fmt: skip

    @property
    def domain(self) -> str:
        return "source" if self.labels else "target"


CASES = [
    Case(True, "brier", 3, 1000),
    Case(True, "brier", 3, 1000, 1.0),
    Case(True, "brier", 10, 1000),
    Case(True, "brier", 50, 2000),
    Case(True, "brier", 50, 2000, 1.0),
    Case(True, "log", 3, 1000),
    Case(False, "brier", 3, 1000),
    Case(False, "brier", 3, 1000, 0.9, 2.0),
    Case(False, "brier", 3, 1000, 1.0, 1.0),
    Case(False, "brier", 10, 1000),
    Case(False, "brier", 50, 2000),
    Case(False, "brier", 50, 2000, 1.0, 1.0),
]


class RecordedScaling(calshift.ShiftScaling):
    """Remembers the recalibrators that are fitted to all folds but one."""

    fitted: ClassVar[list[calshift.ShiftScaling]] = []

    def _clone(self) -> RecordedScaling:
        made = super()._clone()
        self.fitted.append(made)
        return made


def difference(before: np.ndarray, after: np.ndarray, posterior: np.ndarray, loss: str) -> float:
    """The mean loss of some predictions minus that of others."""
    if loss == "brier":
        gain = before**2 - after**2 - 2 * posterior * (before - after)
    else:
        mixed = (1 - MIXED) * after + MIXED / after.shape[1]
        gain = posterior * (np.log(mixed) - np.log(np.maximum(before, FLOOR)))
    return float(gain.sum(axis=1).mean())


def canonical_error(f: np.ndarray, posterior: np.ndarray, loss: str) -> float:
    if loss == "brier":
        return float(((posterior - f) ** 2).sum(axis=1).mean())
    ratio = np.log(np.maximum(posterior, 1e-300)) - np.log(np.maximum(f, 1e-300))
    return float((posterior * ratio).sum(axis=1).mean())


def measure(case: Case, draws: int) -> np.ndarray:
    """(draws, 4): standard score of the gain's error, gain, bound, own gain."""
    f, _, posterior = case.simulation.draw(ROWS, case.domain, rng=0)
    found = []
    for seed in range(draws):
        rows = case.simulation.source(case.n, rng=[seed, 1])
        if not case.labels:
            rows = (*rows, case.simulation.target(case.n, rng=[seed, 2])[0])
        RecordedScaling.fitted.clear()
        bound = calshift.canonical_error_bound(
            *rows, loss=case.loss, method=RecordedScaling(), rng=seed, check=False
        )
        fits = RecordedScaling.fitted[-bound.folds :]
        own = np.mean([difference(f, fit.transform(f), posterior, case.loss) for fit in fits])
        z = (bound.gain - own) / bound.standard_error
        found.append((z, bound.gain, bound.lower_bound(), own))
    return np.array(found)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--draws", type=int, default=400)
    draws, rows = parser.parse_args().draws, []
    warnings.simplefilter("ignore", calshift.UnreliableWeights)
    for case in CASES:
        f, _, posterior = case.simulation.draw(200_000, case.domain, rng=3)
        calibrated = case.temperature == 1 and (case.labels or case.imbalance == 1)
        truth = 0.0 if calibrated else canonical_error(f, posterior, case.loss)
        number = -(-draws // {3: 1, 10: 2, 50: 8}[case.K])
        z, gain, bound, own = measure(case, number).T
        ratio = "" if calibrated else f"{np.mean(np.sqrt(bound)) / truth**0.5:.2f}"
        rows.append([
            "labels" if case.labels else "label-free", case.loss, str(case.K), str(case.n),
            f"{case.temperature:g}", f"{case.imbalance:g}", str(number), f"{truth:.4f}",
            f"{own.mean():.4f}", f"{gain.mean():.4f}", f"{z.std():.2f}",
            f"{np.mean(np.abs(z) < 1.96):.3f}", f"{np.mean(bound <= truth):.3f}",
            f"{np.mean(bound > 0):.2f}", ratio,
        ])  # fmt: skip
        print(*rows[-1], flush=True)
    head = [
        "sample", "loss", "K", "n = m", "temperature", "imbalance", "draws", "error", "own gain",
        "mean estimate", "sd of z", "covered", "valid", "positive", "found",
    ]  # fmt: skip
    write_table("canonical_bound", f"{__doc__}\nDraws: {draws}.", head, rows)


if __name__ == "__main__":
    main()
