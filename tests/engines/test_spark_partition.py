"""What workers of a cluster do with a partition, without a cluster."""

from __future__ import annotations

import pickle
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pytest

from calshift._core.addable import Tally
from calshift._core.predictions import Predictions
from calshift.engines.sample_summary import summary_terms
from calshift.engines.spark.partition import (
    MergeGroups,
    PartitionSum,
    SumPartition,
    merge_batches,
    merge_sums,
    pack,
    unpack,
)
from calshift.engines.spark.rows import TableRows
from calshift.errors import InvalidInput
from calshift.io.columns import ResolvedColumns


@dataclass(frozen=True)
class Scores:
    """Reads one column of scores, or of lists."""

    table: str = "scores"
    classes: tuple[str, ...] | None = None
    mark: str = ""

    def __call__(self, columns, place, start) -> Predictions:
        p = np.array(columns["p"].to_pylist())
        if (p > 1).any():
            msg = f"row {start + int(np.argmax(p > 1))} is above 1"
            raise InvalidInput(msg)
        return Predictions(p)


def batch(*scores):
    return pa.RecordBatch.from_pydict({"p": pa.array(list(scores), pa.float64())})


def lists(*rows):
    return pa.RecordBatch.from_pydict({"p": pa.array([list(row) for row in rows])})


def parts_of(batches) -> list[PartitionSum]:
    return [PartitionSum(**row) for one in batches for row in one.to_pylist()]


def rows_counted(rows: Predictions) -> int:
    return len(rows)


def test_batches_are_gathered_and_empty_ones_left_out(monkeypatch):
    monkeypatch.setattr("calshift.engines.spark.partition.BATCH_BYTES", 24)
    found = [
        columns["p"].to_pylist()
        for columns in merge_batches([batch(), batch(0.1), batch(0.2, 0.3), batch(), batch(0.4)])
    ]
    assert found == [[0.1, 0.2, 0.3], [0.4]]
    assert list(merge_batches([batch(), batch()])) == []


def test_a_partition_is_summed_in_the_order_of_its_batches(monkeypatch):
    monkeypatch.setattr("calshift.engines.spark.partition.BATCH_BYTES", 8)
    total, rows, classes = SumPartition(summary_terms, Scores()).sum(
        [batch(0.1), batch(0.2, 0.3)], 0
    )
    assert (rows, classes, total["rows"]) == (3, 2, 3)
    assert total["predicted"][1] == 0.1 + (0.2 + 0.3)


def test_an_empty_partition_adds_nothing():
    assert SumPartition(summary_terms, Scores()).sum([batch()], 0) == (0, 0, 0)
    empty, full = PartitionSum(0, 0, 0, pack(0)), PartitionSum(1, 2, 2, pack(Tally(rows=2)))
    assert merge_sums([empty, full], "t") == (Tally(rows=2), 2, 2)
    assert merge_sums([empty], "t") == merge_sums([], "t") == (0, 0, 0)


def test_a_complaint_names_the_partition_and_its_row(monkeypatch):
    monkeypatch.setattr("calshift.engines.spark.partition.BATCH_BYTES", 8)
    with pytest.raises(InvalidInput, match=r"^scores, partition 7: row 2 is above 1$"):
        SumPartition(rows_counted, Scores()).sum([batch(0.1, 0.2), batch(3.0)], 7)


def test_rows_of_different_widths_do_not_add_up(monkeypatch):
    monkeypatch.setattr("calshift.engines.spark.partition.BATCH_BYTES", 8)
    two, three = lists([0.5, 0.5]), lists([0.5, 0.25, 0.25])
    with pytest.raises(InvalidInput, match="some rows have 2, others 3"):
        SumPartition(rows_counted, Scores()).sum([two, three], 0)
    with pytest.raises(InvalidInput, match="some rows have 2, others 3"):
        merge_sums([PartitionSum(0, 1, 2, pack(1)), PartitionSum(1, 1, 3, pack(1))], "t")


def test_parts_are_added_in_their_order_and_the_first_problem_is_told():
    numbers = [PartitionSum(k, 1, 2, pack(10.0**-k)) for k in (9, 1, 17, 3)]
    total, rows, _ = merge_sums(numbers, "t")
    assert (total, rows) == (10.0**-1 + 10.0**-3 + 10.0**-9 + 10.0**-17, 4)
    wrong = [PartitionSum(5, 0, 0, None, "fifth"), PartitionSum(3, 0, 0, None, "third")]
    with pytest.raises(InvalidInput, match=r"^third$"):
        merge_sums([*numbers, *wrong], "t")


def test_groups_of_parts_become_parts():
    table = pa.Table.from_pylist(
        [PartitionSum(k, k, 2, pack(k))._asdict() for k in (5, 0, 3, 4, 1)]
        + [PartitionSum(9, 0, 0, None, "bad row")._asdict()]
    )
    found = parts_of(MergeGroups(3, "t")(table.to_batches(max_chunksize=2)))
    totals = [None if part.total is None else unpack(part.total) for part in found]
    assert [(part.part, part.rows, part.problem) for part in found] == [
        (0, 1, None),
        (1, 12, None),
        (3, 0, "bad row"),
    ]
    assert totals == [1, 12, None]


def test_what_travels_is_small_and_comes_back_the_same():
    sums = Tally(count=np.zeros((100, 1000)), rows=3)
    assert len(pack(sums)) < len(pickle.dumps(sums)) / 100
    assert np.array_equal(unpack(pack(sums))["count"], sums["count"])
    pickle.loads(pickle.dumps(SumPartition(summary_terms, Scores())))


def weighted(*weights):
    n = len(weights)
    return pa.RecordBatch.from_pydict({"p": pa.array([0.5] * n), "n": pa.array(list(weights))})


def test_rows_of_weight_0_are_left_out_and_counted_in_messages(monkeypatch):
    monkeypatch.setattr("calshift.engines.spark.partition.BATCH_BYTES", 1)  # a call for each batch
    reading = TableRows("t", ResolvedColumns(("p",), weight="n"), None, False)
    summed = SumPartition(rows_counted, reading)
    batches = [weighted(0.0, 2.0), weighted(0.0), weighted(0.0, 1.0, 3.0)]
    assert summed.sum(batches, 0) == (3, 3, 2)
    assert summed.sum([weighted(0.0)], 0) == (0, 0, 0)
    with pytest.raises(InvalidInput, match=r"t, partition 0, column 'n' must .* row 4 is -1"):
        summed.sum([*batches[:2], weighted(0.0, -1.0)], 0)
