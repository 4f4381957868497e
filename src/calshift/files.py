"""Paths to Predictions in memory, classes of two samples matched by name."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from calshift.columns import Asked, listed
from calshift.engines import Arrays
from calshift.errors import InvalidInput
from calshift.folders import Parts, open_parts
from calshift.opening import check_file
from calshift.pairs import check_pair
from calshift.parts import PredictionFile, named
from calshift.predictions import Predictions
from calshift.readers import FileReader, in_one_order


@dataclass(frozen=True)
class Pair:
    """Source and target as Predictions of the same classes, and the target's times if asked.

    ``files`` are the target's.
    """

    source: Predictions
    target: Predictions
    time: np.ndarray | None
    files: Parts

    @property
    def file(self) -> PredictionFile:
        """The target's only file, to write it again with other probabilities."""
        (file,) = self.files.files
        return file


def read_pair(source: str | Path, target: str | Path, asked: Asked | None = None) -> Pair:
    """Both samples, the target's classes put into the source's order by their names."""
    asked = asked or Asked()
    before = open_parts(source, "source", replace(asked, labelled=True, time=None))
    after = open_parts(target, "target", replace(asked, labelled=False))
    readers = in_one_order(FileReader(before), FileReader(after))
    one, two = map(_gathered, readers)
    if one.n_classes != two.n_classes:
        msg = (
            f"{source} and {target} must have the same classes; "
            f"the first has {one.n_classes}, the second {two.n_classes}"
        )
        raise InvalidInput(msg)
    with named(source):
        check_pair(Arrays(one).facts, Arrays(two).facts)
    files = readers[1].parts
    return Pair(one, Predictions.trusted(two.p, None, one.classes), _times(files), files)


def read_target(
    path: str | Path, asked: Asked, classes: tuple[str, ...] | None
) -> tuple[Predictions, PredictionFile]:
    """A file without labels alone, its classes put into this order by their names."""
    check_file(Path(path))
    reader = FileReader(open_parts(path, "target", asked))
    names, K = reader.classes, reader.n_classes
    if classes is not None and len(classes) != K:
        msg = f"{path} has {K} classes, and the recalibrator {len(classes)}: {listed(classes)}"
        raise InvalidInput(msg)
    if classes is not None and names is not None and set(names) != set(classes):
        msg = f"{path} must have the classes {listed(classes)}; it has {listed(names)}"
        raise InvalidInput(msg)
    reader = FileReader(reader.parts, classes)
    return _gathered(reader), reader.parts.files[0]


def _gathered(reader: FileReader) -> Predictions:
    """All batches of all files as one."""
    batches = list(reader.batches(0))
    y = [batch.y for batch in batches if batch.y is not None]
    p = np.concatenate([batch.p for batch in batches])
    return Predictions.trusted(p, np.concatenate(y) if y else None, reader.classes)


def _times(parts: Parts) -> np.ndarray | None:
    if parts.columns.time is None:
        return None
    return np.concatenate([file.times() for file in parts.files])
