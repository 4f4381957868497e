"""Rows that change their predicted class, counted over batches."""

from __future__ import annotations

import numpy as np
import pytest

from calshift import Predictions
from calshift.recalibration.assessment import predicted_classes
from calshift.recalibration.assessment.predicted_classes import PredictedClasses

NAMES = ("a", "b", "c")


@pytest.fixture(scope="module")
def samples():
    rng = np.random.default_rng(1)
    return rng.dirichlet(np.ones(3), (2, 500)), rng.integers(1, 4, 500).astype(float)


def counted(p, q, weight, parts=1, decision="argmax", classes=NAMES):
    found = PredictedClasses.of(p.shape[1], classes, decision, None)
    for rows in np.array_split(np.arange(len(p)), parts):
        before = Predictions(p[rows], sample_weight=None if weight is None else weight[rows])
        found.add(before, Predictions(q[rows]))
    return found.to_dict()


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("parts", [1, 7])
def test_it_is_the_table_of_both_predictions(samples, weighted, parts):
    (p, q), weight = samples
    found = counted(p, q, weight if weighted else None, parts)
    table = np.zeros((3, 3))
    np.add.at(table, (p.argmax(axis=1), q.argmax(axis=1)), weight if weighted else 1.0)
    assert found["rows"] == table.sum()
    assert found["changed"] == table.sum() - np.trace(table)
    assert found["share"] == found["changed"] / found["rows"]
    columns = zip(NAMES, table.sum(axis=1), table.sum(axis=0), strict=True)
    assert found["classes"] == [{"class": c, "before": b, "after": a} for c, b, a in columns]
    pairs = {(one["from"], one["to"]): one["rows"] for one in found["pairs"]}
    assert pairs == {
        (NAMES[i], NAMES[j]): table[i, j] for i in range(3) for j in range(3) if i != j
    }
    rows = [one["rows"] for one in found["pairs"]]
    assert rows == sorted(rows, reverse=True)


def test_a_threshold_decides_between_two_classes():
    p = np.array([0.1, 0.25, 0.4, 0.6])
    before, after = np.column_stack([1 - p, p]), np.column_stack([1 - p / 2, p / 2])
    found = counted(before, after, None, decision=0.25, classes=None)
    assert found["rule"] == "positive at a probability of at least 0.25"
    assert found["pairs"] == [{"from": "1", "to": "0", "rows": 2.0}]


def test_no_rows_and_no_changes_are_no_error(samples):
    (p, _), weight = samples
    assert counted(p, p, weight)["pairs"] == []
    assert PredictedClasses.of(3, None, "argmax", None).to_dict()["share"] == 0.0


def test_the_most_frequent_changes_are_kept(samples, monkeypatch):
    (p, q), _ = samples
    whole = counted(p, q, None)
    monkeypatch.setattr(predicted_classes, "MOST_PAIRS", 2)
    few = counted(p, q, None)
    assert few["pairs"] == whole["pairs"][:2]
    assert few["changed"] == whole["changed"]
