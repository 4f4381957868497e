"""Samples as users hand them over, wherever their rows are: arrays, batches, a cluster's table."""

from __future__ import annotations

from typing import Any

import numpy as np

from calshift.checks import check_same_names
from calshift.engine import Engine, rows_in_memory
from calshift.engines import Arrays, Batches
from calshift.errors import InvalidInput
from calshift.facts import Facts
from calshift.predictions import Predictions, as_predictions
from calshift.readers import FileReader, in_one_order
from calshift.runs import Run
from calshift.scanning import is_files, scan


def as_engine(
    p: Any,
    y: Any = None,
    *,
    labelled: bool,
    name_p: str = "p",
    name_y: str = "y",
    run: Run | None = None,
) -> Engine:
    """A sample from arrays or files, or one that was scanned; messages name the arguments."""
    (engine,) = (run or Run()).taking(_opened(p, y, labelled, name_p, name_y))
    if labelled:
        _check_labelled(engine, name_p, name_y)
    return engine


def _opened(p: Any, y: Any, labelled: bool, name_p: str, name_y: str) -> Engine:
    """The sample, before any pass over its rows."""
    if not is_engine(p) and not is_files(p):
        return Arrays(as_predictions(p, y, labelled=labelled, name_p=name_p, name_y=name_y))
    if y is not None:
        what = "was scanned" if is_engine(p) else "is a path"
        msg = f"{name_y} must be None when {name_p} {what}: it carries its labels"
        raise InvalidInput(msg)
    engine: Engine = p if is_engine(p) else scan(p, labelled=labelled)
    return engine


def _check_labelled(engine: Engine, name_p: str, name_y: str) -> None:
    if not engine.facts.labelled:
        msg = f"{name_y} must be given: {name_p} has no labels"
        raise InvalidInput(msg)


def is_engine(p: Any) -> bool:
    """Whether it can add up kernels; facts are not asked for, which takes a pass."""
    return hasattr(type(p), "total") and hasattr(type(p), "facts")


def as_source(p_source: Any, y_source: Any) -> Engine:
    """The labelled source."""
    return as_engine(p_source, y_source, labelled=True, name_p="p_source", name_y="y_source")


def as_pair(
    p_source: Any, y_source: Any, p_target: Any, run: Run | None = None
) -> tuple[Engine, Engine]:
    """Source and target, checked against each other."""
    names = "p_source", "y_source"
    opened = (
        _opened(p_source, y_source, True, *names),
        _opened(p_target, None, False, "p_target", "y_target"),
    )
    source, target = (run or Run()).taking(*_in_one_order(*opened))
    _check_labelled(source, *names)
    before, after = source.facts, target.facts
    if before.n_classes != after.n_classes:
        msg = (
            "p_source and p_target must have the same classes; "
            f"p_source has {before.n_classes}, p_target has {after.n_classes}"
        )
        raise InvalidInput(msg)
    check_same_names(before.classes, after.classes, ("p_source", "p_target"))
    check_pair(before, after)
    return source, target


def _in_one_order(source: Engine, target: Engine) -> tuple[Engine, Engine]:
    """Classes of files are matched by name, in whatever order their columns stand."""
    if not (isinstance(source, Batches) and isinstance(target, Batches)):
        return source, target
    before, after = source.reader, target.reader
    if not (isinstance(before, FileReader) and isinstance(after, FileReader)):
        return source, target
    first, second = in_one_order(before, after)
    return source.reading(first), target.reading(second)


def rows_of_pair(p_source: Any, y_source: Any, p_target: Any) -> tuple[Predictions, Predictions]:
    """The same for what needs both in memory."""
    source, target = as_pair(p_source, y_source, p_target)
    return rows_in_memory(source, "this"), rows_in_memory(target, "this")


def check_pair(source: Facts, target: Facts) -> None:
    """Both have rows, and the source two classes."""
    if np.count_nonzero(source.class_counts) < 2:
        held = np.flatnonzero(source.class_counts).tolist()
        msg = (
            "y_source must hold at least two classes: with one, nothing tells how the mix "
            f"changed; it holds {held}"
        )
        raise InvalidInput(msg)
    if target.rows == 0:
        msg = "p_target must have at least one row of positive weight"
        raise InvalidInput(msg)
