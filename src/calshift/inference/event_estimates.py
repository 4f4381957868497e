"""Calibration errors of all events, with their sampling distributions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from calshift.results import RowInfluence, SamplingDistribution


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
    sparse : shares of the error and of the target that rest on few source rows
    curves : sums for reliability curves, if asked for and made on the way
    """

    values: np.ndarray
    distribution: SamplingDistribution | None = None
    event_distributions: SamplingDistribution | None = None
    influence: RowInfluence | None = None
    merged: int = 0
    isolated: int = 0
    sparse: tuple[float, float] = (0.0, 0.0)
    curves: Any = None
