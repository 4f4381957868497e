"""Ensemble temperature scaling."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from calshift._core.predictions import Predictions
from calshift.engines import Arrays
from calshift.recalibration.base import Recalibrator
from calshift.recalibration.serialization import positive, three_shares
from calshift.recalibration.source_weights import fit_slope, for_target
from calshift.scaling.calibrator import temper
from calshift.weights.mixture import maximize_mixture


class EnsembleTemperatureScaling(Recalibrator):
    """A mean of softmax(log p / T), p itself, and 1 / K, with shares of largest likelihood.

    After Zhang, Kailkhura and Han (2020). More freedom than a temperature, the same ranking. A
    probability of exactly 0 grows to the share of 1 / K, if that has one.

    Parameters
    ----------
    weights : class weights for `fit`, where it is not given any

    Attributes
    ----------
    temperature_ : T
    shares_ : (3,) of the tempered, the given and the uniform probabilities
    """

    keeps_ranking = True
    _learned: ClassVar = {"temperature_": positive, "shares_": three_shares}
    temperature_: float
    shares_: np.ndarray

    def _fit(self, source: Predictions, target: Predictions | None, weights: Any) -> dict[str, Any]:
        rows = for_target(source, target, weights)
        slope = fit_slope(rows)
        p, at = rows.matrix.astype(float), np.arange(len(rows))
        hits = [part[at, rows.labels] for part in self._members(p, slope)]
        engine = Arrays(rows.with_probabilities(np.maximum(np.stack(hits, axis=1), 1e-300)))
        third = np.full(3, 1 / 3)
        shares = third * maximize_mixture(engine, third, np.zeros(3)).ratio
        return {"temperature_": 1 / slope, "shares_": shares / shares.sum()}

    def _transform(self, p: np.ndarray) -> np.ndarray:
        members = self._members(p, 1 / self.temperature_)
        return np.asarray(sum(s * part for s, part in zip(self.shares_, members, strict=True)))

    @staticmethod
    def _members(p: np.ndarray, slope: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        return temper(p, slope), p, np.full_like(p, 1 / p.shape[1])
