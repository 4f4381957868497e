"""The shares v_y(x) with which an unlabelled row counts as a row of class y.

    v_y = rho_y w_y / (sum_c rho_c w_c + n / m),        rho: posterior class probabilities, target

For fixed class weights, adding the mean of sum_y v_y psi(x, y) over the target, less its weighted
mean over the source, to the weighted source mean of psi minimises the variance. Any v leaves the
estimate consistent. docs/mathematics.md section 13.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from calshift._core.frozen import Frozen
from calshift._core.predictions import Predictions
from calshift.engines.base import Engine
from calshift.scaling.calibrator import Scaling
from calshift.scaling.fit import fit_scaling
from calshift.weights.auto import relaxation_of_prior

MOST_BIASES = 200  # classes, beyond which Newton steps with a bias for each take too long
LEAST_SUM = 1e-300  # of v's denominator, where a row has its whole mass on weights of 0


@dataclass(frozen=True, eq=False)
class EfficientShares(Frozen):
    """v of source or target rows."""

    calibrate: Scaling
    weights: np.ndarray  # (S,) of the classes seen
    ratio: float  # n / m

    def posterior(self, batch: Predictions) -> np.ndarray:
        """(n, S) source posterior class probabilities of the classes seen."""
        return self.calibrate(batch)

    def __call__(self, batch: Predictions) -> np.ndarray:
        """(n, K) v, 0 for classes that the source lacks."""
        r = self.posterior(batch)
        below = r @ (self.weights**2 + self.ratio * self.weights)
        r = r * self.weights**2
        r /= np.maximum(below, LEAST_SUM)[:, None]
        return self._widen(r)

    def target_posterior(self, batch: Predictions) -> np.ndarray:
        """(n, K) rho."""
        r = self.posterior(batch) * self.weights
        r /= np.maximum(r.sum(axis=1), LEAST_SUM)[:, None]
        return self._widen(r)

    def _widen(self, values: np.ndarray) -> np.ndarray:
        """(n, K) with zeros for the classes that the source lacks."""
        seen = self.calibrate.seen
        if seen.all():
            return values
        whole = np.zeros((len(values), len(seen)))
        whole[:, seen] = values
        return whole


def known_calibrator(influence: Any) -> Scaling | None:
    """The calibrator behind estimated class weights, if they have one with slopes and biases."""
    while influence is not None:
        found = getattr(influence, "calibrate", None)
        if isinstance(found, Scaling) and found.biased:
            return found
        influence = getattr(influence, "inner", getattr(influence, "second", None))
    return None


def fit_shares(
    source: Engine, class_weights: np.ndarray, n_target: float, known: Scaling | None = None
) -> EfficientShares:
    """v with posterior class probabilities calibrated on the source.

    ``class_weights`` (K,) have a mean of 1 over the source, and 0 for classes that it lacks;
    ``known`` is a calibrator that was fitted to the source before.
    """
    counts = source.summary.class_counts
    if known is not None:
        return EfficientShares(known, class_weights[counts > 0], float(counts.sum() / n_target))
    relaxation = relaxation_of_prior(int(np.count_nonzero(counts)))
    kind = "bcts" if np.count_nonzero(counts) <= MOST_BIASES else "ts"
    calibrate = fit_scaling(kind, source, counts, relaxation=relaxation)
    return EfficientShares(calibrate, class_weights[counts > 0], float(counts.sum() / n_target))
