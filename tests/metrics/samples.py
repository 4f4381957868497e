"""Labelled samples for metrics: with ties, absent classes, one column, and single precision."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

import calshift


def labelled(seed: int, K: int, n: int = 157, *, ties: bool = False) -> tuple[Any, Any]:
    """Predictions (n, K) and labels that agree with them more often than not."""
    rng = np.random.default_rng([seed, K])
    p = rng.dirichlet(np.full(K, 0.8), n)
    if ties:
        p = np.round(p * 4) + (np.round(p * 4).sum(axis=1, keepdims=True) == 0)
        p /= p.sum(axis=1, keepdims=True)
    y = np.array([rng.choice(K, p=0.6 * row + 0.4 / K) for row in p])
    y[:K] = np.arange(K)
    return p, y


def incomplete(seed: int, K: int) -> tuple[Any, Any]:
    """Class 1 is no row's label, class K - 1 is never predicted; class 0 of neither, if K > 3."""
    p, y = labelled(seed, K)
    p[:, K - 1] *= 1e-3
    if K > 3:
        p[:, 0] *= 1e-3
        y[y == 0] = 2
    y[y == 1] = K - 1
    return p / p.sum(axis=1, keepdims=True), y


def pair(seed: int, K: int = 3, n: int = 400, m: int = 300) -> tuple[Any, Any, Any]:
    """p_source, y_source and p_target under label shift."""
    simulation = calshift.simulate.GaussianSimulation(K, imbalance=3, dimensions=2, spread=1.5)
    p, y = simulation.source(n, rng=[seed, 0])
    q, _ = simulation.target(m, rng=[seed, 1])
    return p, y, q


def target_metrics(*args: Any, **options: Any) -> calshift.MetricsResult:
    """Without the test of label shift, and without doubts about weights."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", calshift.UnreliableWeights)
        return calshift.target_metrics(*args, **{"check": False, **options})


def labelled_metrics(*args: Any, **options: Any) -> calshift.MetricsResult:
    """Without doubts about the sample."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", calshift.UnreliableWeights)
        return calshift.labelled_metrics(*args, **options)


def values(result: calshift.MetricsResult) -> dict[str, float]:
    """The estimates by name."""
    return {name: one.estimate for name, one in result.items()}
