"""Samples for the laws: small, random, with ties and exact zeros where asked."""

from __future__ import annotations

import warnings

import numpy as np

import calshift

KINDS = ("binary", "classwise", "top-label", "canonical")
BINNED = KINDS[:3]


def labelled(rng: np.random.Generator, n: int, K: int, tied: bool = False):
    """Overconfident predictions and labels that hold every class at least twice."""
    p = rng.dirichlet(np.full(K, 0.7), n)
    if tied:
        p = np.round(p * 8)
        p[p.sum(axis=1) == 0] = 1
        p /= p.sum(axis=1, keepdims=True)
    y = np.array([rng.choice(K, p=0.7 * row + 0.3 / K) for row in p])
    y[: 2 * K] = np.tile(np.arange(K), 2)
    return p, y


def pair(seed: int, kind: str, n: int = 90, m: int = 70, K: int = 3, tied: bool = False):
    """(p_source, y_source, p_target, w) with weights that fit the source's class shares."""
    rng = np.random.default_rng(seed)
    K = 2 if kind == "binary" else K
    p, y = labelled(rng, n, K, tied)
    q, _ = labelled(rng, m, K, tied)
    w = rng.uniform(0.4, 2.0, K)
    w /= w[y].mean()
    return (p[:, 1], y, q[:, 1], w) if kind == "binary" else (p, y, q, w)


def free(p, y, q, w, **options) -> float:
    """The estimate alone; these samples are no label shift, so the assumption is not tested."""
    result = calshift.target_calibration_error(p, y, q, weights=w, check=False, **options)
    return result.estimate


def result_of(p, y, q, w, **options) -> calshift.CalibrationErrorResult:
    """The whole result; doubts about odd weights are not the matter of a law."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", calshift.UnreliableWeights)
        return calshift.target_calibration_error(p, y, q, weights=w, check=False, **options)


def drawn(seed: int, kind: str = "classwise", n: int = 400, m: int = 350, K: int = 3):
    """A sample under label shift of an overconfident model: p, y, q and the true weights."""
    if kind == "binary":
        simulation = calshift.simulate.BetaSimulation()
    else:
        simulation = calshift.simulate.GaussianSimulation(K, imbalance=4, dimensions=3)
    p, y = simulation.source(n, rng=[0, *np.atleast_1d(seed)])
    q, _ = simulation.target(m, rng=[1, *np.atleast_1d(seed)])
    return p, y, q, simulation.class_weights
