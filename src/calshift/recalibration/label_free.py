"""Temperature scaling without labels of the target, by its calibration error."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from calshift._core.predictions import Predictions
from calshift.errors import InvalidInput
from calshift.recalibration.base import Recalibrator
from calshift.recalibration.floor import least_probability
from calshift.recalibration.label_free_search import least_error_slope
from calshift.recalibration.serialization import read_class_weights, read_positive
from calshift.recalibration.source_weights import (
    fill_unseen,
    fit_slope,
    resolve_weights,
    weight_rows,
)
from calshift.scaling.calibrator import temper

START_ROWS = 3000  # about so many source rows, evenly spaced, give the starting value


class LabelFreeTemperatureScaling(Recalibrator):
    """softmax(log p / T), with the T that minimises `target_calibration_error`.

    The criterion is the debiased classwise error, minimised near the T of largest likelihood.
    LaSCal does so with the paper's estimator.

    Parameters
    ----------
    weights : class weights for `fit`, unless it is given others

    Attributes
    ----------
    temperature_ : T
    class_weights_ : (K,) the weights with which the error was estimated
    """

    keeps_ranking = True
    _learned: ClassVar = {"temperature_": read_positive, "class_weights_": read_class_weights}
    temperature_: float
    class_weights_: np.ndarray

    def _fit(self, source: Predictions, target: Predictions | None, weights: Any) -> dict[str, Any]:
        if target is None:
            msg = "LabelFreeTemperatureScaling needs a p_target, whose error it minimises"
            raise InvalidInput(msg)
        found = resolve_weights(weights, source, target)
        assert found is not None  # with a target there are weights
        some = source.take(np.arange(0, len(source), max(1, len(source) // START_ROWS)))
        rows = weight_rows(some, found)
        start = fit_slope(rows, least_probability(rows))
        slope = least_error_slope(source, target, found.values, start)
        return {"temperature_": 1 / slope, "class_weights_": fill_unseen(found, weights)}

    def _transform(self, p: np.ndarray) -> np.ndarray:
        return temper(p, 1 / self.temperature_)
