"""Warnings about an estimated calibration error, and whether it can be trusted."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from calshift._core.text import small_ess_warning
from calshift.errors import UnreliableWeights

if TYPE_CHECKING:
    from calshift.results import ClassWeights, LabelShiftCheck

SMALL_ESS = 100.0  # effective source rows, below which an error is imprecise
TOO_SMALL_ESS = 20.0
SPARSE_SHARE = (0.5, 0.1)  # of the error, of the target: share without source support to warn of
TIE = 1e-9  # tolerance for rounding
MOST_SPARSE = 0.5  # of the target without source support: beyond it an error is extrapolated
LEAST_TARGET = 30.0  # rows, below which an estimate is not trusted
FEW_A_CLASS = 15.0  # source rows for each class of a classwise error (benchmarks/coverage_study.py)
UNSEEN_SHARE = 0.05  # of the target in classes not in the source: that warning comes first
UNTRUSTED_SHARE = 0.25  # of the target in classes whose weight is not trusted

Warnings = Iterator[tuple[bool, str]]  # whether the result is not to be trusted, and the warning


def collect_warnings(
    weights: ClassWeights | None,
    assumption: LabelShiftCheck | None,
    sparse: tuple[float, float],
    isolated: int,
    rows_a_class: float = np.inf,
    n_target: float | None = None,
) -> tuple[tuple[str, ...], bool]:
    """Warnings, most serious first, and whether the result can be trusted nevertheless.

    Parameters
    ----------
    weights, assumption : class weights and test of label shift behind the result, if any
    sparse : shares of the error and of the target without source support
    isolated : rows with too few neighbours within the bandwidth of a kernel
    rows_a_class : source rows for each class of a classwise error
    n_target : size of the target
    """
    found = [*_sample_warnings(assumption, n_target)]
    if weights is not None:
        found += _weight_warnings(weights)
    found += _support_warnings(sparse, isolated, rows_a_class)
    notes = [note for fatal, note in sorted(found, key=lambda pair: not pair[0])]
    if weights is not None and weights.unseen_share > UNSEEN_SHARE:
        # classes not in the source explain other warnings
        notes.sort(key=lambda note: not note.startswith("the source lacks"))
    return tuple(dict.fromkeys(notes)), not any(fatal for fatal, _ in found)


def _sample_warnings(assumption: LabelShiftCheck | None, n_target: float | None) -> Warnings:
    if n_target is not None and n_target < LEAST_TARGET:
        yield True, f"the target has {n_target:g} rows, too few for a reliable estimate"
    if assumption is not None and assumption.rejected:
        changed = f"more than the class distribution has changed (p = {assumption.p_value:.3g})"
        yield True, f"{changed}: the error on the target may be different"
    if assumption is not None and assumption.p_value is None:
        yield False, "whether only the class distribution has changed could not be tested"


def _weight_warnings(weights: ClassWeights) -> Warnings:
    ess = weights.ess
    known = [c for c in weights.untrusted if not np.isnan(weights.values[c])]
    untrusted = weights.unseen_share + sum(float(weights.prior_target[c]) for c in known)
    if untrusted > UNTRUSTED_SHARE:
        share = min(untrusted, 1.0)
        yield True, f"{share:.0%} of the target is in classes whose weight is not trusted"
    if ess < TOO_SMALL_ESS:
        yield True, small_ess_warning(ess)
    yield from ((not weights.converged, note) for note in weights.warnings)
    if TOO_SMALL_ESS <= ess < SMALL_ESS:
        yield False, small_ess_warning(ess)


def _support_warnings(sparse: tuple[float, float], isolated: int, rows_a_class: float) -> Warnings:
    for share, most, what in zip(sparse, SPARSE_SHARE, ("error", "target"), strict=True):
        if share > most + TIE:
            fatal = what == "target" and share > MOST_SPARSE + TIE
            yield fatal, f"{share:.0%} of the {what} has almost no source support (overlap)"
    if rows_a_class < FEW_A_CLASS:
        few = f"{rows_a_class:.0f} source rows a class are few"
        yield False, f"{few}: the error may be underestimated, and its interval is approximate"
    if isolated:
        alone = f"{isolated} rows have too few neighbours within the bandwidth"
        yield False, f"{alone}; their 10 nearest neighbours were used"


def announce(class_weights: ClassWeights | None, assumption: LabelShiftCheck | None = None) -> None:
    """Warn the caller of a public function of unreliable weights and of a rejected assumption."""
    if assumption is not None and assumption.rejected:
        warnings.warn(assumption.verdict, UnreliableWeights, stacklevel=3)
    for note in () if class_weights is None else class_weights.warnings:
        warnings.warn(note, UnreliableWeights, stacklevel=3)
