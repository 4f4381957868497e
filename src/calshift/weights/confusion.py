"""Weights from the confusion of predicted and true classes: bbse and rlls.

docs/mathematics.md section 7; paper, section on importance weights.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from calshift._core.frozen import Frozen
from calshift._core.linalg import RELATIVE_ZERO, constrained_inverse
from calshift._core.predictions import Predictions
from calshift.engines import Arrays
from calshift.engines.base import Engine
from calshift.weights.influence import WeightFit
from calshift.weights.moment_matching import (
    LinearInfluence,
    MomentPass,
    Moments,
    linear_moments,
    scatter_matrix,
    solve_moment_matching,
)
from calshift.weights.rlls_solver import minimize_penalised_distance

BOUND_FAILURE = 0.05  # delta: probability that the bound behind the penalty of rlls fails
BOUND_SHARE = 0.01  # alpha: share of that bound that is used as penalty


@dataclass(frozen=True, eq=False)
class PredictedClasses(Frozen):
    """The features of a confusion matrix: predicted classes, one-hot or as probabilities."""

    soft: bool

    def __call__(self, batch: Predictions) -> np.ndarray:
        p = batch.matrix
        if self.soft:
            return p.astype(float, copy=False)
        hits = np.zeros(p.shape)
        hits[np.arange(len(p)), batch.predicted] = 1
        return hits


def bbse(source: Engine, target: Engine, class_counts: np.ndarray, *, soft: bool) -> WeightFit:
    """Black-box shift estimation: least squares of C w = mu, w >= 0, sum pi w = 1."""
    return plan_bbse(source, target, class_counts, soft=soft)()


def plan_bbse(
    source: Engine, target: Engine, class_counts: np.ndarray, *, soft: bool
) -> Callable[[], WeightFit]:
    """`bbse` of later, with its sums made along with the next passes over files or tables."""
    features = PredictedClasses(soft)
    source, target = _reduce_rows(source, target, len(class_counts), soft)
    sums = MomentPass(features, class_counts)
    sums.plan(source, target)

    def solve() -> WeightFit:
        moments = sums.total(source, target)
        found = solve_moment_matching(features, moments, target, class_counts > 0)
        return replace(found, source=source)

    return solve


def _reduce_rows(source: Engine, target: Engine, K: int, soft: bool) -> tuple[Engine, Engine]:
    """The samples; for hard predictions one weighted row for each predicted class and label."""
    if soft or source.summary.light:
        return source, target
    return _count_cells(source, K, labelled=True), _count_cells(target, K, labelled=False)


def _count_cells(engine: Engine, K: int, *, labelled: bool) -> Engine:
    def kernel(batch: Predictions) -> np.ndarray:
        cell = batch.predicted * K + (batch.labels if labelled else 0)
        return np.bincount(cell, batch.sample_weight, K * K).astype(float)

    counts = engine.total(kernel)
    cells = np.flatnonzero(counts)
    labels = cells % K if labelled else None
    return Arrays(Predictions(np.eye(K)[cells // K], labels, sample_weight=counts[cells]))


def rlls(source: Engine, target: Engine, class_counts: np.ndarray, *, soft: bool) -> WeightFit:
    """Regularised learning under label shift: min |C t - b| + penalty |t|, t >= -1, w = 1 + t.

    b = mu - C 1. The norms are not squared, so that the penalty is exact: the solution is w = 1,
    that of bbse, or between them.
    """
    features, seen = PredictedClasses(soft), class_counts > 0
    source, target = _reduce_rows(source, target, len(class_counts), soft)
    moments = linear_moments(features, source, target, class_counts)
    C, b = moments.confusion, moments.target - moments.confusion.sum(axis=1)
    penalty = BOUND_SHARE * _bound(len(moments.target), class_counts.sum())
    size = np.linalg.norm(b)
    if size <= RELATIVE_ZERO or penalty * size >= np.linalg.norm(C.T @ b):
        found = _fit_without_shift(features, moments, seen)
    elif _is_exact(C, b, penalty):
        found = solve_moment_matching(features, moments, target, seen)
    else:
        t, steps = minimize_penalised_distance(C, b, penalty)
        found = _fit_with_penalty(features, moments, seen, t, penalty, steps)
    return replace(found, source=source)


def _bound(K: int, n: float) -> float:
    log = np.log(2 * K / BOUND_FAILURE)
    return float(3 * (2 * log / (3 * n) + np.sqrt(2 * log / n)))


def _is_exact(C: np.ndarray, b: np.ndarray, penalty: float) -> bool:
    """Whether t = C^-1 b is optimal: within the bounds, and C^-T t no longer than the penalty."""
    if C.shape[0] != C.shape[1]:
        return False
    try:
        with np.errstate(over="ignore", invalid="ignore"):  # C may be singular but for rounding
            t = np.linalg.solve(C, b)
            reach = penalty * np.linalg.norm(np.linalg.solve(C.T, t))
            solves = np.linalg.norm(C @ t - b) <= 1e-10 * np.linalg.norm(b)
    except np.linalg.LinAlgError:
        return False
    return bool(solves and t.min() > -1 and reach <= np.linalg.norm(t))


def _fit_without_shift(features: PredictedClasses, moments: Moments, seen: np.ndarray) -> WeightFit:
    S, L = len(moments.prior), len(moments.target)
    influence = LinearInfluence(
        features, seen, np.ones(S), moments.prior, moments.confusion, moments.target,
        np.zeros((S, L)), np.zeros(S),
    )  # fmt: skip
    note = (
        "rlls: its penalty exceeds the evidence of a shift, so that every weight is 1; "
        "the standard errors do not cover this bias"
    )
    held, nothing = np.zeros(S, dtype=bool), np.zeros((S, S))
    return WeightFit(
        np.ones(S), moments.prior, influence, nothing, moments.confusion, held, np.zeros(S),
        notes=(note,),
    )  # fmt: skip


def _fit_with_penalty(
    features: PredictedClasses,
    moments: Moments,
    seen: np.ndarray,
    t: np.ndarray,
    penalty: float,
    steps: int,
) -> WeightFit:
    """The penalised solution and its linearisation.

    With r = C t - b, B = I - r r' / |r|^2 and J = C'BC / |r| + penalty (I - t t' / |t|^2) / |t| on
    the classes not at the bound, Q = J^-1 C'B / |r|.
    """
    C, w = moments.confusion, 1 + t
    r = C @ w - moments.target
    length, size = max(float(np.linalg.norm(r)), np.finfo(float).tiny), np.linalg.norm(t)
    r, t = r / length, t / size
    across = C - np.outer(r, r @ C)
    J = C.T @ across / length + penalty / size * (np.eye(len(t)) - np.outer(t, t))
    held = w <= 0
    by_label = constrained_inverse(J, ~held)
    inverse = by_label @ across.T / length
    # a class at its bound would, without the bound, have the weight of bbse
    unpenalised = constrained_inverse(C.T @ C, ~held)
    inverse[held], by_label[held] = unpenalised[held] @ C.T, 0.0
    beyond = np.where(held, np.maximum(C.T @ r, 0.0) * length * np.diag(unpenalised), 0.0)
    influence = LinearInfluence(
        features, seen, w, moments.prior, C, moments.target, inverse, np.zeros(len(t)), r, by_label
    )
    note = (
        "rlls: its penalty draws the weights towards 1; the standard errors do not cover this bias"
    )
    assert moments.products is not None
    spread = inverse @ scatter_matrix(features, moments.products) @ inverse.T
    return WeightFit(
        w, moments.prior, influence, spread, C, held, beyond,
        iterations=steps, notes=(note,),
    )  # fmt: skip
