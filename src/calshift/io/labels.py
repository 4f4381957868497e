"""Labels of files as numbers of their classes, the same in every batch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from calshift._core.validate import validate_labels
from calshift.errors import InvalidInput
from calshift.io.decode import distinct_labels, encode_label_column
from calshift.io.prediction_file import PredictionFile

ROWS = 2**19  # of the column of labels at a time
MOST_LABELS = 1_000_000  # different ones; a column with more does not contain labels

UNKNOWN = np.iinfo(np.intp).min  # the code of a label that was not there before

Place = tuple[str, int]  # file and row


class LabelCodes:
    """Reads a column of labels as numbers 0..K-1."""

    def __init__(self, codes: dict[str, int]) -> None:
        self.codes = codes

    def __call__(self, column: Any, name: str, file: str, start: int) -> np.ndarray:
        """(rows,) codes; a label that did not occur when they were made is an error."""
        texts, index = distinct_labels(column, name, file, start)
        codes = np.array([self.codes.get(text, UNKNOWN) for text in texts], dtype=np.intp)[index]
        if len(codes) and codes.min() == UNKNOWN:
            row = int(np.argmin(codes))
            what = f"label {texts[int(index[row])]!r} in row {start + row}"
            msg = f"{file}, column {name!r}: {what} was not there before: the file changed"
            raise InvalidInput(msg)
        return np.asarray(codes)


def label_encoder(
    files: Sequence[PredictionFile], classes: tuple[str, ...] | None, K: int
) -> LabelCodes:
    """Codes of all labels that occur: a pass over that column alone."""
    places = _places(files)
    texts = list(places)
    label = files[0].columns.label
    where = {text: f"{places[text][0]}, column {label!r}" for text in texts}
    coded = _encode(texts, classes, where) if texts else np.zeros(0)
    codes = [
        validate_labels(coded[k : k + 1], 1, K, classes, where[text], places[text][1])[0]
        for k, text in enumerate(texts)
    ]
    return LabelCodes(dict(zip(texts, map(int, codes), strict=True)))


def _encode(texts: list[str], classes: tuple[str, ...] | None, where: dict[str, str]) -> np.ndarray:
    """By names if all are names, else as whole numbers; errors name the file of the label."""
    try:
        return encode_label_column(np.array(texts), classes, where[texts[0]])
    except InvalidInput:
        for text in texts:
            encode_label_column(np.array([text]), classes, where[text])
        raise


def _places(files: Sequence[PredictionFile]) -> dict[str, Place]:
    """Every label as written, and where it occurs first."""
    found: dict[str, Place] = {}
    for file in files:
        label, path, start = str(file.columns.label), str(file.path), 0
        for batch in file.form.batches([], [label], ROWS):
            texts, index = distinct_labels(batch[label], label, path, start)
            used = np.bincount(index, minlength=len(texts)) > 0
            for k in np.flatnonzero(used).tolist():
                if texts[k] not in found:
                    found[texts[k]] = (path, start + int(np.argmax(index == k)))
            if len(found) > MOST_LABELS:
                where = f"{path}, column {label!r}"
                msg = f"{where} has more than {MOST_LABELS:,} different values: are they labels?"
                raise InvalidInput(msg)
            start += len(index)
    return found
