"""Result objects: frozen values with intervals, tables and dicts."""

from calshift.results.algorithm1_variance import AlgorithmVariance
from calshift.results.calibration_error import CalibrationErrorResult
from calshift.results.class_weights import ClassWeights
from calshift.results.difference import Difference
from calshift.results.intervals import (
    AbsoluteErrorDistribution,
    BootstrapDistribution,
    RowInfluence,
    SamplingDistribution,
    SquaredErrorDistribution,
    wilson_interval,
)
from calshift.results.label_shift_check import LabelShiftCheck
from calshift.results.monitoring import MonitoringResult, Skipped, Window
from calshift.results.recalibration import RecalibrationResult
from calshift.results.reliability_curve import ReliabilityCurve

__all__ = [
    "AbsoluteErrorDistribution", "AlgorithmVariance", "BootstrapDistribution",
    "CalibrationErrorResult", "ClassWeights", "Difference", "LabelShiftCheck",
    "MonitoringResult", "RecalibrationResult", "ReliabilityCurve", "RowInfluence",
    "SamplingDistribution", "Skipped", "SquaredErrorDistribution", "Window", "wilson_interval",
]  # fmt: skip
