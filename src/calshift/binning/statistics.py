"""ShiftStatistics: all that the binned estimators need, as sums that add up over batches."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from calshift._core.frozen import Frozen
from calshift._core.predictions import Predictions
from calshift.binning.edges import BinEdges
from calshift.errors import InvalidInput

Summand = Callable[[Predictions], "ShiftStatistics"]


@dataclass(frozen=True, eq=False, repr=False)
class ShiftStatistics(Frozen):
    """Count, sum of scores and sum of squared scores in each cell.

    ``source[:, event, bin, stratum]`` and ``target[:, event, bin]``; strata hold the labels apart
    so that class weights may come later. ``rows[:, stratum]`` are the source's weights of rows and
    what they count for in a sum of squares. Statistics of the same edges add, ``sum()`` works, and
    `zero` is the identity. Events with fewer bins than others are padded with empty ones.

    Examples
    --------
    >>> import calshift
    >>> edges = calshift.bin_edges([0.1, 0.4, 0.6, 0.9], kind="binary", bins=2)
    >>> first = calshift.accumulate([0.2, 0.7], [0, 1], edges=edges)
    >>> second = calshift.accumulate(p_target=[0.1, 0.4, 0.6, 0.9], edges=edges)
    >>> (first + second).size_source, (first + second).size_target
    (2.0, 4.0)
    """

    edges: BinEdges
    source: np.ndarray
    target: np.ndarray
    rows: np.ndarray

    @staticmethod
    def zero(edges: BinEdges) -> ShiftStatistics:
        """The empty sum; it takes no memory, nor time to add."""
        shape = (3, len(edges), edges.max_bins)
        strata = len(edges.events.stratum_label)
        nothing = np.zeros(())
        source, target = np.broadcast_to(nothing, (*shape, strata)), np.broadcast_to(nothing, shape)
        return ShiftStatistics(edges, source, target, np.broadcast_to(nothing, (2, strata)))

    @property
    def size_source(self) -> float:
        """Source rows counted so far."""
        return float(self.rows[0].sum())

    @property
    def unit(self) -> np.ndarray:
        """(strata,) what a source row is of an observation: 1, or less if weights are below 1."""
        return np.asarray(self.rows[1] / np.maximum(self.rows[0], 1e-300))

    @property
    def size_target(self) -> float:
        """Target rows counted so far."""
        return float(self.target[0, 0].sum())

    def as_labelled(self) -> ShiftStatistics:
        """The source in the place of the target: the setting with labels and no shift."""
        return replace(self, target=self.source.sum(axis=-1))

    def __add__(self, other: Any) -> ShiftStatistics:
        if not isinstance(other, ShiftStatistics):
            return self if isinstance(other, int) and other == 0 else NotImplemented
        if self.edges is not other.edges and self.edges != other.edges:
            msg = "statistics add up only on the same edges: make them once with bin_edges"
            raise InvalidInput(msg)
        source, target = _sum(self.source, other.source), _sum(self.target, other.target)
        return ShiftStatistics(self.edges, source, target, _sum(self.rows, other.rows))

    __radd__ = __add__

    def __repr__(self) -> str:
        sizes = f"{self.size_source:g} source rows, {self.size_target:g} target rows"
        return f"ShiftStatistics({sizes}, {self.edges!r})"


def _sum(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """a + b, skipping the zero that `ShiftStatistics.zero` spreads without memory."""
    if not any(a.strides):
        return b
    return np.asarray(a + b) if any(b.strides) else a


def source_kernel(edges: BinEdges) -> Summand:
    """Rows with labels -> their share of the source sums."""
    strata = len(edges.events.stratum_label)

    def kernel(batch: Predictions) -> ShiftStatistics:
        stratum = edges.events.stratum(batch)
        source = np.zeros((3, len(edges), edges.max_bins, strata))
        for k in range(len(edges)):
            score, place = edges.place(k, batch)
            cell = place * strata + stratum
            source[:, k] = bin_sums(cell, score, batch.sample_weight, source[0, k].shape)
        weights = batch.frequency, batch.squared_frequency
        rows = np.array([np.bincount(stratum, f, strata) for f in weights])
        return replace(ShiftStatistics.zero(edges), source=source, rows=rows)

    return kernel


def target_kernel(edges: BinEdges) -> Summand:
    """Rows -> their share of the target sums."""

    def kernel(batch: Predictions) -> ShiftStatistics:
        target = np.zeros((3, len(edges), edges.max_bins))
        for k in range(len(edges)):
            score, cell = edges.place(k, batch)
            target[:, k] = bin_sums(cell, score, batch.sample_weight, target[0, k].shape)
        return replace(ShiftStatistics.zero(edges), target=target)

    return kernel


def bin_sums(
    cell: np.ndarray, score: np.ndarray, weight: np.ndarray | None, shape: tuple[int, ...]
) -> np.ndarray:
    """Sums of 1, f and f^2 over the rows of each cell, in double precision."""
    size = int(np.prod(shape))
    f = score.astype(float)
    first = f if weight is None else f * weight
    sums = [np.bincount(cell, w, size) for w in (weight, first, first * f)]
    return np.stack(sums).reshape(3, *shape)
