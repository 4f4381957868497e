"""Batches that users hand over: lists, functions, generators; what is wrong names the batch."""

from __future__ import annotations

import gc
import time

import numpy as np
import pandas as pd
import pytest

import calshift
from calshift import InvalidInput, Predictions
from calshift._core.addable import Tally
from tests.engines.samples import P_SOURCE, P_TARGET, Y_SOURCE, cut, rows_of, source_batches


class Again:
    """Something that can be read again and counts how often it was."""

    def __init__(self, batches):
        self.batches, self.count = batches, 0

    def __iter__(self):
        self.count += 1
        return iter(self.batches)


def complaint(data, **asked) -> str:
    with pytest.raises(InvalidInput) as raised:
        _ = calshift.scan(data, **asked).summary
    assert "\n" not in str(raised.value)
    return str(raised.value)


WAYS = {
    "list": lambda batches: batches,
    "tuple": tuple,
    "function": lambda batches: lambda: iter(batches),
    "again": Again,
    "generator": iter,
}


@pytest.mark.parametrize("way", WAYS)
def test_every_way_gives_the_rows(way):
    p, y = rows_of(calshift.scan(WAYS[way](source_batches())))
    np.testing.assert_array_equal(p, P_SOURCE)
    np.testing.assert_array_equal(y, Y_SOURCE)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("skip", [0, 1, 2, 4, 9])
def test_batches_are_skipped(way, skip):
    reader = calshift.scan(WAYS[way](source_batches()), batch_rows=300).reader
    whole = list(reader.batches(0))
    assert max(map(len, whole)) <= 300 or way == "generator"
    assert sum(map(len, whole)) == 1500
    for one, other in zip(whole[skip:], reader.batches(skip), strict=True):
        np.testing.assert_array_equal(one.p, other.p)


@pytest.mark.parametrize(
    "kind",
    [
        lambda p, y: (p, y),
        lambda p, y: (p, y, np.ones(len(p))),
        lambda p, y: Predictions(p, y),
        lambda p, y: [p, y],  # as torch's loaders make them
        lambda p, y: (p.tolist(), y.tolist()),
        lambda p, y: (p.astype(np.float32), y.astype(float)),
    ],
)
def test_a_batch_may_be_of_many_kinds(kind):
    engine = calshift.scan([kind(p, y) for p, y in source_batches()])
    p, y = rows_of(engine)
    np.testing.assert_allclose(p, P_SOURCE, rtol=1e-6)
    np.testing.assert_array_equal(y, Y_SOURCE)


def test_weights_of_rows_are_kept_and_rows_of_none_left_out():
    weight = np.arange(len(P_SOURCE)) % 4
    parts = zip(cut(P_SOURCE), cut(Y_SOURCE), cut(weight), strict=True)
    nothing = (P_SOURCE[:5], Y_SOURCE[:5], np.zeros(5))
    facts = calshift.scan([nothing, *parts]).summary
    assert facts.size == weight.sum()
    assert facts.rows == np.count_nonzero(weight)


def test_a_generator_is_kept_in_files_that_go_with_it():
    engine = calshift.scan(batch for batch in source_batches(7))
    folder = engine.reader.folder
    assert {path.suffix for path in folder.iterdir()} == {".pickle"}
    assert len(list(folder.iterdir())) == 1  # small batches are joined
    assert engine.summary.rows == 1500
    del engine
    gc.collect()
    assert not folder.exists()


def test_nothing_is_left_of_a_generator_that_fails(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))

    def failing():
        yield from source_batches()
        msg = "the network is gone"
        raise OSError(msg)

    with pytest.raises(OSError, match="network"):
        calshift.scan(failing())
    assert list(tmp_path.iterdir()) == []


def test_weights_survive_the_files_of_a_generator():
    batches = [(P_SOURCE[:400], Y_SOURCE[:400]), (P_SOURCE[400:], Y_SOURCE[400:], np.full(1100, 3))]
    assert calshift.scan(iter(batches)).summary.size == 400 + 3300


def test_empty_batches_are_no_rows():
    empty = (np.zeros((0, 3)), np.zeros(0, int))
    engine = calshift.scan([empty, *source_batches(), empty])
    assert engine.summary.rows == 1500
    assert "at least one row" in complaint([empty])
    assert "at least one row" in complaint([])


def test_names_of_classes_come_with_frames_or_are_given():
    names = ["ant", "bee", "cow"]
    frames = [pd.DataFrame(p, columns=names) for p in cut(P_TARGET)]
    assert calshift.scan(frames).summary.classes == tuple(names)
    assert calshift.scan(iter(frames)).summary.classes == tuple(names)
    texts = [(p, np.array(names)[y]) for p, y in source_batches()]
    np.testing.assert_array_equal(rows_of(calshift.scan(texts, classes=names))[1], Y_SOURCE)
    turned = [frames[0], frames[1][names[::-1]]]
    assert "batch 1: batch 0 and it must name the same classes" in complaint(turned)


def test_logits_and_labels_as_asked():
    logits = [(np.log(p), y) for p, y in source_batches()]
    p, y = rows_of(calshift.scan(logits, logits=True, labelled=False))
    np.testing.assert_allclose(p, P_SOURCE)
    assert y is None
    assert "batch 0: it must be (p, y)" in complaint(cut(P_SOURCE), labelled=True)


@pytest.mark.parametrize("way", ["list", "function", "generator"])
@pytest.mark.parametrize(
    ("bad", "message"),
    [
        ((np.full((5, 4), 0.25), [0] * 5), "batch 2: it must be like batch 0, which has 3 classes"),
        ((np.full(5, 0.25), [0] * 5), "batch 2: it must be like batch 0, which has 2 dimensions"),
        (P_SOURCE[:5], "batch 2: it must be like batch 0, which has its labels; it has no"),
        ((P_SOURCE[:5], [0, 1, 2, 3, 0]), "batch 2: y must be labels 0..2; row 3 is 3"),
        ((P_SOURCE[:5] * 100, [0] * 5), "divide by 100"),
        ((P_SOURCE[:5], [0] * 4), "batch 2: y must have one label a row"),
        ((P_SOURCE[:5], [0] * 5, 1, 2), "batch 2: it must be p, (p, y) or"),
        (([[0.5], [0.5, 0.5]], [0, 1]), "batch 2: p must be a rectangular array"),
        ([0.1, 0.9], "batch 2: a list of numbers may be a row or a batch"),
    ],
)
def test_what_is_wrong_with_a_batch_names_it(way, bad, message):
    batches = source_batches()
    batches.insert(2, bad)
    found = complaint(WAYS[way](batches))
    assert message in found
    assert found.startswith("batch 2: ")


@pytest.mark.parametrize(
    "data", [P_TARGET, pd.DataFrame(P_TARGET), Predictions(P_TARGET), {"p": P_TARGET}, 3, None]
)
def test_arrays_and_frames_need_no_scan(data):
    assert "data must be paths, batches, or a function" in complaint(data)


def test_nested_lists_are_not_taken_for_batches_of_scores():
    assert "pass an array" in complaint(P_TARGET.tolist())


def test_what_files_have_is_not_asked_of_batches():
    assert "label and columns are for files" in complaint(source_batches(), label="y")
    assert "label and columns are for files" in complaint(source_batches(), columns="p_*")
    assert "must return an iterator" in complaint(lambda: 3)


def test_batches_that_change_between_two_passes_are_an_error():
    batches = source_batches()
    engine = calshift.scan(batches)
    assert engine.summary.rows == 1500
    del batches[1]
    with pytest.raises(InvalidInput, match=r"1,500 rows in the first pass and 1,100 in a later"):
        engine.total(len)


def test_a_function_whose_batches_come_once_is_an_error():
    once = iter(source_batches())
    engine = calshift.scan(lambda: once)
    with pytest.raises(InvalidInput, match="0 in a later one"):
        calshift.check_label_shift(engine, None, P_TARGET)


def test_the_first_pass_is_made_once_for_all_questions():
    source = Again(source_batches())
    engine = calshift.scan(source)
    passes = []
    for _ in range(2):
        before = source.count
        calshift.check_label_shift(engine, None, P_TARGET)
        passes.append(source.count - before)
    assert passes[1] == passes[0] - 1


@pytest.mark.parametrize("jobs", [1, 3])
def test_threads_add_up_in_the_order_of_the_batches(jobs):
    def kernel(batch):
        time.sleep(0.02 * (batch.p[0, 0] < 0.5))  # some take longer
        return Tally(seen=[float(batch.p[0, 0])])

    engine = calshift.scan(source_batches(50), jobs=jobs)
    assert engine.total(kernel)["seen"] == P_SOURCE[::50, 0].tolist()


@pytest.mark.parametrize(
    ("batch", "message"),
    [
        ((P_SOURCE[:9] * 5, Y_SOURCE[:9], np.zeros(9)), "must be probabilities"),
        ((P_SOURCE[:9], Y_SOURCE[:9], np.zeros(8)), "sample_weight"),
    ],
)
def test_rows_that_do_not_count_are_checked_too(batch, message):
    with pytest.raises(InvalidInput, match=message):
        _ = calshift.scan([batch, (P_SOURCE, Y_SOURCE)]).summary
