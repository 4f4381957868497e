"""How far a solution can be trusted: standard errors, warnings, classes to doubt."""

from __future__ import annotations

from typing import Any

import numpy as np

from calshift.engines import Arrays, Sums
from calshift.influence import Solution
from calshift.predictions import Predictions
from calshift.results import ClassWeights
from calshift.wording import names

FEW_ROWS = 20  # source rows of a class, below which its weight is not trusted
NEARLY_SINGULAR = 1e4  # condition number
UNCERTAIN = 0.5  # expected sum of |error| over the classes of the target prior, of 2 at most
LOADING = 0.1  # share of a class in a direction that the predictions do not show


def assessed(
    solution: Solution,
    method: str,
    source: Arrays,
    sizes: tuple[float, float],
    class_counts: np.ndarray,
    predicted: np.ndarray,
    classes: tuple[Any, ...] | None,
) -> ClassWeights:
    """The weights of a method, with all that is known about their quality.

    ``predicted`` is the target's mean prediction, to tell how much mass an unseen class takes.
    """
    seen = class_counts > 0
    q = solution.base * solution.weights
    prior, values_error = _variances(solution, source, sizes)
    turn = (np.eye(len(q)) - np.outer(q / q.sum(), np.ones(len(q)))) / q.sum()
    covariance = turn @ prior @ turn.T  # of q / sum q
    singular = np.linalg.svd(solution.matrix, compute_uv=False)
    least = float(singular[-1])
    condition = float(singular[0]) / least if least > 0 else float("inf")
    unclear = _unclear(solution.matrix) if condition > NEARLY_SINGULAR else np.zeros(len(q), bool)
    few = class_counts[seen] < FEW_ROWS
    notes = _notes(solution, method, condition, covariance, few, seen, predicted, classes)
    return ClassWeights(
        values=_spread(solution.weights, seen, np.nan),
        prior_source=class_counts / class_counts.sum(),
        prior_target=_spread(q / q.sum(), seen),
        n_source=sizes[0],
        method=method,
        warnings=notes,
        covariance=_spread_both(covariance, seen),
        values_error=_spread(values_error, seen),
        converged=solution.converged,
        iterations=solution.iterations,
        condition_number=condition,
        smallest_singular_value=least,
        reasons=_reasons(class_counts, few, unclear),
        influence=solution.influence,
        classes=classes,
    )


def _variances(
    solution: Solution, source: Arrays, sizes: tuple[float, float]
) -> tuple[np.ndarray, np.ndarray]:
    """Covariance of base * weights, and standard errors of the weights.

    sum_i psi_i psi_i' / n^2 + the target's share / m, with psi_i = base phi_i + w phi_i(base)
    """
    base, w = solution.base, solution.weights

    def kernel(batch: Predictions) -> Sums:
        phi = solution.influence.source(batch)
        psi = base * phi + w * solution.influence.base(batch)
        root = np.sqrt(batch.frequency)[:, None]
        psi *= root
        phi *= root
        return Sums((psi.T @ psi, np.einsum("ic,ic->c", phi, phi)))

    (prior, values), (n, m) = source.total(kernel), sizes
    prior = prior / n**2 + solution.target_covariance * np.outer(base, base) / m
    values = values / n**2 + np.diag(solution.target_covariance) / m
    return prior, np.sqrt(np.maximum(values, 0.0))


def _unclear(matrix: np.ndarray) -> np.ndarray:
    """Classes that make up the directions in which the matrix is nearly singular."""
    _, size, vectors = np.linalg.svd(matrix)
    weak = np.append(size, np.zeros(len(vectors) - len(size))) < size[0] / NEARLY_SINGULAR
    return np.asarray((vectors[weak] ** 2).max(axis=0) > LOADING)


def _notes(
    solution: Solution,
    method: str,
    condition: float,
    covariance: np.ndarray,
    few: np.ndarray,
    seen: np.ndarray,
    predicted: np.ndarray,
    classes: tuple[Any, ...] | None,
) -> tuple[str, ...]:
    """What a statistician would object to, worst first."""
    notes = []
    if not seen.all():
        missing, share = names(np.flatnonzero(~seen), classes), predicted[~seen].sum()
        notes.append(
            f"the source lacks {missing}, to which predictions give {share:.1%}: "
            "left out, calibration unknown there"
        )
    if not solution.converged:
        notes.append(f"{method} did not converge: its weights are those of the last step")
    if condition > NEARLY_SINGULAR:
        notes.append(
            "the predictions hardly tell some classes apart (condition number "
            f"{condition:.1e}): weights are the best within their bounds, not to be relied on"
        )
    error = np.sqrt(2 / np.pi) * np.sqrt(np.maximum(np.diag(covariance), 0)).sum()
    if error > UNCERTAIN:
        notes.append(
            f"the target's mix is hardly known: its error, summed over the classes, "
            f"is expected to be {error:.2f}"
        )
    notes.extend(solution.notes)
    if few.any():
        rare = names(np.flatnonzero(seen)[few], classes)
        verb = "has" if few.sum() == 1 else "have"
        notes.append(f"{rare} {verb} fewer than {FEW_ROWS} source rows: weights not trusted")
    return tuple(notes)


def _reasons(class_counts: np.ndarray, few: np.ndarray, unclear: np.ndarray) -> tuple[str, ...]:
    reasons = np.full(len(class_counts), "not in the source", dtype=object)
    seen = class_counts > 0
    rare = [f"{count:g} source rows" for count in class_counts[seen]]
    inner = np.where(unclear, "not told from other classes", "")
    reasons[seen] = np.where(few, rare, inner)
    return tuple(reasons.tolist())


def _spread(values: np.ndarray, seen: np.ndarray, rest: float = 0.0) -> np.ndarray:
    """Values of the classes seen among all classes."""
    out = np.full(len(seen), rest)
    out[seen] = values
    return out


def _spread_both(matrix: np.ndarray, seen: np.ndarray) -> np.ndarray:
    out = np.zeros((len(seen), len(seen)))
    out[np.ix_(seen, seen)] = matrix
    return out
