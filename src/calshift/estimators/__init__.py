"""From sums or rows, and a vector of class weights, to the error of each event."""

from calshift.estimators.binned import (
    Points,
    Second,
    errors,
    from_statistics,
    reliability,
    unfolded_gaps,
)
from calshift.estimators.kernel import Sample, smoothed_error
from calshift.estimators.paper import (
    labelled_error,
    labelled_ratio,
    shifted_error,
    shifted_ratio,
    shifted_square,
)

__all__ = [
    "Points",
    "Sample",
    "Second",
    "errors",
    "from_statistics",
    "labelled_error",
    "labelled_ratio",
    "reliability",
    "shifted_error",
    "shifted_ratio",
    "shifted_square",
    "smoothed_error",
    "unfolded_gaps",
]
