"""Metrics of a class by its scores: ROC curves, precision, lines of calibration."""
