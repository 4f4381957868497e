"""Metrics of a classifier on the target, or of labelled predictions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from calshift._core.convert import plain
from calshift._core.frozen import Frozen
from calshift._core.text import note_lines, percent
from calshift._core.validate import validate_level
from calshift.errors import InvalidInput
from calshift.results.intervals.bounded_mean import (
    bounded_interval,
    has_few_events,
    normal_quantile,
)

if TYPE_CHECKING:
    from calshift.results.class_weights import ClassWeights
    from calshift.results.diagnostic import Diagnostic
    from calshift.results.label_shift_check import LabelShiftCheck

ROWS_SHOWN = 60


@dataclass(frozen=True, eq=False)
class MetricInfluence(Frozen):
    """Influence of each row on all metrics, for covariances with those of the same rows.

    Attributes
    ----------
    source, target : (n, M), and (m, M) or None for labelled rows
    fingerprint : checksum of the source's labels and weights, which identifies the rows
    """

    source: np.ndarray
    target: np.ndarray | None
    fingerprint: int

    def has_same_rows(self, other: MetricInfluence) -> bool:
        """Whether both are of the same rows, judged by labels and sizes."""
        same = self.fingerprint == other.fingerprint and len(self.source) == len(other.source)
        if self.target is None or other.target is None:
            return same
        return same and len(self.target) == len(other.target)

    def correlations(
        self, other: MetricInfluence, mine: list[int], theirs: list[int]
    ) -> list[float]:
        """Of the metrics in these columns; a sample that one lacks is not shared."""
        shared, own, others = (
            _sum_products(*pair, *columns)
            for pair, columns in (
                ((self, other), (mine, theirs)),
                ((self, self), (mine, mine)),
                ((other, other), (theirs, theirs)),
            )
        )
        scale = np.sqrt(own * others)
        return [float(r) for r in np.clip(shared / np.where(scale > 0, scale, np.inf), -1.0, 1.0)]


def _sum_products(
    one: MetricInfluence, other: MetricInfluence, mine: list[int], theirs: list[int]
) -> np.ndarray:
    """(M,) covariances of metrics of the same rows."""
    total = np.einsum("im,im->m", one.source[:, mine], other.source[:, theirs])
    if one.target is not None and other.target is not None:
        total = total + np.einsum("im,im->m", one.target[:, mine], other.target[:, theirs])
    return np.asarray(total)


@dataclass(frozen=True)
class MetricEstimate(Frozen):
    """One metric with its interval, and the same metric on the source.

    Attributes
    ----------
    name, title : as asked for, and in words
    estimate : on the target, or on labelled rows
    source : on the labelled source rows; None if there is no target
    bounds : its least and largest value
    diagnostics : conditions of this metric alone; those of all are in the result
    note : what to know about the number, or ""
    """

    name: str
    title: str
    estimate: float
    source: float | None = None
    bounds: tuple[float, float] = (0.0, 1.0)
    diagnostics: tuple[Diagnostic, ...] = ()
    note: str = ""
    trusted: bool = False
    _error: float | None = None
    _source_error: float | None = None
    _difference_error: float | None = None
    _rows: tuple[float, float] = (1.0, 1.0)  # effective rows of target and source
    _drift: tuple[float, float] = (0.0, 0.0)  # by which the interval is widened below and above
    _draws: np.ndarray | None = None  # of a bootstrap: estimate, source

    def __float__(self) -> float:
        return self.estimate

    @property
    def has_interval(self) -> bool:
        """Whether standard errors and intervals were computed."""
        return self._error is not None

    @property
    def standard_error(self) -> float:
        """Of the estimate."""
        return self._known(self._error)

    @property
    def source_standard_error(self) -> float:
        """Of the metric on the source."""
        return self._known(self._source_error)

    @property
    def difference(self) -> float:
        """Target - source."""
        return self.estimate - self._known_source()

    def confidence_interval(self, level: float = 0.95) -> tuple[float, float]:
        """Lower and upper end for the population of the target, within the possible range."""
        level = validate_level(level)
        low, high = self._interval(0, self.estimate, self.standard_error, level)
        low, high = low - self._drift[0], high + self._drift[1]
        return max(low, self.bounds[0]), min(high, self.bounds[1])

    def source_interval(self, level: float = 0.95) -> tuple[float, float]:
        """Lower and upper end for the population of the source."""
        error = self.source_standard_error
        low, high = self._interval(1, self._known_source(), error, validate_level(level))
        return max(low, self.bounds[0]), min(high, self.bounds[1])

    def difference_interval(self, level: float = 0.95) -> tuple[float, float]:
        """Lower and upper end of target - source, which share the source's rows."""
        level = validate_level(level)
        if self._draws is not None:
            return self._quantiles(self._draws[0] - self._draws[1], level)
        reach = normal_quantile(level) * self._known(self._difference_error)
        widest = self.bounds[1] - self.bounds[0]
        low, high = self.difference - reach, self.difference + reach
        if self._is_of_few_rows:
            low, high = self._join_intervals(level, low, high)
        return max(low - self._drift[0], -widest), min(high + self._drift[1], widest)

    @property
    def _is_of_few_rows(self) -> bool:
        """Whether the metric or that of the source is at a bound for lack of rows."""
        pairs = zip((self.estimate, self._known_source()), self._rows, strict=True)
        return any(has_few_events(value, self.bounds, rows) for value, rows in pairs)

    def _join_intervals(self, level: float, low: float, high: float) -> tuple[float, float]:
        """The normal interval of the difference, or if wider that of independent estimates.

        From the distances of both intervals from their estimates (Newcombe, 1998).
        """
        ends, others = self.confidence_interval(level), self.source_interval(level)
        down = np.hypot(self.estimate - ends[0], others[1] - self._known_source())
        up = np.hypot(ends[1] - self.estimate, self._known_source() - others[0])
        return min(low, self.difference - float(down)), max(high, self.difference + float(up))

    def _interval(
        self, which: int, estimate: float, error: float, level: float
    ) -> tuple[float, float]:
        if self._draws is not None:
            return self._quantiles(self._draws[which], level)
        return bounded_interval(estimate, error, level, self.bounds, self._rows[which])

    @staticmethod
    def _quantiles(draws: np.ndarray, level: float) -> tuple[float, float]:
        low, high = np.quantile(draws, [(1 - level) / 2, (1 + level) / 2])
        return float(low), float(high)

    def _known(self, error: float | None) -> float:
        if error is None:
            if self.source is None and self._error is not None:
                msg = f"{self.name} has no source to compare with: it is of labelled rows"
            else:
                msg = f'{self.name} has no interval: ask for interval="influence" or "bootstrap"'
            raise InvalidInput(msg)
        return error

    def _known_source(self) -> float:
        if self.source is None:
            msg = f"{self.name} has no source to compare with: it is of labelled rows"
            raise InvalidInput(msg)
        return self.source

    def to_dict(self, level: float = 0.95) -> dict[str, Any]:
        """Plain numbers; None where something was not computed."""
        found: dict[str, Any] = {
            "name": self.name,
            "title": self.title,
            "estimate": plain(self.estimate),
            "standard_error": None,
            "interval": None,
            "source": plain(self.source),
            "source_interval": None,
            "difference": None if self.source is None else plain(self.difference),
            "difference_interval": None,
            "trusted": self.trusted,
            "note": self.note,
        }
        if self.has_interval:
            found["standard_error"] = plain(self.standard_error)
            found["interval"] = [plain(end) for end in self.confidence_interval(level)]
            if self.source is not None:
                found["source_interval"] = [plain(end) for end in self.source_interval(level)]
                ends = self.difference_interval(level)
                found["difference_interval"] = [plain(end) for end in ends]
        return found

    def __str__(self) -> str:
        ends = ""
        if self.has_interval:
            ends = " ({:.4g} to {:.4g})".format(*self.confidence_interval())
        return f"{self.name} {self.estimate:.4g}{ends}"


@dataclass(frozen=True, eq=False, repr=False)
class MetricsResult(Frozen, Mapping[str, MetricEstimate]):
    """Metrics by name.

    Attributes
    ----------
    metrics : the estimates, by name
    decision : the rule that predicts classes, in a few words
    n_source, n_target : sizes of the samples; the target's is None for labelled rows
    confusion : (K, K) shares by predicted (row) and true class (column), on the target or on
        labelled rows; None for many classes
    confusion_source : the same of the source; None without a target
    class_weights : the weights used; None without a target
    assumption : the test whether only the class priors changed, or None
    diagnostics : the outcomes of the conditions that all metrics must meet to be trusted
    warnings : what to know before acting on the numbers, worst first
    classes, positive : names of the classes, and the positive one of two
    """

    metrics: dict[str, MetricEstimate]
    decision: str
    n_source: float
    n_target: float | None = None
    confusion: np.ndarray | None = None
    confusion_source: np.ndarray | None = None
    class_weights: ClassWeights | None = None
    assumption: LabelShiftCheck | None = None
    diagnostics: tuple[Diagnostic, ...] = ()
    warnings: tuple[str, ...] = ()
    classes: tuple[Any, ...] | None = None
    positive: Any = None
    settings: tuple[tuple[str, Any], ...] = ()
    _influence: MetricInfluence | None = field(default=None)

    def __getitem__(self, name: str) -> MetricEstimate:
        return self.metrics[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.metrics)

    def __len__(self) -> int:
        return len(self.metrics)

    @property
    def trusted(self) -> bool:
        """Whether every condition that all metrics need was met, or waived by name.

        A single metric also needs an interval that is not too wide: see its own ``trusted``.
        """
        return bool(self.diagnostics) and not any(one.failed for one in self.diagnostics)

    def to_dict(self, level: float = 0.95) -> dict[str, Any]:
        """Plain numbers, lists and texts, intervals at a level; None in the place of NaN."""
        return {
            "level": validate_level(level),
            "metrics": [one.to_dict(level) for one in self.metrics.values()],
            "decision": self.decision,
            "n_source": self.n_source,
            "n_target": self.n_target,
            "confusion": plain(self.confusion),
            "confusion_source": plain(self.confusion_source),
            "classes": None if self.classes is None else [str(name) for name in self.classes],
            "positive": None if self.positive is None else str(self.positive),
            "class_weights": None if self.class_weights is None else self.class_weights.to_dict(),
            "assumption": None if self.assumption is None else self.assumption.to_dict(),
            "settings": dict(self.settings),
            "warnings": list(self.warnings),
            "trusted": self.trusted,
            "diagnostics": [one.to_dict() for one in self.diagnostics],
        }

    def plot(self, ax: Any = None, *, level: float = 0.95) -> Any:
        """Draw each metric with its interval, beside that of the source."""
        from calshift.plotting import plot_metrics  # late: matplotlib only when drawing

        return plot_metrics(self, ax, level)

    def table(self, level: float = 0.95) -> str:
        """One line a metric."""
        return "\n".join(metric_lines(self, level))

    def _repr_html_(self) -> str:
        """What a notebook shows."""
        from calshift.report import metrics_fragment  # late: only when shown

        return metrics_fragment(self)

    def __str__(self) -> str:
        title = "Metrics of labelled rows"
        if self.n_target is not None:
            title = f"Metrics on the target: {'trusted' if self.trusted else 'NOT TRUSTED'}"
        lines = [title, *metric_lines(self, 0.95), *note_lines(self.warnings)]
        return "\n".join(lines)

    def __repr__(self) -> str:
        shown = ", ".join(f"{name}={float(one):.4g}" for name, one in self.metrics.items())
        return f"MetricsResult({shown if len(shown) <= 200 else f'{len(self)} metrics'})"


def metric_lines(result: MetricsResult, level: float) -> Iterator[str]:
    """A table of at most 100 columns."""
    level = validate_level(level)
    shown = list(result.metrics.values())[:ROWS_SHOWN]
    width = max(8, *(min(len(one.name), 36) for one in shown))
    head = f"{'metric':{width}} {'estimate':>9}   {percent(level) + ' interval':<19}"
    yield (head + ("" if result.n_target is None else f" {'source':>8} {'change':>9}")).rstrip()
    for one in shown:
        ends = "" if not one.has_interval else _ends(*one.confidence_interval(level))
        line = f"{_short(one.name, width):{width}} {_number(one.estimate):>9}   {ends:<19}"
        if one.source is not None:
            line += f" {_number(one.source):>8} {one.difference:>+9.4f}"
            line += "" if one.trusted or not result.trusted else "  not trusted"
        yield line.rstrip()
    if len(result) > len(shown):
        yield f"{'...':{width}} {len(result) - len(shown)} more metrics"


def _short(name: str, width: int) -> str:
    return name if len(name) <= width else name[: width - 3] + "..."


def _ends(low: float, high: float) -> str:
    return f"{_number(low)} to {_number(high)}"


def _number(value: float) -> str:
    return f"{value:.4f}" if abs(value) < 1000 else f"{value:.4g}"
