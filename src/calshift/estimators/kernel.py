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
NEAREST = 10  # units of the source that stand in where a compact kernel reaches none
ROUNDING = 1e-9  # of a distance
ERRORS = (-2.0, 2.0)  # no error is larger, nor has a larger correction for noise a meaning
LARGEST_LOG = 300.0  # of |R|^p, so that an absurd ratio and its square stay numbers


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
    error = total / float(at.weight.sum())
    return error if estimator == "paper" else float(np.clip(error, *ERRORS)), isolated


def _self_normalised(
    source: Sample, at: Sample, block: slice, class_weight: np.ndarray, k: LogKernel, h: float
) -> tuple[tuple[np.ndarray, np.ndarray], int]:
    """(g_j, s_j^2) of a block."""
    mass = source.weight * class_weight
    log = k(at.points[block], source.points, h)
    log[:, mass == 0] = -np.inf
    units = np.where(mass > 0, source.weight, 0.0)
    few = _reach_nearest(log, at.points[block], source.points, units, least=2, weighed=False)
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
    largest = LARGEST_LOG / norm
    scale = np.exp(np.minimum(log_source - log_target, largest))
    scale *= (at.weight.sum() - 1) / source.weight.sum()
    scale = np.minimum(scale, np.exp(largest))
    if alone.any():  # no target point defines the denominator: the source's own ratio stands in
        near = log[alone]
        units = np.where(mass > 0, source.weight, 0.0)
        _reach_nearest(near, at.points[block][alone], source.points, units)
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
    units: np.ndarray,
    own: np.ndarray | None = None,
    least: float = 1,
    weighed: bool = True,
) -> int:
    """Rows that reach less than ``least`` units take their nearest, in place; how many did.

    A point has as many units as it stands for rows, which ``log`` includes if it is weighed.
    Points as far as the last are taken too, so that neither the order of the rows matters nor
    whether equal rows are one with a weight.
    """
    few = np.flatnonzero(np.isfinite(log) @ units < least)
    for row in few:
        left = units.copy()
        if own is not None:
            left[own[row]] = max(left[own[row]] - 1, 0.0)
        nearest = _nearest(((centres - at[row]) ** 2).sum(axis=1), left)
        log[row, nearest] = np.log(left[nearest]) if weighed else 0.0
    return len(few)


def _nearest(distance: np.ndarray, units: np.ndarray) -> np.ndarray:
    """The points that together have NEAREST units, and those as far as the last of them."""
    usable = np.flatnonzero(units > 0)
    order = usable[np.argsort(distance[usable], kind="stable")]
    last = min(int(np.searchsorted(np.cumsum(units[order]), NEAREST)), len(order) - 1)
    return np.asarray(usable[distance[usable] <= distance[order[last]] * (1 + ROUNDING)])
