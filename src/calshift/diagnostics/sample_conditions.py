"""Conditions on the samples and on the error: each function checks one."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from calshift.diagnostics.conditions import LABEL_SHIFT, unchecked
from calshift.diagnostics.label_tables import LabelTables
from calshift.results import CalibrationErrorResult, Diagnostic, LabelShiftCheck

LEAST_RESIDUAL_ROWS = 5.0  # effective rows that are not predicted correctly with certainty
LEAST_TARGET = 30.0  # rows, below which an estimate is not trusted
LEAST_A_CLASS = (
    15.0  # source rows for each class of a classwise error (benchmarks/coverage_study.py)
)
MOST_SPARSE = 0.5  # of the target without source support: beyond it an error is extrapolated
MOST_WIDTH = 0.25  # of the 95% interval, in units of probability
TIE = 1e-9  # tolerance for rounding
MOST_DISTANCE = 0.2  # upper bound of the distance from label shift, in total variation
TEST_LEVEL = 0.05  # of a test of label shift that was not made


def check_sample_size(rows: float, rows_a_class: float, sample: str = "target") -> Diagnostic:
    """Rows of the sample, and labelled rows for each class of a classwise error."""
    name = "sample-size"
    if rows < LEAST_TARGET:
        text = f"the {sample} has {rows:g} rows, too few for a reliable estimate"
        return Diagnostic(name, rows, LEAST_TARGET, False, f"{text} (at least {LEAST_TARGET:g})")
    if rows_a_class < LEAST_A_CLASS:
        text = (
            f"{rows_a_class:.0f} source rows a class are few (at least {LEAST_A_CLASS:g} needed): "
            "the error may be underestimated, and its interval is approximate"
        )
        return Diagnostic(name, rows_a_class, LEAST_A_CLASS, False, text)
    return Diagnostic(name, rows, LEAST_TARGET, True, f"the {sample} has {rows:,.10g} rows")


def check_label_shift_tests(check: LabelShiftCheck | None) -> Iterator[Diagnostic]:
    """The test of label shift, and its directed part where it exists.

    The level is that of both parts together, if the test has a joint p-value.
    """
    name, direction, distance = LABEL_SHIFT
    if check is None:
        yield unchecked(name, TEST_LEVEL, "label shift was not tested")
    elif check.p_value is None:
        why = "whether only the class distribution has changed could not be tested"
        yield unchecked(name, check.level, why)
    else:
        p = check.p_value if check.joint_p_value is None else float(check.joint_p_value)
        changed = "more than the class distribution has changed"
        yield _p_value(name, p, check.level, "label shift is not rejected", changed)
    if check is None or check.p_value is None:
        why = "changes in the confidence of predictions were not tested"
        yield unchecked(direction, TEST_LEVEL if check is None else check.level, why)
        yield unchecked(distance, MOST_DISTANCE, "the distance from label shift is not known")
    else:
        yield check_direction(check)
        yield check_distance(check)


def check_direction(check: LabelShiftCheck) -> Diagnostic:
    """The directed part of a test that was made; it fails only where label shift is rejected."""
    direction, p = LABEL_SHIFT[1], check.direction_p_value
    if p is None:
        text = "there are no rows predicted alike with different confidences to compare"
        return Diagnostic(direction, None, check.level, True, text)
    if not check.rejected:
        text = f"the directed test of label shift has p = {p:.2g}"
        return Diagnostic(direction, float(p), check.level, True, text)
    changed = "among rows predicted alike the confidence has changed"
    return _p_value(direction, float(p), check.level, "the directed test does not reject", changed)


def check_distance(check: LabelShiftCheck) -> Diagnostic:
    """How far the target may be from label shift without being noticed."""
    name, bound = LABEL_SHIFT[2], check.distance_bound
    if bound is None:
        return unchecked(name, MOST_DISTANCE, "the distance from label shift is not known")
    passed = bool(bound <= MOST_DISTANCE)
    text = f"at most {bound:.0%} of the target is distributed otherwise than label shift allows"
    if not passed:
        text += f" (limit {MOST_DISTANCE:.0%}): the samples are too small to exclude more"
    return Diagnostic(name, float(bound), MOST_DISTANCE, passed, text)


def _p_value(name: str, p: float, level: float, kept: str, rejected: str) -> Diagnostic:
    passed = bool(p > level)
    if passed:
        return Diagnostic(name, p, level, True, f"{kept} (p = {p:.2g}), which is no proof of it")
    text = f"{rejected} (p = {p:.3g}, limit {level:.3g}): the error on the target may be different"
    return Diagnostic(name, p, level, False, text)


def check_residual_rows(
    tables: LabelTables | None, weights: np.ndarray | None = None
) -> Diagnostic:
    """The effective number of rows that carry the residuals, (sum r)^2 / sum r^2.

    r is w^2 |1_y - p|^2. Where nearly all rows are predicted with certainty, and correctly, the
    error and its interval rest on the few others.
    """
    name = "residual-rows"
    if tables is None or tables.residuals is None:
        return unchecked(
            name, LEAST_RESIDUAL_ROWS, "the rows that carry the residuals are not known"
        )
    w = np.ones(len(tables.counts)) if weights is None else np.nan_to_num(weights)
    w = w / (w.max() or 1.0)
    total, square = w**2 @ tables.residuals[0], w**4 @ tables.residuals[1]
    size = float(total / np.sqrt(square)) ** 2 if square > 0 else 0.0
    passed = size >= LEAST_RESIDUAL_ROWS
    text = f"the error rests on {size:,.0f} rows that are not predicted with certainty"
    if not passed:
        text += f" (at least {LEAST_RESIDUAL_ROWS:g} needed)"
    return Diagnostic(name, size, LEAST_RESIDUAL_ROWS, passed, text)


def check_overlap(sparse: tuple[float, float] | None) -> Diagnostic:
    """The share of the target without source support; ``sparse`` has that of the error too."""
    name = "overlap"
    if sparse is None:
        return unchecked(name, MOST_SPARSE, "the overlap of source and target was not checked")
    share = sparse[1]
    passed = bool(share <= MOST_SPARSE + TIE)
    text = f"{share:.0%} of the target has almost no source support (overlap)"
    limit = "" if passed else f", limit {MOST_SPARSE:.0%}"
    return Diagnostic(name, share, MOST_SPARSE, passed, text + limit)


def check_interval_width(result: CalibrationErrorResult) -> Diagnostic:
    """The width of the 95% interval, in units of probability."""
    name = "interval-width"
    if not result.has_interval:
        why = "no interval was computed, so that the precision of the error is not known"
        return unchecked(name, MOST_WIDTH, why)
    low, high = result.confidence_interval(0.95, root=True)
    passed = bool(high - low <= MOST_WIDTH)
    text = f"the 95% interval has a width of {high - low:.2g}"
    if not passed:
        text += f" (limit {MOST_WIDTH:g}): almost nothing is known about the error"
    return Diagnostic(name, high - low, MOST_WIDTH, passed, text)
