"""The predictions of two models on the same rows."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from calshift._core.predictions import Predictions
from calshift.cli.samples import OpenedSamples, read_pair
from calshift.engines import Arrays
from calshift.errors import InvalidInput
from calshift.io.columns import ColumnSpec, quote


def read_models(
    first: tuple[str, str], second: tuple[str, str], asked: ColumnSpec, other_columns: str | None
) -> tuple[OpenedSamples, OpenedSamples]:
    """Source and target of both in memory, the classes of the second in the order of the first."""
    a = read_pair(*first, asked).opened()
    pair = read_pair(*second, replace(asked, columns=other_columns or asked.columns))
    b = pair.opened()
    if b.n_classes != a.n_classes:
        msg = f"both models must have the same classes; A has {a.n_classes}, B has {b.n_classes}"
        raise InvalidInput(msg)
    if a.classes is None or b.classes is None or a.classes == b.classes:
        return a, b
    _check_names(a.classes, b.classes)
    source, target = (Arrays(_in_order(one, a.classes)) for one in (pair.source, pair.target))
    return a, OpenedSamples(source, target, a.classes, a.n_classes, b.one_column)


def _check_names(first: tuple[Any, ...], second: tuple[Any, ...]) -> None:
    if set(first) != set(second):
        msg = f"both models must have the same classes; A has {quote(first)}, B {quote(second)}"
        raise InvalidInput(msg)


def _in_order(rows: Predictions, classes: tuple[Any, ...]) -> Predictions:
    """The same rows with these classes in their order."""
    names = rows.classes or ()
    order = np.array([names.index(name) for name in classes])
    y = None if rows.y is None else np.argsort(order)[rows.y]
    return Predictions.from_validated(rows.matrix[:, order], y, classes, rows.sample_weight)
