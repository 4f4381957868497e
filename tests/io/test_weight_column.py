"""Frequency weights from a column: the rows and weights of arrays, whatever the format."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import calshift
from calshift import InvalidInput, Predictions
from calshift.io.columns import ColumnSpec, find_columns
from tests.prediction_files import (
    FRAUD,
    NAMES,
    P_SOURCE,
    P_TARGET,
    SCORES,
    Y_SOURCE,
    named,
    table,
    write,
)

FORMATS = ["csv", "csv.gz", "tsv", "jsonl", "ndjson", "parquet", "arrow", "feather", "npz"]
WEIGHT = np.random.default_rng(7).integers(0, 4, 600)
COUNTED = WEIGHT > 0


def columns(weight=WEIGHT, name="n") -> dict[str, list]:
    """The weights between the probabilities and the labels."""
    return table(P_SOURCE) | {name: np.asarray(weight).tolist(), "label": named(Y_SOURCE)}


def check_rows(engine) -> None:
    """Rows, labels and weights are those of arrays."""
    parts = list(engine.reader.batches(0))
    for name, wanted in (("p", P_SOURCE), ("y", Y_SOURCE), ("sample_weight", WEIGHT)):
        found = np.concatenate([getattr(part, name) for part in parts])
        np.testing.assert_array_equal(found, wanted[COUNTED])


def message(data, **asked) -> str:
    """The error when the sample is opened, or read."""
    with pytest.raises(InvalidInput) as raised:
        _ = calshift.scan(data, **{"sample_weight": "n", **asked}).summary
    assert "\n" not in str(raised.value)
    assert "--" not in str(raised.value)  # Python's words
    return str(raised.value)


# --- the rows


@pytest.mark.parametrize("ending", FORMATS)
@pytest.mark.parametrize("rows", [None, 7, 250])
def test_a_column_gives_the_weights_of_arrays(ending, rows, tmp_path):
    path = write(tmp_path / f"s.{ending}", columns())
    engine = calshift.scan(path, sample_weight="n", batch_rows=rows)
    check_rows(engine)
    arrays = Predictions(P_SOURCE, Y_SOURCE, sample_weight=WEIGHT)
    assert engine.summary.size == arrays.size
    np.testing.assert_array_equal(engine.summary.class_counts, arrays.class_counts)
    assert engine.summary.classes == NAMES


@pytest.mark.parametrize("ending", ["parquet", "csv", "jsonl", "npz"])
def test_fractions_are_kept(ending, tmp_path):
    weight = np.random.default_rng(8).random(600)
    engine = calshift.scan(write(tmp_path / f"s.{ending}", columns(weight)), sample_weight="n")
    (rows,) = engine.reader.batches(0)
    np.testing.assert_array_equal(rows.sample_weight, weight)


@pytest.mark.parametrize("ending", ["parquet", "csv", "jsonl", "npz"])
def test_batches_of_zeros_are_left_out_and_not_counted(ending, tmp_path):
    weight = np.where((np.arange(600) // 100) % 2, 0, 2)  # every second batch of 50 and 100 rows
    path = write(tmp_path / f"s.{ending}", columns(weight))
    for rows, made in ((100, 3), (50, 6)):
        reader = calshift.scan(path, sample_weight="n", batch_rows=rows).reader
        whole = list(reader.batches(0))
        assert len(whole) == made
        np.testing.assert_array_equal(np.concatenate([b.p for b in whole]), P_SOURCE[weight > 0])
        for skip in range(made + 2):
            again = list(reader.batches(skip))
            for one, other in zip(whole[skip:], again, strict=True):
                np.testing.assert_array_equal(one.p, other.p)


@pytest.mark.parametrize("ending", ["parquet", "csv", "npz"])
def test_files_of_zeros_are_skipped_with_their_batches(ending, tmp_path):
    for k, weight in enumerate((2, 0, 3)):
        write(tmp_path / f"{k}.{ending}", columns(np.full(600, weight)))
    engine = calshift.scan(tmp_path, sample_weight="n", batch_rows=300)
    assert engine.summary.size == 600 * 5
    assert [float(b.sample_weight[0]) for b in engine.reader.batches(1)] == [2, 3, 3]


def test_rows_that_do_not_count_must_be_valid(tmp_path):
    p = P_SOURCE.copy()
    p[5:12] = 0.9
    weight = np.ones(600)
    weight[:50] = 0
    spoiled = table(p) | {"n": weight.tolist(), "label": named(Y_SOURCE)}
    path = write(tmp_path / "s.csv", spoiled)
    for rows in (10, 600):
        assert "row 5 sums to 2.7" in message(path, batch_rows=rows)


def test_weights_of_scores(tmp_path):
    weight = np.arange(400) % 3
    path = write(
        tmp_path / "s.csv", {"score": SCORES.tolist(), "p": weight.tolist(), "y": FRAUD.tolist()}
    )
    summary = calshift.scan(path, sample_weight="p").summary
    assert summary.one_column
    assert summary.size == weight.sum()


def test_arrays_of_an_archive_have_a_role(tmp_path):
    arrays = {"p_source": P_SOURCE, "y_source": Y_SOURCE, "n_source": WEIGHT}
    np.savez(tmp_path / "a.npz", **arrays, p_target=P_TARGET, n_target=WEIGHT + 1)
    for name in ("n", "n_source"):
        check_rows(calshift.scan(tmp_path / "a.npz", sample_weight=name, labelled=True))
    target = calshift.scan(tmp_path / "a.npz", sample_weight="n", labelled=False)
    assert target.summary.size == WEIGHT.sum() + 600


def test_a_checkpoint_knows_the_column(tmp_path):
    path = write(tmp_path / "s.csv", columns() | {"m": WEIGHT.tolist()})
    names = ("n", "m")
    prints = {calshift.scan(path, sample_weight=name).reader.fingerprint for name in names}
    assert len(prints) == 2


# --- no probability, no label


def found(names, **asked):
    return find_columns(names, [], ColumnSpec(**asked), "file.csv")


@pytest.mark.parametrize("weight", ["p_weight", "p", "score", "prob_n", "label"])
def test_the_column_is_neither_probability_nor_label(weight):
    names = ["p_ant", "p_bee", weight, "y"]
    columns = found(names, weight=weight, labelled=True)
    assert columns.probabilities == ("p_ant", "p_bee")
    assert columns.classes == ("ant", "bee")
    assert (columns.label, columns.weight) == ("y", weight)
    assert found(names, weight=weight, columns="p_*").probabilities == ("p_ant", "p_bee")


def test_a_column_of_lists_beside_it():
    names = ["scores_of_mine", "p"]
    columns = find_columns(names, names[:1], ColumnSpec(weight="p"), "file.jsonl")
    assert columns.probabilities == ("scores_of_mine",)


@pytest.mark.parametrize("option", ["label", "time"])
def test_one_column_cannot_be_both(option):
    with pytest.raises(InvalidInput, match=f"--{option} and --sample-weight must name two columns"):
        found(["p_a", "p_b", "y"], weight="y", **{option: "y"})


# --- errors


BAD = {
    "negative": (-1.0, "must be finite and not negative; row 137 is -1"),
    "nan": (np.nan, "must be finite and not negative; row 137 is nan"),
    "infinite": (np.inf, "must be finite and not negative; row 137 is inf"),
    "missing": (None, "has no value in row 137"),
}


@pytest.mark.parametrize("ending", ["csv", "tsv", "jsonl", "parquet", "arrow", "npz"])
@pytest.mark.parametrize("what", BAD)
@pytest.mark.parametrize("rows", [None, 100])
def test_a_bad_weight_is_named_by_file_column_and_row(ending, what, rows, tmp_path):
    value, wanted = BAD[what]
    if (ending == "jsonl" and what in ("nan", "infinite")) or (ending, what) == ("npz", "missing"):
        pytest.skip("the format has no such value")
    weight = WEIGHT.astype(float).tolist()
    weight[137] = value
    path = tmp_path / f"s.{ending}"
    write(path, table(P_SOURCE) | {"n": weight, "label": named(Y_SOURCE)})
    said = message(path, batch_rows=rows)
    assert str(path) in said
    assert "column 'n'" in said
    assert wanted in said


@pytest.mark.parametrize("ending", ["csv", "jsonl", "parquet", "npz"])
def test_weights_must_be_numbers(ending, tmp_path):
    path = write(tmp_path / f"s.{ending}", table(P_SOURCE) | {"n": ["many"] * 600})
    said = message(path)
    assert "column 'n' must contain numbers" in said
    assert "many" in said
    assert str(path) in said


def test_lists_are_no_weights(tmp_path):
    np.savez(tmp_path / "s.npz", p=P_SOURCE, n=np.ones((600, 2)))
    write(tmp_path / "s.parquet", {"p": P_SOURCE.tolist(), "n": P_SOURCE.tolist()})
    for name in ("s.npz", "s.parquet"):
        said = message(tmp_path / name)
        assert f"{name}: sample_weight= names 'n', which contains lists" in said


@pytest.mark.parametrize("ending", ["csv", "jsonl", "parquet", "npz"])
@pytest.mark.parametrize("rows", [None, 100])
def test_zeros_alone_are_an_error(ending, rows, tmp_path):
    path = write(tmp_path / f"s.{ending}", columns(np.zeros(600)))
    assert f"{path}, column 'n' must not be all zero" in message(path, batch_rows=rows)


@pytest.mark.parametrize("ending", FORMATS)
def test_a_column_that_is_missing_is_named_with_those_there(ending, tmp_path):
    path = write(tmp_path / f"s.{ending}", columns())
    said = message(path, sample_weight="m")
    assert f"{path}: sample_weight= names 'm', which is not a column" in said
    assert "'p_ant', 'p_bee', 'p_cow', 'n', 'label'" in said


def test_every_part_must_have_the_column(tmp_path):
    write(tmp_path / "a.csv", columns())
    write(tmp_path / "b.csv", columns(name="m"))
    assert "b.csv: sample_weight= names 'n', which is not a column" in message(tmp_path)


def test_npy_has_no_columns(tmp_path):
    np.save(tmp_path / "p.npy", P_SOURCE)
    said = message(tmp_path / "p.npy")
    assert "p.npy has no columns for sample_weight= to name: save named arrays in .npz" in said


@pytest.mark.parametrize("given", [WEIGHT, 3, ["n"], True])
def test_it_is_a_name(given, tmp_path):
    path = write(tmp_path / "s.csv", columns())
    for data in (path, [P_SOURCE]):
        said = message(data, sample_weight=given)
        assert "sample_weight must be the name of a column" in said


# --- batches that are data frames


def frames(kind) -> list:
    """Frames of classes and weights, with the labels beside them."""
    whole = {name: P_SOURCE[:, k] for k, name in enumerate(NAMES)} | {"n": WEIGHT}
    parts = [slice(0, 400), slice(400, 600)]
    return [(kind({k: v[part] for k, v in whole.items()}), Y_SOURCE[part]) for part in parts]


@pytest.mark.parametrize("way", [list, iter], ids=["list", "generator"])
@pytest.mark.parametrize("kind", [pd.DataFrame, pl.DataFrame, pl.LazyFrame, pa.table])
def test_a_column_of_frames_gives_the_weights_of_arrays(kind, way):
    engine = calshift.scan(way(frames(kind)), sample_weight="n")
    check_rows(engine)
    assert engine.summary.classes == NAMES


def test_frames_without_labels():
    engine = calshift.scan([frame for frame, _ in frames(pd.DataFrame)], sample_weight="n")
    assert engine.summary.size == WEIGHT.sum()
    assert not engine.summary.labelled


def test_frames_of_zeros_are_left_out():
    (first, y), other = frames(pd.DataFrame)
    engine = calshift.scan([(first.assign(n=0), y), other], sample_weight="n")
    assert engine.summary.size == WEIGHT[400:].sum()


def negative(frame):
    return frame.assign(n=frame["n"].where(frame.index != 7, -1))


@pytest.mark.parametrize(
    ("batch", "wanted"),
    [
        (P_SOURCE, "batch 0: column 'n' must be in a data frame; got"),
        (Predictions(P_SOURCE), "batch 0: a Predictions has weights of its own"),
        ((frames(pd.DataFrame)[0][0], None, np.ones(400)), "batch 0: it has weights"),
        (pd.DataFrame(P_SOURCE, columns=NAMES), "in the data frame; it has 'ant', 'bee', 'cow'"),
        (negative(frames(pd.DataFrame)[0][0]), "batch 0: column 'n' must be finite and not neg"),
    ],
    ids=["array", "Predictions", "weights", "missing", "negative"],
)
def test_batches_that_cannot_be_read_are_named(batch, wanted):
    assert wanted in message([batch])
