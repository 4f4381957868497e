"""How long the temperature of least label-free error takes, beside a grid search.

    python benchmarks/label_free_temperature.py [--temperatures 2]        (needs torch)

n = m = 10 000 rows, Gaussian classes. "calshift" is LabelFreeTemperatureScaling().fit, weights
included, the best of three runs. "grid" is 100 temperatures of the paper's estimator as its authors
compute it, weights given: torch tensors, per class and bin two masks over all points, then a Python
loop over the bin's target points. Some temperatures are timed, and their mean counts 100 times.
The last columns are the temperature found, and the debiased error there with true weights.
"""

from __future__ import annotations

import argparse
import time
import warnings
from itertools import pairwise

import numpy as np
import torch
from tables import write_table

import calshift

BINS, GRID = 15, np.linspace(0.1, 20, 100)


def authors_error(p: torch.Tensor, y: torch.Tensor, q: torch.Tensor, w: torch.Tensor) -> float:
    """The paper's classwise CE_2^2 with equal-mass bins, point by point."""
    total = 0.0
    for c in range(p.shape[1]):
        scores, points = p[:, c], q[:, c]
        edges = torch.quantile(points, torch.linspace(0, 1, BINS + 1, dtype=points.dtype))
        edges[0], edges[-1] = 0.0, 1.0
        hit, error = w[y] * (y == c), 0.0
        for low, high in pairwise(edges):
            inside_source = (scores > low) & (scores <= high)
            inside_target = (points > low) & (points <= high)
            if not inside_target.any():
                continue
            share = hit[inside_source].sum() / len(scores) / (inside_target.sum() / len(points))
            for point in points[inside_target]:
                error += abs(point - share) ** 2
        total += float(error) / len(points)
    return total / p.shape[1]


def timed(function, times: int = 1) -> tuple[float, object]:
    best = np.inf
    for _ in range(times):
        start = time.perf_counter()
        found = function()
        best = min(best, time.perf_counter() - start)
    return best, found


def compared(K: int, dimensions: int, temperatures: int) -> list[str]:
    simulation = calshift.simulate.GaussianSimulation(n_classes=K, dimensions=dimensions)
    p, y = simulation.source(10_000, rng=1)
    q, _ = simulation.target(10_000, rng=2)
    ours, fitted = timed(lambda: calshift.LabelFreeTemperatureScaling().fit(p, y, q), 3)
    logs = [torch.log(torch.tensor(x)) for x in (p, q)]
    labels, w = torch.tensor(y), torch.tensor(simulation.class_weights)

    def at(temperature: float) -> float:
        before, after = (torch.softmax(x / temperature, dim=1) for x in logs)
        return authors_error(before, labels, after, w)

    picked = np.linspace(1.0, 2.5, temperatures)
    each = np.mean([timed(lambda t=t: at(t))[0] for t in picked])
    error = calshift.target_calibration_error(
        fitted.transform(p), y, fitted.transform(q), weights=simulation.class_weights,
        interval=None, check=False,
    ).root  # fmt: skip
    print(K, f"{ours:.2f} s, {each:.1f} s for each temperature", flush=True)
    grid = each * len(GRID)
    return [str(K), f"{ours:.2f} s", f"{grid:.0f} s", f"{grid / ours:.0f}",
            f"{fitted.temperature_:.3f}", f"{error:.4f}"]  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--temperatures", type=int, default=2)
    asked = parser.parse_args()
    warnings.simplefilter("ignore")
    rows = [compared(K, d, asked.temperatures) for K, d in ((10, 10), (100, 20))]
    head = ["K", "calshift", "grid", "ratio", "temperature", "error there (root)"]
    about = f"{__doc__}\nTemperatures timed: {asked.temperatures}. Torch {torch.__version__}."
    write_table("label_free_temperature", about, head, rows)


if __name__ == "__main__":
    main()
