"""Engines: the sum of an addable kernel over the rows of a sample, wherever they are."""

from calshift.engines.arrays import Arrays, Blocks
from calshift.engines.batches import Batches
from calshift.engines.spark.engine import Spark

__all__ = ["Arrays", "Batches", "Blocks", "Spark"]
