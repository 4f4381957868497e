"""A subsample in memory of any sample: where iterative solvers start, never what they return."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from calshift._core.predictions import Predictions
from calshift.engines.arrays import KEPT_CELLS, Blocks
from calshift.engines.base import Engine, MappedEngine, Summand
from calshift.engines.batches import Batches
from calshift.engines.even_rows import EvenRows, even_rows_of, level_for
from calshift.engines.plan import plan
from calshift.engines.spark.engine import Spark

MANY_ROWS, FEWEST_ROWS = 32_768, 4096  # from which a search starts with a part; its least size
PART = 16


def few_rows(engine: Engine) -> Predictions | None:
    """Rows with which a search over many rows starts, about a sixteenth; None if rows are few."""
    if engine.summary.rows < MANY_ROWS:
        return None
    rows, most = subsample(engine), max(FEWEST_ROWS, engine.summary.rows // PART)
    return rows.take(slice(None, None, -(-len(rows) // most)))


def start_rows(engine: Engine) -> Predictions | None:
    """The subsample, where a search over all rows needs fewer steps; None where these cost less.

    They do in memory while blocks keep what is derived from their rows, and for small Spark tables,
    which would need a pass for the subsample.
    """
    rows = engine.in_memory
    if rows is not None:
        many = len(rows) * rows.n_classes > KEPT_CELLS
        found = subsample(engine) if many else rows
        return found if len(found) < len(rows) else None
    if isinstance(_innermost(engine), Batches) or engine.summary.rows >= MANY_ROWS:
        return subsample(engine)
    return None


def record(engine: Engine, name: str, compute: Callable[[], list[np.ndarray]]) -> list[np.ndarray]:
    """What is computed from a subsample, kept in the checkpoint of batches as sums are.

    An interrupted run then need not read the subsample again.
    """
    inner = _innermost(engine)
    return inner.record(name, compute) if isinstance(inner, Batches) else compute()


def _innermost(engine: Engine) -> Engine:
    while isinstance(engine, Blocks | MappedEngine):
        engine = engine.inner
    return engine


def subsample(engine: Engine) -> Predictions:
    """About 2^15 rows, fewer of many classes, with labels and frequency weights; a small sample.

    They are spread evenly by their number, whatever the batches are. Batches collect them in the
    first pass; a Spark table needs a pass of its own unless it was planned.
    """
    if isinstance(engine, Blocks):
        return subsample(engine.inner)
    if isinstance(engine, MappedEngine):
        rows = subsample(engine.inner)
        return rows.with_probabilities(engine.function(rows))
    if engine.in_memory is not None:
        return even_rows_of(engine.in_memory)
    if isinstance(engine, Batches):
        return engine.even_rows.rows
    found: EvenRows = engine.total(_even_share(engine))
    return found.rows


def plan_subsample(engine: Engine) -> None:
    """Take the rows of `few_rows` along with the next pass over a Spark table."""
    if isinstance(engine, Spark) and engine.summary.rows >= MANY_ROWS:
        plan(engine, _even_share(engine))


def _even_share(engine: Engine) -> Summand:
    """Summand: the rows of a subsample."""
    level = level_for(engine.summary.rows, engine.summary.n_classes)
    return partial(EvenRows.of, level=level)
