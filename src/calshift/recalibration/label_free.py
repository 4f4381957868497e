"""The temperature of least label-free calibration error."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from calshift._core.predictions import Predictions
from calshift.errors import InvalidInput
from calshift.recalibration.base import Recalibrator
from calshift.recalibration.serialization import class_weights, positive
from calshift.recalibration.source_weights import filled, fit_slope, resolve_weights, weighted
from calshift.recalibration.temperature_search import least_error_slope
from calshift.scaling.calibrator import temper


class LabelFreeTemperatureScaling(Recalibrator):
    """softmax(log p / T), with the T of least `target_calibration_error`.

    The criterion is the debiased classwise error, near the T of largest likelihood. It is what
    LaSCal does with the paper's estimator.

    Parameters
    ----------
    weights : class weights for `fit`, where it is not given any

    Attributes
    ----------
    temperature_ : T
    class_weights_ : (K,) the weights that the error was estimated with
    """

    keeps_ranking = True
    _learned: ClassVar = {"temperature_": positive, "class_weights_": class_weights}
    temperature_: float
    class_weights_: np.ndarray

    def _fit(self, source: Predictions, target: Predictions | None, weights: Any) -> dict[str, Any]:
        if target is None:
            msg = "LabelFreeTemperatureScaling needs a p_target, whose error it makes small"
            raise InvalidInput(msg)
        found = resolve_weights(weights, source, target)
        assert found is not None  # with a target there are weights
        start = fit_slope(weighted(_some(source), found))
        slope = least_error_slope(source, target, found.values, start)
        return {"temperature_": 1 / slope, "class_weights_": filled(found, weights)}

    def _transform(self, p: np.ndarray) -> np.ndarray:
        return temper(p, 1 / self.temperature_)


def _some(source: Predictions) -> Predictions:
    """Enough rows for a start, evenly spaced."""
    step = max(1, len(source) // 3000)
    return source.take(np.arange(0, len(source), step))
