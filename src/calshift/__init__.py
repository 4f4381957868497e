"""Calibration of classifiers under label shift, without target labels.

Estimate the calibration error after the class priors changed, with a confidence interval, test the
assumption of label shift, and recalibrate the probabilities. Start with `target_calibration_error`,
`label_shift_weights`, `check_label_shift` and `recalibrate`.
"""

# ruff: noqa: E402 - the first import prepares the command line for those that follow
from calshift.cli.process_start import prepare_command

prepare_command()

from calshift import data, simulate
from calshift._core.convert import softmax
from calshift._core.predictions import Predictions
from calshift.api import (
    accumulate,
    bin_edges,
    calibration_error,
    check_label_shift,
    compare,
    label_shift_weights,
    labelled_metrics,
    reliability_curve,
    target_calibration_error,
    target_calibration_error_from,
    target_metrics,
    variance_algorithm1,
    weights_from_labels,
)
from calshift.binning.edges import BinEdges
from calshift.binning.statistics import ShiftStatistics
from calshift.bounds.canonical_error import canonical_error_bound
from calshift.decisions import decision_curve, decision_threshold
from calshift.engines.open import scan
from calshift.engines.spark.tables import scan_spark
from calshift.errors import InvalidInput, UnreliableWeights
from calshift.monitoring import monitor
from calshift.plotting import plot_reliability, plot_weights
from calshift.recalibration import (
    BiasCorrectedTemperatureScaling,
    Chain,
    EnsembleTemperatureScaling,
    IsotonicScaling,
    LabelFreeTemperatureScaling,
    PriorCorrection,
    ShiftScaling,
    TemperatureScaling,
    VectorScaling,
)
from calshift.recalibration.base import Recalibrator
from calshift.recalibration.recalibrate import recalibrate
from calshift.report import write_report
from calshift.results import (
    AlgorithmVariance,
    CalibrationErrorResult,
    CanonicalErrorBound,
    ClassWeights,
    DecisionCurve,
    DecisionThreshold,
    Difference,
    LabelShiftCheck,
    MetricDifference,
    MetricEstimate,
    MetricsComparison,
    MetricsResult,
    MonitoringResult,
    RecalibrationResult,
    ReliabilityCurve,
)
from calshift.simulate import resample_label_shift

__version__ = "0.1.0"

__all__ = [
    "AlgorithmVariance", "BiasCorrectedTemperatureScaling", "BinEdges", "CalibrationErrorResult",
    "CanonicalErrorBound", "Chain", "ClassWeights", "DecisionCurve", "DecisionThreshold",
    "Difference", "EnsembleTemperatureScaling", "InvalidInput", "IsotonicScaling",
    "LabelFreeTemperatureScaling", "LabelShiftCheck", "MetricDifference", "MetricEstimate",
    "MetricsComparison", "MetricsResult", "MonitoringResult", "Predictions", "PriorCorrection",
    "RecalibrationResult", "Recalibrator", "ReliabilityCurve", "ShiftScaling", "ShiftStatistics",
    "TemperatureScaling", "UnreliableWeights", "VectorScaling", "__version__", "accumulate",
    "bin_edges", "calibration_error", "canonical_error_bound", "check_label_shift", "compare",
    "data", "decision_curve", "decision_threshold", "label_shift_weights", "labelled_metrics",
    "monitor",
    "plot_reliability", "plot_weights", "recalibrate", "reliability_curve",
    "resample_label_shift", "scan", "scan_spark", "simulate", "softmax",
    "target_calibration_error", "target_calibration_error_from", "target_metrics",
    "variance_algorithm1", "weights_from_labels", "write_report",
]  # fmt: skip


def __dir__() -> list[str]:
    """The public names; submodules are left out."""
    return sorted({*__all__, *(name for name in globals() if name.startswith("__"))})
