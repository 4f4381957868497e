"""Weights by matching other moments than a confusion matrix: elsa and kmm.

docs/mathematics.md section 7; paper, section on importance weights.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from calshift._core.frozen import Frozen
from calshift._core.predictions import Predictions
from calshift.engines.base import Engine
from calshift.weights.influence import WeightFit
from calshift.weights.moment_matching import (
    linear_moments,
    moment_sizes,
    solve_matched_prior,
    solve_moment_matching,
)

LEAST_WEIGHT = 0.1  # in elsa's features: a smaller one would dominate the moments
MOST_ROUNDS = 30
TOLERANCE = 1e-8
LEAST_LANDMARKS = 200


@dataclass(frozen=True, eq=False)
class EfficientFeatures(Frozen):
    """elsa's features b = p / [ (p . w^2) / rho + (p . w) / (1 - rho) ]; plain p for w = None."""

    seen: np.ndarray
    weights: np.ndarray | None = None
    rho: float = 0.5

    def __call__(self, batch: Predictions) -> np.ndarray:
        p = np.asarray(batch.matrix[:, self.seen], dtype=float)
        if self.weights is None:
            return p
        noise = (p @ (self.weights**2 / self.rho + self.weights / (1 - self.rho)))[:, None]
        return np.asarray(np.divide(p, noise, out=np.zeros(p.shape), where=noise > 0))


def elsa(source: Engine, target: Engine, class_counts: np.ndarray) -> WeightFit:
    """Efficient label shift adaptation: moments whose features are weighted by their own noise.

    The noise depends on the weights: they are iterated, starting from those of bbse-soft, with
    smaller steps where the iteration oscillates.
    """
    n, m = class_counts.sum(), target.total(lambda batch: batch.size)
    features = EfficientFeatures(class_counts > 0, None, float(n / (n + m)))
    moments = linear_moments(features, source, target, class_counts, products=False)
    w, step, last = solve_matched_prior(moments, moment_sizes(moments)) / moments.prior, 1.0, np.inf
    for rounds in range(1, MOST_ROUNDS + 1):
        features = replace(features, weights=np.maximum(w, LEAST_WEIGHT))
        moments = linear_moments(features, source, target, class_counts, products=False)
        change = solve_matched_prior(moments, moment_sizes(moments)) / moments.prior - w
        size = float(np.abs(change).max())
        converged = bool(size < TOLERANCE * max(1.0, w.max()))
        if converged or rounds == MOST_ROUNDS:
            break
        if size > 0.9 * last:
            step = max(step / 2, 1 / 16)
        w, last = w + step * change, size
    found = solve_moment_matching(features, moments, target, features.seen, moment_sizes(moments))
    return replace(found, iterations=rounds, converged=converged)


@dataclass(frozen=True, eq=False)
class LandmarkFeatures(Frozen):
    """kmm's features psi = K_LL^(-1/2) k_L(x): psi . psi' is a Gaussian kernel on sqrt(p).

    points : (L, K) square roots of probabilities;  width : the kernel is exp(-d^2 / 2 width^2)
    """

    points: np.ndarray
    width: float
    root: np.ndarray

    def __call__(self, batch: Predictions) -> np.ndarray:
        near = np.exp(-_distances(np.sqrt(batch.matrix), self.points) / (2 * self.width**2))
        return np.asarray(near @ self.root)


def kmm(source: Engine, target: Engine, class_counts: np.ndarray) -> WeightFit:
    """Kernel mean matching of the class-conditional means, through landmarks."""
    L = max(LEAST_LANDMARKS, 2 * int(np.count_nonzero(class_counts)))
    features = _make_features(source.total(lambda batch: HashSample.of(batch, L)).points)
    moments = linear_moments(features, source, target, class_counts)
    return solve_moment_matching(features, moments, target, class_counts > 0)


def _make_features(points: np.ndarray) -> LandmarkFeatures:
    """Features of landmarks: the width is the median distance, null directions are left out."""
    d2 = _distances(points, points)
    apart = d2[np.triu_indices(len(points), 1)]
    width = float(np.sqrt(np.median(apart))) if len(apart) else 1.0
    width = width or 1.0
    value, vector = np.linalg.eigh(np.exp(-d2 / (2 * width**2)))
    kept = value > 1e-10 * value[-1]
    return LandmarkFeatures(points, width, vector[:, kept] / np.sqrt(value[kept]))


def _distances(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Squared Euclidean distances between rows."""
    square = (a**2).sum(axis=1)[:, None] + (b**2).sum(axis=1) - 2 * (a @ b.T)
    return np.asarray(np.maximum(square, 0.0))


@dataclass(frozen=True)
class HashSample:
    """A random sample of distinct rows that can be added: those with the smallest hashes.

    The hash does not depend on the order of the classes: permutations of a row are all in the
    sample, or none of them.
    """

    size: int
    hashes: np.ndarray
    points: np.ndarray

    @staticmethod
    def of(batch: Predictions, size: int) -> HashSample:
        p = np.ascontiguousarray(batch.matrix, dtype=float) + 0.0  # no negative zeros
        hashes = _scramble(_scramble(p.view(np.uint64)).sum(axis=1))
        return HashSample._select(size, hashes, np.sqrt(p))

    @staticmethod
    def _select(size: int, hashes: np.ndarray, points: np.ndarray) -> HashSample:
        last = np.unique(hashes)[:size][-1]
        among = hashes <= last
        points, first = np.unique(points[among], axis=0, return_index=True)
        return HashSample(size, hashes[among][first], points)

    def __add__(self, other: Any) -> HashSample:
        if not isinstance(other, HashSample):
            return self if isinstance(other, int) and other == 0 else NotImplemented
        hashes = np.concatenate([self.hashes, other.hashes])
        return HashSample._select(self.size, hashes, np.concatenate([self.points, other.points]))

    __radd__ = __add__


def _scramble(bits: np.ndarray) -> np.ndarray:
    """A hash of 64 bits (the finaliser of splitmix64)."""
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        bits = (bits ^ (bits >> np.uint64(shift))) * np.uint64(factor)
    return np.asarray(bits ^ (bits >> np.uint64(31)))
