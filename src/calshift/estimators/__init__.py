"""From sums or rows, and a vector of class weights, to the error of each event."""

from calshift.estimators.binned import (
    Points,
    RegressionNoise,
    errors,
    from_statistics,
    reliability,
    unfold_errors,
)
from calshift.estimators.kernel import Sample, kernel_error
from calshift.estimators.paper import (
    labelled_error,
    labelled_ratio,
    shifted_error,
    shifted_ratio,
    shifted_square,
)

__all__ = [
    "Points",
    "RegressionNoise",
    "Sample",
    "errors",
    "from_statistics",
    "kernel_error",
    "labelled_error",
    "labelled_ratio",
    "reliability",
    "shifted_error",
    "shifted_ratio",
    "shifted_square",
    "unfold_errors",
]
