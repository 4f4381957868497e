"""The public functions: read the input, call the parts, return a result."""

from calshift.api.algorithm1 import variance_algorithm1
from calshift.api.calibration import (
    calibration_error,
    compare,
    target_calibration_error,
    target_calibration_error_from,
)
from calshift.api.curves import reliability_curve
from calshift.api.label_shift import check_label_shift, label_shift_weights, weights_from_labels
from calshift.api.metrics import labelled_metrics, target_metrics
from calshift.api.sums import accumulate, bin_edges

__all__ = [
    "accumulate", "bin_edges", "calibration_error", "check_label_shift", "compare",
    "label_shift_weights", "labelled_metrics", "reliability_curve", "target_calibration_error",
    "target_calibration_error_from", "target_metrics", "variance_algorithm1",
    "weights_from_labels",
]  # fmt: skip
