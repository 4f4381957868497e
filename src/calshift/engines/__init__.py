"""Engines offer one verb, total(kernel): the sum of an addable kernel over batches of rows."""

from calshift.engines.arrays import Arrays
from calshift.engines.batches import Batches
from calshift.engines.blocks import Blocks
from calshift.engines.spark.engine import Spark

__all__ = ["Arrays", "Batches", "Blocks", "Spark"]
