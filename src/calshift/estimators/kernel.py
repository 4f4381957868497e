"""Kernel estimators, pair by pair: canonical error, and the other kinds on the line.

    paper:       R_j = [ (1/n) sum_i k_ji w_i y_i ] / [ 1/(m-1) sum_{i != j} k_ji ]
    plug-in:     g_j = sum_i a_ji u_i,     a_ji = w_i k_ji / sum_i w_i k_ji,     u_i = y_i - f_i
    debiased:    subtracts  s_j^2 = sum_i a_ji^2 e_ji^2 / (1 - 2 a_ji + S_j) - 2 g_j (r_j - r0_j),
                 e_ji = u_i - g_j,     S_j = sum_i a_ji^2,     r_j = sum_i a_ji^2 e_ji / (1 - a_ji),
                 r0_j: the same with all weights 1

Each coordinate of a vector is treated alone and |.|^p is summed over them. (docs/mathematics.md 3)
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from calshift.estimators.folded_normal import unfold
from calshift.estimators.smoothing_kernels import (
    LogKernel,
    choose_bandwidth,
    leave_one_out,
    log_kernel,
    normalised,
    rows_per_block,
)

SMALLEST_GAP = 1e-9
NEAREST = 10  # source points that stand in where a compact kernel reaches none
LARGEST_LOG = 600.0  # of |R|^p, so that an absurd ratio stays a number


@dataclass(frozen=True)
class Sample:
    """Points for the kernel, scores (n, C), outcomes (n, C) if labelled, frequency weights (n,)."""

    points: np.ndarray
    score: np.ndarray
    outcome: np.ndarray | None
    weight: np.ndarray

    @cached_property
    def residual(self) -> np.ndarray:
        """u = outcome - score."""
        assert self.outcome is not None
        return np.asarray(self.outcome - self.score)


def kernel_error(
    source: Sample,
    target: Sample | None,
    class_weight: np.ndarray,
    norm: float,
    estimator: str,
    kernel: str,
    bandwidth: float | str,
) -> tuple[float, int]:
    """The error, and how many points had no neighbour; target None means labelled."""
    at = source if target is None else target
    k = log_kernel(kernel)
    h = choose_bandwidth(kernel, at.points, at.weight) if bandwidth == "auto" else float(bandwidth)
    total, isolated, step = 0.0, 0, rows_per_block(max(len(source.points), len(at.points)))
    for start in range(0, len(at.points), step):
        block = slice(start, start + step)
        if estimator != "paper":
            value, few = _self_normalised(source, at, block, class_weight, k, h)
            gap = unfold(*value, norm) if estimator == "debiased" else np.abs(value[0]) ** norm
        else:
            R, few = _paper_ratio(source, target, block, class_weight, k, h, norm)
            gap = np.abs(R - at.score[block]) ** norm
        total += float(at.weight[block] @ gap.sum(axis=1))
        isolated += few
    return total / float(at.weight.sum()), isolated


def _self_normalised(
    source: Sample, at: Sample, block: slice, class_weight: np.ndarray, k: LogKernel, h: float
) -> tuple[tuple[np.ndarray, np.ndarray], int]:
    """(g_j, s_j^2) of a block."""
    mass = source.weight * class_weight
    log = k(at.points[block], source.points, h)
    log[:, mass == 0] = -np.inf
    few = _reach_nearest(log, at.points[block], source.points, mass, least=2)
    a, _ = normalised(_weighed(log.copy(), mass))
    single = a / np.maximum(source.weight, 1.0)  # of one unit where a row counts several times
    g = a @ source.residual
    S = (a * single).sum(axis=1, keepdims=True)
    q = a * single / np.maximum(1 - 2 * single + S, SMALLEST_GAP)
    square = q @ source.residual**2 - 2 * g * (q @ source.residual)
    variance = square + g**2 * q.sum(axis=1, keepdims=True)
    used = class_weight[mass > 0]
    if used.min() < used.max():  # w depends on the label, so the ratio has a bias of its own
        plain, _ = normalised(_weighed(log, source.weight))
        lean = _lean(a, g, source) - _lean(plain, plain @ source.residual, source)
        variance = variance - 2 * g * lean
    return (g, variance), few


def _lean(a: np.ndarray, g: np.ndarray, source: Sample) -> np.ndarray:
    """r_j = sum_i a_ji^2 e_ji / (1 - a_ji): minus the bias of a ratio with these weights."""
    single = a / np.maximum(source.weight, 1.0)
    q = a * single / np.maximum(1 - single, SMALLEST_GAP)
    return np.asarray(q @ source.residual - g * q.sum(axis=1, keepdims=True))


def _paper_ratio(
    source: Sample,
    target: Sample | None,
    block: slice,
    class_weight: np.ndarray,
    k: LogKernel,
    h: float,
    norm: float,
) -> tuple[np.ndarray, int]:
    """R_j of a block, paper eq. 8, or its labelled form with the point itself left out."""
    assert source.outcome is not None
    at = source if target is None else target
    others = k(at.points[block], at.points, h)
    leave_one_out(others, at.weight, block.start)
    if target is None:
        own = np.arange(block.start, block.start + len(others))
        few = _reach_nearest(others, at.points[block], at.points, at.weight, own)
        return normalised(others)[0] @ source.outcome, few
    mass = source.weight * class_weight
    log = _weighed(k(at.points[block], source.points, h), mass)
    alone = ~np.isfinite(others).any(axis=1)
    rows, log_source = normalised(log)
    _, log_target = normalised(others)
    log_target[alone] = 0.0
    scale = np.exp(np.minimum(log_source - log_target, LARGEST_LOG / norm))
    scale *= (at.weight.sum() - 1) / source.weight.sum()
    if alone.any():  # no target point defines the denominator: the source's own ratio stands in
        near = log[alone]
        _reach_nearest(near, at.points[block][alone], source.points, mass)
        rows[alone], scale[alone] = normalised(near)[0], 1.0
    return (rows @ source.outcome) * scale[:, None], int(alone.sum())


def _weighed(log: np.ndarray, mass: np.ndarray) -> np.ndarray:
    with np.errstate(divide="ignore"):
        log += np.log(mass)
    return log


def _reach_nearest(
    log: np.ndarray,
    at: np.ndarray,
    centres: np.ndarray,
    mass: np.ndarray,
    own: np.ndarray | None = None,
    least: int = 1,
) -> int:
    """Rows that reach fewer than ``least`` points take their nearest, in place; how many did."""
    few = np.flatnonzero(np.isfinite(log).sum(axis=1) < least)
    usable = np.flatnonzero(mass > 0)
    for row in few:
        others = usable if own is None or mass[own[row]] > 1 else usable[usable != own[row]]
        distance = ((centres[others] - at[row]) ** 2).sum(axis=1)
        log[row, others[np.argsort(distance, kind="stable")[:NEAREST]]] = 0.0
    return len(few)
