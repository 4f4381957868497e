"""Weights that are not estimated: a user's vector, or the ratio of known class shares."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from calshift._core.convert import as_double, to_numpy
from calshift._core.text import class_names, unseen_classes_warnings
from calshift._core.validate import show
from calshift.errors import InvalidInput
from calshift.results import ClassWeights
from calshift.weights.influence import LabelCountInfluence

OTHER_ROWS = "the weights were estimated on other rows: intervals ignore their uncertainty"
NEGLIGIBLE = 1e-100  # of the largest weight, below which a weight is 0: its square is no number
MOST_COVARIANCES = 2000  # classes up to which the whole matrix is kept
TOLERATED_MASS = 0.05  # difference of sum pi w from 1 without a warning


def make_given_weights(
    weights: Any,
    source_counts: np.ndarray,
    predicted: np.ndarray | None = None,
    classes: tuple[Any, ...] | None = None,
) -> ClassWeights:
    """A vector, validated and otherwise unchanged, or a ClassWeights adapted to this source.

    ``predicted`` is the target's mean prediction, for the share of classes not in the source.
    """
    K = len(source_counts)
    if isinstance(weights, str) or weights is None:
        msg = f"weights must be a method's name, {K} numbers or a ClassWeights; got {show(weights)}"
        if isinstance(weights, str):
            msg += ", and a method needs the rows: call label_shift_weights"
        raise InvalidInput(msg)
    known = isinstance(weights, ClassWeights)
    if known and _is_of_samples(weights, source_counts, predicted):
        return weights  # type: ignore[no-any-return]
    values = weights.values if known else to_numpy(weights, "weights")[0]
    if values.dtype.kind not in "fiub" or values.shape != (K,):
        got = f"shape {values.shape} and dtype {values.dtype}"
        msg = f"weights must be {K} numbers, one for each class; got {got}"
        raise InvalidInput(msg)
    found = _from_values(as_double(values), source_counts, predicted, classes)
    return _keep_origin(weights, found) if known else found


def _is_of_samples(
    weights: ClassWeights, source_counts: np.ndarray, predicted: np.ndarray | None
) -> bool:
    """Whether the weights were estimated from these samples, judged by sizes and means."""
    n, other = source_counts.sum(), weights.predicted
    return (
        weights.influence is not None
        and weights.n_source == n
        and np.array_equal(weights.prior_source, source_counts / n)
        and (
            other is None
            or predicted is None
            or np.allclose(other, predicted, rtol=1e-6, atol=1e-12)
        )
    )


def _keep_origin(weights: ClassWeights, found: ClassWeights) -> ClassWeights:
    """``found``, the values of ``weights`` beside another source, with their method and warnings.

    There are no standard errors: the rows that the weights were estimated on are not known.
    """
    unseen = np.isnan(weights.values)
    same = np.array_equal(unseen, np.isnan(found.values))
    news = found.warnings
    if weights.method != "given":
        news = (*news, OTHER_ROWS)
    if same and unseen.any():
        news = news[1:]  # the weights have a more precise warning about the missing classes
    return replace(
        found,
        prior_target=weights.prior_target if same else found.prior_target,
        method=weights.method,
        warnings=tuple(dict.fromkeys(weights.warnings + news)),
    )


def weights_from_counts(source_counts: np.ndarray, target_counts: np.ndarray) -> ClassWeights:
    """w_y = p_t(y) / p_s(y) from class counts on both sides, w* in the paper."""
    n, m = source_counts.sum(), target_counts.sum()
    prior_source, prior_target = source_counts / n, target_counts / m
    unseen = prior_source == 0
    values = np.divide(
        prior_target, prior_source, out=np.full(len(prior_source), np.nan), where=~unseen
    )
    notes: tuple[str, ...] = ()
    if unseen.any():
        share = prior_target[unseen].sum()
        notes = (
            f"the source lacks {class_names(np.flatnonzero(unseen))}, which "
            f"make{'s' if unseen.sum() == 1 else ''} up {share:.1%} of the target: "
            "calibration there is unknown",
        )
    influence = LabelCountInfluence(values, prior_source, prior_target, float(m))
    covariance = None
    if len(values) <= MOST_COVARIANCES:
        covariance = (np.diag(prior_target) - np.outer(prior_target, prior_target)) / m
    return ClassWeights(
        values, prior_source, prior_target, float(n), "labels", notes,
        covariance=covariance,
        values_error=_values_error(influence, float(n)),
        influence=influence,
    )  # fmt: skip


def _values_error(influence: LabelCountInfluence, n: float) -> np.ndarray:
    """Standard errors of q / pi: w^2 (1 - pi) / (pi n) + q (1 - q) / (pi^2 m)."""
    error, seen = np.zeros(len(influence.prior)), influence.seen
    w, pi = influence.weights[seen], influence.prior[seen]
    error[seen] = np.sqrt(w**2 * (1 - pi) / (pi * n) + (influence.prior_error[seen] / pi) ** 2)
    return error


def _from_values(
    values: np.ndarray,
    source_counts: np.ndarray,
    predicted: np.ndarray | None,
    classes: tuple[Any, ...] | None,
) -> ClassWeights:
    n = float(source_counts.sum())
    prior = source_counts / n
    seen = prior > 0
    wrong = seen & ~(np.isfinite(values) & (values >= 0))
    if wrong.any():
        c = int(np.argmax(wrong))
        msg = f"weights must be finite and not negative; class {c} has {values[c]:.6g}"
        raise InvalidInput(msg)
    with np.errstate(over="ignore"):
        mass = float(prior[seen] @ values[seen])
    if not 0 < mass < np.inf:
        msg = "weights must be positive for at least one class of the source, and finite in sum"
        raise InvalidInput(msg)
    values = np.where(values < NEGLIGIBLE * values[seen].max(), 0.0, values)
    notes = [*unseen_classes_warnings(seen, predicted, classes)]
    # without the share of the unseen classes the sum may be below 1
    if mass - 1 > TOLERATED_MASS or (seen.all() and 1 - mass > TOLERATED_MASS):
        notes.append(
            f"the weights do not fit the source: the sum of prior x weight is {mass:.4g}, not 1"
        )
    values = np.where(seen, values, np.nan)
    target = np.where(seen, prior * values, 0.0) / mass
    return ClassWeights(values, prior, target, n, "given", tuple(notes), predicted=predicted)
