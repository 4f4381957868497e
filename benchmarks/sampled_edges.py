"""How far edges of a sample of the target move an answer, in its standard errors.

    python benchmarks/sampled_edges.py [--draws 10]

bin_edges of some of the target's rows, drawn at random, in the place of those of all; weights
given. The estimate and both ends of its 95% interval: the mean over draws, and the largest move. A
fixed number of bins has an error of its own that depends on where they are cut, and does not shrink
with n as the standard error does; hats hardly have one.
"""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np
from tables import write_table

import calshift

SIMULATIONS = {
    "the paper's": lambda seed: calshift.simulate.BetaSimulation(),
    "2 Gaussian classes": lambda seed: gaussian(2, seed),
    "10 Gaussian classes": lambda seed: gaussian(10, seed),
}
SIZES = ((20_000, 5_000), (200_000, 20_000), (200_000, 100_000))  # rows, and those drawn
ASKED: list[tuple[Any, float]] = [("auto", 2), ("auto", 1), (15, 2), (15, 1)]
HEAD = ["simulation", "n = m", "rows drawn", "bins", "norm", "estimate", "lower end", "upper end"]


def gaussian(K: int, seed: int) -> Any:
    return calshift.simulate.GaussianSimulation(
        n_classes=K, imbalance=5, temperature=0.7, seed=seed
    )


def moved(simulation: Any, n: int, some: int, seed: int) -> np.ndarray:
    """(asked, 3) moves of the estimate and the ends."""
    (p, y), (q, _) = simulation.source(n, rng=seed), simulation.target(n, rng=1000 + seed)
    drawn = q[np.random.default_rng(seed).choice(n, some, replace=False)]
    kind = "binary" if q.ndim == 1 else "classwise"
    found = []
    for bins, norm in ASKED:
        edges = calshift.bin_edges(drawn, kind=kind, bins=bins)
        one, other = (
            calshift.target_calibration_error(
                p, y, q, weights=simulation.class_weights, check=False, bins=b, norm=norm
            )
            for b in (bins, edges)
        )
        ends = np.subtract(one.confidence_interval(), other.confidence_interval())
        found.append(np.abs([one.estimate - other.estimate, *ends]) / one.standard_error)
    return np.array(found)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--draws", type=int, default=10)
    draws = parser.parse_args().draws
    rows = []
    for name, made in SIMULATIONS.items():
        for n, some in SIZES:
            found = np.array([moved(made(seed), n, some, seed) for seed in range(draws)])
            for (bins, norm), mean, most in zip(ASKED, found.mean(0), found.max(0), strict=True):
                ends = [f"{a:.3f} ({b:.3f})" for a, b in zip(mean, most, strict=True)]
                rows.append([name, f"{n:,}", f"{some:,}", str(bins), str(norm), *ends])
            print(name, n, some, flush=True)
    write_table("sampled_edges", __doc__, HEAD, rows)


if __name__ == "__main__":
    main()
