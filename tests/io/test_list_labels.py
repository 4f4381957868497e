"""Labels that are lists: advice for one-hot labels, and for several classes a row."""

from __future__ import annotations

import numpy as np
import pytest

from calshift.cli.main import status
from tests.prediction_files import P_SOURCE, P_TARGET, Y_SOURCE, table, write

ONE_HOT = np.eye(3, dtype=int)[Y_SOURCE]
SEVERAL = np.maximum(ONE_HOT, (np.arange(600) % 2)[:, None])
NONE = ONE_HOT * (np.arange(600) % 2)[:, None]


def refused(labels, ending, folder, capsys) -> str:
    columns = {"probs": P_SOURCE.tolist(), "label": labels}
    source = write(folder / f"s.{ending}", columns)
    target = write(folder / "t.csv", table(P_TARGET))
    assert status(["check", source, target]) == 2
    return capsys.readouterr().err


@pytest.mark.parametrize("ending", ["parquet", "jsonl", "npz"])
@pytest.mark.parametrize("kind", [int, float, bool])
def test_the_argmax_is_for_one_hot_labels(ending, kind, tmp_path, capsys):
    err = refused(ONE_HOT.astype(kind).tolist(), ending, tmp_path, capsys)
    assert "argmax" in err
    assert "labels in 'label'" in err


@pytest.mark.parametrize("ending", ["parquet", "jsonl", "npz"])
@pytest.mark.parametrize("labels", [SEVERAL, NONE], ids=["several", "none"])
def test_labels_of_several_classes_are_for_binary_scores(labels, ending, tmp_path, capsys):
    err = refused(labels.tolist(), ending, tmp_path, capsys)
    assert "argmax" not in err
    assert "check each class on its own, as binary scores" in err


@pytest.mark.parametrize(
    "labels",
    [
        [["ant"]] * 600,
        [[1, 0]] * 599 + [[1]],
        [[0.2, 0.8, 0.0]] * 600,
        [{"a": 1}] * 600,
        [[None, 1]] * 600,
    ],
    ids=["texts", "ragged", "soft", "objects", "missing"],
)
def test_other_lists_get_neither_advice(labels, tmp_path, capsys):
    err = refused(labels, "parquet", tmp_path, capsys)
    assert "argmax" not in err
    assert "labels in 'label' must be one number or name a row" in err
