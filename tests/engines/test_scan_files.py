"""Files that are scanned: the rows of arrays in memory, whatever holds them."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import calshift
from calshift import InvalidInput
from tests.engines.samples import P_SOURCE, P_TARGET, Y_SOURCE, folder_of, lists, rows_of
from tests.prediction_files import FRAUD, NAMES, SCORES, named, table, write

ENDINGS = ["parquet", "csv", "csv.gz", "arrow", "feather", "jsonl", "ndjson", "npz", "tsv"]


def check_rows(engine, p=P_SOURCE, y=Y_SOURCE):
    found = rows_of(engine)
    np.testing.assert_array_equal(found[0], p)
    np.testing.assert_array_equal(found[1], y)
    return found


@pytest.mark.parametrize("ending", ENDINGS)
def test_a_folder_of_parts_has_the_rows_of_the_arrays(ending, tmp_path):
    engine = calshift.scan(folder_of(tmp_path / "parts", P_SOURCE, Y_SOURCE, ending))
    check_rows(engine)
    assert engine.summary.classes == NAMES
    np.testing.assert_array_equal(engine.summary.class_counts, np.bincount(Y_SOURCE))


@pytest.mark.parametrize("ending", ENDINGS)
@pytest.mark.parametrize("rows", [7, 400, 401, 10_000])
def test_the_same_batches_come_each_time_whatever_is_skipped(ending, rows, tmp_path):
    folder = folder_of(tmp_path / "parts", P_SOURCE, Y_SOURCE, ending)
    reader = calshift.scan(folder, batch_rows=rows).reader
    whole = list(reader.batches(0))
    assert max(len(batch) for batch in whole) <= rows
    for skip in (0, 1, 3, len(whole) // 2, len(whole) - 1, len(whole), len(whole) + 5):
        again = list(reader.batches(skip))
        assert len(again) == max(len(whole) - skip, 0)
        for one, other in zip(whole[skip:], again, strict=True):
            np.testing.assert_array_equal(one.p, other.p)
            np.testing.assert_array_equal(one.y, other.y)


def test_row_groups_are_skipped_unread(tmp_path, monkeypatch):
    path = lists(tmp_path / "s.parquet", P_SOURCE, Y_SOURCE, pa.list_(pa.float32()))
    reader = calshift.scan(path, batch_rows=100).reader
    first = list(reader.batches(0))
    asked = []
    real = pa.parquet.ParquetFile.iter_batches

    def noted(self, *arguments, row_groups=None, **more):
        asked.append(row_groups)
        return real(self, *arguments, row_groups=row_groups, **more)

    monkeypatch.setattr(pa.parquet.ParquetFile, "iter_batches", noted)
    (last,) = reader.batches(len(first) - 1)
    np.testing.assert_array_equal(last.p, first[-1].p)
    assert asked == [[8]]  # of nine groups of 170 rows


@pytest.mark.parametrize(
    "kind",
    [pa.list_(pa.float32()), pa.large_list(pa.float32()), pa.list_(pa.float32(), 3)],
    ids=["list", "large_list", "fixed_size_list"],
)
def test_lists_stay_float32(kind, tmp_path):
    path = lists(tmp_path / "s.parquet", P_SOURCE.astype(np.float32), Y_SOURCE, kind)
    p, _ = check_rows(calshift.scan(path, batch_rows=64), P_SOURCE.astype(np.float32))
    assert p.dtype == np.float32


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_npz_arrays_are_streamed_in_any_layout(order, save, tmp_path):
    p = np.asarray(P_SOURCE, np.float32, order=order)
    save(tmp_path / "s.npz", p=p, y=np.array(named(Y_SOURCE)), classes=NAMES)
    found, _ = check_rows(calshift.scan(tmp_path / "s.npz", batch_rows=64), p)
    assert found.dtype == np.float32


def test_npy_with_labels_in_a_second_file(tmp_path):
    np.save(tmp_path / "p.npy", P_SOURCE)
    np.save(tmp_path / "y.npy", Y_SOURCE)
    check_rows(calshift.scan(tmp_path / "p.npy", label=str(tmp_path / "y.npy"), batch_rows=99))
    assert rows_of(calshift.scan(tmp_path / "p.npy"))[1] is None


# --- which files


def test_folders_are_read_with_their_folders_in_the_order_of_names(tmp_path):
    folder_of(tmp_path / "parts", P_SOURCE, Y_SOURCE)
    for k, part in enumerate(sorted((tmp_path / "parts").iterdir())):
        (tmp_path / "deep" / f"day={k}").mkdir(parents=True)
        shutil.move(part, tmp_path / "deep" / f"day={k}" / f"{9 - k}.parquet")
    for name in ("_SUCCESS", ".part.parquet.crc", "notes.txt", "_old.parquet", ".late.parquet"):
        (tmp_path / "deep" / name).write_text("not to be read")
    (tmp_path / "deep" / "_delta_log").mkdir()
    (tmp_path / "deep" / "_delta_log" / "0.parquet").write_text("not to be read")
    check_rows(calshift.scan(tmp_path / "deep"))


def test_patterns_and_lists(tmp_path):
    folder = folder_of(tmp_path / "parts", P_SOURCE, Y_SOURCE)
    check_rows(calshift.scan(f"{folder}/part-*.parquet"))
    check_rows(calshift.scan(f"{tmp_path}/p*ts"))
    check_rows(calshift.scan([Path(folder, f"part-{k}.parquet") for k in range(4)]))
    turned = calshift.scan([f"{folder}/part-1.parquet", f"{folder}/part-0.parquet"], classes=NAMES)
    np.testing.assert_array_equal(rows_of(turned)[0][:400], P_SOURCE[400:800])


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("gone", "no such file"),
        ("gone*.csv", "no file matches this pattern"),
        ("empty", "a folder without a file of a known format"),
        ("x" * 300, "cannot be opened"),
    ],
)
def test_what_is_not_there_is_named(name, message, tmp_path):
    (tmp_path / "empty").mkdir()
    with pytest.raises(InvalidInput, match=message) as raised:
        calshift.scan(tmp_path / name)
    assert name in str(raised.value)


def test_formats_may_be_mixed(tmp_path):
    folder = Path(folder_of(tmp_path / "parts", P_SOURCE, Y_SOURCE))
    (folder / "part-2.parquet").unlink()
    write(folder / "part-2.csv", table(P_SOURCE[800:1200], named(Y_SOURCE[800:1200])))
    check_rows(calshift.scan(folder))


def test_empty_parts_are_no_rows(tmp_path):
    folder = Path(folder_of(tmp_path / "parts", P_SOURCE, Y_SOURCE))
    write(folder / "part-00.parquet", table(P_SOURCE[:0], []))
    check_rows(calshift.scan(folder))


# --- labels and classes


def test_text_labels_have_one_code_whatever_part_they_are_in(tmp_path):
    order = np.argsort(Y_SOURCE, kind="stable")  # a class a part, more or less
    folder = folder_of(tmp_path / "parts", P_SOURCE[order], Y_SOURCE[order])
    check_rows(calshift.scan(folder), P_SOURCE[order], Y_SOURCE[order])


def test_categories_that_do_not_occur_do_not_matter(tmp_path):
    labels = pa.DictionaryArray.from_arrays(pa.array(Y_SOURCE), pa.array([*NAMES, "yak"]))
    path = write(tmp_path / "s.parquet", table(P_SOURCE, labels))
    check_rows(calshift.scan(path))


def test_labels_that_are_not_asked_for_are_not_read(tmp_path):
    folder = folder_of(tmp_path / "parts", P_SOURCE, Y_SOURCE)
    assert not calshift.scan(folder, labelled=False).summary.labelled
    assert calshift.scan(folder).summary.labelled
    with pytest.raises(InvalidInput, match=r"no column of labels.*label="):
        calshift.scan(folder_of(tmp_path / "target", P_TARGET), labelled=True)


def test_classes_name_lists_and_put_columns_in_order(tmp_path):
    write(tmp_path / "s.jsonl", {"probs": P_SOURCE.tolist(), "label": named(Y_SOURCE)})
    engine = calshift.scan(tmp_path / "s.jsonl", classes=NAMES)
    check_rows(engine)
    assert engine.summary.classes == NAMES
    folder = folder_of(tmp_path / "parts", P_SOURCE, Y_SOURCE)
    turned = calshift.scan(folder, classes=NAMES[::-1])
    check_rows(turned, P_SOURCE[:, ::-1], 2 - Y_SOURCE)
    with pytest.raises(InvalidInput, match="must have the classes 'ant', 'bee', 'yak'"):
        calshift.scan(folder, classes=("ant", "bee", "yak"))
    with pytest.raises(InvalidInput, match="classes must name 3"):
        calshift.scan(tmp_path / "s.jsonl", classes=("a", "b"))


def test_columns_by_list_and_scores_of_one_column(tmp_path):
    write(tmp_path / "s.csv", table(P_SOURCE, Y_SOURCE.tolist(), prefix="x_"))
    check_rows(calshift.scan(tmp_path / "s.csv", columns=["x_ant", "x_bee", "x_cow"]))
    columns = {"p_fraud": SCORES.tolist(), "truth": ["fraud" if y else "fine" for y in FRAUD]}
    engine = calshift.scan(write(tmp_path / "b.csv", columns), label="truth")
    check_rows(engine, SCORES, FRAUD)
    assert engine.summary.classes == ("not fraud", "fraud")


def test_logits_become_probabilities(tmp_path):
    write(tmp_path / "s.csv", table(np.log(P_SOURCE) + 3, Y_SOURCE.tolist()))
    p, _ = rows_of(calshift.scan(tmp_path / "s.csv", logits=True))
    np.testing.assert_allclose(p, P_SOURCE, rtol=1e-12)


def test_a_file_that_changes_between_two_passes_is_an_error(tmp_path):
    folder = folder_of(tmp_path / "parts", P_SOURCE, Y_SOURCE)
    engine = calshift.scan(folder)
    assert engine.summary.rows == 1500
    os.utime(f"{folder}/part-1.parquet", (1, 1))
    with pytest.raises(InvalidInput, match=r"part-1.parquet changed while it was read"):
        engine.total(len)


def rows_in(pattern) -> int:
    return calshift.scan(pattern, labelled=False).summary.rows


def test_a_file_counts_once_however_it_is_named(tmp_path):
    folder = folder_of(tmp_path / "t", P_TARGET)
    below = tmp_path / "t" / "more"
    below.mkdir()
    (below / "empty").mkdir()
    for path in (f"{folder}/**", [folder, f"{folder}/part-0.parquet"], [folder, folder]):
        assert rows_in(path) == len(P_TARGET)
    assert rows_in(f"{folder}/**/*.parquet") == len(P_TARGET)


def test_what_other_programs_hide_is_left_out_of_patterns(tmp_path):
    folder = folder_of(tmp_path / "_t", P_TARGET)
    hidden = tmp_path / "_t" / "_temporary"
    hidden.mkdir()
    write(hidden / "x.parquet", table(P_TARGET[:50]))
    (tmp_path / "_t" / "README.txt").write_text("about these files")
    for path in (f"{folder}/**/*.parquet", f"{folder}/*", folder):
        assert rows_in(path) == len(P_TARGET)
    with pytest.raises(InvalidInput, match="its extension must be one of"):
        rows_in(f"{folder}/*.txt")


def test_links_are_followed_and_broken_ones_named(tmp_path):
    folder_of(tmp_path / "t", P_TARGET)
    (tmp_path / "d").mkdir()
    (tmp_path / "d" / "inner").symlink_to(tmp_path / "t")
    (tmp_path / "t" / "up").symlink_to(tmp_path / "d")
    assert rows_in(str(tmp_path / "d")) == len(P_TARGET)
    (tmp_path / "d" / "lost.parquet").symlink_to(tmp_path / "nowhere.parquet")
    with pytest.raises(InvalidInput, match=r"lost\.parquet"):
        rows_in(str(tmp_path / "d"))


def test_reading_numbers_imports_no_pandas(tmp_path):
    """Its import takes half a second, in which pyarrow loses a Ctrl-C."""
    path = write(tmp_path / "t.parquet", table(P_TARGET))
    code = f"import sys, calshift; calshift.scan({path!r}).summary; print('pandas' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"
