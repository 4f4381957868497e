"""Fitting calibrators to labelled rows.

docs/mathematics.md section 6.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from calshift.calibrators import KINDS, LEAST_PROBABILITY, Scaling
from calshift.engine import Engine
from calshift.penalised import LEAST_STRENGTH, Parts, Prior, penalised_maximum


def fit_scaling(
    kind: str, engine: Engine, class_counts: np.ndarray, floor: float = LEAST_PROBABILITY
) -> Scaling:
    """The calibrator of largest penalised likelihood on the labelled rows of an engine.

    A priori the slopes are normal around a common one and the biases around a multiple of the
    log class shares; the spread is the one of largest evidence, so that few rows a class leave
    little freedom.
    """
    start, prior = unfitted(kind, class_counts, floor), scaling_prior(kind, class_counts)
    engine = engine.mapped(start.scores)

    def likelihood(parameters: np.ndarray) -> Parts:
        value, gradient, information = engine.total(
            replace(start, parameters=parameters).likelihood
        )
        return value, gradient, information

    n = class_counts.sum()
    found = penalised_maximum(likelihood, prior, n)
    return replace(
        start,
        parameters=found.parameters,
        precision=found.precision,
        information=found.information,
        converged=found.converged,
        iterations=found.iterations,
        fit=found.value / n,
    )


def unfitted(kind: str, class_counts: np.ndarray, floor: float = LEAST_PROBABILITY) -> Scaling:
    """No change at all, of the classes seen."""
    seen = class_counts > 0
    one_slope, biased = KINDS[kind]
    S = int(seen.sum())
    centre = np.concatenate([np.ones(1 if one_slope else S), np.zeros(S if biased else 0)])
    nothing = np.zeros((len(centre), len(centre)))
    return Scaling(kind, seen, centre, nothing, nothing, floor=floor)


def scaling_prior(kind: str, class_counts: np.ndarray) -> Prior:
    """Of the parameters: those that vary do so around a common law."""
    start = unfitted(kind, class_counts)
    a, d = start.slopes, len(start.parameters)
    least = LEAST_STRENGTH * np.eye(d)
    least[a:, a:] += class_counts.sum() / max(d - a, 1)  # a constant in all biases does nothing
    found = [] if a == 1 else [(slice(0, a), complement(np.ones((a, 1))))]
    if d > a:
        found.append((slice(a, d), complement(laws(class_counts))))
    found = [(where, form) for where, form in found if np.trace(form) > 0.5]
    ranks = np.array([np.trace(form) for _, form in found])
    forms = tuple(placed(form, where, where, d) for where, form in found)
    return Prior(start.parameters, least, forms, lambda strength: ranks)


def laws(class_counts: np.ndarray) -> np.ndarray:
    """(S, 2) what biases follow: a constant, and the log class shares."""
    counts = class_counts[class_counts > 0]
    return np.stack([np.ones(len(counts)), np.log(counts / counts.sum())], axis=1)


def complement(columns: np.ndarray) -> np.ndarray:
    """The projection onto what the columns cannot express."""
    basis, size, _ = np.linalg.svd(columns, full_matrices=False)
    basis = basis[:, size > 1e-6 * size[0]]
    return np.asarray(np.eye(len(columns)) - basis @ basis.T)


def placed(form: np.ndarray, rows: slice, columns: slice, d: int) -> np.ndarray:
    """A form of some of the parameters among d of them."""
    whole = np.zeros((d, d))
    whole[rows, columns] = form
    return whole
