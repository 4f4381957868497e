"""Class weights w_y = p_t(y) / p_s(y), with class priors, standard errors and diagnostics."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from calshift._core.convert import plain
from calshift._core.frozen import Frozen
from calshift._core.text import note_lines, printable
from calshift._core.validate import validate_level
from calshift.errors import InvalidInput

if TYPE_CHECKING:
    from calshift.results.diagnostic import Diagnostic
    from calshift.results.label_shift_check import LabelShiftCheck
    from calshift.weights.influence import WeightInfluence

ROWS_SHOWN = 20
HALF_MEAN_ERROR = 0.4  # half of E|z| of a standard normal z: a distance from standard errors
ORDINARY_LACK_OF_FIT = 1.6  # standard errors: chance alone (benchmarks/natural_shifts.py)


@dataclass(frozen=True, eq=False)
class ClassWeights(Frozen):
    """Importance weights of the classes.

    Attributes
    ----------
    values : (K,) the weights; NaN for a class without source rows
    prior_source, prior_target : (K,) class priors (prevalence) of source and target
    n_source : size of the source sample
    method : how the weights were estimated
    warnings : limitations, worst first
    covariance : (K, K) of ``prior_target``, by sampling of both samples; None if not estimated, and
        for more than 2000 classes whose labels were counted
    values_error : (K,) standard errors of the weights, or None
    converged, iterations : of the optimisation
    condition_number, smallest_singular_value : of the matrix that was inverted, or None
    reasons : (K,) why a weight is not reliable, "" if it is
    influence : influence of each row on the weights, for the variance of estimates that use them,
        or None
    classes : names of the classes, or None
    predicted : (K,) mean prediction of the target, which identifies it and gives the mass of
        classes without source rows; None for a given vector without such classes
    agreement_p_value : of the test that another method gives the same target prior, or None
    lack_of_fit : largest difference, in its standard errors, between other means of the target and
        those that the weights imply; or None
    prior_distance : expected total variation between ``prior_target`` and the true one, if shares
        are at 0 and weights were compared with another method's; or None
    discrimination : information of the calibrated predictions on the source's labels, relative to
        their entropy; None for methods that do not calibrate
    assumption, diagnostics : the test of label shift and the outcomes of the conditions for
        `trusted`, of `label_shift_weights` with ``diagnose=True``; else None and empty
    """

    values: np.ndarray
    prior_source: np.ndarray
    prior_target: np.ndarray
    n_source: float
    method: str = "given"
    warnings: tuple[str, ...] = ()
    covariance: np.ndarray | None = None
    values_error: np.ndarray | None = None
    converged: bool = True
    iterations: int = 0
    condition_number: float | None = None
    smallest_singular_value: float | None = None
    reasons: tuple[str, ...] = ()
    influence: WeightInfluence | None = None
    classes: tuple[Any, ...] | None = None
    predicted: np.ndarray | None = None
    discrimination: float | None = None
    agreement_p_value: float | None = None
    lack_of_fit: float | None = None
    prior_distance: float | None = None
    assumption: LabelShiftCheck | None = None
    diagnostics: tuple[Diagnostic, ...] = ()

    @property
    def trusted(self) -> bool:
        """Whether the conditions were checked and none failed."""
        return bool(self.diagnostics) and not any(one.failed for one in self.diagnostics)

    @property
    def unseen_share(self) -> float:
        """Mean predicted probability of classes without source rows; 0 if not known."""
        unseen = np.isnan(self.values)
        if not unseen.any():
            return 0.0
        share = self.prior_target if self.predicted is None else self.predicted
        return float(share[unseen].sum())

    @property
    def standard_error(self) -> np.ndarray | None:
        """(K,) of ``prior_target``; None for weights that were given."""
        if self.covariance is None:  # as for thousands of classes whose labels were counted
            return getattr(self.influence, "prior_error", None)
        return np.sqrt(np.diag(self.covariance))

    @property
    def expected_distance(self) -> float | None:
        """Expected total variation between ``prior_target`` and the true one, or None."""
        if self.standard_error is None:
            return None
        return max(HALF_MEAN_ERROR * float(self.standard_error.sum()), self.prior_distance or 0.0)

    @property
    def untrusted(self) -> dict[int, str]:
        """Classes whose weight is not reliable, and the reason."""
        return {c: reason for c, reason in enumerate(self.reasons) if reason}

    @property
    def ess(self) -> float:
        """Effective sample size of the source, (sum_i w_i)^2 / sum_i w_i^2: n without shift."""
        w = np.where(np.isnan(self.values), 0.0, self.values)
        w /= w.max() or 1.0
        square = float(self.prior_source @ w**2)
        return self.n_source * float(self.prior_source @ w) ** 2 / square if square > 0 else 0.0

    @property
    def error_factor(self) -> float:
        """By which standard errors of what uses the weights are multiplied for lack of fit."""
        return max(1.0, (self.lack_of_fit or 0.0) / ORDINARY_LACK_OF_FIT)

    def confidence_interval(self, level: float = 0.95) -> tuple[np.ndarray, np.ndarray]:
        """Lower and upper ends for each class prior of the target, within [0, 1]."""
        from scipy.special import ndtri

        level = validate_level(level)
        if self.standard_error is None:
            msg = f"no interval: weights of method {self.method!r} have no standard errors"
            raise InvalidInput(msg)
        reach = ndtri((1 + level) / 2) * self.standard_error
        ends = self.prior_target - reach, self.prior_target + reach
        return np.clip(ends[0], 0, 1), np.clip(ends[1], 0, 1)

    def plot(self, ax: Any = None) -> Any:
        """Draw the weights with their intervals; see `plot_weights`."""
        from calshift.plotting import plot_weights

        return plot_weights(self, ax=ax)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return np.array(self.values, dtype=dtype)

    def __len__(self) -> int:
        return len(self.values)

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers, lists and texts; NaN and infinity are None."""
        numbers = (
            "values", "values_error", "prior_source", "prior_target", "standard_error",
            "covariance", "condition_number", "smallest_singular_value",
        )  # fmt: skip
        return {
            "method": self.method,
            **{name: plain(getattr(self, name)) for name in numbers},
            "ess": self.ess,
            "converged": self.converged,
            "iterations": self.iterations,
            "discrimination": plain(self.discrimination),
            "agreement_p_value": plain(self.agreement_p_value),
            "lack_of_fit": plain(self.lack_of_fit),
            "untrusted": {str(c): reason for c, reason in self.untrusted.items()},
            "warnings": list(self.warnings),
            "assumption": None if self.assumption is None else self.assumption.to_dict(),
            "diagnostics": [one.to_dict() for one in self.diagnostics],
            "trusted": self.trusted,
        }

    def __str__(self) -> str:
        names = self._names()
        width = max(7, *(len(name) for name in names))
        head = (
            f"{'class':>{width}} {'source':>8} {'target':>8} {'s.e.':>7} {'weight':>8} {'s.e.':>7}"
        )
        rows = [self._row(c, f"{name:>{width}}") for c, name in enumerate(names)]
        if len(self) > ROWS_SHOWN:
            rows.append(f"{'...':>{width}} {len(self) - ROWS_SHOWN} more classes")
        size = f"effective sample size {self.ess:,.0f} of {self.n_source:,.10g}"
        notes = note_lines(self.warnings)
        title = f"Class priors and weights ({self.method})"
        return "\n".join([title, head, *rows, size, *notes])

    def _names(self) -> list[str]:
        shown = range(min(len(self), ROWS_SHOWN))
        names = [printable(str(c if self.classes is None else self.classes[c])) for c in shown]
        return [name if len(name) <= 24 else name[:21] + "..." for name in names]

    def _row(self, c: int, name: str) -> str:
        shares = f"{name} {self.prior_source[c]:>8.2%} {self.prior_target[c]:>8.2%}"
        share_error = "" if self.standard_error is None else f"{self.standard_error[c]:.2%}"
        value_error = "" if self.values_error is None else f"{self.values_error[c]:.2g}"
        reason = self.untrusted.get(c, "")
        if np.isnan(self.values[c]):
            return f"{name} {self.prior_source[c]:>8.2%} {'?':>8} {'':>7} {'unseen':>8}"
        line = f"{shares} {share_error:>7} {self.values[c]:>8.4g} {value_error:>7}"
        return (line + (f"  ! {reason}" if reason else "")).rstrip()


def wilson_interval(share: np.ndarray, n: Any, level: float) -> tuple[np.ndarray, np.ndarray]:
    """Wilson's interval of proportions among n observations, within [0, 1]."""
    from scipy.special import ndtri  # late: importing calshift must be fast

    z = ndtri((1 + level) / 2)
    middle = (share + z**2 / (2 * n)) / (1 + z**2 / n)
    reach = z * np.sqrt(share * (1 - share) / n + z**2 / (4 * n**2)) / (1 + z**2 / n)
    return np.clip(middle - reach, 0, 1), np.clip(middle + reach, 0, 1)
