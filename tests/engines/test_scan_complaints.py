"""What is wrong with a scanned file is said in one line: the part, the row, the remedy."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import calshift
from calshift import InvalidInput
from tests.engines.samples import P_SOURCE, P_TARGET, Y_SOURCE, folder_of
from tests.prediction_files import NAMES, named, table, write


def complaint(data, **asked) -> str:
    """What is said when the sample is opened, or read."""
    with pytest.raises(InvalidInput) as raised:
        _ = calshift.scan(data, batch_rows=64, **asked).summary
    assert "\n" not in str(raised.value)
    assert "--" not in str(raised.value)  # Python's words
    return str(raised.value)


def spoiled(folder: Path, ending: str, p=None, labels=None) -> Path:
    """A folder whose second part is another one."""
    folder_of(folder, P_SOURCE, Y_SOURCE, ending)
    p = P_SOURCE[400:800] if p is None else p
    labels = named(Y_SOURCE[400:800]) if labels is None else labels
    path = folder / f"part-1.{ending}"
    write(path, table(p, labels))
    return path


@pytest.mark.parametrize("ending", ["parquet", "csv", "jsonl", "npz", "arrow"])
@pytest.mark.parametrize("what", ["sum", "range", "nan"])
def test_a_bad_value_is_named_by_its_part_and_row(ending, what, tmp_path):
    p = P_SOURCE[400:800].copy()
    p[137] = {"sum": [0.2, 0.2, 0.2], "range": [1.2, -0.1, -0.1], "nan": np.nan}[what]
    if what == "nan" and ending == "jsonl":
        pytest.skip("JSON has no NaN")
    path = spoiled(tmp_path / "parts", ending, p)
    message = complaint(tmp_path / "parts")
    assert str(path) in message
    assert "row 137" in message
    assert "part-0" not in message


@pytest.mark.parametrize("ending", ["parquet", "csv", "jsonl", "npz"])
@pytest.mark.parametrize("label", ["yak", "1.5"])
def test_an_unknown_label_is_named_by_its_part(ending, label, tmp_path):
    labels = named(Y_SOURCE[400:800])
    labels[137] = label
    path = spoiled(tmp_path / "parts", ending, labels=labels)
    message = complaint(tmp_path / "parts")
    assert f"{path}, column 'label'" in message
    assert repr(label) in message


def test_a_label_out_of_range_is_named_by_its_part_and_row(tmp_path):
    y = Y_SOURCE[:400].copy()
    for k in range(2):
        y[137] = 3 if k else y[137]
        columns = {"probs": P_SOURCE[:400].tolist(), "label": y.tolist()}
        write(tmp_path / f"{k}.jsonl", columns)
    message = complaint(str(tmp_path / "*.jsonl"))
    assert f"{tmp_path / '1.jsonl'}, column 'label' must be labels 0..2; row 137 is 3" in message


def test_a_missing_label_is_named_by_its_part_and_row(tmp_path):
    labels = named(Y_SOURCE[400:800])
    labels[137] = None
    path = spoiled(tmp_path / "parts", "parquet", labels=labels)
    assert f"{path}: column 'label' has no value in row 137" in complaint(tmp_path / "parts")


def test_names_and_numbers_are_not_mixed(tmp_path):
    labels = named(Y_SOURCE[:400])
    labels[5] = "1"
    path = write(tmp_path / "s.csv", table(P_SOURCE[:400], labels))
    assert "label '1' is not one of the classes" in complaint(path)


def test_logits_that_are_not_finite_are_named_by_their_row(tmp_path):
    z = np.log(P_SOURCE)
    z[700] = np.nan
    np.savez(tmp_path / "s.npz", logits=z, y=Y_SOURCE)
    message = complaint(tmp_path / "s.npz", logits=True)
    assert "row 700 is not" in message
    assert "s.npz" in message


@pytest.mark.parametrize("ending", ["parquet", "arrow", "npz", "csv.gz"])
def test_a_truncated_part_is_named(ending, tmp_path):
    path = Path(spoiled(tmp_path / "parts", ending))
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) * 2 // 3])
    message = complaint(tmp_path / "parts")
    assert str(path) in message
    assert "is the file truncated" in message


def test_a_damaged_page_of_a_part_is_named(tmp_path):
    path = Path(spoiled(tmp_path / "parts", "parquet"))
    whole = bytearray(path.read_bytes())
    whole[4:30] = b"x" * 26  # the footer is fine, so that it is found while reading only
    path.write_bytes(whole)
    assert f"{path} cannot be read" in complaint(tmp_path / "parts")


def test_an_empty_part_is_named(tmp_path):
    path = Path(spoiled(tmp_path / "parts", "parquet"))
    path.write_bytes(b"")
    assert f"{path} is empty" in complaint(tmp_path / "parts")


def test_parts_of_other_columns(tmp_path):
    path = spoiled(tmp_path / "parts", "parquet")
    write(path, table(P_SOURCE[:9], named(Y_SOURCE[:9]), ("ant", "bee", "yak")))
    message = complaint(tmp_path / "parts")
    assert "only" in message
    assert f"{path} has 'p_yak'" in message
    write(path, table(P_SOURCE[:9]))
    assert "part-1.parquet: no column of labels" in complaint(tmp_path / "parts", labelled=True)
    assert "part-0.parquet has 'label'" in complaint(tmp_path / "parts")


def test_parts_of_other_classes_or_widths(tmp_path):
    np.savez(tmp_path / "a.npz", p=P_SOURCE, y=Y_SOURCE, classes=NAMES)
    np.savez(tmp_path / "b.npz", p=P_SOURCE, y=Y_SOURCE, classes=("ant", "bee", "yak"))
    assert "only" in complaint(tmp_path)
    for name, K in (("a", 3), ("b", 4)):
        np.savez(tmp_path / f"{name}.npz", p=np.full((9, K), 1 / K), y=np.zeros(9, int))
    message = complaint(tmp_path)
    assert "b.npz must have 3 numbers in each row" in message
    assert "row 0 has 4" in message


def test_no_row_at_all(tmp_path):
    write(tmp_path / "s.parquet", table(P_SOURCE[:0], []))
    assert "has columns but no row" in complaint(tmp_path / "s.parquet")


def test_labels_of_several_npy_files_have_no_place(tmp_path):
    for name in ("a", "b"):
        np.save(tmp_path / f"{name}.npy", P_TARGET)
    np.save(tmp_path / "y", np.zeros(len(P_TARGET), int))
    message = complaint([tmp_path / "a.npy", tmp_path / "b.npy"], label=str(tmp_path / "y.npy"))
    assert "use .npz" in message


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"columns": "zz_*"}, "no column matches columns= 'zz_*'"),
        ({"label": "zz"}, "label= names 'zz', which is not a column"),
        ({"jobs": 0}, "jobs must be a whole number"),
        ({"batch_rows": 0}, "batch_rows must be a whole number"),
        ({"progress": 3}, "progress must be callable"),
    ],
)
def test_arguments_that_cannot_be(asked, message, tmp_path):
    write(tmp_path / "s.csv", table(P_SOURCE, named(Y_SOURCE)))
    with pytest.raises(InvalidInput, match=r"^[^\n]*$") as raised:
        calshift.scan(tmp_path / "s.csv", **asked)
    assert message in str(raised.value)
