"""Correction of probabilities for other class priors."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from calshift._core.predictions import Predictions
from calshift.errors import InvalidInput
from calshift.recalibration.base import Recalibrator
from calshift.recalibration.serialization import read_class_weights
from calshift.recalibration.source_weights import fill_unseen, resolve_weights
from calshift.scaling.calibrator import reweight

PRIOR_METHOD = "map"  # em-bcts can estimate a weight of 0, which makes a class impossible


class PriorCorrection(Recalibrator):
    """p_y w_y / sum_c p_c w_c: Bayes' rule for other class priors.

    Correct if the probabilities are calibrated on the source; otherwise calibrate first, as in
    ``Chain([VectorScaling(), PriorCorrection()])``. A class that is not in the source has no
    estimated weight and gets the mean of the others.

    Parameters
    ----------
    weights : class weights for `fit`, unless it is given others; estimated by "map"

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

    _learned: ClassVar = {"class_weights_": read_class_weights}
    class_weights_: np.ndarray

    def _fit(self, source: Predictions, target: Predictions | None, weights: Any) -> dict[str, Any]:
        found = resolve_weights(weights, source, target, PRIOR_METHOD)
        if found is None:
            msg = "PriorCorrection needs a p_target or weights: it has no correction without them"
            raise InvalidInput(msg)
        return {"class_weights_": fill_unseen(found, weights)}

    def _transform(self, p: np.ndarray) -> np.ndarray:
        return reweight(p, self.class_weights_)
