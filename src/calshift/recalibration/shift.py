"""Vector scaling and the target's mix in one: the default."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from calshift._core.predictions import Predictions
from calshift.engines import Arrays, Blocks
from calshift.recalibration.base import Recalibrator
from calshift.recalibration.joint_fit import choose_kind, fit_jointly
from calshift.recalibration.serialization import class_weights, numbers, slopes
from calshift.recalibration.source_weights import (
    counted_classes,
    filled,
    fit_weighted,
    least_probability,
    resolve_weights,
)
from calshift.scaling.calibrator import reweight, temper


class ShiftScaling(Recalibrator):
    """softmax(a log p + b) of the source, carried to the target by class weights w.

    Slopes, biases and weights are fitted together to the labels of the source and to what tells
    the rows of both samples apart. A prior draws the weights to a power of the class shares, and
    the whole map to a temperature, as far as the data allow; so it loses little where a temperature
    is all that is needed, and where classes have few rows.
    With weights given, it is vector scaling on the source followed by `PriorCorrection`.

    Parameters
    ----------
    weights : class weights for `fit`, where it is not given any

    Attributes
    ----------
    slopes_ : (K,) a, or (1,) above 200 classes
    biases_, class_weights_ : (K,) b and w
    """

    _learned: ClassVar = {"slopes_": slopes, "biases_": numbers, "class_weights_": class_weights}
    slopes_: np.ndarray
    biases_: np.ndarray
    class_weights_: np.ndarray

    def _fit(self, source: Predictions, target: Predictions | None, weights: Any) -> dict[str, Any]:
        if target is None or weights is not None:
            given = resolve_weights(weights, source, target)
            scaling = fit_weighted(choose_kind(source.n_classes), source)
            w = np.ones(source.n_classes) if given is None else filled(given, weights)
        else:
            blocks = Blocks(Arrays(source)), Blocks(Arrays(target))
            floor = least_probability(source, target)
            found, _ = fit_jointly(*blocks, counted_classes(source), floor)
            scaling, w = found.scaling, np.exp(found.shift)
        return {
            "slopes_": np.array(scaling.slope),
            "biases_": np.array(scaling.bias),
            "class_weights_": w,
        }

    def _transform(self, p: np.ndarray) -> np.ndarray:
        return reweight(temper(p, self.slopes_, self.biases_), self.class_weights_)
