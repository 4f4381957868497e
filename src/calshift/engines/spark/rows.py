"""Columns of a Spark table as validated rows: classes in order, labels as codes."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from calshift._core.labels import validate_classes
from calshift._core.predictions import Predictions, counted_predictions
from calshift.errors import InvalidInput
from calshift.io.columns import ResolvedColumns, quote
from calshift.io.decode import decode_numbers, encode_label_column
from calshift.io.file_reader import LabelCodes, python_option_names
from calshift.io.prediction_file import decode_probabilities, errors_name

Names = tuple[Any, ...] | None


@dataclass(frozen=True)
class TableRows:
    """Converts columns to rows; it is sent to the executors.

    Attributes
    ----------
    order : which columns are the classes, where another table has them in another order
    codes : reads labels; None where these are the numbers of the classes
    """

    table: str
    columns: ResolvedColumns
    classes: Names
    logits: bool
    order: tuple[int, ...] | None = None
    codes: LabelCodes | None = None

    @property
    def read(self) -> tuple[str, ...]:
        """The columns that are read, in order."""
        others = (self.columns.label, self.columns.weight)
        return (*self.columns.probabilities, *(name for name in others if name is not None))

    @property
    def weight(self) -> str | None:
        """The column of frequency weights, if there is one."""
        return self.columns.weight

    @property
    def fingerprint(self) -> str:
        """Identifies the same conversion in another run; codes follow from the labels."""
        return repr((self.table, self.columns, self.classes, self.logits, self.order))

    def __call__(self, columns: dict[str, Any], place: str, start: int) -> Predictions | None:
        """Validated rows, or None if all weights are 0.

        Messages name the ``place``, and count rows from ``start``. Columns are in the
        order of `read`; their names do not matter.
        """
        label, columns = self.columns.label, dict(zip(self.read, columns.values(), strict=True))
        with python_option_names(), errors_name(place, self.columns):
            names = self.columns.probabilities
            p = decode_probabilities(columns, names, place, start, self.logits, self.order)
            y = None
            if label is not None:
                y = (self.codes or decode_numbers)(columns[label], label, place, start)
            f = None
            if self.weight is not None:
                f = decode_numbers(columns[self.weight], self.weight, place, start)
            of = [f"{place}, column {name!r}" for name in (label, self.weight)]
            return counted_predictions(p, y, None, place, of[0], start, f, of[1])


def in_order(
    known: Names, classes: Sequence[Any] | None, table: str, single: bool
) -> tuple[Names, tuple[int, ...] | None]:
    """The names of the classes, and which columns are theirs if these are in another order.

    ``known`` are the names by the columns; with ``single`` one column has the scores of the second
    of two classes.
    """
    if classes is None:
        return known, None
    wanted = validate_classes(classes, len(tuple(classes)))
    assert wanted is not None
    if known is None or known == wanted:
        return wanted, None
    fits = known[1:] == wanted[1:] if single else sorted(known) == sorted(map(str, wanted))
    if not fits:
        msg = f"{table} must have the classes {quote(wanted)}; it has {quote(known)}"
        raise InvalidInput(msg)
    return wanted, None if single else tuple(known.index(str(name)) for name in wanted)


def may_be_names(classes: Names) -> bool:
    """Whether labels that are whole numbers could be names of classes."""
    return any(re.fullmatch(r"-?\d+", str(name)) for name in classes or ())


def spark_label_encoder(texts: list[str], classes: Names, where: str) -> LabelCodes:
    """The codes of all labels that occur, by their texts."""
    if not texts:
        return LabelCodes({})
    names = None if classes is None else tuple(map(str, classes))
    coded = encode_label_column(np.array(texts), names, where)
    return LabelCodes(dict(zip(texts, _places(coded, names, where), strict=True)))


def _places(coded: np.ndarray, names: tuple[str, ...] | None, where: str) -> list[int]:
    """Places among the classes; numbers are places unless all classes are numbers.

    Whether there is such a class is checked with the rows.
    """
    whole, found = coded.dtype.kind in "iu", coded.tolist()
    if names is None or (whole and not all(re.fullmatch(r"\d+", name) for name in names)):
        return [int(value) for value in found]
    place = {int(name) if whole else name: k for k, name in enumerate(names)}
    unknown = [value for value in found if value not in place]
    if unknown:
        msg = (
            f"{where}: label {str(unknown[0])!r} is not one of the classes {quote(names)}: "
            "correct it, or drop its rows"
        )
        raise InvalidInput(msg)
    return [place[value] for value in found]
