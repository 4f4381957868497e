"""Label shift to find weights for: the paper's tasks A and B, on saved or simulated predictions."""

from __future__ import annotations

import warnings
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from peers import inverse, quapy_emq_bcts
from real_predictions import load

import calshift

FACTORS = (2, 10, 100)
SIMULATIONS = {  # the truth is known, and the predictor is what they say
    "gaussian 3": {"n_classes": 3, "dimensions": 3, "seed": 11},
    "gaussian 10": {"n_classes": 10, "dimensions": 10, "seed": 12},
    "gaussian 10, calibrated": {"n_classes": 10, "dimensions": 6, "temperature": 1.0, "seed": 13},
    "gaussian 50, underconfident": {
        "n_classes": 50,
        "dimensions": 12,
        "temperature": 1.5,
        "seed": 14,
    },
}
Sample = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]  # p, y of source; p, y of target


@cache
def saved(path: Path) -> tuple[np.ndarray, np.ndarray]:
    return load(path)


def resampled(path: Path, task: str, factor: float, seed: int) -> Sample:
    return halved(*saved(path), task, factor, seed)


def halved(p: np.ndarray, y: np.ndarray, task: str, factor: float, seed: int) -> Sample:
    """Halves of the rows: A has a long-tailed source, B a long-tailed target, the other is even."""
    rng = np.random.default_rng([seed, int(factor), task == "A"])
    order = rng.permutation(len(y))
    halves = [order[: len(y) // 2], order[len(y) // 2 :]]
    factors = (factor, 1) if task == "A" else (1, factor)
    parts = [
        half[calshift.resample_label_shift(y[half], imbalance_factor=f, rng=rng)]
        for half, f in zip(halves, factors, strict=True)
    ]
    return p[parts[0]], y[parts[0]], p[parts[1]], y[parts[1]]


def simulated(name: str, task: str, factor: float, seed: int) -> Sample:
    side = "source" if task == "A" else "target"
    simulation = calshift.simulate.GaussianSimulation(
        **SIMULATIONS[name], imbalance=factor, long_tail=side
    )
    rng = np.random.default_rng([seed, int(factor), task == "A"])
    return *simulation.source(3000, rng), *simulation.target(3000, rng)


def drawn(data: Any, task: str, factor: float, seed: int) -> Sample:
    draw = resampled if isinstance(data, Path) else simulated
    return draw(data, task, factor, seed)


def prior_and_weights(name: str, sample: Sample) -> tuple[np.ndarray, np.ndarray]:
    p, y, q, _ = sample
    share = np.bincount(y, minlength=p.shape[1]) / len(y)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if name == "quapy":
            prior = quapy_emq_bcts(p, y, q)
            return prior, np.divide(prior, share, out=np.zeros(len(share)), where=share > 0)
        if name == "inverse":
            w = inverse(p, y, q)
            return share * w, w
        found = calshift.label_shift_weights(p, y, q, method=name)
        return found.prior_target, np.nan_to_num(found.values)
