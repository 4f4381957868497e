"""Cross-fitting: each fold of both samples is recalibrated by a fit to the other folds."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

import numpy as np

from calshift._core.predictions import Predictions
from calshift.engines.base import Progress
from calshift.errors import InvalidInput
from calshift.recalibration.base import Recalibrator


def draw_folds(
    source: Predictions, target: Predictions, folds: int, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """The fold of each source row and of each target row, of equal sizes; stratified by class."""
    if len(target) < 2:
        msg = f"p_target must have at least two rows for cross-fitting; got {len(target)}"
        raise InvalidInput(msg)
    folds = min(folds, len(source), len(target))
    order = rng.permutation(len(source))
    _, first, place = np.unique(source.labels[order], return_index=True, return_inverse=True)
    order = order[np.argsort(first[place], kind="stable")]  # whatever the order of the classes
    numbers = np.arange(folds, dtype=np.min_scalar_type(folds))
    of_source = np.empty(len(source), numbers.dtype)
    of_source[order] = np.resize(numbers, len(source))
    if any(len(np.unique(source.labels[of_source != fold])) < 2 for fold in range(folds)):
        msg = "y_source must have at least two rows of at least two classes for cross-fitting"
        raise InvalidInput(msg)
    return of_source, rng.permutation(np.resize(numbers, len(target)))


class FoldedSample:
    """The rows of a sample grouped by fold, in arrays of its own.

    The rows of all folds but one are a view: that fold is exchanged with rows at the end, and
    exchanged again afterwards. The first folds, which may have a row more, are at the end, so that
    the two places never overlap.
    """

    def __init__(self, sample: Predictions, of: np.ndarray) -> None:
        order = np.argsort(of, kind="stable")[::-1]
        self.rows = sample.take(order)
        self.order = order.astype(np.min_scalar_type(len(order)))  # the former place of each row
        self.sizes = np.bincount(of)

    def place(self, fold: int) -> slice:
        """Where the rows of a fold are."""
        start = len(self.rows) - int(self.sizes[: fold + 1].sum())
        return slice(start, start + int(self.sizes[fold]))

    @contextmanager
    def without(self, fold: int) -> Iterator[Predictions]:
        """The rows of the other folds."""
        end = slice(len(self.rows) - int(self.sizes[fold]), len(self.rows))
        self._exchange(self.place(fold), end)
        try:
            yield self.rows.take(slice(0, end.start))
        finally:
            self._exchange(self.place(fold), end)

    def _exchange(self, one: slice, other: slice) -> None:
        for values in (self.rows.p, self.rows.y, self.rows.sample_weight):
            if values is not None and one != other:
                kept = values[one].copy()
                values[one] = values[other]
                values[other] = kept

    def recalibrate(self, fits: list[Recalibrator]) -> Predictions:
        """All rows in their former order, each fold recalibrated by the fit to the others."""
        p = np.empty(self.rows.p.shape)
        for fold, fit in enumerate(fits):
            place = self.place(fold)
            p[self.order[place]] = fit.transform(self.rows.take(place)).p
        rows = self.rows._replace(
            y=self._restore(self.rows.y), sample_weight=self._restore(self.rows.sample_weight)
        )
        return rows.with_probabilities(p, keep_classes=True)

    def _restore(self, values: np.ndarray | None) -> np.ndarray | None:
        """Values of the rows in their former order."""
        if values is None:
            return None
        found = np.empty_like(values)
        found[self.order] = values
        return found


def fit_folds(
    model: Recalibrator,
    source: FoldedSample,
    target: FoldedSample | None,
    weights: Any,
    progress: Progress | None,
) -> list[Recalibrator]:
    """For each fold the model fitted to the others, of the source alone without a target.

    The searches start where that of the model ended, if it is fitted.
    """
    found: list[Recalibrator] = []
    for fold in range(len(source.sizes)):
        other = nullcontext() if target is None else target.without(fold)
        with source.without(fold) as before, other as after:
            found.append(model._clone().fit_rows(before, after, weights, model))
        if progress is not None:
            progress(fold + 1, len(source.sizes))
    return found
