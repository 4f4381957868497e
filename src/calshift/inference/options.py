"""Options of an estimate, validated once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from calshift._core.validate import (
    is_number,
    show,
    validate_choice,
    validate_flag,
    validate_integer,
    validate_jobs,
    validate_number,
    validate_rng,
)
from calshift.binning.edges import MOST_BINS
from calshift.binning.events import KINDS
from calshift.errors import InvalidInput
from calshift.estimators.smoothing_kernels import BINNING, KERNELS
from calshift.results.drift import DRIFT_NEEDS

ESTIMATORS = ("debiased", "plugin", "paper")
INTERVALS = ("influence", "bootstrap", None)
PAPER_BINS = 15
CANONICAL_KERNEL = "triweight"  # benchmarks/canonical.py
LARGEST_NORM = 100.0  # beyond it |d|^p leaves the range of a float
BANDWIDTHS = (1e-9, 1e9)
DRAWS = (20, 1_000_000)  # least and most of a bootstrap

Progress = Callable[[int, int], Any]


@dataclass(frozen=True)
class Options:
    """Kind, norm, estimator and the smoothing: bins, or a kernel with its bandwidth."""

    kind: str
    norm: float
    estimator: str
    bins: Any
    binning: str
    kernel: str | None
    bandwidth: float | str
    interval: str | None = None
    stratified: bool = False
    drift: float | None = None

    def __post_init__(self) -> None:
        validate_choice(self.kind, "kind", KINDS)
        validate_choice(self.estimator, "estimator", ESTIMATORS)
        validate_choice(self.interval, "interval", INTERVALS)
        object.__setattr__(self, "stratified", validate_flag(self.stratified, "stratified"))
        object.__setattr__(self, "norm", validate_number(self.norm, "norm", 1, LARGEST_NORM))
        if self.kind == "canonical" and self.kernel is None:
            object.__setattr__(self, "kernel", CANONICAL_KERNEL)
        self._check_bandwidth()
        if self.kernel is not None:
            self._check_kernel()
        elif self.estimator == "paper" and _is_auto(self.bins):
            object.__setattr__(self, "bins", PAPER_BINS)
        if self.drift is not None:
            self._check_drift()

    @property
    def settings(self) -> tuple[tuple[str, Any], ...]:
        """What smooths and what the interval is, in plain values, to ask the same again."""
        smoothing = {"bins": _plain_bins(self.bins), "binning": self.binning}
        if self.kernel == BINNING:
            smoothing = {"kernel": BINNING, "bins": _plain_bins(self.bins)}
        elif self.kernel is not None:
            smoothing = {"kernel": self.kernel, "bandwidth": self.bandwidth}
        asked = {**smoothing, "interval": self.interval, "stratified": self.stratified}
        return tuple((asked if self.drift is None else {**asked, "drift": self.drift}).items())

    def _check_drift(self) -> None:
        closed = self.interval == "influence" and self.kernel is None and self.norm in (1, 2)
        if self.drift and not (closed and self.estimator != "paper"):
            msg = f"drift={show(self.drift)} needs {DRIFT_NEEDS}"
            raise InvalidInput(msg)

    def _check_bandwidth(self) -> None:
        if _is_auto(self.bandwidth):
            return
        width = validate_number(self.bandwidth, 'bandwidth, unless it is "auto",', *BANDWIDTHS)
        object.__setattr__(self, "bandwidth", width)
        if self.kernel is None:
            msg = f"bandwidth={show(self.bandwidth)} needs a kernel; bins have none"
            raise InvalidInput(msg)

    def _check_kernel(self) -> None:
        validate_choice(self.kernel, "kernel", (*KERNELS, BINNING), ", or None for bins")
        if self.kernel == BINNING:
            self._check_cells()
        elif not _is_auto(self.bins):
            msg = (
                f"bins={show(self.bins)} and a kernel exclude each other (canonical has a kernel; "
                f'with kernel="{BINNING}" bins are cells of the simplex)'
            )
            raise InvalidInput(msg)

    def _check_cells(self) -> None:
        if self.kind != "canonical":
            msg = (
                f'kernel="{BINNING}" is for kind="canonical"; other kinds have bins without kernel'
            )
            raise InvalidInput(msg)
        if not _is_auto(self.bandwidth) or self.binning != "mass":
            msg = (
                f'kernel="{BINNING}" has cells of equal mass: no bandwidth, and no binning="width"'
            )
            raise InvalidInput(msg)
        if not _is_auto(self.bins):
            if not is_number(self.bins):
                msg = f'bins must be "auto" or a number of cells; got {show(self.bins)}'
                raise InvalidInput(msg)
            bins = validate_integer(self.bins, "bins", 1, MOST_BINS)
            object.__setattr__(self, "bins", bins)
        elif self.estimator == "paper":
            object.__setattr__(self, "bins", PAPER_BINS)


def _plain_bins(bins: Any) -> Any:
    """A word, a number, or edges as lists."""
    if isinstance(bins, str) or is_number(bins):
        return bins if isinstance(bins, str) else int(bins)
    return [float(part) if is_number(part) else [float(edge) for edge in part] for part in bins]


def _is_auto(value: Any) -> bool:
    return isinstance(value, str) and value == "auto"


@dataclass(frozen=True)
class Resampling:
    """Draws of the bootstrap, their seed, processes, and a callback ``progress(done, total)``."""

    draws: int
    rng: Any
    jobs: int
    progress: Progress | None

    def __post_init__(self) -> None:
        object.__setattr__(self, "draws", validate_integer(self.draws, "n_boot", *DRAWS))
        object.__setattr__(self, "jobs", validate_jobs(self.jobs, "n_jobs"))
        if self.rng is not None:
            validate_rng(self.rng)
        if self.progress is not None and not callable(self.progress):
            msg = f"progress must be callable with (done, total); got {show(self.progress)}"
            raise InvalidInput(msg)
