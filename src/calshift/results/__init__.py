"""What calshift answers with: frozen values that print well."""

from calshift.results._lazy import Later, Samples
from calshift.results.algorithm1_variance import AlgorithmVariance
from calshift.results.calibration_error import CalibrationErrorResult
from calshift.results.class_weights import ClassWeights
from calshift.results.difference import Difference
from calshift.results.intervals import AbsoluteLaw, DrawsLaw, Law, RowMoves, SquareLaw
from calshift.results.label_shift_check import LabelShiftCheck
from calshift.results.monitoring import MonitoringResult, Skipped, Window
from calshift.results.recalibration import RecalibrationResult
from calshift.results.reliability_curve import ReliabilityCurve

__all__ = [
    "AbsoluteLaw",
    "AlgorithmVariance",
    "CalibrationErrorResult",
    "ClassWeights",
    "Difference",
    "DrawsLaw",
    "LabelShiftCheck",
    "Later",
    "Law",
    "MonitoringResult",
    "RecalibrationResult",
    "ReliabilityCurve",
    "RowMoves",
    "Samples",
    "Skipped",
    "SquareLaw",
    "Window",
]
