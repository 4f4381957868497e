"""Rows of files in memory: those of the batches, without holding them twice."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

import calshift
from calshift._core.predictions import concatenate_rows
from calshift.io.whole import read_all
from tests.engines.samples import P_SOURCE, Y_SOURCE, folder_of


def same(one, other) -> bool:
    names = ("p", "y", "sample_weight")
    pairs = [(getattr(one, name), getattr(other, name)) for name in names]
    return one.classes == other.classes and all(
        (a is None and b is None) or (a.dtype == b.dtype and np.array_equal(a, b)) for a, b in pairs
    )


@pytest.mark.parametrize("ending", ["parquet", "csv"])
@pytest.mark.parametrize("rows", [None, 70])
def test_they_are_those_of_the_batches(tmp_path, ending, rows):
    folder = folder_of(tmp_path / "rows", P_SOURCE, Y_SOURCE, ending)
    reader = calshift.scan(folder, batch_rows=rows).reader
    assert same(read_all(reader), concatenate_rows(list(reader.batches(0))))


def files(folder, parts):
    folder.mkdir()
    for k, columns in enumerate(parts):
        pa.parquet.write_table(pa.table(columns), folder / f"{k}.parquet")
    return str(folder)


def test_weights_of_zero_are_left_out(tmp_path):
    p = np.linspace(0, 1, 90)
    parts = [{"p_yes": p[k::3], "n": (np.arange(30) * (k != 1)) % 4.0} for k in range(3)]
    folder = files(tmp_path / "rows", parts)
    reader = calshift.scan(folder, sample_weight="n", batch_rows=20).reader
    found = read_all(reader)
    assert same(found, concatenate_rows(list(reader.batches(0))))
    assert 0 < len(found) < 60


@pytest.mark.parametrize("kinds", [(np.float32, np.float64), (np.float64, np.float32)])
def test_one_file_in_double_precision_makes_all_double(tmp_path, kinds):
    folder = files(tmp_path / "rows", [{"p_yes": np.linspace(0, 1, 50, dtype=k)} for k in kinds])
    reader = calshift.scan(folder).reader
    found = read_all(reader)
    assert found.p.dtype == np.float64
    assert same(found, concatenate_rows(list(reader.batches(0))))


def test_they_are_in_memory_once(tmp_path):
    p = np.random.default_rng(1).dirichlet(np.ones(5), 40_000).astype(np.float32)
    folder = files(tmp_path / "rows", [{f"p_{k}": part[:, k] for k in range(5)}
                                       for part in np.array_split(p, 8)])  # fmt: skip
    reader = calshift.scan(folder).reader
    read_all(reader)  # imports
    tracemalloc.start()
    found = read_all(reader)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert np.array_equal(found.p, p)
    assert peak < 1.6 * p.nbytes
