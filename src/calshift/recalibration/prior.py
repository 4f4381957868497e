"""Bayes' correction of the class shares."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from calshift._core.predictions import Predictions
from calshift.errors import InvalidInput
from calshift.recalibration.base import Recalibrator
from calshift.recalibration.serialization import class_weights
from calshift.recalibration.source_weights import filled, resolve_weights
from calshift.scaling.calibrator import reweight

PRIOR_METHOD = "map"  # em-bcts can find a weight of 0, after which a class is impossible


class PriorCorrection(Recalibrator):
    """p_y w_y / sum_c p_c w_c: Bayes' rule for another mix of classes.

    Right where the probabilities are right for the source; calibrate first where they are not, as
    in ``Chain([VectorScaling(), PriorCorrection()])``. A class that the source lacks has no weight
    and takes the mean of the others.

    Parameters
    ----------
    weights : class weights for `fit`, where it is not given any; estimated ones are those of "map"

    Attributes
    ----------
    class_weights_ : (K,) w

    Examples
    --------
    >>> import calshift
    >>> corrected = calshift.PriorCorrection().fit([[0.8, 0.2], [0.3, 0.7]], [0, 1], weights=[1, 3])
    >>> corrected.transform([[0.6, 0.4]]).round(3)
    array([[0.333, 0.667]])
    """

    _learned: ClassVar = {"class_weights_": class_weights}
    class_weights_: np.ndarray

    def _fit(self, source: Predictions, target: Predictions | None, weights: Any) -> dict[str, Any]:
        found = resolve_weights(weights, source, target, PRIOR_METHOD)
        if found is None:
            msg = "PriorCorrection needs a p_target, or weights: without them nothing has changed"
            raise InvalidInput(msg)
        return {"class_weights_": filled(found, weights)}

    def _transform(self, p: np.ndarray) -> np.ndarray:
        return reweight(p, self.class_weights_)
