"""Changes of the error of an estimate when some target rows come from another distribution.

    python benchmarks/drift_sensitivity.py

A share "drift" of the target's rows is replaced; the others stay the same. "measured" is the
change of estimate - error, the error being that of the debiased estimator with all target labels
on the same rows. "formula" is drift x E[h - psi] over the rows that replace others, from the target
before; it leaves out the second-order term of the error, which lowers estimate - error. "bounds"
are the largest changes downwards and upwards that the result on the changed target reports.
50 000 source rows, 100 000 target rows. The other distributions:

other labels      rows of the target with a random other label
cluster           a new Gaussian in the space of features, with random labels
source            rows of the source
worst labels      rows of the target with the label that changes most, downwards or upwards
worst tenth       the tenth of the rows in which that is largest, with those labels
worst hundredth   the same for a hundredth, which is not covered: the other distribution is assumed
                  to be spread over a tenth of the target's rows
"""

from __future__ import annotations

import warnings
from typing import Any, ClassVar

import numpy as np
from tables import write_table

import calshift
from calshift.estimators.regression import sign
from calshift.inference import influence_sums
from calshift.inference.drift_sums import DriftTerms

N, M = 50_000, 100_000
HEAD = ["K", "norm", "weights", "distribution", "drift", "measured", "formula", "bounds", "within"]


class Recorded(DriftTerms):
    """Keeps h - psi of each row for each label."""

    kept: ClassVar[list[np.ndarray]] = []

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.by_label: list[np.ndarray] = []

    def add(self, block: Any) -> None:
        super().add(block)
        g = block.at_bins(self.tables.fits.value)
        self.by_label.append(2 * g if self.signs is None else sign(g))

    def largest(self, phi: np.ndarray) -> np.ndarray:
        through, _ = self._through_weights(phi)
        h = self.first + through - np.concatenate(self.by_label)
        Recorded.kept.append(h.T / len(self.tables.fits.value))
        return super().largest(phi)


def estimate(case: Any, target: np.ndarray, norm: float, weights: Any) -> Any:
    """The label-free result."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return calshift.target_calibration_error(
            *case, target, norm=norm, weights=weights, check=False
        )


def deviation(result: Any, target: np.ndarray, labels: np.ndarray, norm: float) -> float:
    """estimate - error."""
    return float(
        result.estimate
        - calshift.calibration_error(target, labels, norm=norm, interval=None).estimate
    )


def other_rows(
    name: str, simulation: Any, pair: tuple[np.ndarray, np.ndarray], change: np.ndarray, count: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Predictions and labels of another distribution, and h - psi of its rows if it is known."""
    rng, (p, y), K = np.random.default_rng(7), pair, simulation.n_classes
    rows = np.arange(len(y) - count, len(y))
    if name == "other labels":
        labels = (y[rows] + rng.integers(1, K, count)) % K
    elif name.startswith("worst labels"):
        labels = (-change if name.endswith("down") else change)[rows].argmax(axis=1)
    elif name.startswith("worst"):
        share = 0.1 if "tenth" in name else 0.01
        signed = -change if name.endswith("down") else change
        largest = np.argsort(-signed.max(axis=1))[: int(share * len(y))]
        rows = rng.choice(largest, count)
        labels = signed[rows].argmax(axis=1)
    elif name == "source":
        p, y = simulation.source(count, rng=9)
        return p, y, np.zeros(0)
    else:
        x = simulation.means.mean(axis=0) + 1.5 + rng.normal(size=(count, simulation.dimensions))
        likelihood = x @ simulation.means.T - (simulation.means**2).sum(axis=1) / 2
        logits = likelihood + np.log(simulation.prior("source"))
        made = calshift.softmax(logits / simulation.temperature)
        return made, rng.integers(0, K, count), np.zeros(0)
    return p[rows], labels, change[rows, labels]


def compared(K: int, norm: float, known: bool) -> list[list[str]]:
    """One case: all distributions at two sizes of the drift."""
    simulation = calshift.simulate.GaussianSimulation(
        n_classes=K, dimensions=5, spread=0.6, imbalance=5
    )
    source, (p, y) = simulation.source(N, rng=1), simulation.target(M, rng=2)
    weights = simulation.class_weights if known else "em-bcts"
    Recorded.kept = []
    before = estimate(source, p, norm, weights)
    change = np.concatenate(Recorded.kept)
    base, rows = deviation(before, p, y, norm), []
    names = ["other labels", "cluster", "source"]
    names += [f"{name} {way}" for name in ("worst labels", "worst tenth", "worst hundredth")
              for way in ("down", "up")]  # fmt: skip
    for name in names:
        for drift in (0.01, 0.05):
            count = int(drift * M)
            other, labels, known_change = other_rows(name, simulation, (p, y), change, count)
            target = np.concatenate([p[: M - count], other])
            truth = np.concatenate([y[: M - count], labels])
            after = estimate(source, target, norm, weights)
            measured = deviation(after, target, truth, norm) - base
            formula = drift * known_change.mean() if len(known_change) else np.nan
            bound = after.drift_sensitivity(drift)
            within = -bound.too_low <= measured <= bound.too_high
            rows.append([
                str(K), f"{norm:g}", "given" if known else weights, name, f"{drift:g}",
                f"{measured:+.5f}", "" if np.isnan(formula) else f"{formula:+.5f}",
                f"{-bound.too_low:+.5f} to {bound.too_high:+.5f}", "yes" if within else "no",
            ])  # fmt: skip
    return rows


def main() -> None:
    influence_sums.DriftTerms = Recorded  # type: ignore[misc]
    rows = [
        row
        for K in (2, 4)
        for norm in (2.0, 1.0)
        for known in (False, True)
        for row in compared(K, norm, known)
    ]
    write_table("drift_sensitivity", __doc__ or "", HEAD, rows)


if __name__ == "__main__":
    main()
