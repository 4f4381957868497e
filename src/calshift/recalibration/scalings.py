"""Temperature, bias-corrected temperature and vector scaling, and no scaling at all."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from calshift._core.predictions import Predictions
from calshift.recalibration.base import Recalibrator
from calshift.recalibration.floor import choose_floor, floor_classes
from calshift.recalibration.joint.fit import choose_kind
from calshift.recalibration.serialization import (
    read_floors,
    read_positive,
    read_slopes,
    read_vector,
)
from calshift.recalibration.source_weights import SLOPES, fit_slope, fit_weighted, weight_for_target
from calshift.scaling.calibrator import temper


class TemperatureScaling(Recalibrator):
    """softmax(log p / T), with the T of largest likelihood of the source's labels.

    With a target or weights each label counts with the weight of its class.

    Parameters
    ----------
    weights : class weights for `fit`, unless it is given others

    Attributes
    ----------
    temperature_ : T, above 1 for an overconfident model
    floors_ : (K,) smaller probabilities count as this

    Examples
    --------
    >>> import calshift
    >>> model = calshift.simulate.GaussianSimulation(temperature=0.5)
    >>> p, y = model.source(4000, rng=0)
    >>> fitted = calshift.TemperatureScaling().fit(p, y)
    >>> round(float(fitted.temperature_), 1)
    2.0
    """

    keeps_ranking = True
    _learned: ClassVar = {"temperature_": read_positive, "floors_": read_floors}
    temperature_: float
    floors_: np.ndarray

    def _fit(self, source: Predictions, target: Predictions | None, weights: Any) -> dict[str, Any]:
        rows = weight_for_target(source, target, weights)
        floor = choose_floor(rows)
        slope = fit_slope(rows, floor)
        return {"temperature_": 1 / slope, "floors_": floor_classes(source, floor)}

    def _transform(self, p: np.ndarray) -> np.ndarray:
        return temper(p, 1 / self.temperature_, floor=self.floors_)


class BiasCorrectedTemperatureScaling(Recalibrator):
    """softmax(log p / T + b) with a bias for every class.

    A prior centres the biases on a multiple of the log class shares, with the spread of largest
    evidence.

    Parameters
    ----------
    weights : class weights for `fit`, unless it is given others

    Attributes
    ----------
    temperature_ : T
    biases_, floors_ : (K,) b; smaller probabilities count as the floor
    """

    _learned: ClassVar = {
        "temperature_": read_positive,
        "biases_": read_vector,
        "floors_": read_floors,
    }
    temperature_: float
    biases_: np.ndarray
    floors_: np.ndarray

    def _fit(self, source: Predictions, target: Predictions | None, weights: Any) -> dict[str, Any]:
        rows = weight_for_target(source, target, weights)
        found = fit_weighted("bcts", rows, choose_floor(rows))
        slope = float(np.clip(found.slope[0], *SLOPES))
        return {
            "temperature_": 1 / slope,
            "biases_": np.array(found.bias),
            "floors_": floor_classes(source, found.floor),
        }

    def _transform(self, p: np.ndarray) -> np.ndarray:
        return temper(p, 1 / self.temperature_, self.biases_, self.floors_)


class VectorScaling(Recalibrator):
    """softmax(a log p + b) with a slope and a bias for every class.

    A prior centres the slopes on a common one and the biases on a multiple of the log class shares,
    with the spreads of largest evidence. Above 200 classes all have the same slope, as they rarely
    have the rows for one each and the cost grows with the cube of their number.

    Parameters
    ----------
    weights : class weights for `fit`, unless it is given others

    Attributes
    ----------
    slopes_ : (K,) a, or (1,) above 200 classes
    biases_, floors_ : (K,) b; smaller probabilities count as the floor
    """

    _learned: ClassVar = {"slopes_": read_slopes, "biases_": read_vector, "floors_": read_floors}
    slopes_: np.ndarray
    biases_: np.ndarray
    floors_: np.ndarray

    def _fit(self, source: Predictions, target: Predictions | None, weights: Any) -> dict[str, Any]:
        kind = choose_kind(source.n_classes)
        rows = weight_for_target(source, target, weights)
        found = fit_weighted(kind, rows, choose_floor(rows))
        return {
            "slopes_": np.array(found.slope),
            "biases_": np.array(found.bias),
            "floors_": floor_classes(source, found.floor),
        }

    def _transform(self, p: np.ndarray) -> np.ndarray:
        return temper(p, self.slopes_, self.biases_, self.floors_)


class Unchanged(Recalibrator):
    """Leaves every probability as it is; `recalibrate` returns it where nothing is supported."""

    keeps_ranking = True
    _learned: ClassVar = {}

    def __init__(self) -> None:
        pass

    def _fit(self, source: Predictions, target: Predictions | None, weights: Any) -> dict[str, Any]:
        return {}

    def _transform(self, p: np.ndarray) -> np.ndarray:
        return p

    def _transform_block(self, block: Predictions) -> np.ndarray:
        return np.array(block.p)
