"""What calshift answers with: frozen values that print well."""

from calshift.results.calibration import CalibrationErrorResult
from calshift.results.class_weights import ClassWeights
from calshift.results.curve import ReliabilityCurve
from calshift.results.difference import Difference
from calshift.results.label_shift import LabelShiftCheck
from calshift.results.later import Later
from calshift.results.laws import AbsoluteLaw, DrawsLaw, Law, RowMoves, SquareLaw
from calshift.results.monitoring import MonitoringResult, Skipped, Window
from calshift.results.recalibration import RecalibrationResult
from calshift.results.samples import Samples
from calshift.results.variance import AlgorithmVariance

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
