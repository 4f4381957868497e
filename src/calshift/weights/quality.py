"""How far a solution can be trusted: standard errors, warnings, classes to doubt."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from calshift._core.text import class_names, small_ess_warning, unseen_classes_warnings
from calshift.engines.base import Engine
from calshift.results import ClassWeights
from calshift.weights.influence import ShrunkInfluence, WeightFit, covariances

FEW_ROWS = 20  # source rows of a class, below which its weight is not trusted
NEARLY_SINGULAR = 1e4  # condition number
UNKNOWN_SHARE = 0.25  # standard error of a share of which little can be said
UNCERTAIN = 0.5  # expected sum of |error| over the classes of the target prior, of 2 at most
CUT_OFF = 0.5**0.5  # root mean square error of a normal estimate of 0 that is cut off below 0
LOADING = 0.1  # share of a class in a direction that the predictions do not show


def diagnose_weights(
    solution: WeightFit,
    method: str,
    source: Engine,
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
    covariance, values_error, certain = covariances(solution, source, sizes)
    least, condition = _singular(solution.matrix)
    blur, unclear = _blur(solution.matrix, ~solution.held & (q * sizes[1] >= 1))
    covariance, raised, shrink = _plausible(covariance, q / q.sum(), unclear, sizes[1])
    values_error = np.maximum(values_error, raised / solution.base)
    error = np.sqrt(np.diag(covariance))
    doubts = {
        "few": class_counts[seen] < FEW_ROWS,
        "unclear": unclear,
        "unknown": error > UNKNOWN_SHARE,
    }
    weights = ClassWeights(
        values=_spread(solution.weights, seen, np.nan),
        prior_source=class_counts / class_counts.sum(),
        prior_target=_spread(q / q.sum(), seen),
        n_source=sizes[0],
        method=method,
        covariance=_spread_both(covariance, seen),
        values_error=_spread(values_error, seen),
        converged=solution.converged,
        iterations=solution.iterations,
        condition_number=condition,
        smallest_singular_value=least,
        reasons=_reasons(class_counts, **doubts),
        influence=ShrunkInfluence(
            solution.influence,
            certain * shrink * np.where(solution.held, CUT_OFF, 1.0),
            solution.target_covariance,
        ),
        classes=classes,
        predicted=predicted,
    )
    notes = (
        *unseen_classes_warnings(seen, predicted, classes),
        *_shaky(weights, blur, error.sum()),
        *solution.notes,
        *_rare(doubts["few"], doubts["unknown"], np.flatnonzero(seen), classes),
        *_small(weights.ess, sizes[1]),
    )
    return replace(weights, warnings=notes)


def _plausible(
    covariance: np.ndarray, q: np.ndarray, unclear: np.ndarray, m: float
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Standard errors no smaller than known labels would have, no larger than .5.

    Also those that were raised, and the factor of those that were lowered.

    The least is that of a share of m rows with one more in the class and one outside; classes
    that are not told apart may share their mass in any way. No share has a deviation above .5.
    """
    drawn = (m * q + 1) / (m + 2)
    mass = q[unclear].sum() if unclear.sum() > 1 else 0.0
    least = drawn * (1 - drawn) / (m + 2) + np.where(unclear, mass**2 / 12, 0.0)
    found = (covariance + covariance.T) / 2
    raised = np.where(np.diag(found) < least, least, 0.0)
    found[np.diag_indices(len(q))] = np.maximum(np.diag(found), least)
    shrink = np.minimum(1.0, 0.5 / np.sqrt(np.diag(found)))
    return np.asarray(found * np.outer(shrink, shrink)), np.sqrt(raised), shrink


def _blur(matrix: np.ndarray, there: np.ndarray) -> tuple[float, np.ndarray]:
    """Condition number among the classes with a share, and which of them are not told apart.

    Columns are taken in units of their length: what is left are not the classes' different shares.
    """
    unclear = np.zeros(len(there), dtype=bool)
    if there.sum() < 2:
        return 1.0, unclear
    columns = matrix[:, there]
    size = np.linalg.norm(columns, axis=0)
    columns = columns / np.where(size > 0, size, 1.0)
    condition = _singular(columns)[1]
    if condition > NEARLY_SINGULAR:
        unclear[there] = _unclear(columns)
    return condition, unclear


def _singular(matrix: np.ndarray) -> tuple[float, float]:
    """The smallest singular value and the condition number; fewer rows than classes count as 0."""
    size = np.linalg.svd(matrix, compute_uv=False)
    least = float(size[-1]) if len(size) == matrix.shape[1] else 0.0
    return least, float(size[0]) / least if least > 0 else float("inf")


def _unclear(matrix: np.ndarray) -> np.ndarray:
    """Classes that make up the directions in which the matrix is nearly singular."""
    _, size, vectors = np.linalg.svd(matrix)
    weak = np.append(size, np.zeros(len(vectors) - len(size))) <= size[0] / NEARLY_SINGULAR
    return np.asarray((vectors[weak] ** 2).max(axis=0) > LOADING)


def _shaky(weights: ClassWeights, blur: float, errors: float) -> Iterator[str]:
    """Reasons to doubt the whole; ``errors`` are the standard errors in sum."""
    if not weights.converged:
        yield f"{weights.method} did not converge: its weights are those of the last step"
    if blur > NEARLY_SINGULAR:
        yield (
            "the predictions hardly tell some classes apart (condition number "
            f"{blur:.1e}): weights are the best within their bounds, "
            "not to be relied on"
        )
    expected = np.sqrt(2 / np.pi) * errors  # of |error|, for a normal one
    if expected > UNCERTAIN:
        yield (
            "the target's mix is hardly known: its error, summed over the classes, "
            f"is expected to be {expected:.2f}"
        )


def _rare(
    few: np.ndarray, unknown: np.ndarray, seen: np.ndarray, classes: tuple[Any, ...] | None
) -> Iterator[str]:
    if unknown.any():
        yield f"{class_names(seen[unknown], classes)} may have almost any share of the target"
    if few.any():
        verb = "has" if few.sum() == 1 else "have"
        rare = class_names(seen[few], classes)
        yield f"{rare} {verb} fewer than {FEW_ROWS} source rows: weights not trusted"


def _small(ess: float, m: float) -> Iterator[str]:
    if m < FEW_ROWS:
        yield f"the target has {m:g} rows, too few to tell its mix"
    if ess < FEW_ROWS:
        yield small_ess_warning(ess)


def _reasons(
    class_counts: np.ndarray, few: np.ndarray, unclear: np.ndarray, unknown: np.ndarray
) -> tuple[str, ...]:
    reasons = np.full(len(class_counts), "not in the source", dtype=object)
    seen = class_counts > 0
    rare = [f"{count:g} source rows" for count in class_counts[seen]]
    inner = np.where(unclear, "not told from other classes", "")
    inner = np.where(unknown & ~unclear, "may have almost any share", inner)
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
