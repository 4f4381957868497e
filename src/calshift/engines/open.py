"""Data that is read batch by batch, as a sample for the public functions.

Samples as users hand them over, wherever their rows are: arrays, batches, a cluster's table.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from calshift._core.predictions import Predictions, as_predictions
from calshift._core.validate import check_same_names, validate_classes, validate_integer
from calshift.engines import Arrays, Batches
from calshift.engines.base import Engine, rows_in_memory
from calshift.engines.run import Run
from calshift.engines.sample_summary import SampleSummary
from calshift.errors import InvalidInput
from calshift.io.batch_reader import BatchReader, BatchSpec, Spool
from calshift.io.columns import ColumnSpec
from calshift.io.file_reader import FileReader, in_one_order, in_python
from calshift.io.file_set import open_file_set

Progress = Callable[[int, int], Any]
ROLES = {True: "source", False: "target", None: "either"}


def scan(
    data: Any,
    *,
    label: str | None = None,
    columns: str | Sequence[str] | None = None,
    logits: bool = False,
    classes: Sequence[Any] | None = None,
    labelled: bool | None = None,
    batch_rows: int | None = None,
    jobs: int = 1,
    progress: Progress | None = None,
) -> Batches:
    """A sample that is read batch by batch in every pass, and never held in memory.

    It takes the place of ``p_source`` or ``p_target`` in the functions of calshift, with None for
    the labels: it carries them.

    Parameters
    ----------
    data : files: a path, a pattern with stars, a folder (with its folders), or a list of paths; or
        batches: a list, anything that can be read again, a function that returns a fresh iterator,
        or a generator, whose batches are kept in temporary files. A batch is p, (p, y),
        (p, y, sample_weight) or a `Predictions`
    label : of files, the column of labels; of an npy file, the file of them
    columns : of files, the probabilities: one name, several, or a pattern with a star
    logits : whether they are logits or log-probabilities
    classes : names of the classes in order, where the data does not name them
    labelled : whether labels are read; None reads them where there are any
    batch_rows : rows of a batch, at most; by default about four million probabilities
    jobs : threads that work on batches
    progress : a callable that is told (rows done, rows of a pass); the latter is 0 in the first

    Returns
    -------
    a sample for `target_calibration_error`, `calibration_error`, `label_shift_weights`,
    `check_label_shift`, `bin_edges` and `accumulate`

    Notes
    -----
    There are several passes: batches must be the same, in the same order, each time they are read.
    docs/large-data.md tells more.

    Examples
    --------
    >>> import calshift
    >>> simulation = calshift.simulate.GaussianSimulation(n_classes=3, imbalance=4)
    >>> source = calshift.scan([simulation.source(1000, rng=k) for k in range(3)])
    >>> target = calshift.scan(simulation.target(1000, rng=k)[0] for k in range(3, 6))
    >>> calshift.label_shift_weights(source, None, target).prior_target.round(2)
    array([0.57, 0.28, 0.15])
    """
    if progress is not None and not callable(progress):
        msg = f"progress must be callable with (done, total); got {progress!r}"
        raise InvalidInput(msg)
    rows = None if batch_rows is None else validate_integer(batch_rows, "batch_rows", 1)
    jobs = validate_integer(jobs, "jobs", 1)
    names = None if classes is None else validate_classes(classes, len(tuple(classes)))
    if is_files(data):
        reader: Any = _of_files(data, label, columns, logits, names, labelled, rows)
    else:
        _check_for_files(label, columns)
        reader = _of_batches(data, BatchSpec(names, bool(logits), labelled), rows)
    return Batches(reader, jobs=jobs, progress=progress)


def is_files(data: Any) -> bool:
    """Whether it is a path or a list of paths."""
    if isinstance(data, list | tuple):
        return bool(data) and all(isinstance(one, str | Path) for one in data)
    return isinstance(data, str | Path)


def _of_files(
    data: Any,
    label: str | None,
    columns: str | Sequence[str] | None,
    logits: bool,
    classes: tuple[Any, ...] | None,
    labelled: bool | None,
    rows: int | None,
) -> FileReader:
    named = columns if columns is None or isinstance(columns, str) else tuple(columns)
    asked = ColumnSpec(named, None if label is None else str(label), None, bool(logits), labelled)
    with in_python():
        reader = FileReader(open_file_set(data, ROLES[labelled], asked), classes, rows)
        reader.check_names()
    return reader


def _of_batches(data: Any, wanted: BatchSpec, rows: int | None) -> BatchReader | Spool:
    """A reader of what can be read again; what cannot is kept."""
    if callable(data) and not hasattr(data, "__iter__"):
        return BatchReader(data, wanted, rows)
    if hasattr(data, "shape") or hasattr(data, "keys") or not hasattr(data, "__iter__"):
        msg = (
            "data must be paths, batches, or a function that returns an iterator of batches; got "
            f"{type(data)!r}: arrays and frames in memory need no scan, and [p] is one batch"
        )
        raise InvalidInput(msg)
    if isinstance(data, Iterator):
        return Spool(BatchReader(lambda: data, wanted, rows))
    return BatchReader(lambda: data, wanted, rows)


def _check_for_files(label: Any, columns: Any) -> None:
    for name, value in (("label", label), ("columns", columns)):
        if value is not None:
            msg = f"{name} is for files; batches are p, (p, y) or (p, y, sample_weight)"
            raise InvalidInput(msg)


def open_engine(
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
    if not engine.summary.labelled:
        msg = f"{name_y} must be given: {name_p} has no labels"
        raise InvalidInput(msg)


def is_engine(p: Any) -> bool:
    """Whether it can add up kernels; facts are not asked for, which takes a pass."""
    return hasattr(type(p), "total") and hasattr(type(p), "summary")


def open_source(p_source: Any, y_source: Any) -> Engine:
    """The labelled source."""
    return open_engine(p_source, y_source, labelled=True, name_p="p_source", name_y="y_source")


def open_pair(
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
    before, after = source.summary, target.summary
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
    source, target = open_pair(p_source, y_source, p_target)
    return rows_in_memory(source, "this"), rows_in_memory(target, "this")


def check_pair(source: SampleSummary, target: SampleSummary) -> None:
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
