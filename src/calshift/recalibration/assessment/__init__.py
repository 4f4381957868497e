"""Accuracy and log loss before and after recalibration, and what is applied if it does harm."""
