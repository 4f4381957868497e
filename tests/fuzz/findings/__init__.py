"""Inputs that failed once."""
