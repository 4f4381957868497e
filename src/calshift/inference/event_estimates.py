"""Calibration errors of all events, with their sampling distributions."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from calshift.results import RowInfluence, SamplingDistribution
from calshift.results.drift import DriftInfluence


@dataclass(frozen=True)
class EventEstimates:
    """Errors of all events (NaN: left out), and what is known about them.

    Attributes
    ----------
    values : (E,)
    distribution, event_distributions : sampling distributions of the mean and of each event that
        is not left out, or None
    influence : of each row on the mean, or None
    merged : bins or knots merged with a neighbour for lack of rows
    isolated : rows without a neighbour within the bandwidth of a kernel
    sparse : shares of the error and of the target that rest on few source rows, if known
    drift : influence of rows of another distribution on the mean, or None
    curves : sums for reliability curves, if asked for and made on the way
    """

    values: np.ndarray
    distribution: SamplingDistribution | None = None
    event_distributions: SamplingDistribution | None = None
    influence: RowInfluence | None = None
    merged: int = 0
    isolated: int = 0
    sparse: tuple[float, float] | None = None
    drift: DriftInfluence | None = None
    curves: Any = None

    def inflated(self, factor: float) -> EventEstimates:
        """The same errors with standard errors multiplied by a factor."""
        whole, each, rows = self.distribution, self.event_distributions, self.influence
        return replace(
            self,
            distribution=None if whole is None else whole.inflated(factor),
            event_distributions=None if each is None else each.inflated(factor),
            influence=None if rows is None else rows.scaled(factor),
        )

    def summed(self) -> EventEstimates:
        """The sum over the events not left out, as one event."""
        kept = self.values[~np.isnan(self.values)]
        E, whole, rows = len(kept), self.distribution, self.influence
        return replace(
            self,
            values=np.array([float(kept.sum())]),
            distribution=None if whole is None else whole.scaled(E),
            event_distributions=None,
            influence=None if rows is None else rows.scaled(E),
            merged=self.merged // E,
        )
