"""Paths to Predictions: batches of checked columns, classes of two files matched by name."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from calshift.columns import Asked, Columns, find_columns, listed
from calshift.conversion import softmax
from calshift.errors import InvalidInput
from calshift.formats import open_format
from calshift.opening import Format
from calshift.predictions import Predictions, check_pair, named_predictions
from calshift.values import coded_labels, labels_of, numbers_of, times_of

LEAST_GAP = 2.0**-53  # of a probability from 1, by which log-odds stay finite


@dataclass(frozen=True)
class Rows:
    """A batch: probabilities (n, K) or (n,), labels as they were written, times in microseconds."""

    p: np.ndarray
    y: np.ndarray | None
    time: np.ndarray | None


@dataclass(frozen=True)
class PredictionFile:
    """An open file of predictions; ``order`` puts its classes into another file's order."""

    path: Path
    form: Format
    columns: Columns
    logits: bool
    order: tuple[int, ...] | None = None

    @property
    def classes(self) -> tuple[str, ...] | None:
        """The classes' names in the order of the columns, where the file tells them."""
        return self.columns.classes or self.form.classes

    def batches(self) -> Iterator[Rows]:
        """The rows, some tens of thousands at a time."""
        columns, start = self.columns, 0
        others = [name for name in (columns.label, columns.time) if name is not None]
        for batch in self.form.batches(columns.probabilities, others):
            values = [
                numbers_of(batch[name], name, str(self.path), start)
                for name in columns.probabilities
            ]
            p = values[0] if len(values) == 1 else np.stack(values, axis=1)
            yield Rows(
                self._ordered(_from_logits(p) if self.logits else p),
                self._others(labels_of, columns.label, batch, start),
                self._others(times_of, columns.time, batch, start),
            )
            start += len(p)

    def rewritten(self, p: np.ndarray) -> bytes:
        """The whole file again with these probabilities, (n, K) or (n,), in the order read."""
        if p.ndim == 2 and self.order is not None:
            p = p[:, np.argsort(self.order)]
        values = _to_logits(p) if self.logits else p
        columns = self.columns.probabilities
        if len(columns) == 1:
            return self.form.rewritten({columns[0]: values})
        return self.form.rewritten(dict(zip(columns, values.T, strict=True)))

    def _ordered(self, p: np.ndarray) -> np.ndarray:
        return p if self.order is None or p.ndim == 1 else p[:, self.order]

    def _others(self, read: Any, name: str | None, batch: Any, start: int) -> np.ndarray | None:
        return None if name is None else np.asarray(read(batch[name], name, str(self.path), start))


@dataclass(frozen=True)
class Pair:
    """Source and target as Predictions of the same classes, and the target's times if asked.

    ``file`` is the target's, to write it again with other probabilities.
    """

    source: Predictions
    target: Predictions
    time: np.ndarray | None
    file: PredictionFile


def open_predictions(path: str | Path, role: str, asked: Asked) -> PredictionFile:
    """The file of a role, "source" or "target", and the columns it is read from."""
    form = open_format(path, role, asked.label)
    label, columns = (
        None if name is None else form.renamed.get(name, name)
        for name in (asked.label, asked.columns)
    )
    asked = replace(asked, label=label, columns=columns)
    return PredictionFile(
        Path(path), form, find_columns(form.names, form.lists, asked, str(path)), asked.logits
    )


def read_pair(source: str | Path, target: str | Path, asked: Asked | None = None) -> Pair:
    """Both files, the target's classes put into the source's order by their names."""
    asked = asked or Asked()
    before = open_predictions(source, "source", replace(asked, labelled=True, time=None))
    after = _matched(before, open_predictions(target, "target", replace(asked, labelled=False)))
    first, second = _gathered(before), _gathered(after)
    classes = _both_named(before.classes or after.classes, first.p)
    y = coded_labels(first.y, classes, f"{source}, column {before.columns.label!r}")
    with named(source, before.columns):
        where = f"{source}, column {before.columns.label!r}"
        one = named_predictions(first.p, y, classes, str(source), where)
    with named(target, after.columns):
        two = named_predictions(second.p, None, classes, str(target), str(target))
    read = (one, two)
    if read[0].n_classes != read[1].n_classes:
        msg = (
            f"{source} and {target} must have the same classes; "
            f"the first has {read[0].n_classes}, the second {read[1].n_classes}"
        )
        raise InvalidInput(msg)
    with named(source):
        check_pair(*read)
    return Pair(*read, second.time, after)


def read_target(
    path: str | Path, asked: Asked, classes: tuple[str, ...] | None
) -> tuple[Predictions, PredictionFile]:
    """A file without labels alone, its classes put into this order by their names."""
    file = open_predictions(path, "target", asked)
    p = _gathered(file).p
    names, K = _both_named(file.classes, p), 2 if p.ndim == 1 else p.shape[1]
    if classes is not None and len(classes) != K:
        msg = f"{path} has {K} classes, and the recalibrator {len(classes)}: {listed(classes)}"
        raise InvalidInput(msg)
    if classes is not None and names is not None:
        if set(names) != set(classes):
            msg = f"{path} must have the classes {listed(classes)}; it has {listed(names)}"
            raise InvalidInput(msg)
        file = replace(file, order=tuple(names.index(name) for name in classes))
        p = file._ordered(p)
    with named(path, file.columns):
        return named_predictions(p, None, classes or names, str(path), str(path)), file


def _both_named(classes: tuple[str, ...] | None, p: np.ndarray) -> tuple[str, ...] | None:
    """Names of two classes where one column of scores names the second."""
    if classes is None or p.ndim == 2 or len(classes) != 1:
        return classes
    return ("0" if classes[0] == "1" else f"not {classes[0]}", classes[0])


@contextmanager
def named(path: str | Path, columns: Columns | None = None) -> Iterator[None]:
    """Complaints that do not name a file name this one, and say what was read as probabilities."""
    try:
        yield
    except InvalidInput as problem:
        msg = str(problem) if str(path) in str(problem) else f"{path}: {problem}"
        if columns is not None and "sums to" in msg and len(columns.probabilities) > 1:
            msg += f"; read were {listed(columns.probabilities)}: pick others with --columns"
        raise InvalidInput(msg) from problem


def _matched(before: PredictionFile, after: PredictionFile) -> PredictionFile:
    """The second file with its classes in the order of the first, if both name them."""
    if before.classes is None or after.classes is None or before.classes == after.classes:
        return after
    missing = [name for name in before.classes if name not in after.classes]
    new = [name for name in after.classes if name not in before.classes]
    if missing or new:
        only = [
            f"only {file.path} has {', '.join(map(repr, names[:5]))}"
            + (f" and {len(names) - 5} more" if len(names) > 5 else "")
            for file, names in ((before, missing), (after, new))
            if names
        ]
        msg = (
            f"{before.path} and {after.path} must have the same classes; {'; '.join(only)}: "
            "rename columns, or pick them with --columns"
        )
        raise InvalidInput(msg)
    return replace(after, order=tuple(after.classes.index(name) for name in before.classes))


def _gathered(file: PredictionFile) -> Rows:
    """All batches as one."""
    batches = list(file.batches())
    if not batches or sum(len(batch.p) for batch in batches) == 0:
        msg = f"{file.path} has columns but no row"
        raise InvalidInput(msg)
    widths = {batch.p.shape[1:] for batch in batches}
    if len(widths) > 1:
        msg = f"{file.path}: its lists must have one number a class; lengths differ"
        raise InvalidInput(msg)

    def whole(name: str) -> np.ndarray | None:
        parts = [getattr(batch, name) for batch in batches]
        return None if parts[0] is None else np.concatenate(parts)

    p = whole("p")
    assert p is not None
    return Rows(p, whole("y"), whole("time"))


def _from_logits(z: np.ndarray) -> np.ndarray:
    """Softmax of rows; of one column of scores, that of (0, z)."""
    if z.ndim == 2:
        return softmax(z)
    return np.ascontiguousarray(softmax(np.stack([np.zeros_like(z), z], axis=1))[:, 1])


def _to_logits(p: np.ndarray) -> np.ndarray:
    """What `_from_logits` reads as p: logarithms, or log-odds of one column."""
    if p.ndim == 2:
        return np.asarray(np.log(np.maximum(p, np.finfo(float).tiny)))
    inside = np.clip(p, LEAST_GAP, 1 - LEAST_GAP)  # the same distance from either end
    return np.asarray(np.log(inside / (1 - inside)))
