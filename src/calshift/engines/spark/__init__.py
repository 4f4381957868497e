"""Rows of a Spark table."""
