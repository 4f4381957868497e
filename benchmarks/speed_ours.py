"""What benchmarks/run.py measures of calshift: `speed_ours.py case n K seconds` prints JSON."""

from __future__ import annotations

from typing import Any

import numpy as np
from speed_cases import Runs, answer, mild_weights, predictions, scores

import calshift


def label_free(n: int, K: int) -> Runs:
    p, y = predictions(n, K, seed=1)
    q, _ = predictions(n, K, seed=2)
    return {"ours": estimate(p, y, q, weights=mild_weights(y, K), check=False)}


def classwise(n: int, K: int) -> Runs:
    """The same in turns with sorting both matrices."""
    p, y = predictions(n, K, seed=1)
    q, _ = predictions(n, K, seed=2)

    def both_sorted() -> float:
        for x in (p, q):
            np.sort(x, axis=0)
        return np.nan

    ours = estimate(p, y, q, weights=mild_weights(y, K), check=False)
    return {"ours": ours, "sort": both_sorted}


def estimate(p: np.ndarray, y: np.ndarray, q: np.ndarray, **options: Any):  # type: ignore[no-untyped-def]
    """With its interval, and without the source's own error, which nobody asks for."""
    return lambda: ends(calshift.target_calibration_error(p, y, q, **options))


def ends(found: calshift.CalibrationErrorResult) -> float:
    found.confidence_interval()
    return found.root


def labelled(n: int, K: int, kind: str = "classwise") -> Runs:
    p, y = predictions(n, K, seed=1)
    return {"ours": lambda: ends(calshift.calibration_error(p, y, kind=kind))}


def priors(n: int, K: int) -> Runs:
    """The answer is the first class's target share."""
    p, y = predictions(n, K, seed=1)
    q, _ = predictions(n, K, seed=2)
    find = calshift.label_shift_weights
    return {"ours": lambda: float(find(p, y, q, method="em").prior_target[0])}


def binary(n: int, K: int) -> Runs:
    p, y = scores(n, seed=1)
    q, _ = scores(n, seed=2)
    return {"ours": estimate(p, y, q, weights=mild_weights(y, K), check=False)}


def binary_default(n: int, K: int) -> Runs:
    p, y = scores(n, seed=1)
    q, _ = scores(n, seed=2)
    return {"ours": estimate(p, y, q)}


CASES = {
    "label-free": label_free,
    "classwise": classwise,
    "labelled": labelled,
    "top-label": lambda n, K: labelled(n, K, "top-label"),
    "priors": priors,
    "binary": binary,
    "binary-default": binary_default,
}

if __name__ == "__main__":
    answer(CASES)
