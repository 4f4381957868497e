"""Which conditions a result must meet to be trusted, and its warnings, worst first."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from calshift._core.text import small_ess_warning
from calshift.diagnostics.conditions import reasons
from calshift.diagnostics.label_order import check_label_order
from calshift.diagnostics.label_tables import LabelTables
from calshift.diagnostics.sample_conditions import (
    TIE,
    check_interval_width,
    check_label_shift_tests,
    check_overlap,
    check_residual_rows,
    check_sample_size,
)
from calshift.diagnostics.weight_conditions import TOO_SMALL_ESS, UNSEEN_SHARE, weight_conditions
from calshift.errors import UnreliableWeights

if TYPE_CHECKING:
    from calshift.results import CalibrationErrorResult, ClassWeights, Diagnostic, LabelShiftCheck

SMALL_ESS = 100.0  # effective source rows, below which an error is imprecise
SPARSE_SHARE = (0.5, 0.1)  # of the error, of the target: share without source support to warn of
ANNOUNCED = ("label-order",)  # failures of which no other Python warning informs


def labelled_conditions(
    result: CalibrationErrorResult, rows_a_class: float, order: Diagnostic
) -> Iterator[Diagnostic]:
    """Conditions of an error with labels."""
    yield order
    yield check_sample_size(result.n_source, rows_a_class, "sample")
    yield check_interval_width(result)


def prior_conditions(
    weights: ClassWeights,
    assumption: LabelShiftCheck | None,
    tables: LabelTables | None,
    n_target: float,
    rows_a_class: float = float("inf"),
) -> Iterator[Diagnostic]:
    """Conditions of class weights, and of every error that uses them."""
    yield check_label_order(tables)
    yield check_sample_size(n_target, rows_a_class)
    yield from check_label_shift_tests(assumption)
    yield from weight_conditions(weights, tables, n_target, assumption is not None)


def error_conditions(
    result: CalibrationErrorResult, sparse: tuple[float, float] | None, tables: LabelTables | None
) -> Iterator[Diagnostic]:
    """Further conditions of an error without labels."""
    weights = None if result.class_weights is None else result.class_weights.values
    yield check_residual_rows(tables, weights)
    yield check_overlap(sparse)
    yield check_interval_width(result)


def collect_warnings(
    diagnostics: Iterable[Diagnostic],
    weights: ClassWeights | None = None,
    sparse: tuple[float, float] | None = None,
    isolated: int = 0,
    others: tuple[str, ...] = (),
) -> tuple[str, ...]:
    """Warnings: the texts of conditions that are not met, then what is less serious.

    Parameters
    ----------
    diagnostics : the outcomes of the conditions
    weights : class weights behind the result, if any
    sparse : shares of the error and of the target without source support, if known
    isolated : rows with too few neighbours within the bandwidth of a kernel
    others : further warnings
    """
    notes = [*reasons(diagnostics)]
    if weights is not None:
        notes += weights.warnings
        if TOO_SMALL_ESS <= weights.ess < SMALL_ESS:
            notes.append(small_ess_warning(weights.ess))
    notes += [*_support_warnings(sparse or (0.0, 0.0), isolated), *others]
    if weights is not None and weights.unseen_share > UNSEEN_SHARE:
        # classes not in the source explain other warnings
        notes.sort(key=lambda note: not note.startswith("the source lacks"))
    return tuple(dict.fromkeys(notes))


def _support_warnings(sparse: tuple[float, float], isolated: int) -> Iterator[str]:
    for share, most, what in zip(sparse, SPARSE_SHARE, ("error", "target"), strict=True):
        if share > most + TIE:
            yield f"{share:.0%} of the {what} has almost no source support (overlap)"
    if isolated:
        alone = f"{isolated} rows have too few neighbours within the bandwidth"
        yield f"{alone}; their 10 nearest neighbours were used"


def announce(
    class_weights: ClassWeights | None,
    assumption: LabelShiftCheck | None = None,
    diagnostics: Iterable[Diagnostic] = (),
) -> None:
    """Warn the caller of a public function of what makes its result unreliable."""
    for one in diagnostics:
        if one.failed and one.name in ANNOUNCED and one.value is not None:
            warnings.warn(one.text, UnreliableWeights, stacklevel=3)
    if assumption is not None and assumption.rejected:
        warnings.warn(assumption.verdict, UnreliableWeights, stacklevel=3)
    for note in () if class_weights is None else class_weights.warnings:
        warnings.warn(note, UnreliableWeights, stacklevel=3)
