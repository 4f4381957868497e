"""Result objects: frozen values with intervals, tables and dicts."""

from calshift.results.algorithm1_variance import AlgorithmVariance
from calshift.results.calibration_error import CalibrationErrorResult
from calshift.results.canonical_error_bound import CanonicalErrorBound
from calshift.results.class_weights import ClassWeights, wilson_interval
from calshift.results.decisions import DecisionCurve, DecisionThreshold
from calshift.results.diagnostic import Diagnostic
from calshift.results.difference import (
    Difference,
    MetricDifference,
    MetricsComparison,
    RowInfluence,
)
from calshift.results.drift import DriftSensitivity
from calshift.results.intervals import SamplingDistribution
from calshift.results.intervals.absolute_l1 import AbsoluteErrorDistribution
from calshift.results.intervals.bootstrap import BootstrapDistribution
from calshift.results.intervals.estimated_weights import EstimatedWeightsDistribution
from calshift.results.intervals.squared_l2 import SquaredErrorDistribution
from calshift.results.label_shift_check import LabelShiftCheck
from calshift.results.metrics import MetricEstimate, MetricInfluence, MetricsResult
from calshift.results.monitoring import MonitoringResult, Skipped, Window
from calshift.results.recalibration import RecalibrationResult
from calshift.results.reliability_curve import ReliabilityCurve

__all__ = [
    "AbsoluteErrorDistribution", "AlgorithmVariance", "BootstrapDistribution",
    "CalibrationErrorResult", "CanonicalErrorBound", "ClassWeights", "DecisionCurve",
    "DecisionThreshold", "Diagnostic", "Difference", "DriftSensitivity",
    "EstimatedWeightsDistribution", "LabelShiftCheck", "MetricDifference", "MetricEstimate",
    "MetricInfluence", "MetricsComparison", "MetricsResult", "MonitoringResult",
    "RecalibrationResult", "ReliabilityCurve", "RowInfluence", "SamplingDistribution", "Skipped",
    "SquaredErrorDistribution", "Window", "wilson_interval",
]  # fmt: skip
