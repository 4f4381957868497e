"""Lower confidence bounds of calibration errors, from what a recalibrator gains."""
