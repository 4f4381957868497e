"""Is it label shift at all? Both samples counted in cells, tested, and the misfits named.

docs/mathematics.md, "Is it label shift at all?".
"""

from __future__ import annotations

from typing import Any

import numpy as np

from calshift._core.text import class_names
from calshift._core.validate import validate_integer, validate_level, validate_rng
from calshift.binning.confidence_cells import choose_cells, merge_places, merged
from calshift.diagnostics.overidentification import (
    CellMixture,
    Tables,
    likeliest_mixture,
    nearest_mixture,
    p_value,
)
from calshift.engines.base import Engine
from calshift.errors import InvalidInput
from calshift.results import LabelShiftCheck

LEAST_DRAWS = 19  # with fewer, no p-value is as low as .05
QUARTERED = 3  # classes up to which each is cut in four by confidence, above in two
MOST_WORK = 2e10  # multiplications of all draws together, a few seconds
MOST_WORK_A_DRAW = 4e9
MOST_ROWS = 1e12  # more rows count as so many: their noise is below rounding


def label_shift_check(
    source: Engine, target: Engine, level: Any, n_boot: Any, rng: Any
) -> LabelShiftCheck:
    """Test whether the target's cells are a mixture of the source's classes."""
    wanted = _checked_draws(level, n_boot)
    rng = validate_rng(rng)
    about_source, about_target = source.summary, target.summary
    counts, K, classes = about_source.class_counts, about_source.n_classes, about_source.classes
    groups = 4 if K <= QUARTERED else 2
    about: dict[str, Any] = {
        "level": float(level),
        "n_source": about_source.size,
        "n_target": about_target.size,
    }
    work = groups * K * np.count_nonzero(counts) ** 2
    if work > MOST_WORK_A_DRAW:
        return _untested((K, groups), classes, about)
    tables, order = _in_order(_counted(source, target, counts, groups), counts)
    place = merge_places(tables.source[None], tables.target[None], groups)
    null = likeliest_mixture(tables)
    fit = nearest_mixture(
        merged(tables.source[None], place), merged(tables.target[None], place), null[1]
    )
    df, affordable = int(fit.df[0]), max(_least_draws(level), int(MOST_WORK / work))
    draws = min(wanted, affordable)
    p, made = p_value(tables, fit.tail[0], null, draws, rng) if df > 0 else (None, 0)
    return LabelShiftCheck(
        statistic=float(fit.statistic[0]) if df > 0 else 0.0,
        df=df,
        p_value=p,
        draws=made,
        classes=classes,
        warnings=_notes(df, counts, draws if draws < wanted else None, classes),
        **_misfits(tables, fit, place, order),
        **about,
    )


def _checked_draws(level: Any, n_boot: Any) -> int:
    validate_level(level)
    draws = validate_integer(n_boot, "n_boot", LEAST_DRAWS)
    if draws < _least_draws(level):
        msg = f"n_boot must be at least {_least_draws(level)} for level={level:g}; got {draws}"
        raise InvalidInput(msg)
    return draws


def _least_draws(level: float) -> int:
    """The fewest draws that can bring a p-value down to the level."""
    return max(LEAST_DRAWS, int(np.ceil(1 / level)) - 1)


def _counted(source: Engine, target: Engine, counts: np.ndarray, groups: int) -> Tables:
    """Where to cut the confidence, a pass over each sample; another over the source, by label."""
    cells, other = choose_cells(source, target, groups)
    rows = source.total(cells.source_kernel(counts > 0)).astype(float)
    return Tables(_bounded(rows), _bounded(other), groups)


def _bounded(counts: np.ndarray) -> np.ndarray:
    return np.asarray(counts * min(1.0, MOST_ROWS / counts.sum()))


def _in_order(tables: Tables, counts: np.ndarray) -> tuple[Tables, np.ndarray]:
    """The tables with the classes sorted by their sizes, and that order.

    So the bootstrap draws the same tables whatever the classes are called.
    """
    seen, shape = counts > 0, (len(counts), tables.groups)
    rows, other = tables.source.sum(axis=1).reshape(shape), tables.target.reshape(shape)
    order = np.lexsort((rows.sum(axis=1), other.sum(axis=1), counts))
    columns = (np.cumsum(seen) - 1)[order[seen[order]]]
    source = tables.source.reshape(*shape, -1)[order][:, :, columns]
    return Tables(source.reshape(-1, len(columns)), other[order].ravel(), tables.groups), order


def _misfits(
    tables: Tables, fit: CellMixture, place: np.ndarray, order: np.ndarray
) -> dict[str, Any]:
    """Residuals by cell and by predicted class, in the user's order of the classes."""
    back, shape = np.argsort(order), (len(order), tables.groups)
    rows, other = merged(tables.source[None], place)[0], merged(tables.target[None], place)[0]
    cells = _compared(rows, other, fit)[2][place[0]]
    rows, other = tables.source.reshape(*shape, -1).sum(axis=1), tables.target.reshape(shape)
    observed, expected, whole = _compared(rows, other.sum(axis=1), fit)
    return {
        "residuals": cells.reshape(shape)[back],
        "observed": observed[back],
        "expected": expected[back],
        "class_residuals": whole[back],
    }


def _compared(
    source: np.ndarray, target: np.ndarray, fit: CellMixture
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The target's shares, those of the mixture, and g / sqrt(diag S); NaN without noise."""
    n, m, w = source.sum(axis=0), target.sum(), fit.bounded[0]
    A, h = source / n, target / m
    prior, expected = A @ w, A @ fit.shares[0]
    noise = (prior - prior**2) / m + (A - A**2) @ (w**2 / np.maximum(n - 1, 1))
    known = (noise > 0) & (fit.df[0] > 0)
    residual = (h - expected) / np.sqrt(np.where(known, noise, 1.0))
    return h, expected, np.where(known, residual, np.nan)


def _untested(
    shape: tuple[int, int], classes: tuple[Any, ...] | None, about: dict[str, float]
) -> LabelShiftCheck:
    nothing = np.full(shape, np.nan)
    return LabelShiftCheck(
        statistic=0.0,
        df=0,
        p_value=None,
        draws=0,
        residuals=nothing,
        observed=nothing[:, 0],
        expected=nothing[:, 0],
        class_residuals=nothing[:, 0],
        classes=classes,
        warnings=(f"label shift was not tested: {shape[0]} classes would take too long",),
        **about,
    )


def _notes(
    df: int, counts: np.ndarray, draws: int | None, classes: tuple[Any, ...] | None
) -> tuple[str, ...]:
    """What to know about the test, worst first."""
    missing = np.flatnonzero(counts == 0)
    notes = []
    if df == 0:
        notes.append(
            "label shift could not be tested: there are no more cells of predicted class and "
            "confidence with enough rows than classes"
        )
    if len(missing):
        notes.append(
            f"the source lacks {class_names(missing, classes)}: target rows that look like no "
            "class of the source count against label shift"
        )
    if draws is not None and df > 0:
        notes.append(
            f"so many classes leave time for {draws} bootstrap draws only: "
            f"no p-value is below {1 / (1 + draws):.2g}"
        )
    return tuple(notes)
