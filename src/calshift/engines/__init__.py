"""Engines offer one verb, total(kernel): the sum of an addable kernel over batches of rows."""

from calshift.engines.arrays import Arrays
from calshift.engines.sums import Sums, Tally

__all__ = ["Arrays", "Sums", "Tally"]
