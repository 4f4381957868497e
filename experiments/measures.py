"""One line of the paper's tables, with its estimator and with the default one.

With labels on the source and on the target; without the target's labels under the true weights w*
and under estimated ones. The paper's estimator has 15 bins of equal mass, as in all its tables; the
default one is `calshift.target_calibration_error` as it comes.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np

import calshift

METHODS = {"RLLS": "rlls", "ELSA": "elsa", "EM-BCTS": "em-bcts", "BBSL": "bbse"}
TRUE = "w*"
ESTIMATORS: dict[str, dict[str, Any]] = {
    "paper": {"estimator": "paper", "bins": 15, "interval": None},
    "default": {},
}
Sample = calshift.Predictions


def measured(
    source: Sample,
    target: Sample,
    norm: float = 2,
    methods: Mapping[str, str] = METHODS,
    kind: str = "classwise",
    bins: int | None = None,
) -> dict[str, Any]:
    """All numbers of a line: errors CE_p^p, not yet times 100; None where there is no answer."""
    row: dict[str, Any] = {
        "rows": [len(source), len(target)],
        "classes": source.n_classes,
        "norm": norm,
        "accuracy": [accuracy(source), accuracy(target)],
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", calshift.UnreliableWeights)
        weights = all_weights(source, target, methods)
        for name, settings in ESTIMATORS.items():
            asked = {**settings, "norm": norm, "kind": kind}
            if bins is not None and name == "paper":
                asked["bins"] = bins
            row[name] = errors(source, target, weights, asked)
    row["weights_error"] = {name: far(found, weights[TRUE]) for name, found in weights.items()}
    return row


def accuracy(sample: Sample) -> float:
    return float((sample.predicted == sample.labels).mean())


def all_weights(
    source: Sample, target: Sample, methods: Mapping[str, str]
) -> dict[str, calshift.ClassWeights | None]:
    """The true weights and those of each method; None where it has no answer."""
    found: dict[str, calshift.ClassWeights | None] = {
        TRUE: calshift.weights_from_labels(source.labels, target.labels, source.n_classes)
    }
    for name, method in methods.items():
        try:
            found[name] = calshift.label_shift_weights(
                source, None, target.unlabelled(), method=method
            )
        except (calshift.InvalidInput, np.linalg.LinAlgError):
            found[name] = None
    return found


def errors(
    source: Sample, target: Sample, weights: Mapping[str, Any], asked: dict[str, Any]
) -> dict:
    """CE_s, CE_t with labels, and without under each of the weights."""
    return {
        "source": numbers(calshift.calibration_error(source, **asked)),
        "target": numbers(calshift.calibration_error(target, **asked)),
        "without": {
            name: None if w is None else numbers(shifted(source, target, w, asked))
            for name, w in weights.items()
        },
    }


def shifted(source: Sample, target: Sample, w: Any, asked: dict[str, Any]) -> Any:
    return calshift.target_calibration_error(
        source, None, target.unlabelled(), weights=w, check=False, **asked
    )


def numbers(result: calshift.CalibrationErrorResult) -> dict[str, Any]:
    """The estimate, and its interval if there is one."""
    found: dict[str, Any] = {"estimate": result.estimate, "trusted": bool(result.trusted)}
    if result.has_interval:
        found["interval"] = list(result.confidence_interval())
    return found


def far(found: calshift.ClassWeights | None, truth: calshift.ClassWeights | None) -> float | None:
    """Root mean square distance of class shares of the target from the true ones."""
    if found is None or truth is None:
        return None
    apart = found.prior_target - truth.prior_target
    return float(np.sqrt(np.mean(apart**2)))
