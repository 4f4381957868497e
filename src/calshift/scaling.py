"""Fitting calibrators to labelled rows by Newton's method, with a prior of largest evidence.

docs/mathematics.md section 6.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from calshift.calibrators import KINDS, Scaling
from calshift.engines import Arrays
from calshift.linear import inverse

LEAST_PRECISION = 1e-2  # of the prior in every direction: separable classes keep finite slopes
LARGEST_PRECISION = 1e3  # a prior with a standard deviation of .03
MOST_STEPS = 50
PRIOR_STEPS = 10  # in which the precision of the prior may still change
LEAST_GAIN = 1e-10  # of the mean log-likelihood, below which the last Newton step is taken

Block = tuple[slice, np.ndarray]  # a range of parameters; the directions that have freedom


def fit_scaling(kind: str, engine: Arrays, class_counts: np.ndarray) -> Scaling:
    """The calibrator of largest penalised likelihood on the labelled rows of an engine.

    A priori the slopes are normal around a common one and the biases around a multiple of the
    log class shares; the spread is the one of largest evidence, so that few rows a class leave
    little freedom.
    """
    now, centre, blocks = _start(kind, class_counts)
    n, spread, least = class_counts.sum(), np.ones(len(blocks)), now.precision
    engine = engine.mapped(now.scores)
    value, gradient, information = engine.total(now.likelihood)
    for step in range(1, MOST_STEPS + 1):
        if step <= PRIOR_STEPS:
            spread = _precisions(spread, blocks, least, now, centre, gradient, information)
        precision = _prior(least, blocks, spread)
        penalised = information + precision
        slope = gradient - precision @ (now.parameters - centre)
        move = inverse(penalised) @ slope
        settled = bool(slope @ move <= 2 * LEAST_GAIN * n)
        if settled:
            break
        value, gradient, information, now = _climb(engine, now, centre, precision, move, value)
    return replace(
        now,
        parameters=now.parameters + (move if settled else 0.0),
        precision=precision,
        information=information + precision,
        converged=settled,
        iterations=step,
        fit=float(value / n),
    )


def _start(kind: str, class_counts: np.ndarray) -> tuple[Scaling, np.ndarray, list[Block]]:
    """No change at all, and the parameters that vary around a common law."""
    seen = class_counts > 0
    share = np.log(class_counts[seen] / class_counts.sum())
    one_slope, biased = KINDS[kind]
    S, a = len(share), 1 if one_slope else len(share)
    centre = np.concatenate([np.ones(a), np.zeros(S if biased else 0)])
    blocks = [] if one_slope else [(slice(0, S), _complement(np.ones((S, 1))))]
    if biased:
        laws = np.stack([np.ones(S), share], axis=1)
        blocks.append((slice(a, a + S), _complement(laws)))
    least = LEAST_PRECISION * np.eye(len(centre))
    least[a:, a:] += class_counts.sum() / S  # a constant added to all biases changes nothing
    scaling = Scaling(kind, seen, centre, least, least)
    return scaling, centre, [block for block in blocks if np.trace(block[1]) > 0.5]


def _complement(laws: np.ndarray) -> np.ndarray:
    """The projection onto what the laws, columns, cannot express."""
    basis, size, _ = np.linalg.svd(laws, full_matrices=False)
    basis = basis[:, size > 1e-6 * size[0]]
    return np.asarray(np.eye(len(laws)) - basis @ basis.T)


def _prior(least: np.ndarray, blocks: list[Block], spread: np.ndarray) -> np.ndarray:
    precision = least.copy()
    for (where, projection), strength in zip(blocks, spread, strict=True):
        precision[where, where] += strength * projection
    return precision


def _precisions(
    spread: np.ndarray,
    blocks: list[Block],
    least: np.ndarray,
    now: Scaling,
    centre: np.ndarray,
    gradient: np.ndarray,
    information: np.ndarray,
) -> np.ndarray:
    """Towards MacKay's fixed point of the evidence, on the quadratic model around the parameters.

    strength = (directions - strength tr(P Sigma)) / |P (eta - centre)|^2
    """
    for _ in range(5 if blocks else 0):
        precision = _prior(least, blocks, spread)
        covariance = inverse(information + precision)
        offset = now.parameters - centre
        offset = offset + covariance @ (gradient - precision @ offset)
        found = []
        for (where, projection), strength in zip(blocks, spread, strict=True):
            known = np.trace(projection) - strength * np.sum(projection * covariance[where, where])
            size = offset[where] @ projection @ offset[where]
            ratio = max(known, 0) / max(strength * size, 1e-12)
            found.append(strength * ratio**2)  # twice the step, which creeps where all is noise
        before, spread = spread, np.clip(found, LEAST_PRECISION, LARGEST_PRECISION)
        if np.abs(np.log(spread / before)).max() < 0.2:
            break
    return spread


def _climb(
    engine: Arrays,
    now: Scaling,
    centre: np.ndarray,
    precision: np.ndarray,
    move: np.ndarray,
    value: float,
) -> tuple[float, np.ndarray, np.ndarray, Scaling]:
    """The step that does not lower the penalised likelihood, halved until it is one."""

    def penalty(parameters: np.ndarray) -> float:
        offset = parameters - centre
        return float(offset @ precision @ offset) / 2

    before = value - penalty(now.parameters)
    for _ in range(40):
        there = replace(now, parameters=now.parameters + move)
        value, gradient, information = engine.total(there.likelihood)
        if value - penalty(there.parameters) >= before - 1e-12 * abs(before):
            break
        move = move / 2
    return value, gradient, information, there
