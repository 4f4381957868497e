"""Some rows of any sample, spread evenly, the same whatever the batches are."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

import calshift
from calshift._core.predictions import Predictions
from calshift.engines import Arrays, Blocks, even_rows
from calshift.engines import subsample as subsample_module
from calshift.engines.even_rows import EvenRows, level_for
from calshift.engines.run import Run
from calshift.engines.subsample import record, subsample
from calshift.weights import em_solver
from tests.engines.samples import cut
from tests.engines.test_kernels_travel import Elsewhere

MOST = 100
N = 5000
P = np.stack([np.arange(N) / N, 1 - np.arange(N) / N], axis=1)  # a row's number
Y = np.arange(N) % 2


@pytest.fixture(autouse=True)
def few(monkeypatch):
    monkeypatch.setattr(even_rows, "MOST_ROWS", MOST)


def numbers(rows: Predictions) -> np.ndarray:
    return np.rint(rows.p[:, 0] * N).astype(int)


@pytest.mark.parametrize("rows", [1, 7, 64, 999, N])
def test_batches_of_any_size_give_the_same_rows(rows):
    whole = numbers(subsample(Arrays(Predictions(P, Y))))
    scanned = calshift.scan(list(zip(cut(P, rows), cut(Y, rows), strict=True)))
    found = subsample(scanned)
    assert np.array_equal(numbers(found), whole)
    assert np.array_equal(found.labels, whole % 2)


def test_they_are_spread_evenly():
    found = numbers(subsample(Arrays(Predictions(P))))
    assert MOST // 2 - 5 <= len(found) <= MOST
    gaps = np.diff(np.concatenate([[0], found, [N]]))
    assert gaps.max() <= 3 * gaps[1:-1].mean()


@pytest.mark.parametrize("period", [2, 3, 8, 64, 100])
def test_a_period_of_the_rows_does_no_harm(period):
    found = numbers(subsample(Arrays(Predictions(P))))
    parts = np.bincount(found % period * min(period, 8) // period) / len(found)
    assert np.abs(parts * len(parts) - 1).max() < 0.25


def test_a_small_sample_is_itself():
    rows = Predictions(P[:MOST])
    assert subsample(Arrays(rows)) is rows
    assert np.array_equal(subsample(calshift.scan(cut(P[:MOST], 7))).p, rows.p)


def test_frequency_weights_stay_with_their_rows():
    weight = np.arange(N) % 3.0
    rows = Predictions(P, Y, sample_weight=weight)
    found = subsample(calshift.scan([rows.rows(0, 1234), rows.rows(1234, N)]))
    assert np.array_equal(found.sample_weight, numbers(found) % 3)


def test_few_rows_of_many_classes(monkeypatch):
    monkeypatch.setattr(even_rows, "MOST_CELLS", 60)
    assert 15 <= len(subsample(Arrays(Predictions(P)))) <= 30


def test_mapped_rows_and_blocks_have_the_same_numbers():
    scanned = calshift.scan(cut(P, 600))
    mapped = scanned.mapped(lambda batch: batch.p[:, ::-1])
    assert np.array_equal(subsample(mapped).p, subsample(scanned).p[:, ::-1])
    assert np.array_equal(subsample(Blocks(scanned)).p, subsample(scanned).p)


def test_the_first_pass_collects_them():
    read = []

    def batches():
        read.append(1)
        return cut(P, 600)

    scanned = calshift.scan(batches)
    assert scanned.summary.rows == N
    assert len(subsample(scanned)) <= MOST
    with Run(progress=lambda done, total: None) as run:
        (same,) = run.open(scanned)
        assert same.summary.rows == N
        assert len(subsample(same)) <= MOST
    assert len(read) == 1


def test_the_caller_may_use_its_arrays_again():
    buffer = np.empty((50, 2))

    def batches():
        for start in range(0, N, 50):
            buffer[:] = P[start : start + 50]
            yield buffer

    found = numbers(subsample(calshift.scan(batches)))
    assert np.array_equal(found, numbers(subsample(Arrays(Predictions(P)))))


def test_a_checkpoint_has_none_of_them(tmp_path):
    """Nor does their pass change the order of those that it has."""
    path, sums = tmp_path / "run.npz", []

    def run(interrupt: bool) -> Predictions:
        with Run(path) as of:
            (sample,) = of.open(calshift.scan(cut(P, 600)))
            assert sample.summary.rows == N
            rows = subsample(sample)
            sums.append(sample.total(lambda batch: batch.p.sum()))
            if interrupt:
                raise KeyboardInterrupt
            return rows

    with pytest.raises(KeyboardInterrupt):
        run(interrupt=True)
    with np.load(path) as arrays:
        assert max(array.size for array in arrays.values()) <= 2
    assert np.array_equal(run(interrupt=False).p, subsample(Arrays(Predictions(P))).p)
    assert sums[0] == sums[1]


@pytest.mark.parametrize("parts", [1, 3, 40, 2500])
def test_sums_of_partitions_are_bounded_and_even(parts):
    level = level_for(N, 2)
    found = EvenRows()
    for part in np.array_split(P, parts):
        found = found + pickle.loads(pickle.dumps(EvenRows.of(Predictions(part), level)))
    assert MOST // 4 <= len(found) <= MOST
    assert abs(numbers(found.rows).mean() / N - 0.5) < 0.1


def test_another_engine_sums_them_up():
    pytest.importorskip("pyspark", reason="pyspark is not installed")
    assert 1 < len(subsample(Elsewhere(P))) <= MOST


@pytest.mark.parametrize(("rows", "level"), [(1, 0), (100, 0), (101, 1), (200, 1), (201, 2)])
def test_the_level_is_the_least_that_suffices(rows, level):
    assert level_for(rows, 2) == level


@pytest.mark.parametrize("method", ["em", "em-bcts", "auto"])
def test_where_a_search_starts_does_not_change_its_result(method, monkeypatch):
    """The likelihood of a mixture has one maximum, found to 1e-10 wherever the search starts."""
    simulation = calshift.simulate.GaussianSimulation(n_classes=4, seed=1)
    (p, y), (q, _) = simulation.source(1500, rng=1), simulation.target(3000, rng=2)
    started = []
    real = em_solver.start_rows
    monkeypatch.setattr(
        em_solver, "start_rows", lambda engine: started.append(real(engine)) or started[-1]
    )
    expected = calshift.label_shift_weights(p, y, q, method=method)
    assert started == [None] * len(started)
    started.clear()
    monkeypatch.setattr(subsample_module, "KEPT_CELLS", 0)
    found = calshift.label_shift_weights(p, y, q, method=method)
    sizes = [len(rows) for rows in started if rows is not None]
    assert sizes
    assert max(sizes) <= MOST
    np.testing.assert_allclose(found.values, expected.values, rtol=1e-8)
    np.testing.assert_allclose(found.standard_error, expected.standard_error, rtol=1e-7)


def test_what_was_computed_of_a_subsample_is_in_the_checkpoint(tmp_path):
    batches = calshift.scan(cut(P, 500))
    path, made = tmp_path / "run.npz", []

    def compute() -> list[np.ndarray]:
        made.append(1)
        return [np.arange(3.0)]

    def run(stop: bool) -> list[np.ndarray]:
        with Run(path) as of:
            (sample,) = of.open(batches)
            first = sample.total(lambda batch: batch.size)
            found = record(Blocks(sample), "start", compute)
            if stop:
                raise KeyboardInterrupt
            assert first == N
            return found

    with pytest.raises(KeyboardInterrupt):
        run(stop=True)
    np.testing.assert_array_equal(run(stop=False)[0], np.arange(3.0))
    assert made == [1]
    assert record(Arrays(Predictions(P)), "start", compute)[0].size == 3
    assert made == [1, 1]
