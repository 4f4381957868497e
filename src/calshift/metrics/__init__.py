"""Metrics of a classifier under the class distribution of the target: docs/mathematics.md 13."""
