"""Ensemble temperature scaling."""

from __future__ import annotations

from operator import attrgetter
from typing import Any, ClassVar

import numpy as np

from calshift._core.predictions import Predictions
from calshift.engines import Arrays
from calshift.recalibration.base import Recalibrator
from calshift.recalibration.floor import least_probability
from calshift.recalibration.serialization import read_positive, read_shares
from calshift.recalibration.source_weights import fit_slope, weight_for_target
from calshift.scaling.calibrator import temper
from calshift.weights.em_solver import maximize_mixture


class EnsembleTemperatureScaling(Recalibrator):
    """A mixture of softmax(log p / T), p and 1 / K, with shares of largest likelihood.

    After Zhang, Kailkhura and Han (2020). More flexible than a temperature, with the same ranking.
    A probability of exactly 0 becomes the share of the uniform member over K.

    Parameters
    ----------
    weights : class weights for `fit`, unless it is given others

    Attributes
    ----------
    temperature_ : T
    shares_ : (3,) of the tempered, the given and the uniform probabilities
    """

    keeps_ranking = True
    _learned: ClassVar = {"temperature_": read_positive, "shares_": read_shares}
    temperature_: float
    shares_: np.ndarray

    def _fit(self, source: Predictions, target: Predictions | None, weights: Any) -> dict[str, Any]:
        rows = weight_for_target(source, target, weights)
        slope = fit_slope(rows, least_probability(rows))
        p, at = rows.matrix.astype(float), np.arange(len(rows))
        hits = [part[at, rows.labels] for part in self._members(p, slope)]
        engine = Arrays(rows.with_probabilities(np.maximum(np.stack(hits, axis=1), 1e-300)))
        third = np.full(3, 1 / 3)
        shares = third * maximize_mixture(engine, attrgetter("p"), third, np.zeros(3)).ratio
        return {"temperature_": 1 / slope, "shares_": shares / shares.sum()}

    def _transform(self, p: np.ndarray) -> np.ndarray:
        members = self._members(p, 1 / self.temperature_)
        return np.asarray(sum(s * part for s, part in zip(self.shares_, members, strict=True)))

    @staticmethod
    def _members(p: np.ndarray, slope: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        return temper(p, slope), p, np.full_like(p, 1 / p.shape[1])
