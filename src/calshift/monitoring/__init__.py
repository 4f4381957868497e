"""Calibration errors over windows of time or of rows."""

from calshift.monitoring.series import monitor

__all__ = ["monitor"]
