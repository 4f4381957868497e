"""Classes in order and labels as codes, for tables of a cluster."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from calshift.engines.spark.rows import TableRows, in_order, may_be_names, spark_label_encoder
from calshift.errors import InvalidInput
from calshift.io.columns import ResolvedColumns


def codes(texts, classes=None):
    return spark_label_encoder(texts, classes, "t, column 'y'").codes


def test_classes_are_put_in_order():
    assert in_order(None, None, "t", False) == (None, None)
    assert in_order(("a", "b"), None, "t", False) == (("a", "b"), None)
    assert in_order(None, ["a", "b"], "t", False) == (("a", "b"), None)
    assert in_order(("a", "b"), ["a", "b"], "t", False) == (("a", "b"), None)
    assert in_order(("a", "b", "c"), ["c", "a", "b"], "t", False) == (("c", "a", "b"), (2, 0, 1))
    assert in_order(("1", "2"), [2, 1], "t", False) == ((2, 1), (1, 0))
    with pytest.raises(InvalidInput, match="must have the classes 'a', 'd'; it has 'a', 'b'"):
        in_order(("a", "b"), ["a", "d"], "t", False)


def test_one_column_of_scores_is_that_of_the_second_class():
    assert in_order(("not b", "b"), ["a", "b"], "t", True) == (("a", "b"), None)
    with pytest.raises(InvalidInput, match="must have the classes"):
        in_order(("not b", "b"), ["b", "not b"], "t", True)


def test_labels_are_names_or_numbers():
    assert codes(["bee", "ant"], ("ant", "bee")) == {"bee": 1, "ant": 0}
    assert codes(["1", "0"], ("ant", "bee")) == {"1": 1, "0": 0}
    assert codes(["2", "1"], ("1", "2", "3")) == {"2": 1, "1": 0}
    assert codes(["2.0", "1.0"], ("1", "2", "3")) == {"2.0": 1, "1.0": 0}
    assert codes(["3", "10"], (3, 10)) == {"3": 0, "10": 1}
    assert codes(["true", "false"]) == {"true": 1, "false": 0}
    assert codes([]) == {}


@pytest.mark.parametrize(
    ("texts", "classes", "said"),
    [
        (["ant"], None, r"labels are names \('ant'\)"),
        (["ant", "cow"], ("ant", "bee"), r"label 'cow' is not one of the classes 'ant', 'bee'"),
        (["0", "1"], ("1", "2"), r"label '0' is not one of the classes '1', '2'"),
    ],
)
def test_labels_that_are_no_class_are_named(texts, classes, said):
    with pytest.raises(InvalidInput, match=said):
        codes(texts, classes)


def test_numbers_may_be_names_only_where_classes_are_numbers():
    assert may_be_names(("0", "1"))
    assert may_be_names((10, 20))
    assert not may_be_names(("ant", "p1"))
    assert not may_be_names(None)


def test_rows_are_checked_ordered_and_counted_from_the_partitions_start():
    rows = TableRows(
        "t", ResolvedColumns(("p_a", "p_b"), ("a", "b"), "y"), ("b", "a"), False, (1, 0)
    )
    columns = {
        "p_a": pa.array([0.25, 1.0], pa.float32()),
        "p_b": pa.array([0.75, 0.0], pa.float32()),
        "y": pa.array([0, 1]),
    }
    found = rows(columns, "t, partition 3", 50)
    assert found.p.dtype == np.float32
    assert found.p.tolist() == [[0.75, 0.25], [0.0, 1.0]]
    columns["p_b"] = pa.array([0.75, 0.5], pa.float32())
    with pytest.raises(InvalidInput, match=r"t, partition 3 must .* row 51 sums to 1\.5.*columns="):
        rows(columns, "t, partition 3", 50)


def weighted(weight, **kinds) -> TableRows:
    rows = TableRows("t", ResolvedColumns(("p",), None, "y", None, "n"), None, False)
    columns = {"p": pa.array([0.25, 1.0]), "y": pa.array([0, 1]), "n": pa.array(weight, **kinds)}
    assert rows.read == ("p", "y", "n")
    return rows(columns, "t, partition 3", 50)


def test_rows_have_the_weights_of_a_column():
    found = weighted([2, 0], type=pa.int32())
    assert found.p.tolist() == [0.25]
    assert found.sample_weight.tolist() == [2.0]
    assert weighted([0, 0]) is None


@pytest.mark.parametrize(
    ("weight", "said"),
    [
        ([1, -2], "t, partition 3, column 'n' must be finite and not negative; row 51 is -2"),
        ([1, None], "column 'n' has no value in row 51"),
        (["1", "2"], "column 'n' must contain numbers"),
    ],
)
def test_weights_that_cannot_be_are_named(weight, said):
    with pytest.raises(InvalidInput, match=said):
        weighted(weight)
