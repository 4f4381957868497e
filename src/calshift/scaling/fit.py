"""Calibrators fitted to labelled rows, and the prior of their parameters.

docs/mathematics.md section 6.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from calshift._core.addable import Tally
from calshift.engines.base import Engine
from calshift.scaling.calibrator import KINDS, LEAST_PROBABILITY, Scaling
from calshift.scaling.penalised import LEAST_STRENGTH, Prior, maximize_penalised


def fit_scaling(
    kind: str, engine: Engine, class_counts: np.ndarray, floor: float = LEAST_PROBABILITY
) -> Scaling:
    """The calibrator of largest penalised likelihood on the labelled rows of an engine.

    A priori the slopes are normal around a common one and the biases around a multiple of the
    log class shares; the spread is the one of largest evidence, so that few rows a class leave
    little freedom.
    """
    start = make_identity(kind, class_counts, floor)
    engine = engine.mapped(start.scores)

    def likelihood(parameters: np.ndarray) -> Tally:
        sums: Tally = engine.total(replace(start, parameters=parameters).likelihood)
        return sums

    n = class_counts.sum()
    found = maximize_penalised(likelihood, make_scaling_prior(kind, class_counts), n)
    return replace(
        start,
        parameters=found.parameters,
        precision=found.precision,
        information=found.information,
        converged=found.converged,
        iterations=found.iterations,
        fit=found.value / n,
    )


def make_identity(kind: str, class_counts: np.ndarray, floor: float = LEAST_PROBABILITY) -> Scaling:
    """The calibrator of the classes seen that changes nothing: slopes of 1, biases of 0."""
    seen = class_counts > 0
    S = int(seen.sum())
    slopes, biases = 1 if KINDS[kind].one_slope else S, S if KINDS[kind].biased else 0
    zero = np.zeros((slopes + biases, slopes + biases))
    return Scaling(kind, seen, np.repeat([1.0, 0.0], [slopes, biases]), zero, zero, floor=floor)


def make_scaling_prior(kind: str, class_counts: np.ndarray) -> Prior:
    """The prior of the parameters: slopes around a common one, biases around log class shares."""
    start = make_identity(kind, class_counts)
    a, d = start.slopes, len(start.parameters)
    least = LEAST_STRENGTH * np.eye(d)
    least[a:, a:] += class_counts.sum() / max(d - a, 1)  # a constant in all biases has no effect
    designs = [(slice(0, a), np.ones((a, 1)))]
    if d > a:
        designs.append((slice(a, d), log_share_design(class_counts)))
    found = [(where, complement_projector(design)) for where, design in designs]
    found = [(where, form) for where, form in found if np.trace(form) > 0.5]
    ranks = np.array([np.trace(form) for _, form in found])
    forms = tuple(embed_block(form, where, where, d) for where, form in found)
    return Prior(start.parameters, least, forms, lambda strength: ranks)


def log_share_design(class_counts: np.ndarray) -> np.ndarray:
    """(S, 2) columns on which biases depend a priori: a constant, and the log class shares."""
    counts = class_counts[class_counts > 0]
    return np.stack([np.ones(len(counts)), np.log(counts / counts.sum())], axis=1)


def complement_projector(columns: np.ndarray) -> np.ndarray:
    """The projection onto the orthogonal complement of the span of the columns."""
    basis, size, _ = np.linalg.svd(columns, full_matrices=False)
    basis = basis[:, size > 1e-6 * size[0]]
    return np.asarray(np.eye(len(columns)) - basis @ basis.T)


def embed_block(block: np.ndarray, rows: slice, columns: slice, d: int) -> np.ndarray:
    """A (d, d) matrix of zeros, with the block at these rows and columns."""
    whole = np.zeros((d, d))
    whole[rows, columns] = block
    return whole
