"""Samples as users pass them, opened as engines: arrays, files, batches or a scanned sample.

`scan` is the public function for data that is read batch by batch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

import numpy as np

from calshift._core.labels import check_same_names, validate_classes
from calshift._core.predictions import Predictions, as_predictions
from calshift._core.validate import validate_flag, validate_integer, validate_jobs
from calshift.engines import Arrays, Batches
from calshift.engines.base import Engine, Progress, rows_in_memory
from calshift.engines.run import CheckpointFile, Run, validate_progress
from calshift.engines.sample_summary import SampleSummary
from calshift.errors import InvalidInput
from calshift.io.batch_reader import BatchReader, BatchSpec, Spool
from calshift.io.columns import ColumnSpec, column_spec, validate_weight_column
from calshift.io.file_reader import FileReader, match_readers, python_option_names
from calshift.io.file_set import open_file_set

ROLES = {True: "source", False: "target", None: "either"}


def scan(
    data: Any,
    *,
    label: str | None = None,
    columns: str | Sequence[str] | None = None,
    sample_weight: str | None = None,
    logits: bool = False,
    classes: Sequence[Any] | None = None,
    labelled: bool | None = None,
    batch_rows: int | None = None,
    jobs: int = 1,
    progress: Progress | None = None,
) -> Batches:
    """A sample that is read batch by batch in every pass, and never in memory as a whole.

    It takes the place of ``p_source`` or ``p_target`` in the functions of calshift, with None for
    the labels: it has its own.

    Parameters
    ----------
    data : files: a path, a pattern with stars, a folder (with its folders), or a list of paths; or
        batches: a list, anything that can be read again, a function that returns a fresh iterator,
        or a generator, whose batches are kept in temporary files. A batch is p, (p, y),
        (p, y, sample_weight) or a `Predictions`
    label : of files, the column of labels; of an npy file, the file of them
    columns : of files, the probabilities: one name, several, or a pattern with a star
    sample_weight : the column of the frequency weights, in files and in batches that are data
        frames: 2 counts as two rows, 0 removes the row
    logits : whether they are logits or log-probabilities
    classes : names of the classes in order, where the data does not name them
    labelled : whether labels are read; None reads them where there are any
    batch_rows : rows of a batch, at most; by default about four million probabilities
    jobs : threads that work on batches; no more than there are processors
    progress : callback ``progress(done, total)`` with rows; the total is 0 in the first pass

    Returns
    -------
    a sample for `target_calibration_error`, `calibration_error`, `label_shift_weights`,
    `check_label_shift`, `bin_edges` and `accumulate`

    Notes
    -----
    There are several passes: batches must be the same, in the same order, each time they are read.
    More in docs/large-data.md.

    Examples
    --------
    >>> import calshift
    >>> simulation = calshift.simulate.GaussianSimulation(n_classes=3, imbalance=4)
    >>> source = calshift.scan([simulation.source(1000, rng=k) for k in range(3)])
    >>> target = calshift.scan(simulation.target(1000, rng=k)[0] for k in range(3, 6))
    >>> calshift.label_shift_weights(source, None, target).prior_target.round(2)
    array([0.57, 0.28, 0.15])
    """
    validate_progress(progress)
    rows = None if batch_rows is None else validate_integer(batch_rows, "batch_rows", 1)
    jobs = validate_jobs(jobs, "jobs")
    names, logits = validate_classes(classes), validate_flag(logits, "logits")
    labelled = None if labelled is None else validate_flag(labelled, "labelled")
    if is_files(data):
        spec = column_spec(columns, label, logits, labelled, sample_weight)
        reader: Any = _open_files(data, spec, names, rows)
    elif label is not None or columns is not None:
        msg = "label and columns are for files; batches are p, (p, y) or (p, y, sample_weight)"
        raise InvalidInput(msg)
    else:
        weight = validate_weight_column(sample_weight)
        reader = _open_batches(data, BatchSpec(names, logits, labelled, weight), rows)
    return Batches(reader, jobs=jobs, progress=progress)


def is_files(data: Any) -> bool:
    """Whether it is a path or a list of paths."""
    if isinstance(data, list | tuple):
        return bool(data) and all(isinstance(one, str | Path) for one in data)
    return isinstance(data, str | Path)


def _open_files(
    data: Any, spec: ColumnSpec, classes: tuple[Any, ...] | None, rows: int | None
) -> FileReader:
    with python_option_names():
        reader = FileReader(open_file_set(data, ROLES[spec.labelled], spec), classes, rows)
        reader.check_names()
    return reader


def _open_batches(data: Any, spec: BatchSpec, rows: int | None) -> BatchReader | Spool:
    """A reader of batches; those of a generator are copied to temporary files."""
    if callable(data) and not hasattr(data, "__iter__"):
        return BatchReader(data, spec, rows)
    if hasattr(data, "shape") or hasattr(data, "keys") or not hasattr(data, "__iter__"):
        msg = (
            "data must be paths, batches, or a function that returns an iterator of batches; got "
            f"{type(data)!r}: arrays and frames in memory need no scan, and [p] is one batch"
        )
        raise InvalidInput(msg)
    reader = BatchReader(lambda: data, spec, rows)
    return Spool(reader) if isinstance(data, Iterator) else reader


def start_run(
    checkpoint: str | Path | CheckpointFile | None,
    progress: Progress | None,
    question: Any,
    jobs: int = 1,
) -> AbstractContextManager[Run | None]:
    """The run of a call, or None where nothing was asked for that needs one."""
    if checkpoint is None and progress is None and jobs == 1:
        return nullcontext()
    return Run(checkpoint, progress, question, jobs)


def open_engine(
    p: Any,
    y: Any = None,
    *,
    labelled: bool,
    name_p: str = "p",
    name_y: str = "y",
    run: Run | None = None,
) -> Engine:
    """The engine of arrays, files or a scanned sample; messages name the arguments."""
    engine = _open(p, y, labelled, name_p, name_y)
    if run is not None:
        (engine,) = run.open(engine)
    if labelled:
        _check_labelled(engine, name_p, name_y)
    return engine


def _open(p: Any, y: Any, labelled: bool, name_p: str, name_y: str) -> Engine:
    """The sample, before any pass over its rows."""
    if not is_engine(p) and not is_files(p):
        return Arrays(as_predictions(p, y, labelled=labelled, name_p=name_p, name_y=name_y))
    if y is not None:
        what = "was scanned" if is_engine(p) else "is a path"
        msg = f"{name_y} must be None when {name_p} {what}: it has its own labels"
        raise InvalidInput(msg)
    engine: Engine = p if is_engine(p) else scan(p, labelled=labelled)
    return engine


def _check_labelled(engine: Engine, name_p: str, name_y: str) -> None:
    if not engine.summary.labelled:
        msg = f"{name_y} must be given: {name_p} has no labels"
        raise InvalidInput(msg)


def is_engine(p: Any) -> bool:
    """Whether it is an engine; its summary is not computed, which takes a pass."""
    return hasattr(type(p), "total") and hasattr(type(p), "summary")


def open_source(p_source: Any, y_source: Any) -> Engine:
    """The labelled source."""
    return open_engine(p_source, y_source, labelled=True, name_p="p_source", name_y="y_source")


def open_pair(
    p_source: Any,
    y_source: Any,
    p_target: Any,
    run: Run | None = None,
    prepare: Callable[[Engine], None] | None = None,
) -> tuple[Engine, Engine]:
    """Source and target, checked against each other.

    ``prepare`` may plan sums over the target, to be made along with the first pass over it.
    """
    source = _open(p_source, y_source, True, "p_source", "y_source")
    target = _open(p_target, None, False, "p_target", "y_target")
    source, target = _match_classes(source, target)
    if isinstance(target, Batches):
        target = target.unlabelled
    if run is not None:
        source, target = run.open(source, target)
    if prepare is not None:
        prepare(target)
    _check_labelled(source, "p_source", "y_source")
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


def _match_classes(source: Engine, target: Engine) -> tuple[Engine, Engine]:
    """Both with the classes of files in the same order, matched by name."""
    if not (isinstance(source, Batches) and isinstance(target, Batches)):
        return source, target
    before, after = source.reader, target.reader
    if not (isinstance(before, FileReader) and isinstance(after, FileReader)):
        return source, target
    first, second = match_readers(before, after)
    return source.reading(first), target.reading(second)


def rows_of_pair(p_source: Any, y_source: Any, p_target: Any) -> tuple[Predictions, Predictions]:
    """Both samples, where they must be in memory."""
    source, target = open_pair(p_source, y_source, p_target)
    return rows_in_memory(source, "this"), rows_in_memory(target, "this")


def check_pair(source: SampleSummary, target: SampleSummary) -> None:
    """Check that both samples have rows, and the source at least two classes."""
    if np.count_nonzero(source.class_counts) < 2:
        msg = (
            "y_source must contain at least two classes, or the class priors of the target cannot "
            f"be estimated; it contains {np.flatnonzero(source.class_counts).tolist()}"
        )
        raise InvalidInput(msg)
    if target.rows == 0:
        msg = "p_target must have at least one row of positive weight"
        raise InvalidInput(msg)
