"""The answer to "how miscalibrated is it?"."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from calshift._core.convert import plain
from calshift._core.frozen import Frozen
from calshift._core.validate import validate_flag, validate_level, validate_number
from calshift.errors import InvalidInput
from calshift.results._table import error_table
from calshift.results.drift import (
    DRIFT_NEEDS,
    DriftInfluence,
    DriftSensitivity,
    break_even,
    sensitivity,
    widen,
)

if TYPE_CHECKING:
    from calshift.results.class_weights import ClassWeights
    from calshift.results.diagnostic import Diagnostic
    from calshift.results.difference import RowInfluence, SummedInfluence
    from calshift.results.intervals import SamplingDistribution
    from calshift.results.label_shift_check import LabelShiftCheck


@dataclass(frozen=True, eq=False, repr=False)
class CalibrationErrorResult(Frozen):
    """A calibration error.

    Attributes
    ----------
    estimate : CE_p^p, the p-th power; a debiased one keeps its sign, so that averages stay unbiased
    per_class : (K,) the same for each class under "classwise" (NaN: unseen in the source), or None
    class_weights : the weights used, or None for an error with labels
    assumption : the test whether only the class priors changed, or None if it was not asked for
    warnings : what to know before acting on the number, worst first
    diagnostics : the outcomes of the conditions that a result must meet to be trusted
    merged_bins : bins (or knots of the smooth basis) joined to a neighbour for lack of rows
    kind, norm, estimator, n_source, n_target, classes : what was asked, of how much data
    settings : names and values of what else was asked: bins, binning, kernel, interval, drift, ...
    """

    estimate: float
    kind: str
    norm: float
    estimator: str
    n_source: float
    n_target: float | None = None
    per_class: np.ndarray | None = None
    class_weights: ClassWeights | None = None
    assumption: LabelShiftCheck | None = None
    warnings: tuple[str, ...] = ()
    diagnostics: tuple[Diagnostic, ...] = ()
    merged_bins: int = 0
    classes: tuple[Any, ...] | None = None
    _distribution: SamplingDistribution | None = None
    _class_distributions: SamplingDistribution | None = None
    _influence: RowInfluence | SummedInfluence | None = None
    settings: tuple[tuple[str, Any], ...] = ()
    _drift: DriftInfluence | None = None
    _source: Callable[[], CalibrationErrorResult] | None = None
    _curves: Any = None  # sums for reliability curves of a report; not pickled

    @cached_property
    def source(self) -> CalibrationErrorResult | None:
        """The labelled error on the source beside a label-free one, or None."""
        return None if self._source is None else self._source()

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "source": self.source, "_source": None, "_curves": None}

    def __copy__(self) -> CalibrationErrorResult:
        return self  # it cannot change

    def __deepcopy__(self, memo: object) -> CalibrationErrorResult:
        return self

    @property
    def trusted(self) -> bool:
        """Whether every condition was checked and met, or waived by name; see `diagnostics`."""
        return bool(self.diagnostics) and not any(one.failed for one in self.diagnostics)

    @property
    def has_interval(self) -> bool:
        """Whether standard errors and intervals were computed."""
        return self._distribution is not None

    @property
    def has_class_intervals(self) -> bool:
        """Whether `class_intervals` were computed too."""
        return self._class_distributions is not None

    @property
    def root(self) -> float:
        """CE_p, in units of probability: the p-th root of the estimate, 0 where it is negative."""
        return float(max(self.estimate, 0.0) ** (1 / self.norm))

    @property
    def standard_error(self) -> float:
        """Of the estimate."""
        return float(self._checked_distribution().standard_error)

    @property
    def interval_of(self) -> str:
        """What the interval is an interval of."""
        if self.estimator == "paper":
            return "the expected value of the paper's estimate, bias included, not the error itself"
        return "the calibration error"

    def confidence_interval(
        self, level: float = 0.95, *, root: bool = False, drift: float | None = None
    ) -> tuple[float, float]:
        """Lower and upper end for CE_p^p, or with ``root`` for CE_p; never below 0.

        The estimate is inside, also at low levels, where the interval by itself may miss it. It
        allows for a share ``drift`` of target rows outside label shift; None is that of the call.
        """
        ends: Any = self._checked_distribution().interval(validate_level(level))
        drift = self.drift if drift is None else validate_number(drift, "drift", 0, 1)
        if drift > 0:
            ends = widen(ends, self._checked_drift(), drift)
        low, high = self._widen(ends, self.estimate)
        power = 1 / self.norm if validate_flag(root, "root") else 1.0
        return float(low) ** power, float(high) ** power

    def _widen(self, ends: Any, estimate: Any) -> np.ndarray:
        """(2, ...) the ends within the possible range, or the estimate where it is outside."""
        low, high = np.clip(ends, 0.0, self._largest)
        inside = np.clip(estimate, 0.0, self._largest)
        return np.stack([np.minimum(low, inside), np.maximum(high, inside)])

    @property
    def drift(self) -> float:
        """The share of target rows outside label shift that the interval allows for."""
        return float(dict(self.settings).get("drift", 0.0))

    def drift_sensitivity(self, drift: float = 0.01) -> DriftSensitivity:
        """How far the estimate, and its root, can be off if label shift is only approximate.

        At worst, and to first order, if a share ``drift`` of the target's rows comes from another
        distribution of scores and labels that is spread over at least a tenth of those rows.
        """
        drift = validate_number(drift, "drift", 0, 1)
        return sensitivity(self._checked_drift(), self.estimate, self.norm, drift)

    def break_even_drift(self, max_error: float | None = None, *, level: float = 0.95) -> float:
        """The least drift at which the interval no longer decides.

        It then contains ``max_error`` (of the root), or 0 if that is None. 0.0 if it does without
        any drift, infinity if no drift up to 1 is sufficient.
        """
        limit = 0.0 if max_error is None else validate_number(max_error, "max_error", 0, 1)
        ends = self.confidence_interval(level, drift=0.0)
        return break_even(self._checked_drift(), ends, limit**self.norm)

    def _checked_drift(self) -> DriftInfluence:
        if self._drift is None:
            msg = f"the sensitivity to drift needs {DRIFT_NEEDS}"
            raise InvalidInput(msg)
        return self._drift

    @property
    def has_drift_sensitivity(self) -> bool:
        """Whether the sensitivity to drift was computed."""
        return self._drift is not None

    def class_intervals(
        self, level: float = 0.95, *, root: bool = False, simultaneous: bool = False
    ) -> tuple[np.ndarray, np.ndarray]:
        """Lower and upper ends for each class, (K,); NaN for a class unseen in the source.

        Each covers on its own: of 100 intervals at level .95 about 5 miss. With ``simultaneous``
        all of them cover together with probability ``level`` (Bonferroni).
        """
        level = validate_level(level)
        if self.per_class is None or self._class_distributions is None:
            msg = 'there are intervals by class for kind="classwise" with an interval only'
            raise InvalidInput(msg)
        kept = ~np.isnan(self.per_class)
        if validate_flag(simultaneous, "simultaneous"):
            level = 1 - (1 - level) / kept.sum()
        ends = np.full((2, len(kept)), np.nan)
        found = self._class_distributions.interval(level)
        ends[:, kept] = self._widen(found, self.per_class[kept])
        low, high = ends ** (1 / self.norm) if validate_flag(root, "root") else ends
        return low, high

    @property
    def _largest(self) -> float:
        """No error is larger: two vectors of probabilities differ by at most 2 in all.

        The paper's estimate has no bound, and neither has its expected value.
        """
        if self.estimator == "paper":
            return np.inf
        return 2.0 if self.kind == "canonical" else 1.0

    def _checked_distribution(self) -> SamplingDistribution:
        if self._distribution is None:
            msg = (
                f"no interval was computed for estimator={self.estimator!r}, norm={self.norm:g}, "
                f'kind={self.kind!r}: ask for interval="bootstrap", which serves everything, or '
                '"influence" for norms 1 and 2 of "debiased" and "plugin" on bins'
            )
            raise InvalidInput(msg)
        return self._distribution

    def to_dict(self, level: float = 0.95) -> dict[str, Any]:
        """Plain numbers, lists and texts, intervals at a level; None in the place of NaN."""
        return {
            "estimate": self.estimate,
            "root": self.root,
            **self._interval_dict(validate_level(level)),
            "kind": self.kind,
            "norm": self.norm,
            "estimator": self.estimator,
            "n_source": self.n_source,
            "n_target": self.n_target,
            "per_class": plain(self.per_class),
            "classes": None if self.classes is None else [str(name) for name in self.classes],
            "class_weights": None if self.class_weights is None else self.class_weights.to_dict(),
            "source": None if self.source is None else self.source.to_dict(level),
            "assumption": None if self.assumption is None else self.assumption.to_dict(),
            "merged_bins": self.merged_bins,
            "settings": dict(self.settings),
            "warnings": list(self.warnings),
            "trusted": self.trusted,
            "diagnostics": [one.to_dict() for one in self.diagnostics],
        }

    def _interval_dict(self, level: float) -> dict[str, Any]:
        """The interval, of the whole and by class."""
        if self._distribution is None:
            return {"standard_error": None, "interval": None, "class_intervals": None}
        classes = None
        if self._class_distributions is not None:
            classes = [plain(ends) for ends in self.class_intervals(level)]
        return {
            "standard_error": self.standard_error,
            "interval": {
                "level": level,
                "power": list(self.confidence_interval(level)),
                "root": list(self.confidence_interval(level, root=True)),
                "of": self.interval_of,
            },
            "class_intervals": classes,
        }

    def plot(self, ax: Any = None) -> Any:
        """Draw the error, class by class where there are classes, beside the source's."""
        from calshift.plotting import plot_error  # late: matplotlib only when drawing

        return plot_error(self, ax=ax)

    def _repr_html_(self) -> str:
        """What a notebook shows."""
        from calshift.report import fragment  # late: only when shown

        return fragment(self)

    def __str__(self) -> str:
        return error_table(self)

    def __repr__(self) -> str:
        asked = f"kind={self.kind!r}, norm={self.norm:g}, estimator={self.estimator!r}"
        return (
            f"CalibrationErrorResult(estimate={self.estimate:.6g}, root={self.root:.4g}, {asked})"
        )
