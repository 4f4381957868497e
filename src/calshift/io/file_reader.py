"""Batches of predictions from files, with labels encoded alike in every batch."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from math import ceil
from typing import Any

import numpy as np

from calshift._core.labels import validate_classes, validate_labels
from calshift._core.predictions import Predictions, counted_predictions
from calshift.errors import InvalidInput, NoRows
from calshift.io.decode import decode_labels, distinct_labels, encode_label_column
from calshift.io.file_set import FileSet, check_different, in_order, match_classes
from calshift.io.formats.base import read_errors
from calshift.io.prediction_file import PredictionFile, RawBatch, binary_class_names, errors_name

CELLS = 2**22  # probabilities in a batch
LEAST_ROWS, MOST_ROWS = 2**10, 2**19
SMALLER = 8  # times, of a small batch
PYTHON_NAMES = {
    "--columns": "columns=", "--label": "label=", "pass --logits": "pass logits=True",
    "leave out --logits": "leave out logits=True", "--sample-weight": "sample_weight=",
}  # fmt: skip


def rows_for(K: int) -> int:
    """Rows of a batch with so many classes."""
    return int(np.clip(CELLS // max(K, 1), LEAST_ROWS, MOST_ROWS))


class FileReader:
    """Rows of files; ``classes`` names the classes where files do not, or their order."""

    def __init__(
        self, parts: FileSet, classes: tuple[Any, ...] | None = None, batch_rows: int | None = None
    ) -> None:
        alone = parts.files[0].one_column  # its name is that of the second class
        ordered = classes is not None and not alone
        self.parts = in_order(parts, tuple(map(str, classes or ()))) if ordered else parts
        self.given = classes
        self.batch_rows = batch_rows

    def in_small_batches(self, weighted: bool = False) -> FileReader:
        """In batches of little memory: all rows, to write them again, or those with weights."""
        rows = max(LEAST_ROWS, self.rows // SMALLER)
        return FileReader(
            self.parts if weighted else self.parts.without_weights(), self.given, rows
        )

    def without_labels(self) -> FileReader:
        """The same batches with their labels left unread."""
        if self.parts.columns.label is None:
            return self
        return FileReader(self.parts.without_labels(), self.given, self.batch_rows)

    @property
    def classes(self) -> tuple[Any, ...] | None:
        """Names of the classes, from the user or from the files."""
        return binary_class_names(self.given or self.parts.classes, self.parts.files[0].one_column)

    @property
    def fingerprint(self) -> str:
        """Identifies the same files, read in the same batches, in another run."""
        return f"{self.parts.fingerprint} {self.rows} {self.given}"

    @cached_property
    def shape(self) -> tuple[int, ...]:
        """Shape of a row: (K,), or () of a score; read where lists or empty files are possible."""
        first = self.parts.files[0]
        if not first.lists and any(file.count for file in self.parts.files):
            return () if first.one_column else (len(first.columns.probabilities),)
        with python_option_names():
            for file in self.parts.files:
                for batch in file.form.batches(file.columns.probabilities, [], 1):
                    return file.probabilities_of(batch, 0).shape[1:]
        msg = f"{self.parts.path} has columns but no row"
        raise NoRows(msg)

    @property
    def rows(self) -> int:
        """Rows of a batch."""
        return self.batch_rows or rows_for(self.n_classes)

    @property
    def n_classes(self) -> int:
        """K, from the first row."""
        return self.shape[0] if self.shape else 2

    def check_names(self) -> None:
        """Check that every class has a name, and no two the same."""
        with errors_name(self.parts.files[0].path):
            validate_classes(self.classes, self.n_classes)

    @cached_property
    def codes(self) -> LabelCodes | None:
        """How labels are read, from all that occur."""
        if self.parts.columns.label is None:
            return None
        classes = None if self.classes is None else tuple(map(str, self.classes))
        return label_encoder(self.parts.files, classes, self.n_classes)

    def batches(self, skip: int) -> Generator[Predictions]:
        """Validated batches, without the first ``skip``; whole files are skipped unread.

        Batches whose weights are all 0 are left out, and not counted.
        """
        found = skip > 0
        with python_option_names():
            self.check_names()
            for read in self._read(skip):
                found = True
                yield read
            if not found:
                self._refuse_zero_weights()

    def _read(self, skip: int) -> Iterator[Predictions]:
        for number, file in enumerate(self.parts.files):
            self.parts.check_unchanged(number)
            made = self._batches_in(file)
            if made is not None and made <= skip:
                skip -= made
                continue
            first = 0 if made is None else skip
            skip -= first
            for rows in file.batches(self.rows, first * self.rows, self.codes or decode_labels):
                if skip and rows.counts:
                    skip -= 1
                elif (read := self._validate(rows, number)) is not None:
                    yield read

    def _batches_in(self, file: PredictionFile) -> int | None:
        """Number of batches, where it is known without reading the file."""
        if file.count is None or file.columns.weight is not None:
            return None
        return ceil(file.count / self.rows)

    def _refuse_zero_weights(self) -> None:
        """Refuse files that have rows, but none of positive weight."""
        weight = self.parts.columns.weight
        if weight is not None:
            msg = f"{self.parts.path}, column {weight!r} must not be all zero: no row would count"
            raise InvalidInput(msg)

    def _validate(self, rows: RawBatch, number: int) -> Predictions | None:
        file, shape = self.parts.files[number], rows.p.shape[1:]
        path = str(file.path)
        if shape != self.shape:
            here, there = (f"{one[0]} numbers" if one else "one" for one in (shape, self.shape))
            where = f"row {rows.start} has {here}"
            msg = f"{path} must have {there} in each row, as the first row has; {where}"
            raise InvalidInput(msg)
        with errors_name(path, file.columns):
            weight = f"{path}, column {file.columns.weight!r}"
            read = counted_predictions(
                rows.p, rows.y, None, path, path, rows.start, rows.weight, weight
            )
        if read is None:
            return None
        return Predictions.from_validated(read.p, read.y, self.classes, read.sample_weight)


def match_readers(before: FileReader, after: FileReader) -> tuple[FileReader, FileReader]:
    """Both with the classes in the order of the first; names of either are used for both."""
    with python_option_names():
        check_different(before.parts, after.parts)
        parts = match_classes(before.parts, after.parts)
        if parts is not after.parts or (after.given is None and before.given is not None):
            after = FileReader(parts, before.given, after.batch_rows)
    if before.classes is None and after.classes is not None:
        before = FileReader(before.parts, after.classes, before.batch_rows)
    return before, after


@contextmanager
def python_option_names() -> Iterator[None]:
    """Errors name arguments of Python where they named options of the command line."""
    try:
        yield
    except InvalidInput as problem:
        message = str(problem)
        for typed, passed in PYTHON_NAMES.items():
            message = message.replace(typed, passed)
        raise type(problem)(message) from problem


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
            with read_errors(path):
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
