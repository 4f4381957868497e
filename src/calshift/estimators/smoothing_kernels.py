"""Kernels on the simplex and on the line, in place of "same bin". (docs/mathematics.md 3)

A kernel gives log k(f_j, f_i) for a block of points f_j against all points f_i, through matrix
products only: no array of n * m * K is ever made.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from calshift._core.validate import validate_choice

LogKernel = Callable[[np.ndarray, np.ndarray, float], np.ndarray]
SMALLEST = 1e-300  # stands for an exact zero inside log
ROUNDING = 1e-9  # of a mean log-likelihood
EDGE = 1e-12


def log_dirichlet(at: np.ndarray, centres: np.ndarray, bandwidth: float) -> np.ndarray:
    """log density at f_j of Dirichlet(f_i / h + 1), constants included."""
    from scipy.special import gammaln  # late: importing calshift must be fast

    alpha = centres / bandwidth + 1
    constant = gammaln(alpha.sum(axis=1)) - gammaln(alpha).sum(axis=1)
    log = np.log(np.maximum(at, SMALLEST)) @ (alpha - 1).T + constant
    zero = at == 0
    if zero.any():  # the density is 0 where f_j has a zero that f_i has not
        log[zero.astype(float) @ (centres > 0).T.astype(float) > 0] = -np.inf
    return np.asarray(log)


def log_triweight(at: np.ndarray, centres: np.ndarray, bandwidth: float) -> np.ndarray:
    """3 log(1 - d^2 / h^2) within the distance h, else -inf; (K - 1) log h makes it a density."""
    square = (at**2).sum(axis=1)[:, None] + (centres**2).sum(axis=1) - 2 * at @ centres.T
    inside = 1 - np.maximum(square, 0.0) / bandwidth**2
    inside[inside < EDGE] = 0.0  # at the distance h, up to rounding
    with np.errstate(divide="ignore"):
        log = 3 * np.log(inside)
    dimensions = max(at.shape[1] - 1, 1)
    return np.asarray(log - dimensions * np.log(bandwidth))


KERNELS: dict[str, LogKernel] = {"dirichlet": log_dirichlet, "triweight": log_triweight}


BINNING = "binning"  # the paper's kernel on the simplex: 1 in the same cell, else 0


def log_kernel(name: str) -> LogKernel:
    """The kernel of that name."""
    return KERNELS[validate_choice(name, "kernel", KERNELS, ", or None for bins")]


def choose_bandwidth(name: str, points: np.ndarray, weight: np.ndarray) -> float:
    """The bandwidth with the largest leave-one-out likelihood of the points, on a grid.

    Of several that are equal up to rounding it is the widest.

    Equal points count as one of more weight, which is left out whole; else copies of a point
    would be its best neighbours at any width. The likelihood is taken at no more than 1000 points,
    evenly spaced in the order of their coordinates, against all.
    """
    points, copy = np.unique(points, axis=0, return_inverse=True)
    weight = np.bincount(copy.ravel(), weight)
    grid = np.geomspace(1e-3, 1.0, 13) if name == "dirichlet" else np.geomspace(0.01, 1.5, 13)
    likelihood = np.array([left_out_likelihood(name, points, weight, h) for h in grid])
    best = likelihood.max()
    return float(grid[likelihood >= best - ROUNDING * abs(best)].max())


def left_out_likelihood(
    name: str, points: np.ndarray, weight: np.ndarray, bandwidth: float, most: int = 1000
) -> float:
    """Mean over points j of log sum_{i != j} k(f_j, f_i), up to a constant.

    A point nobody reaches counts with the smallest density a float can hold, so that compact
    kernels stay wide enough to see every point.
    """
    chosen = np.arange(0, len(points), -(-len(points) // most))
    log = log_kernel(name)(points[chosen], points, bandwidth) + np.log(weight)
    log[np.arange(len(chosen)), chosen] = -np.inf
    top = log.max(axis=1, initial=np.log(SMALLEST))
    density = top + np.log(np.maximum(np.exp(log - top[:, None]).sum(axis=1), SMALLEST))
    return float(np.average(density, weights=weight[chosen]))


def leave_one_out(log: np.ndarray, weight: np.ndarray, first: int) -> None:
    """Weigh the columns, in place, and take one unit of each block row's own point away."""
    log += np.log(weight)
    row = np.arange(len(log))
    with np.errstate(divide="ignore"):
        own = weight[first + row]
        log[row, first + row] += np.log(np.maximum(own - 1, 0.0) / own)


def normalised(log: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """exp(log) with rows summing to 1, and the log of their sums (-inf for a row without mass)."""
    top = log.max(axis=1)
    rows = np.exp(log - np.where(np.isfinite(top), top, 0.0)[:, None])
    sums = rows.sum(axis=1)
    with np.errstate(divide="ignore"):
        log_sums = np.where(sums > 0, top + np.log(np.maximum(sums, SMALLEST)), -np.inf)
    rows /= np.where(sums > 0, sums, 1.0)[:, None]
    return rows, log_sums


def rows_per_block(columns: int, budget: int = 4_000_000) -> int:
    """Rows whose block of pairs stays within the budget of numbers."""
    return max(1, budget // max(columns, 1))


def as_points(score: Any, kernel: str) -> np.ndarray:
    """Scores on the line as points: (1 - f, f) on the simplex, or f alone for a distance."""
    score = np.asarray(score, dtype=float)
    return np.stack([1 - score, score], axis=1) if kernel == "dirichlet" else score[:, None]
