"""Data that is read batch by batch, as a sample for the public functions."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from calshift.checks import checked_classes, checked_whole
from calshift.columns import Asked
from calshift.engines import Batches
from calshift.errors import InvalidInput
from calshift.folders import open_parts
from calshift.handed import HandedReader, Wanted
from calshift.readers import FileReader, in_python
from calshift.spooling import Spool

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
    rows = None if batch_rows is None else checked_whole(batch_rows, "batch_rows", 1)
    jobs = checked_whole(jobs, "jobs", 1)
    names = None if classes is None else checked_classes(classes, len(tuple(classes)))
    if is_files(data):
        reader: Any = _of_files(data, label, columns, logits, names, labelled, rows)
    else:
        _check_for_files(label, columns)
        reader = _of_batches(data, Wanted(names, bool(logits), labelled), rows)
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
    asked = Asked(named, None if label is None else str(label), None, bool(logits), labelled)
    with in_python():
        reader = FileReader(open_parts(data, ROLES[labelled], asked), classes, rows)
        reader.check_names()
    return reader


def _of_batches(data: Any, wanted: Wanted, rows: int | None) -> HandedReader | Spool:
    """A reader of what can be read again; what cannot is kept."""
    if callable(data) and not hasattr(data, "__iter__"):
        return HandedReader(data, wanted, rows)
    if hasattr(data, "shape") or hasattr(data, "keys") or not hasattr(data, "__iter__"):
        msg = (
            "data must be paths, batches, or a function that returns an iterator of batches; got "
            f"{type(data)!r}: arrays and frames in memory need no scan, and [p] is one batch"
        )
        raise InvalidInput(msg)
    if isinstance(data, Iterator):
        return Spool(HandedReader(lambda: data, wanted, rows))
    return HandedReader(lambda: data, wanted, rows)


def _check_for_files(label: Any, columns: Any) -> None:
    for name, value in (("label", label), ("columns", columns)):
        if value is not None:
            msg = f"{name} is for files; batches are p, (p, y) or (p, y, sample_weight)"
            raise InvalidInput(msg)
