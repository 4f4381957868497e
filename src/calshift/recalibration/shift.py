"""Vector scaling and class weights of the target, fitted jointly: the default."""

from __future__ import annotations

import warnings as python_warnings
from typing import Any, ClassVar

import numpy as np

from calshift._core.predictions import Predictions
from calshift.errors import UnreliableWeights
from calshift.recalibration.base import Recalibrator
from calshift.recalibration.floor import choose_floor, floor_classes
from calshift.recalibration.joint.fit import choose_kind, fit_jointly
from calshift.recalibration.serialization import (
    read_class_weights,
    read_floors,
    read_slopes,
    read_vector,
)
from calshift.recalibration.source_weights import (
    count_classes,
    fill_unseen,
    fit_weighted,
    resolve_weights,
)
from calshift.scaling.calibrator import reweight, temper

NOT_CONVERGED = "the joint fit did not converge: slopes, biases and weights are of its last step"


class ShiftScaling(Recalibrator):
    """softmax(a log p + b) for the source, times class weights w for the target.

    Slopes, biases and weights are fitted jointly to the labels of the source and to the sample that
    each row belongs to. A prior shrinks the weights to a power of the class shares, and the whole
    map to a temperature, with strengths of largest evidence; so it loses little where a temperature
    is sufficient, and where classes have few rows.
    A warning says so where the predictions do not determine the class priors of the target: then
    the weights are arbitrary, and change grossly with the smallest change of the data.
    With weights given, it is vector scaling on the source followed by `PriorCorrection`.

    Parameters
    ----------
    weights : class weights for `fit`, unless it is given others

    Attributes
    ----------
    slopes_ : (K,) a, or (1,) above 200 classes
    biases_, class_weights_ : (K,) b and w
    floors_ : (K,) smaller probabilities count as this
    """

    _learned: ClassVar = {
        "slopes_": read_slopes,
        "biases_": read_vector,
        "class_weights_": read_class_weights,
        "floors_": read_floors,
    }
    slopes_: np.ndarray
    biases_: np.ndarray
    class_weights_: np.ndarray
    floors_: np.ndarray

    def _fit(self, source: Predictions, target: Predictions | None, weights: Any) -> dict[str, Any]:
        if target is not None and weights is None:
            return self._fit_jointly(source, target)
        given = resolve_weights(weights, source, target)
        scaling = fit_weighted(choose_kind(source.n_classes), source, choose_floor(source))
        w = np.ones(source.n_classes) if given is None else fill_unseen(given, weights)
        return {
            "slopes_": np.array(scaling.slope),
            "biases_": np.array(scaling.bias),
            "class_weights_": w,
            "floors_": floor_classes(source, scaling.floor),
        }

    def _fit_jointly(self, source: Predictions, target: Predictions) -> dict[str, Any]:
        floor = choose_floor(source, target)
        found = fit_jointly(source, target, count_classes(source), floor, self._search)
        if not found.converged:
            python_warnings.warn(NOT_CONVERGED, UnreliableWeights, stacklevel=4)
        K = source.n_classes
        return {
            "slopes_": found.parameters[: -2 * K],
            "biases_": found.parameters[-2 * K : -K],
            "class_weights_": np.exp(found.parameters[-K:]),
            "floors_": floor_classes(source, floor),
            "search": found,
        }

    def _warn(self, source: Predictions, target: Predictions, weights: Any) -> None:
        if weights is None:
            resolve_weights(None, source, target)  # for its warnings: is the shift determined?

    def _transform(self, p: np.ndarray) -> np.ndarray:
        return reweight(temper(p, self.slopes_, self.biases_, self.floors_), self.class_weights_)
