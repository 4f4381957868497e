"""What must be true of every result, by its class.

NaN is allowed exactly where the documentation says so: the weight, the error and the interval of a
class without source rows. A debiased estimate may be negative; its interval is cut at 0.
"""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import calshift
from calshift import results

LEVELS = (0.5, 0.95, 0.999)
FAR_BELOW = -100.0  # a variance of frequencies is below 1, and its denominators above .01
ROUNDING = 1e-9  # of sums of a few hundred numbers up to 1, and of roots of them


def finite(value: Any) -> bool:
    """Whether all numbers are finite."""
    return bool(np.isfinite(np.asarray(value, dtype=float)).all())


def check_result(result: Any) -> list[str]:
    """Names of the rules that a result breaks."""
    if isinstance(result, tuple | list) and len(result) and not np.isscalar(result[0]):
        return [found for part in result for found in check_result(part)]
    for kind, rules in RULES.items():
        if isinstance(result, kind):
            return [name for name, kept in rules(result) if not kept] + _check_texts(result)
    return []


def _check_texts(result: Any) -> list[str]:
    """The text, the plain values and the pickle of a result."""
    str(result), repr(result)
    if hasattr(result, "to_dict"):
        try:
            json.dumps(result.to_dict(), allow_nan=False)
        except (ValueError, TypeError):
            return ["to_dict is not JSON"]
    if isinstance(result, results.CalibrationErrorResult | results.ClassWeights):
        copied = pickle.loads(pickle.dumps(result))
        return [] if str(copied) == str(result) else ["a pickled copy differs"]
    return []


def _error(result: Any) -> Iterator[tuple[str, bool]]:
    yield "estimate is not finite", finite(result.estimate) and finite(result.root)
    if result.estimator != "paper":  # whose ratio of frequencies is not bounded
        yield "root is not in range", -ROUNDING <= result.root <= 2
        yield "estimate is far below 0", result.estimate > FAR_BELOW
    if result.per_class is not None:
        yield "an error by class is infinite", not np.isinf(result.per_class).any()
        yield "all errors by class are NaN", not np.isnan(result.per_class).all()
    if result.class_weights is not None:
        yield from _weights(result.class_weights)
    if result.has_interval:
        yield from _intervals(result)


def _intervals(result: Any) -> Iterator[tuple[str, bool]]:
    yield "standard error is not finite", finite(result.standard_error)
    yield "standard error is negative", not result.standard_error < 0
    for root in (False, True):
        ends = np.array([result.confidence_interval(level, root=root) for level in LEVELS])
        low, high = ends.T
        yield "interval is not finite", finite(ends)
        yield "not 0 <= low <= high", bool((low >= 0).all() and (low <= high).all())
        yield "intervals are not nested", bool((np.diff(low) <= ROUNDING).all())
        yield "intervals are not nested", bool((np.diff(high) >= -ROUNDING).all())
        yield from _inside(result, root, low, high)
    if result.has_class_intervals:
        low, high = result.class_intervals(0.9)
        unseen = np.isnan(result.per_class)
        yield "class intervals are not finite", finite(low[~unseen]) and finite(high[~unseen])
        yield "class intervals are not ordered", bool((low[~unseen] <= high[~unseen]).all())


def _inside(
    result: Any, root: bool, low: np.ndarray, high: np.ndarray
) -> Iterator[tuple[str, bool]]:
    asked = dict(result.settings).get("interval")
    at = result.root if root else min(max(result.estimate, 0.0), result._largest)
    for level, a, b in zip(LEVELS, low, high, strict=True):
        name = f"estimate outside its interval ({asked}, {level:g}, norm {result.norm:g})"
        yield name, bool(a - ROUNDING <= at <= b + ROUNDING)


def _weights(found: Any) -> Iterator[tuple[str, bool]]:
    known = ~np.isnan(found.values)
    yield (
        "a weight is negative or infinite",
        finite(found.values[known]) and bool((found.values[known] >= 0).all()),
    )
    yield "all weights are NaN", bool(known.any())
    yield "source priors are no distribution", _distribution(found.prior_source)
    if found.method != "given":  # a given vector need not fit the source's priors; it is warned of
        yield "target priors are no distribution", _distribution(found.prior_target)
    yield (
        "effective size is not in range",
        finite(found.ess) and (-ROUNDING <= found.ess <= found.n_source * (1 + ROUNDING)),
    )
    if found.covariance is not None:
        yield "covariance is not finite", finite(found.covariance)
        yield "variance is negative", bool((np.diag(found.covariance) >= 0).all())


def _distribution(prior: np.ndarray) -> bool:
    return finite(prior) and bool((prior >= -ROUNDING).all()) and abs(prior.sum() - 1) < 1e-6


def _metrics(found: Any) -> Iterator[tuple[str, bool]]:
    for one in found.values():
        yield "a metric is not finite", finite(one.estimate)
        least, most = one.bounds
        yield "a metric is not in range", least - ROUNDING <= one.estimate <= most + ROUNDING
        if one.has_interval:
            ends = np.array([one.confidence_interval(level) for level in LEVELS])
            yield "an interval of a metric is not finite", finite(ends)
            low, high = ends.T
            yield "an interval is not in range", bool((least <= low).all() and (high <= most).all())
            yield "intervals of a metric are not nested", bool((np.diff(low) <= ROUNDING).all())
            yield "intervals of a metric are not nested", bool((np.diff(high) >= -ROUNDING).all())
        if found.class_weights is not None:
            yield "a difference is not finite", finite(one.difference)
    if found.confusion is not None:
        yield "the confusion matrix does not sum to 1", abs(found.confusion.sum() - 1) < 1e-6


def _check(found: Any) -> Iterator[tuple[str, bool]]:
    yield "p-value is not in range", found.p_value is None or 0 <= found.p_value <= 1
    yield "statistic is not finite", found.p_value is None or finite(found.statistic)


def _curve(curve: Any) -> Iterator[tuple[str, bool]]:
    low, high = curve.band(0.9)
    numbers = (curve.score, curve.frequency, curve.mass, low, high, curve.standard_error)
    yield "numbers are not finite", all(map(finite, numbers))
    f = curve.frequency
    yield "frequency is not in range", bool(((f >= -ROUNDING) & (f <= 1 + ROUNDING)).all())
    yield "mass does not add up to 1", abs(curve.mass.sum() - 1) < 1e-6
    yield "band without the frequency", bool(((low <= f) & (f <= high)).all())


def _recalibration(found: Any) -> Iterator[tuple[str, bool]]:
    yield "no probabilities", probabilities(found.probabilities)
    yield from _error(found.before)
    yield from _error(found.after)
    yield from _difference(found.change)
    found.table(), found.gist()


def _difference(found: Any) -> Iterator[tuple[str, bool]]:
    low, high = found.confidence_interval(0.9, root=True)
    yield "difference is not finite", finite([found.estimate, found.root, low, high])
    yield "difference is not ordered", low <= high


def _monitoring(series: Any) -> Iterator[tuple[str, bool]]:
    for result in series.results:
        yield from _error(result)
    series.table()


def _variance(found: Any) -> Iterator[tuple[str, bool]]:
    yield "variance is not finite", finite(found.variance)
    yield "corrected variance is not finite", found.corrected is None or finite(found.corrected)
    yield "variance is negative", found.sampled or found.variance >= -ROUNDING


def _predictions(found: Any) -> Iterator[tuple[str, bool]]:
    yield "no probabilities", probabilities(found.p, 2e-3)
    yield (
        "an array is of a subclass",
        all(type(array) is np.ndarray for array in (found.p, found.y) if array is not None),
    )
    if found.y is not None:
        yield (
            "labels are not in range",
            bool((found.y >= 0).all() and (found.y < found.n_classes).all()),
        )


def _array(found: np.ndarray) -> Iterator[tuple[str, bool]]:
    yield "the array is of a subclass", type(found) is np.ndarray
    if found.dtype.kind == "f":
        yield (
            "no probabilities",
            finite(found) and bool((found >= 0).all() and (found <= 1 + 1e-6).all()),
        )


def probabilities(p: np.ndarray, tolerance: float = 1e-5) -> bool:
    """Whether numbers are finite, within 0 and 1, and rows sum to 1."""
    if not finite(p) or not ((p >= 0).all() and (p <= 1 + tolerance).all()):
        return False
    return p.ndim == 1 or bool((np.abs(p.sum(axis=1) - 1) < max(tolerance, 1e-3)).all())


RULES: dict[Any, Callable[[Any], Iterator[tuple[str, bool]]]] = {
    results.CalibrationErrorResult: _error, results.ClassWeights: _weights,
    results.MetricsResult: _metrics,
    results.LabelShiftCheck: _check, results.ReliabilityCurve: _curve,
    results.RecalibrationResult: _recalibration, results.Difference: _difference,
    results.MonitoringResult: _monitoring, results.AlgorithmVariance: _variance,
    calshift.Predictions: _predictions, np.ndarray: _array,
}  # fmt: skip
