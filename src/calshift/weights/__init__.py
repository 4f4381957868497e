"""Class weights, from wherever they come."""

from calshift.weights.given import given_weights, weights_from_counts

__all__ = ["given_weights", "weights_from_counts"]
