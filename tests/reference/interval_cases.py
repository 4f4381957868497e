"""Samples under label shift, and results on them, for the references of intervals."""

from __future__ import annotations

import warnings

import numpy as np
from dense import moved, problems

import calshift
from calshift import Predictions

LEVELS = (0.5, 0.9, 0.95, 0.99)
SHAPES = {"binary": (150, 120, 2), "classwise": (260, 200, 4), "top-label": (130, 170, 3)}
BINS = (5, "auto")


def sample(kind, seed, heat=1.6, sizes=None):
    """Predictions and labels p, y, target predictions q, and weights that fit the true mixes.

    The mix of classes turns round; with heat 1.6 predictions are overconfident.
    """
    n, m, K = sizes or SHAPES[kind]
    rng = np.random.default_rng(seed)
    prior = np.arange(K, 0, -1) / np.arange(1, K + 1).sum()

    def side(size, shares):
        y = rng.choice(K, size, p=shares)
        y[:K] = np.arange(K)
        z = heat * (1.8 * np.eye(K)[y] + rng.normal(size=(size, K)))
        p = np.exp(z - z.max(axis=1, keepdims=True))
        return p / p.sum(axis=1, keepdims=True), y

    (p, y), (q, _) = side(n, prior), side(m, prior[::-1])
    w = prior[::-1] / (np.bincount(y) / n)
    return (p[:, 1], y, q[:, 1], w) if kind == "binary" else (p, y, q, w)


def estimated(p, y, q, weights, **options):
    """A result without the test of label shift; warnings about weights are not the matter here."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", calshift.UnreliableWeights)
        return calshift.target_calibration_error(p, y, q, weights=weights, check=False, **options)


def influences(result, p, y, q):
    """phi of both sides as (n, K), (m, K), with 0 for classes that the source never showed.

    And of what is in neither sample: for auto the distance of the two priors that it combines.
    """
    found, K = result.class_weights, len(result.class_weights)
    outside = np.zeros((0 if found.influence is None else len(found.influence.outside), K))
    out = np.zeros((len(p), K)), np.zeros((len(q), K)), outside
    if found.influence is not None:
        seen = ~np.isnan(found.values)
        outside[:, seen] = found.influence.outside
        out[0][:, seen] = found.influence.source(Predictions(p, y))
        out[1][:, seen] = found.influence.target(Predictions(q))
    return out


def drawn_weights(result):
    """(draws, K) weights from the distribution of estimated ones; None if they are given."""
    found = result.class_weights
    ratios = None if found.influence is None else found.influence.prior_ratios
    if ratios is None:
        return None
    seen, out = ~np.isnan(found.values), np.zeros((len(ratios), len(found)))
    out[:, seen] = ratios * found.values[seen]
    return out


def no_influence(n, m, K):
    """Of weights that are known."""
    return np.zeros((n, K)), np.zeros((m, K)), np.zeros((0, K))


def fits_of(kind, p, y, q, w, bins, phi, stratified=False, drawn=None):
    """The problem of each event, and how the rows move it."""
    todo = problems(kind, p, y, q, w, bins)
    return todo, [moved(one, w, y, *phi, stratified, drawn) for one in todo]
