"""What calshift answers with: frozen values that print well."""

from calshift.results.calibration import CalibrationErrorResult
from calshift.results.class_weights import ClassWeights
from calshift.results.curve import ReliabilityCurve
from calshift.results.label_shift import LabelShiftCheck

__all__ = ["CalibrationErrorResult", "ClassWeights", "LabelShiftCheck", "ReliabilityCurve"]
