"""The difference of two calibration errors or metrics of the same rows, from their influence."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from calshift._core.frozen import Frozen
from calshift._core.validate import validate_level
from calshift.errors import InvalidInput
from calshift.results.calibration_error import CalibrationErrorResult
from calshift.results.intervals.bounded_mean import normal_quantile
from calshift.results.metrics import MetricEstimate, MetricInfluence, MetricsResult

ROUNDING = 1e-13  # of a standard error, below which there is no correlation


@dataclass(frozen=True, eq=False, repr=False)
class Difference(Frozen):
    """The difference ``a - b`` of two calibration errors.

    Attributes
    ----------
    a, b : the two results
    correlation : of their estimates, from the rows they share
    """

    a: CalibrationErrorResult
    b: CalibrationErrorResult
    correlation: float

    @property
    def estimate(self) -> float:
        """Difference of the p-th powers, with negative ones taken as 0."""
        return max(self.a.estimate, 0.0) - max(self.b.estimate, 0.0)

    @property
    def root(self) -> float:
        """Difference of the roots."""
        return self.a.root - self.b.root

    @property
    def standard_error(self) -> float:
        """Of the difference of the p-th powers."""
        return self._deviation(self.a.standard_error, self.b.standard_error)

    def confidence_interval(
        self, level: float = 0.95, *, root: bool = False
    ) -> tuple[float, float]:
        """Lower and upper end of the difference, of p-th powers or of roots.

        From the intervals (l, u) of both errors, without drift, and their correlation r::

            low  = d - sqrt((a - l_a)^2 + (u_b - b)^2 - 2 r (a - l_a)(u_b - b))
            high = d + sqrt((u_a - a)^2 + (b - l_b)^2 - 2 r (u_a - a)(b - l_b))

        A drift that the errors allow for is no random error: what it adds to the intervals of
        both is added to both ends.
        """
        (low_a, high_a), (low_b, high_b) = (
            one.confidence_interval(level, root=root, drift=0.0) for one in (self.a, self.b)
        )
        a, b = (
            float(np.clip(one.root if root else one.estimate, *ends))
            for one, ends in ((self.a, (low_a, high_a)), (self.b, (low_b, high_b)))
        )
        down = self._deviation(a - low_a, high_b - b)
        up = self._deviation(high_a - a, b - low_b)
        drift_a, drift_b = (self._widening(one, level, root) for one in (self.a, self.b))
        return a - b - down - drift_a[0] - drift_b[1], a - b + up + drift_a[1] + drift_b[0]

    @staticmethod
    def _widening(one: CalibrationErrorResult, level: float, root: bool) -> tuple[float, float]:
        """By how much the drift of an error widens its interval, below and above."""
        if one.drift == 0:
            return 0.0, 0.0
        low, high = one.confidence_interval(level, root=root, drift=0.0)
        least, most = one.confidence_interval(level, root=root)
        return low - least, most - high

    def _deviation(self, one: float, two: float) -> float:
        """Standard deviation of a difference, from those of its terms and their correlation."""
        square = one**2 + two**2 - 2 * self.correlation * one * two
        return float(np.sqrt(max(square, 0.0)))

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers."""
        return {
            "estimate": self.estimate,
            "root": self.root,
            "standard_error": self.standard_error,
            "interval": {
                "level": 0.95,
                "power": list(self.confidence_interval()),
                "root": list(self.confidence_interval(root=True)),
            },
            "correlation": self.correlation,
        }

    def __str__(self) -> str:
        low, high = self.confidence_interval(root=True)
        words = "not significant" if low <= 0 <= high else "different"
        return (
            f"Difference of calibration errors (root): {self.root:+.4f}, "
            f"95% interval {low:+.4f} to {high:+.4f}: {words}"
        )

    def __repr__(self) -> str:
        return f"Difference(estimate={self.estimate:.6g}, root={self.root:.4g})"


def compare_results(a: CalibrationErrorResult, b: CalibrationErrorResult) -> Difference:
    """The difference a - b, with the correlation of their estimates."""
    for name, one in (("a", a), ("b", b)):
        if not isinstance(one, CalibrationErrorResult):
            msg = f"{name} must be a CalibrationErrorResult; got {type(one)!r}"
            raise InvalidInput(msg)
        if one._influence is None:
            msg = (
                f'{name} must have been made with interval="influence" (norm 1 or 2, with bins) '
                "of rows in memory: the influence of rows that are read in passes is not kept"
            )
            raise InvalidInput(msg)
    for name in ("kind", "norm", "estimator"):
        one, other = getattr(a, name), getattr(b, name)
        if one != other:
            msg = f"a and b must have the same {name}; they have {one!r} and {other!r}"
            raise InvalidInput(msg)
    assert a._influence is not None
    assert b._influence is not None
    first, second = a._influence, b._influence
    if isinstance(second, SummedInfluence):
        first, second = second, first
    if isinstance(second, SummedInfluence):
        raise InvalidInput(WINDOWS)
    if not first.has_same_rows(second):
        raise InvalidInput(WINDOWS if isinstance(first, SummedInfluence) else OTHER_ROWS)
    variances = first.variance, second.variance
    shared = 0.0  # where the influence of all rows on one of them is rounding
    if min(variances) > ROUNDING**2:
        shared = first.with_other(second) / np.sqrt(variances[0] * variances[1])
    return Difference(a, b, float(np.clip(shared, -1.0, 1.0)))


@dataclass(frozen=True, eq=False, repr=False)
class MetricDifference(Frozen):
    """The difference ``a - b`` of the same metric of two models.

    Attributes
    ----------
    a, b : the two estimates
    correlation : of them, from the rows they share
    """

    a: MetricEstimate
    b: MetricEstimate
    correlation: float

    @property
    def name(self) -> str:
        """Of the metric."""
        return self.a.name

    @property
    def trusted(self) -> bool:
        """Whether both estimates are."""
        return self.a.trusted and self.b.trusted

    @property
    def estimate(self) -> float:
        """a - b."""
        return self.a.estimate - self.b.estimate

    @property
    def standard_error(self) -> float:
        """Of the difference; those of a and b include the factor of the lack of fit."""
        one, two = self.a.standard_error, self.b.standard_error
        square = one**2 + two**2 - 2 * self.correlation * one * two
        return float(np.sqrt(max(square, 0.0)))

    def confidence_interval(self, level: float = 0.95) -> tuple[float, float]:
        """Lower and upper end, from the standard error.

        As for `Difference`, what a drift adds to the intervals of both is added to both ends.
        """
        reach = normal_quantile(validate_level(level)) * self.standard_error
        (down_a, up_a), (down_b, up_b) = self.a._drift, self.b._drift
        low, high = self.estimate - reach, self.estimate + reach
        widest = self.a.bounds[1] - self.a.bounds[0]
        return max(low - down_a - up_b, -widest), min(high + up_a + down_b, widest)

    def is_clear(self, level: float = 0.95) -> bool:
        """Whether the interval is on one side of 0."""
        low, high = self.confidence_interval(level)
        return not low <= 0 <= high

    def to_dict(self, level: float = 0.95) -> dict[str, Any]:
        """Plain numbers."""
        return {
            "name": self.name,
            "title": self.a.title,
            "a": self.a.estimate,
            "b": self.b.estimate,
            "difference": self.estimate,
            "standard_error": self.standard_error,
            "interval": list(self.confidence_interval(level)),
            "correlation": self.correlation,
            "clear": self.is_clear(level),
            "trusted": self.trusted,
        }

    def __str__(self) -> str:
        low, high = self.confidence_interval()
        words = "different" if self.is_clear() else "not significant"
        return f"{self.name}: {self.estimate:+.4g}, 95% interval {low:+.4g} to {high:+.4g}: {words}"

    def __repr__(self) -> str:
        return f"MetricDifference({self.name}={self.estimate:.6g})"


@dataclass(frozen=True, eq=False, repr=False)
class MetricsComparison(Frozen, Mapping[str, MetricDifference]):
    """Differences ``a - b`` of the metrics of two models, by name.

    Attributes
    ----------
    differences : of the metrics that both results have
    a, b : the two results
    """

    differences: dict[str, MetricDifference]
    a: MetricsResult
    b: MetricsResult

    def __getitem__(self, name: str) -> MetricDifference:
        return self.differences[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.differences)

    def __len__(self) -> int:
        return len(self.differences)

    @property
    def trusted(self) -> bool:
        """Whether both results are; a single difference has its own ``trusted``."""
        return self.a.trusted and self.b.trusted

    def to_dict(self, level: float = 0.95) -> dict[str, Any]:
        """Plain numbers."""
        found = [one.to_dict(level) for one in self.values()]
        return {"level": validate_level(level), "trusted": self.trusted, "metrics": found}

    def __str__(self) -> str:
        return "\n".join(["Differences of metrics, a - b", *map(str, self.values())])

    def __repr__(self) -> str:
        return f"MetricsComparison({len(self)} metrics)"


def compare_metrics(a: MetricsResult, b: MetricsResult) -> MetricsComparison:
    """The differences a - b of the metrics that both have, with their correlations."""
    one, two = _influence_of("a", a), _influence_of("b", b)
    if not one.has_same_rows(two):
        raise InvalidInput(OTHER_ROWS)
    if a.positive != b.positive:
        msg = f"a and b must have the same positive class; they have {a.positive} and {b.positive}"
        raise InvalidInput(msg)
    names = [name for name in a if name in b]
    if not names:
        msg = f"a and b must have a metric in common; they have {', '.join(a)} and {', '.join(b)}"
        raise InvalidInput(msg)
    places = [list(a).index(name) for name in names], [list(b).index(name) for name in names]
    shared = one.correlations(two, *places)
    found = zip(names, shared, strict=True)
    differences = {name: _metric_difference(a[name], b[name], r) for name, r in found}
    return MetricsComparison(differences, a, b)


OTHER_ROWS = "a and b must be of the same rows in the same order: their labels or sizes differ"
WINDOWS = (
    "a window of `monitor` is compared with its own .source only, since the influence of each row "
    "is not kept: call target_calibration_error on the rows of the window"
)


def _influence_of(name: str, one: MetricsResult) -> MetricInfluence:
    """The influence of the rows, where it was kept."""
    if not isinstance(one, MetricsResult):
        msg = f"{name} must be a MetricsResult, like the other; got {type(one)!r}"
        raise InvalidInput(msg)
    if one._influence is None:
        msg = (
            f'{name} must have been made with interval="influence" of rows in memory, and of at '
            "most 2,000,000 numbers (rows times metrics): the influence of others is not kept. "
            "Ask for fewer metrics at a time if there are many rows"
        )
        raise InvalidInput(msg)
    return one._influence


def _metric_difference(a: MetricEstimate, b: MetricEstimate, r: float) -> MetricDifference:
    if a.bounds != b.bounds:
        msg = f"a and b must have the same range of {a.name}; it is {a.bounds} and {b.bounds}"
        raise InvalidInput(msg + ": were the costs the same?")
    return MetricDifference(a, b, r)


@dataclass(frozen=True, eq=False)
class RowInfluence(Frozen):
    """Influence of each row on an error, for the covariance of two errors of the same rows.

    Attributes
    ----------
    source, target : (n,), and (m,) or None for an error with labels
    fingerprint : checksum of the source's labels and weights, which identifies the rows
    outside : influence of observations of neither sample
    """

    source: np.ndarray
    target: np.ndarray | None
    fingerprint: int = 0
    outside: np.ndarray = field(default_factory=lambda: np.zeros(0))

    def has_same_rows(self, other: RowInfluence) -> bool:
        """Whether both are of the same rows, judged by labels and sizes."""
        same = self.fingerprint == other.fingerprint and self.source.shape == other.source.shape
        if self.target is None or other.target is None:
            return same
        return same and self.target.shape == other.target.shape

    def scaled(self, factor: float) -> RowInfluence:
        """The influence on a multiple of the error."""
        target = None if self.target is None else self.target * factor
        return RowInfluence(self.source * factor, target, self.fingerprint, self.outside * factor)

    @property
    def variance(self) -> float:
        """Of the error, to first order."""
        return self.with_other(self)

    def with_other(self, other: RowInfluence) -> float:
        """Covariance with an error of the same rows; a sample that one lacks is not shared."""
        shared = float(self.source @ other.source)
        if self.outside.shape == other.outside.shape:
            shared += float(self.outside @ other.outside)
        if self.target is None or other.target is None:
            return shared
        return shared + float(self.target @ other.target)


@dataclass(frozen=True, eq=False)
class SummedInfluence(Frozen):
    """Of rows on an error: what is left of it without a number for each row of the source.

    Attributes
    ----------
    variance : of the error, to first order
    covariance : with the error of the source
    of_source : influence on that one
    """

    variance: float
    covariance: float
    of_source: RowInfluence

    def has_same_rows(self, other: RowInfluence) -> bool:
        """Whether the covariance is that with this error."""
        return other is self.of_source

    def with_other(self, other: RowInfluence) -> float:
        """Covariance with the error of the source."""
        assert other is self.of_source
        return self.covariance
