"""What calshift answers with: frozen values that print well."""

from calshift.results.calibration import CalibrationErrorResult
from calshift.results.class_weights import ClassWeights
from calshift.results.curve import ReliabilityCurve

__all__ = ["CalibrationErrorResult", "ClassWeights", "ReliabilityCurve"]
