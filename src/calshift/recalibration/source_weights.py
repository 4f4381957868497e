"""The source weighted to the class distribution of the target, and scalings fitted to it.

docs/mathematics.md section 11.
"""

from __future__ import annotations

import warnings as python_warnings
from typing import Any

import numpy as np

from calshift._core.convert import to_numpy
from calshift._core.predictions import Predictions
from calshift.engines import Arrays, Blocks
from calshift.errors import InvalidInput, UnreliableWeights
from calshift.results import ClassWeights
from calshift.scaling.calibrator import Scaling
from calshift.scaling.fit import fit_scaling
from calshift.weights import DEFAULT, make_given_weights, resolve_class_weights

HALF_A_ROW = 0.5  # count of a class that is not in the source
SLOPES = (0.01, 100.0)  # of 1 / temperature: positive, so that a ranking is never reversed


def resolve_weights(
    weights: Any,
    source: Predictions,
    target: Predictions | None,
    default: str = DEFAULT,
    *,
    depth: int = 4,
) -> ClassWeights | None:
    """The class weights, given or estimated; None without weights and target.

    ``depth`` is the stack level of the caller of `fit`, for the warnings.
    """
    if weights is None and target is None:
        return None
    if target is None:
        return make_given_weights(weights, source.class_counts, None, source.classes)
    asked = default if weights is None else weights
    found = resolve_class_weights(asked, Arrays(source), Arrays(target))
    for note in found.warnings:
        python_warnings.warn(note, UnreliableWeights, stacklevel=depth)
    return found


def fill_unseen(weights: ClassWeights, asked: Any = None) -> np.ndarray:
    """(K,) weights; a class that is not in the source has the weight given by the user, if any.

    Otherwise it has the geometric mean over the target's classes, so that its probabilities change
    as those of the other classes do on average.
    """
    w, q = np.array(weights.values, dtype=float), weights.prior_target
    known = w > 0  # NaN is not
    if not (asked is None or isinstance(asked, str | ClassWeights)):
        w = np.where(np.isnan(w), to_numpy(asked, "weights")[0].astype(float), w)
    if np.isnan(w).any():
        mean = np.average(np.log(w[known]), weights=np.maximum(q[known], 1e-12))
        w[np.isnan(w)] = np.exp(mean)
    return w


def weight_rows(source: Predictions, weights: ClassWeights | None) -> Predictions:
    """The source with rows weighted by class, the sum of weights being the effective sample size.

    That is (sum w)^2 / sum w^2, so that a prior has the strength that the data warrant. The scale
    of the weights does not matter.
    """
    if weights is None:
        return source
    scaled = weights.values / np.nanmax(weights.values)
    w = np.nan_to_num(scaled)[source.labels] * source.frequency
    if not w.any():
        msg = "weights must be above 0 for at least one source row"
        raise InvalidInput(msg)
    square = float(w @ (w / np.maximum(source.frequency, 1e-300)))
    return source.with_frequency(w * (w.sum() / square))


def weight_for_target(source: Predictions, target: Predictions | None, weights: Any) -> Predictions:
    """The source weighted to the target, or unweighted without weights and target."""
    return weight_rows(source, resolve_weights(weights, source, target, depth=5))


def count_classes(source: Predictions) -> np.ndarray:
    """(K,) rows of each class, one half where there is none."""
    return np.asarray(np.maximum(source.class_counts, HALF_A_ROW))


def fit_weighted(kind: str, source: Predictions, floor: float) -> Scaling:
    """The calibrator of all classes, also of those not in the source."""
    return fit_scaling(kind, Blocks(Arrays(source)), count_classes(source), floor)


def fit_slope(source: Predictions, floor: float) -> float:
    """1 / T of largest likelihood."""
    return float(np.clip(fit_weighted("ts", source, floor).slope[0], *SLOPES))
