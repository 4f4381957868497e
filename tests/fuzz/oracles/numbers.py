"""The numbers of a result in one array, to compare two results."""

from __future__ import annotations

from typing import Any

import numpy as np

import calshift
from calshift import results

# Sums of a few hundred terms in another order differ by 1e-13 of their size. A debiased error is a
# difference of such sums that may be 1e4 times as large, and solvers of the weights stop within
# 1e-9 of their solution, which an ill-conditioned sample amplifies: three more digits for it.
RELATIVE, ABSOLUTE = 1e-6, 1e-8
LARGEST_CONDITION = 1e8  # which amplifies rounding to the tolerance


def numbers_of(result: Any) -> np.ndarray:
    """All numbers; without roots, whose rounding is unbounded at 0."""
    for kind, parts in PARTS.items():
        if isinstance(result, kind):
            return _join(parts(result))
    if isinstance(result, tuple | list):
        return _join([numbers_of(part) for part in result])
    return _join([result] if np.isscalar(result) else [])


def _join(parts: list[Any]) -> np.ndarray:
    known = [np.ravel(np.asarray(part, dtype=float)) for part in parts if part is not None]
    return np.concatenate([np.zeros(0), *known])


def _error(result: Any) -> list[Any]:
    ends = result.confidence_interval(0.9) if result.has_interval else None
    weights = None if result.class_weights is None else numbers_of(result.class_weights)
    test = None if result.assumption is None else numbers_of(result.assumption)
    return [result.estimate, result.per_class, ends, weights, test]


def _predictions(found: Any) -> list[Any]:
    return [found.p, found.y, found.sample_weight]


PARTS: dict[Any, Any] = {
    results.CalibrationErrorResult: _error,
    results.ClassWeights: lambda found: [found.values, found.prior_target, found.standard_error],
    results.LabelShiftCheck: lambda found: [found.statistic, found.p_value],
    results.ReliabilityCurve: lambda found: [found.frequency, found.mass, found.standard_error],
    results.RecalibrationResult: lambda found: [found.probabilities, numbers_of(found.before)],
    results.Difference: lambda found: [found.estimate, found.correlation],
    results.MonitoringResult: lambda found: [numbers_of(one) for one in found.results],
    results.AlgorithmVariance: lambda found: [found.variance, found.corrected, found.per_class],
    calshift.Predictions: _predictions,
    np.ndarray: lambda found: [found if found.dtype.kind in "fiub" else None],
}


def largest_difference(
    a: Any, b: Any, relative: float = RELATIVE, absolute: float = ABSOLUTE
) -> float | None:
    """The largest difference beyond the tolerance, or None if two results agree."""
    first, second = numbers_of(a), numbers_of(b)
    if first.shape != second.shape:
        return np.inf
    near = np.isclose(first, second, rtol=relative, atol=absolute, equal_nan=True)
    if near.all():
        return None
    return float(np.nan_to_num(np.abs(first - second)[~near], nan=np.inf).max())


def is_undetermined(result: Any) -> bool:
    """Whether the class weights behind a result are amplified rounding."""
    weights = getattr(result, "class_weights", result)
    return (getattr(weights, "condition_number", None) or 0) > LARGEST_CONDITION


def same_bits(a: Any, b: Any) -> bool:
    """Whether two results have exactly the same numbers."""
    return numbers_of(a).tobytes() == numbers_of(b).tobytes()
