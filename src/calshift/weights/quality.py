"""Standard errors of estimated class weights, warnings, and classes that are not trusted."""

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
UNKNOWN_SHARE = 0.25  # standard error of a share that is practically undetermined
UNCERTAIN = 0.5  # expected sum of |error| over the classes of the target prior, of 2 at most
TRUNCATED = 0.5**0.5  # root mean square of a standard normal variable truncated at 0
MOST_ERROR = 1.0  # of any share
LOADING = 0.1  # of a class on a direction that the predictions do not determine


def diagnose_weights(
    solution: WeightFit,
    method: str,
    source: Engine,
    sizes: tuple[float, float],
    class_counts: np.ndarray,
    predicted: np.ndarray,
    classes: tuple[Any, ...] | None,
) -> ClassWeights:
    """The weights of a method, with their standard errors, diagnostics and warnings.

    ``predicted`` is the target's mean prediction, for the share of classes not in the source.
    """
    seen = class_counts > 0
    q = solution.base * solution.weights
    covariance, values_error, factor = covariances(solution, source, sizes)
    least, condition = _singular(solution.matrix)
    blur, confused = _confused_classes(solution.matrix, ~solution.held & (q * sizes[1] >= 1))
    covariance, raised, shrink = _bound_errors(covariance, q / q.sum(), confused, sizes[1])
    values_error = np.maximum(values_error, raised / solution.base)
    error = np.sqrt(np.diag(covariance))
    few, unknown = class_counts[seen] < FEW_ROWS, error > UNKNOWN_SHARE
    weights = ClassWeights(
        values=_expand(solution.weights, seen, np.nan),
        prior_source=class_counts / class_counts.sum(),
        prior_target=_expand(q / q.sum(), seen),
        n_source=sizes[0],
        method=solution.description or method,
        covariance=_expand(covariance, seen),
        values_error=_expand(values_error, seen),
        converged=solution.converged,
        iterations=solution.iterations,
        condition_number=condition,
        smallest_singular_value=least,
        reasons=_reasons(class_counts, few, confused, unknown),
        influence=ShrunkInfluence(
            solution.influence,
            seen,
            factor * shrink * np.where(solution.held, TRUNCATED, 1.0),
            solution.target_covariance,
            q / q.sum(),
            covariance,
            np.zeros((0, len(q))) if solution.outside is None else solution.outside,
        ),
        classes=classes,
        predicted=predicted,
        discrimination=solution.discrimination,
    )
    notes = (
        *(() if seen.all() else unseen_classes_warnings(seen, predicted, classes)),
        # the upper bound of an error must not conceal that the equations determine no shares
        *_overall_warnings(weights, blur, np.minimum(error / shrink, MOST_ERROR).sum()),
        *solution.notes,
        *_class_warnings(few, unknown, np.flatnonzero(seen), classes),
        *_size_warnings(weights.ess, sizes[1]),
    )
    return replace(weights, warnings=notes)


def _bound_errors(
    covariance: np.ndarray, q: np.ndarray, confused: np.ndarray, m: float
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Covariance with standard errors no smaller than of known labels, and no larger than of one.

    Also the errors that were raised, and the factors of those that were lowered. The lower bound is
    that of a share of m rows with one more in the class and one outside; classes that cannot be
    distinguished may share their mass in any way. The upper bound is that of the label of a single
    row: the linear approximation that exceeds it has no meaning.
    """
    drawn = (m * q + 1) / (m + 2)
    mass = q[confused].sum() if confused.sum() > 1 else 0.0
    least = drawn * (1 - drawn) / (m + 2) + np.where(confused, mass**2 / 12, 0.0)
    found = (covariance + covariance.T) / 2
    raised = np.where(np.diag(found) < least, least, 0.0)
    found[np.diag_indices(len(q))] = np.maximum(np.diag(found), least)
    most = np.maximum(np.maximum(q, 1 / m) * (1 - q), least)
    shrink = np.minimum(1.0, np.sqrt(most / np.diag(found)))
    return np.asarray(found * np.outer(shrink, shrink)), np.sqrt(raised), shrink


def _confused_classes(matrix: np.ndarray, present: np.ndarray) -> tuple[float, np.ndarray]:
    """Condition number for the classes present, and which of them cannot be distinguished.

    Columns are scaled to unit length, which removes the effect of unequal class shares. The classes
    are those with a loading on directions in which the matrix is nearly singular.
    """
    confused = np.zeros(len(present), dtype=bool)
    if present.sum() < 2:
        return 1.0, confused
    columns = matrix[:, present]
    size = np.linalg.norm(columns, axis=0)
    columns = columns / np.where(size > 0, size, 1.0)
    condition = _singular(columns)[1]
    if condition > NEARLY_SINGULAR:
        _, size, vectors = np.linalg.svd(columns)
        weak = np.append(size, np.zeros(len(vectors) - len(size))) <= size[0] / NEARLY_SINGULAR
        confused[present] = (vectors[weak] ** 2).max(axis=0) > LOADING
    return condition, confused


def _singular(matrix: np.ndarray) -> tuple[float, float]:
    """The smallest singular value and the condition number; fewer rows than classes count as 0."""
    size = np.linalg.svd(matrix, compute_uv=False)
    least = float(size[-1]) if len(size) == matrix.shape[1] else 0.0
    return least, float(size[0]) / least if least > 0 else float("inf")


def _overall_warnings(weights: ClassWeights, condition: float, errors: float) -> Iterator[str]:
    """Warnings about all weights; ``errors``: sum of the linear approximation's standard errors."""
    if not weights.converged:
        yield f"{weights.method} did not converge: its weights are those of the last step"
    if condition > NEARLY_SINGULAR:
        yield (
            f"the model does not discriminate between some classes (condition number "
            f"{condition:.1e}): their weights are not reliable"
        )
    expected = np.sqrt(2 / np.pi) * errors  # of |error|, for a normal one
    if expected > UNCERTAIN:
        yield (
            "the class distribution of the target is almost undetermined: the expected error, "
            f"summed over the classes, is {expected:.2f}"
        )


def _class_warnings(
    few: np.ndarray, unknown: np.ndarray, seen: np.ndarray, classes: tuple[Any, ...] | None
) -> Iterator[str]:
    if unknown.any():
        yield f"{class_names(seen[unknown], classes)} may have almost any share of the target"
    if few.any():
        verb = "has" if few.sum() == 1 else "have"
        rare = class_names(seen[few], classes)
        yield f"{rare} {verb} fewer than {FEW_ROWS} source rows: weights not trusted"


def _size_warnings(ess: float, m: float) -> Iterator[str]:
    if m < FEW_ROWS:
        yield f"the target has {m:g} rows, too few to estimate its class distribution"
    if ess < FEW_ROWS:
        yield small_ess_warning(ess)


def _reasons(
    class_counts: np.ndarray, few: np.ndarray, confused: np.ndarray, unknown: np.ndarray
) -> tuple[str, ...]:
    """(K,) why the weight of a class is not trusted, "" if it is."""
    reasons = np.full(len(class_counts), "not in the source", dtype=object)
    seen = class_counts > 0
    rare = [f"{count:g} source rows" for count in class_counts[seen]]
    inner = np.where(unknown, "may have almost any share", "")
    inner = np.where(confused, "not distinguished from other classes", inner)
    reasons[seen] = np.where(few, rare, inner)
    return tuple(reasons.tolist())


def _expand(values: np.ndarray, seen: np.ndarray, rest: float = 0.0) -> np.ndarray:
    """(K,) or (K, K): the values of the classes seen, and the rest for the others."""
    out = np.full((len(seen),) * values.ndim, rest)
    out[np.ix_(*[seen] * values.ndim)] = values
    return out
