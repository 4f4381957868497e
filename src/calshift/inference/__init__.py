"""Estimates, influence functions, intervals, and the results made from them."""
