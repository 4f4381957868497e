"""The difference of two calibration errors of the same rows, and the influence of rows on it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from calshift._core.frozen import Frozen
from calshift.errors import InvalidInput
from calshift.results.calibration_error import CalibrationErrorResult

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
    if not a._influence.has_same_rows(b._influence):
        msg = "a and b must be of the same rows in the same order: their labels or sizes differ"
        raise InvalidInput(msg)
    variances = a._influence.variance, b._influence.variance
    shared = 0.0  # where the influence of all rows on one of them is rounding
    if min(variances) > ROUNDING**2:
        shared = a._influence.with_other(b._influence) / np.sqrt(variances[0] * variances[1])
    return Difference(a, b, float(np.clip(shared, -1.0, 1.0)))


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
