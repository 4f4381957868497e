"""Terms of labelled rows in the regressions of some events: residuals, leverages, noise."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from calshift._core.predictions import Predictions
from calshift.binning.placement import ScoreBlock
from calshift.estimators.regression import SMALLEST_GAP, ResidualRegression


@dataclass(frozen=True)
class RowTerms:
    """Labelled rows of some events: all (E, n), of residuals u and class weights w (n,)."""

    block: ScoreBlock
    residual: np.ndarray
    batch: Predictions
    fits: ResidualRegression
    weight: np.ndarray

    @cached_property
    def fitted(self) -> np.ndarray:
        """g."""
        return self.block.at_bins(self.fits.value)

    @cached_property
    def excess(self) -> np.ndarray:
        """e = u - g."""
        return np.asarray(self.residual - self.fitted)

    @cached_property
    def gap(self) -> np.ndarray:
        """1 - l; a frequency weight below 1 makes less than one observation."""
        f, w = self.batch.sample_weight, self.weight
        leverage = self.block.at_bins(self.fits.leverage)
        leverage *= w if f is None else w * np.minimum(f, 1.0)
        return np.asarray(np.maximum(1 - leverage, SMALLEST_GAP))

    @cached_property
    def noise(self) -> np.ndarray:
        """w e / sqrt(1 - l)."""
        return np.asarray(self.excess * self.weight / np.sqrt(self.gap))

    def squared_influence(self, own: float) -> np.ndarray:
        """w e / (1 - l) times the gradient of |a|^2, and the row's own part in it as a target."""
        value = self.excess * self.weight / self.gap * self.block.at_bins(self.fits.gradient)
        if own:
            value += own * (self.fitted**2 - self.fits.plugin[self.block.events, None])
        return np.asarray(value)

    def sum_by_label(self) -> np.ndarray:
        """(E, R, K) X' noise, summed by label."""
        K, block = self.batch.n_classes, self.block
        cell, size = block.place * K + self.batch.labels, len(self.noise) * block.width
        counted = (self.noise * self.batch.frequency).ravel()
        sums = np.bincount(cell.ravel(), counted, size * K).reshape(size, K)
        return self.fits.basis.project_rows(block.events, sums)

    def sum_products(self, others: np.ndarray) -> np.ndarray:
        """(E, R, S) X' noise others, others (n, S)."""
        by_place = sparse_rows(self.noise, self.block.place, len(self.noise) * self.block.width)
        return self.fits.basis.project_rows(self.block.events, by_place.T @ others)


def sparse_rows(values: np.ndarray, place: np.ndarray, width: int) -> Any:
    """(n, width) sparse: each row has one value an event, of (E, n)."""
    from scipy.sparse import csr_matrix  # late: importing calshift must be fast

    E, n = values.shape
    start = np.arange(0, n * E + 1, E)
    return csr_matrix((values.T.ravel(), place.T.ravel(), start), (n, width))


def sum_by_label(batch: Predictions, values: np.ndarray) -> np.ndarray:
    """(K, ...) rows of values summed by label."""
    from scipy.sparse import csr_matrix

    shape = (len(batch), batch.n_classes)
    labels = csr_matrix((batch.frequency, batch.labels, np.arange(len(batch) + 1)), shape)
    return np.asarray(labels.T @ values)
