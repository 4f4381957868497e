"""The test of label shift: both samples counted in cells, a p-value, and residuals by cell.

docs/mathematics.md, "Is it label shift at all?".
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

from calshift._core.text import class_names
from calshift._core.validate import validate_integer, validate_level, validate_rng
from calshift.binning.confidence_cells import CellCounts, tabulate_cells
from calshift.diagnostics.cell_distance import measure_distance
from calshift.diagnostics.cell_tables import Fit, Tables, fit_tables
from calshift.diagnostics.null_bootstrap import draw_p_values
from calshift.diagnostics.null_mixture import likeliest_mixture
from calshift.diagnostics.overidentification_test import CellMixture, count_restrictions
from calshift.engines.base import Engine
from calshift.errors import InvalidInput
from calshift.results import LabelShiftCheck

LEAST_DRAWS = 19  # with fewer, no p-value is as low as .05
MOST_DRAWS = 1_000_000
LEAST_LEVEL = 1e-12  # which no number of draws reaches
FOUR_GROUPS = 3  # classes up to which each has four groups by confidence, above it two
MOST_WORK = 2e10  # multiplications of all draws, a few seconds
MOST_WORK_A_DRAW = 4e9
MOST_ROWS = 1e12  # counts are scaled down to this: their noise is below rounding


def label_shift_check(
    source: Engine,
    target: Engine,
    level: Any,
    n_boot: Any,
    rng: Any,
    steps: np.ndarray | None = None,
) -> LabelShiftCheck:
    """Test whether the target's cells are a mixture of the source's classes.

    ``steps`` are the source's rows by step of confidence (`count_steps`), where they are known.
    """
    level = validate_level(level)
    wanted = _validate_draws(level, n_boot)
    rng, about = validate_rng(rng), source.summary
    counts, K, classes = about.class_counts, about.n_classes, about.classes
    groups = 4 if K <= FOUR_GROUPS else 2
    result = partial(
        LabelShiftCheck,
        level=level, n_source=about.size, n_target=target.summary.size, classes=classes,
    )  # fmt: skip
    work = groups * K * np.count_nonzero(counts) ** 2
    if work > MOST_WORK_A_DRAW:
        note = f"label shift was not tested: {K} classes would take too long"
        nothing = np.full((K, groups), np.nan)
        return result(
            0.0, 0, None, 0, residuals=nothing, observed=nothing[:, 0], expected=nothing[:, 0],
            class_residuals=nothing[:, 0], warnings=(note,),
        )  # fmt: skip
    counted = tabulate_cells(source, target, groups, counts > 0, steps)
    tables, order = _sort_classes(_scale_counts(counted), counts)
    null = likeliest_mixture(tables.source, tables.target)
    fit = fit_tables(tables, tables.observed, null[1])
    tested = count_restrictions(fit.source[0]) > 0
    affordable = max(least_draws(level), int(MOST_WORK / (work * counted.groups / groups)))
    draws = min(wanted, affordable)
    notes = _notes(tested, counts, draws if draws < wanted else None, classes, counted.divided)
    shown = {**_residuals(tables, fit, tested, order), "warnings": tuple(notes)}
    if not tested:
        return result(0.0, 0, None, 0, divided=counted.divided, **shown)
    return result(
        float(fit.mixture.statistic[0]), int(fit.mixture.df[0]), divided=counted.divided,
        **_outcomes(tables, fit.mixture, null, draws, rng, level), **shown,
    )  # fmt: skip


def _outcomes(
    tables: Tables,
    fit: CellMixture,
    null: tuple[np.ndarray, np.ndarray],
    draws: int,
    rng: np.random.Generator,
    level: float,
) -> dict[str, Any]:
    """The p-values of both tests and of the two together, and the distance."""
    drawn = draw_p_values(tables, fit, null, draws, rng, level)
    p, directed, joint = drawn.p_values
    z = float(fit.direction[0])
    distance = measure_distance(fit, drawn.scale, level)
    return {
        "p_value": p,
        "draws": drawn.draws,
        "direction": z if z else None,
        "direction_p_value": directed if z else None,
        "joint_p_value": joint,
        "distance": distance.estimate,
        "distance_bound": distance.bound,
        "detectable_distance": distance.detectable,
    }


def _validate_draws(level: float, n_boot: Any) -> int:
    draws = validate_integer(n_boot, "n_boot", LEAST_DRAWS, MOST_DRAWS)
    if draws < least_draws(level):
        msg = f"n_boot must be at least {least_draws(level)} for level={level:g}; got {draws}"
        raise InvalidInput(msg)
    return draws


def least_draws(level: float) -> int:
    """The fewest draws for which a p-value can be as low as the level."""
    return max(LEAST_DRAWS, int(np.ceil(1 / max(level, LEAST_LEVEL))) - 1)


def _scale_counts(counted: CellCounts) -> Tables:
    source, target = (table * min(1.0, MOST_ROWS / table.sum()) for table in counted[:2])
    return Tables(source, target, counted.groups)


def _sort_classes(tables: Tables, counts: np.ndarray) -> tuple[Tables, np.ndarray]:
    """The tables with the classes sorted by their sizes, and that order.

    The draws of the bootstrap then do not depend on the order of the classes.
    """
    seen, shape = counts > 0, (len(counts), tables.groups)
    rows, other = tables.source.sum(axis=1).reshape(shape), tables.target.reshape(shape)
    order = np.lexsort((rows.sum(axis=1), other.sum(axis=1), counts))
    columns = (np.cumsum(seen) - 1)[order[seen[order]]]
    source = tables.source.reshape(*shape, -1)[order][:, :, columns]
    return Tables(source.reshape(-1, len(columns)), other[order].ravel(), tables.groups), order


def _residuals(tables: Tables, fit: Fit, tested: bool, order: np.ndarray) -> dict[str, Any]:
    """Residuals by cell and by predicted class, in the user's order of the classes."""
    back, shape = np.argsort(order), (len(order), tables.groups)
    merged = _compare(fit.source[0], fit.target[0], fit.mixture, tested)[2]
    cells = merged[fit.merging.place[0]]
    rows, other = tables.source.reshape(*shape, -1).sum(axis=1), tables.target.reshape(shape)
    observed, expected, whole = _compare(rows, other.sum(axis=1), fit.mixture, tested)
    return {
        "residuals": cells.reshape(shape)[back],
        "observed": observed[back],
        "expected": expected[back],
        "class_residuals": whole[back],
    }


def _compare(
    source: np.ndarray, target: np.ndarray, fit: CellMixture, tested: bool
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The target's shares, those of the mixture, and g / sqrt(diag S); NaN without noise."""
    n, m, w = source.sum(axis=0), target.sum(), fit.bounded[0]
    A, h = source / n, target / m
    prior, expected = A @ w, A @ fit.shares[0]
    noise = (prior - prior**2) / m + (A - A**2) @ (w**2 / np.maximum(n - 1, 1))
    known = (noise > 0) & tested
    residual = (h - expected) / np.sqrt(np.where(known, noise, 1.0))
    return h, expected, np.where(known, residual, np.nan)


def _notes(
    tested: bool,
    counts: np.ndarray,
    draws: int | None,
    classes: tuple[Any, ...] | None,
    divided: bool,
) -> Iterator[str]:
    """Warnings about the test, most serious first; ``draws`` is given if they were reduced."""
    missing = np.flatnonzero(counts == 0)
    if not tested:
        yield (
            "label shift could not be tested: there are no more cells of predicted class and "
            "confidence with enough rows than classes"
        )
    if len(missing):
        yield (
            f"the source lacks {class_names(missing, classes)}: target rows unlike any class of "
            "the source count as evidence against label shift"
        )
    if draws is not None and tested:
        yield (
            f"because of the number of classes only {draws} bootstrap draws were made: "
            f"no p-value is below {1 / (1 + draws):.2g}"
        )
    if divided and tested:
        yield (
            "few classes are predicted: rows were also counted for classes that seldom are, "
            "where their probability is far above its mean"
        )
