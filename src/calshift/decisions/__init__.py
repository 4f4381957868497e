"""Decisions under the class distribution of the target: thresholds, rules, decision curves."""

from calshift.decisions.curve import decision_curve
from calshift.decisions.threshold import decision_threshold

__all__ = ["decision_curve", "decision_threshold"]
