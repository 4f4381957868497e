"""Batches read ahead by a thread: the same ones, at most one ahead, and nothing left behind."""

from __future__ import annotations

import threading
import time

import numpy as np
import pyarrow as pa
import pytest

import calshift
from calshift.io.read_ahead import read_ahead
from tests.engines.samples import P_SOURCE, P_TARGET, Y_SOURCE, folder_of


def threads() -> list[str]:
    return [one.name for one in threading.enumerate() if "calshift-read" in one.name]


def numbers(made: list[int], count: int = 5):
    try:
        for k in range(count):
            made.append(k)
            yield k
    finally:
        made.append(-1)


def test_the_items_are_the_same_in_their_order():
    assert list(read_ahead(numbers([], 100))) == list(range(100))
    assert list(read_ahead(numbers([], 0))) == []
    assert threads() == []


def test_one_is_read_ahead_and_no_more():
    made: list[int] = []
    for k in read_ahead(numbers(made)):
        deadline = time.monotonic() + 5
        while k < 4 and len(made) < k + 2 and time.monotonic() < deadline:
            time.sleep(0.001)
        time.sleep(0.005)
        assert made[: k + 2] == ([*range(k + 2)] if k < 4 else [*range(5), -1])
        assert len(made) <= k + 2


def test_an_error_is_raised_where_the_item_would_have_come():
    def broken():
        yield 1
        yield 2
        msg = "damaged"
        raise ValueError(msg)

    items = read_ahead(broken())
    assert [next(items), next(items)] == [1, 2]
    with pytest.raises(ValueError, match="damaged"):
        next(items)
    assert threads() == []


@pytest.mark.parametrize("problem", [KeyboardInterrupt, MemoryError])
def test_a_caller_that_stops_ends_the_thread(problem):
    made: list[int] = []
    items = read_ahead(numbers(made))
    next(items)
    with pytest.raises(problem):
        items.throw(problem())
    assert threads() == []
    assert made[-1] == -1


@pytest.fixture
def folder(tmp_path):
    return folder_of(tmp_path / "rows", P_TARGET)


@pytest.mark.parametrize("jobs", [1, 2])
@pytest.mark.parametrize("problem", [KeyboardInterrupt, ZeroDivisionError])
def test_a_sum_that_fails_leaves_no_thread(folder, jobs, problem):
    seen = []

    def kernel(batch):
        seen.append(len(batch))
        if len(seen) == 2:
            raise problem
        return batch.p.sum()

    with pytest.raises(problem):
        calshift.scan(folder, jobs=jobs).total(kernel)
    assert threads() == []


def test_a_damaged_file_is_named_after_the_files_before_it(tmp_path):
    folder = folder_of(tmp_path / "rows", P_TARGET)
    path = tmp_path / "rows" / "part-2.parquet"
    path.write_bytes(path.read_bytes()[:-200] + bytes(100) + path.read_bytes()[-100:])
    seen = []
    with pytest.raises(calshift.InvalidInput, match=r"part-2\.parquet"):
        calshift.scan(folder).total(lambda batch: seen.append(len(batch)) or 0)
    assert threads() == []


def test_what_users_pass_is_called_in_their_own_thread(tmp_path):
    names = set()

    def batches():
        names.add(threading.current_thread().name)
        yield P_TARGET

    calshift.scan(batches).total(len)
    assert names == {threading.main_thread().name}


def test_labels_of_the_target_are_left_unread(tmp_path, monkeypatch):
    """Wrong ones do no harm, and the columns of probabilities alone are decoded."""
    source = folder_of(tmp_path / "source", P_SOURCE, Y_SOURCE)
    target = folder_of(tmp_path / "target", P_SOURCE[:1300], Y_SOURCE[:1300])
    read = []
    form = calshift.io.formats.arrow.Parquet
    real = form.batches

    def noted(self, numbers, others, *place):
        if self.path.parent.name == "target":
            read.append([*numbers, *others])
        return real(self, numbers, others, *place)

    scanned = calshift.scan(target)
    monkeypatch.setattr(form, "batches", noted)
    calshift.label_shift_weights(calshift.scan(source), None, scanned, method="bbse")
    assert read
    assert not any("label" in names for names in read)
    count = len(read)
    calshift.label_shift_weights(calshift.scan(source), None, scanned, method="bbse")
    assert len(read) < 2 * count  # the sums of the first pass are shared


@pytest.mark.parametrize("new", [pa.ipc.new_file, pa.ipc.new_stream])
def test_other_columns_of_an_arrow_file_are_not_decoded(tmp_path, new):
    columns = {"note": ["x" * 100] * 500, "p_b": np.linspace(0, 1, 500), "id": range(500)}
    table = pa.table(columns | {"p_a": 1 - np.linspace(0, 1, 500)})
    with new(str(tmp_path / "rows.arrow"), table.schema) as writer:
        writer.write_table(table)
    scanned = calshift.scan(tmp_path / "rows.arrow")
    (file,) = scanned.reader.parts.files
    with file.form._open(["p_a", "p_b"]) as reader:
        batch = next(iter(reader)) if new is pa.ipc.new_stream else reader.get_batch(0)
    assert batch.schema.names == ["p_b", "p_a"]
    assert scanned.reader.classes == ("b", "a")
    assert np.array_equal(next(scanned.reader.batches(0)).p[:, 0], columns["p_b"])
