"""Several summands in one pass: the values of each, on every engine, and in a checkpoint."""

from __future__ import annotations

import pickle
from functools import partial

import numpy as np
import pytest

import calshift
from calshift._core.predictions import Predictions
from calshift.engines import Arrays, Blocks
from calshift.engines.base import Summands, kernel_name
from calshift.engines.run import Run
from calshift.engines.sample_summary import summary_terms

P = np.random.default_rng(1).dirichlet(np.ones(3), 1000)


def columns(batch: Predictions) -> np.ndarray:
    return batch.p.sum(axis=0)


def powers(exponent: int, batch: Predictions) -> float:
    return float((batch.p**exponent).sum())


BOTH = Summands(columns, partial(powers, 2))


def engines() -> list:
    batches = [P[:300], P[300:301], P[301:]]
    rows = Predictions(P)
    scanned = calshift.scan(batches), calshift.scan(batches, jobs=2)
    return [Arrays(rows), Arrays(rows, rows=64), Arrays(rows, jobs=2), Blocks(Arrays(rows)),
            *scanned, scanned[0].mapped(lambda batch: batch.p)]  # fmt: skip


@pytest.mark.parametrize("engine", engines(), ids=lambda engine: type(engine).__name__)
def test_the_values_are_those_of_passes_of_their_own(engine):
    first, second = engine.total(BOTH).values()
    assert np.array_equal(first, engine.total(columns))
    assert second == engine.total(partial(powers, 2))


def test_the_rows_are_read_once():
    read = []

    def batches():
        read.append(1)
        return [P[:500], P[500:]]

    calshift.scan(batches).total(BOTH)
    assert len(read) == 1


def test_the_name_of_the_pass_has_all_of_them():
    assert kernel_name(Summands(summary_terms, columns)) == "summary_terms + columns"
    assert kernel_name(partial(powers, BOTH)) == "powers(columns + powers())"


def test_the_sums_are_kept_in_a_checkpoint(tmp_path):
    path, read = tmp_path / "run.npz", []

    def batches():
        read.append(1)
        return [P[:500], P[500:]]

    def run(interrupt: bool) -> list:
        with Run(path) as of:
            (sample,) = of.open(calshift.scan(batches))
            values = list(sample.total(BOTH).values())
            if interrupt:
                raise KeyboardInterrupt
            return values

    with pytest.raises(KeyboardInterrupt):
        run(interrupt=True)
    first, second = run(interrupt=False)
    assert len(read) == 1
    assert np.array_equal(first, BOTH(Predictions(P[:500]))[0] + columns(Predictions(P[500:])))
    assert isinstance(second, float)


def test_they_travel():
    again = pickle.loads(pickle.dumps(BOTH))
    assert again(Predictions(P))[1] == BOTH(Predictions(P))[1]
