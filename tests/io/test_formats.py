"""Files as people have them: the same numbers from every format, a line to act on if bad."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.feather
import pyarrow.parquet
import pytest

import calshift
from calshift.cli.main import status
from calshift.cli.samples import read_pair
from calshift.io.columns import ColumnSpec
from tests.prediction_files import (
    FRAUD,
    NAMES,
    P_SOURCE,
    P_TARGET,
    SCORES,
    SCORES_NOW,
    Y_SOURCE,
    Y_TARGET,
    named,
    table,
    write,
)


@pytest.fixture
def source(tmp_path):
    return write(tmp_path / "source.csv", table(P_SOURCE, named(Y_SOURCE)))


@pytest.fixture
def target(tmp_path):
    return write(tmp_path / "target.csv", table(P_TARGET))


@pytest.fixture(scope="module")
def truth():
    """What the library answers on the arrays."""
    return calshift.target_calibration_error(P_SOURCE, Y_SOURCE, P_TARGET, check=False)


def answer(folder: Path, *arguments: str) -> dict:
    """The JSON of `calshift check`, less what differs from run to run."""
    out = folder / "answer.json"
    assert status(["check", *map(str, arguments), "--no-check", "--json", str(out), "-q"]) == 0
    found = json.loads(out.read_text(encoding="utf-8"))
    return {k: v for k, v in found.items() if k not in ("created", "inputs", "command")}


def complaint(capsys, *arguments: str) -> str:
    """The one line on standard error that comes with exit status 2."""
    code = status(list(map(str, arguments)))
    out, err = capsys.readouterr()
    assert (code, out) == (2, ""), err
    assert err.startswith("calshift: ")
    assert err.count("\n") == 1
    assert err.endswith("\n")
    return err


def check_same(pair, p_source=P_SOURCE, y_source=Y_SOURCE, p_target=P_TARGET):
    np.testing.assert_array_equal(pair.source.p, p_source)
    np.testing.assert_array_equal(pair.source.labels, y_source)
    np.testing.assert_array_equal(pair.target.p, p_target)


# --- the same numbers from every format


FORMATS = [
    "parquet", "csv", "csv.gz", "semicolon.csv", "tsv", "arrow", "feather", "jsonl", "jsonl.gz",
    "ndjson",
]  # fmt: skip


@pytest.mark.parametrize("ending", FORMATS)
def test_every_format_gives_the_numbers_of_the_library(ending, tmp_path, truth):
    found = answer(
        tmp_path,
        write(tmp_path / f"source.{ending}", table(P_SOURCE, named(Y_SOURCE))),
        write(tmp_path / f"target.{ending}", table(P_TARGET)),
    )
    check_answer(found, truth)


def check_answer(found, truth):
    assert found["target"]["estimate"] == pytest.approx(truth.estimate, rel=1e-12)
    assert found["source"]["estimate"] == pytest.approx(truth.source.estimate, rel=1e-12)
    ends = truth.confidence_interval(root=True)
    assert found["target"]["root_interval"] == pytest.approx(ends, rel=1e-12)
    weights = [one["weight"] for one in found["classes"]]
    assert weights == pytest.approx(truth.class_weights.values, rel=1e-12)


def test_one_npz_holds_source_and_target(tmp_path, truth):
    both = tmp_path / "both.npz"
    np.savez(both, p_source=P_SOURCE, y_source=Y_SOURCE, p_target=P_TARGET, y_target=Y_TARGET)
    check_answer(answer(tmp_path, both, both), truth)


def test_npz_of_one_sample_each(tmp_path):
    np.savez(tmp_path / "a.npz", p=P_SOURCE, y=Y_SOURCE)
    np.savez(tmp_path / "b.npz", probabilities=P_TARGET)
    check_same(read_pair(tmp_path / "a.npz", tmp_path / "b.npz"))


def test_npz_names_its_classes_and_they_are_matched(tmp_path):
    np.savez(tmp_path / "a.npz", p=P_SOURCE, y=np.array(named(Y_SOURCE)), classes=NAMES)
    order = [2, 0, 1]
    np.savez(tmp_path / "b.npz", p=P_TARGET[:, order], classes=np.array(NAMES)[order])
    pair = read_pair(tmp_path / "a.npz", tmp_path / "b.npz")
    check_same(pair)
    assert pair.source.classes == NAMES


def test_names_in_an_npz_are_those_that_the_file_has(tmp_path):
    both = tmp_path / "both.npz"
    np.savez(both, p_source=P_SOURCE, y_source=Y_SOURCE, p_target=P_TARGET)
    check_same(read_pair(both, both, ColumnSpec(label="y_source")))


def test_npy_with_labels_in_a_second_file(tmp_path, truth):
    for name, array in (("p", P_SOURCE), ("y", Y_SOURCE), ("q", P_TARGET)):
        np.save(tmp_path / f"{name}.npy", array)
    found = answer(tmp_path, tmp_path / "p.npy", tmp_path / "q.npy", "--label", tmp_path / "y.npy")
    check_answer(found, truth)


def test_formats_may_differ_between_source_and_target(source, tmp_path):
    np.save(tmp_path / "q.npy", P_TARGET)
    check_same(read_pair(source, tmp_path / "q.npy"))


def test_float32_stays_what_it_is(tmp_path):
    np.savez(tmp_path / "a.npz", p=P_SOURCE.astype(np.float32), y=Y_SOURCE)
    np.savez(tmp_path / "b.npz", p=P_TARGET.astype(np.float32))
    pair = read_pair(tmp_path / "a.npz", tmp_path / "b.npz")
    check_same(pair, P_SOURCE.astype(np.float32), Y_SOURCE, P_TARGET.astype(np.float32))


def test_rows_of_many_batches_keep_their_order(tmp_path, monkeypatch):
    monkeypatch.setattr("calshift.io.file_reader.MOST_ROWS", 7)
    monkeypatch.setattr("calshift.io.file_reader.LEAST_ROWS", 7)
    monkeypatch.setattr("calshift.io.formats.text.JSON_BLOCK", 1000)
    for ending in ("parquet", "jsonl", "npz", "arrow", "csv"):
        columns = table(P_SOURCE, Y_SOURCE.tolist())
        path = write(tmp_path / f"s.{ending}", columns)
        after = write(tmp_path / f"t.{ending}", table(P_TARGET))
        check_same(read_pair(path, after))


# --- labels, classes, columns


@pytest.mark.parametrize("ending", ["csv", "parquet", "jsonl"])
def test_classes_in_another_order_are_matched_by_name(ending, tmp_path, source, target):
    order = [2, 0, 1]
    other = table(P_TARGET[:, order], names=np.array(NAMES)[order])
    shuffled = write(tmp_path / f"shuffled.{ending}", other)
    assert answer(tmp_path, source, shuffled) == answer(tmp_path, source, target)


@pytest.mark.parametrize(
    "labels",
    [named(Y_SOURCE), Y_SOURCE.tolist(), Y_SOURCE.astype(float).tolist()],
    ids=["names", "integers", "floats"],
)
@pytest.mark.parametrize("ending", ["csv", "parquet", "jsonl"])
def test_labels_are_names_or_integers(labels, ending, tmp_path, target):
    pair = read_pair(write(tmp_path / f"s.{ending}", table(P_SOURCE, labels)), target)
    check_same(pair)
    assert pair.source.classes == NAMES


@pytest.mark.parametrize("labels", [Y_SOURCE + 1, (Y_SOURCE + 1.0)], ids=["whole", "float"])
@pytest.mark.parametrize("ending", ["csv", "parquet", "jsonl"])
def test_classes_named_by_digits_are_names_not_places(labels, ending, tmp_path):
    digits = ("1", "2", "3")
    check_same(
        read_pair(
            write(tmp_path / f"s.{ending}", table(P_SOURCE, labels.tolist(), digits)),
            write(tmp_path / f"t.{ending}", table(P_TARGET, names=digits)),
        )
    )


def test_digits_out_of_order_are_matched_too(tmp_path):
    digits, order = ("1", "2", "3"), [1, 2, 0]
    turned = [digits[k] for k in order]
    before = write(tmp_path / "s.csv", table(P_SOURCE[:, order], (Y_SOURCE + 1).tolist(), turned))
    after = write(tmp_path / "t.csv", table(P_TARGET, names=digits))
    pair = read_pair(before, after)
    np.testing.assert_array_equal(pair.target.p, P_TARGET[:, order])
    np.testing.assert_array_equal(np.array(turned)[pair.source.labels], (Y_SOURCE + 1).astype(str))


@pytest.mark.parametrize(
    "labels",
    [
        FRAUD.tolist(),
        (FRAUD == 1).tolist(),
        ["True" if y else "False" for y in FRAUD],
        ["fraud" if y else "fine" for y in FRAUD],
    ],
    ids=["0/1", "bool", "true/false", "names"],
)
@pytest.mark.parametrize("ending", ["csv", "parquet", "jsonl"])
@pytest.mark.parametrize("asked", [None, "p_fraud"])
def test_one_column_is_the_probability_of_its_class(labels, ending, asked, tmp_path):
    before = write(tmp_path / f"s.{ending}", {"p_fraud": SCORES.tolist(), "label": labels})
    after = write(tmp_path / f"t.{ending}", {"p_fraud": SCORES_NOW.tolist()})
    check_same(read_pair(before, after, ColumnSpec(columns=asked)), SCORES, FRAUD, SCORES_NOW)


def test_one_column_gives_the_numbers_of_the_library(tmp_path):
    before = write(tmp_path / "s.csv", {"p_fraud": SCORES.tolist(), "label": FRAUD.tolist()})
    after = write(tmp_path / "t.csv", {"p_fraud": SCORES_NOW.tolist()})
    found = answer(tmp_path, before, after)
    expected = calshift.target_calibration_error(SCORES, FRAUD, SCORES_NOW, kind="binary")
    assert found["settings"]["kind"] == "binary"
    assert found["target"]["estimate"] == pytest.approx(expected.estimate, rel=1e-12)


@pytest.mark.parametrize("ending", ["parquet", "arrow", "jsonl"])
def test_lists_hold_a_number_a_class(ending, tmp_path):
    before = {"probs": P_SOURCE.tolist(), "label": Y_SOURCE.tolist()}
    after = {"probs": P_TARGET.tolist()}
    check_same(
        read_pair(write(tmp_path / f"s.{ending}", before), write(tmp_path / f"t.{ending}", after))
    )


def test_lists_of_a_fixed_size(tmp_path):
    kind = pa.list_(pa.float64(), 3)
    before = {"probs": pa.array(P_SOURCE.tolist(), kind), "label": Y_SOURCE.tolist()}
    after = {"probs": pa.array(P_TARGET.tolist(), kind)}
    check_same(
        read_pair(write(tmp_path / "s.parquet", before), write(tmp_path / "t.parquet", after))
    )


@pytest.mark.parametrize("asked", ["score_*", "score_ant,score_bee,score_cow"])
def test_columns_are_named_by_a_pattern_or_a_list(asked, tmp_path):
    before = table(P_SOURCE, Y_SOURCE.tolist(), prefix="score_", p_old=[0.5] * 600)
    after = table(P_TARGET, prefix="score_")
    pair = read_pair(
        write(tmp_path / "s.csv", before),
        write(tmp_path / "t.csv", after),
        ColumnSpec(columns=asked),
    )
    check_same(pair)


def test_labels_in_the_target_are_not_read(tmp_path, source):
    after = write(tmp_path / "t.csv", table(P_TARGET, named(Y_TARGET)))
    check_same(read_pair(source, after))


def test_labels_named_by_the_user_are_not_read_in_the_target_either(tmp_path):
    before = write(tmp_path / "s.csv", table(P_SOURCE, p_true=Y_SOURCE.tolist()))
    after = write(tmp_path / "t.csv", table(P_TARGET, p_true=Y_TARGET.tolist()))
    check_same(read_pair(before, after, ColumnSpec(label="p_true")))


def test_categories_are_names(tmp_path, target):
    labels = pa.array(named(Y_SOURCE)).dictionary_encode()
    check_same(read_pair(write(tmp_path / "s.parquet", table(P_SOURCE, labels)), target))


def test_a_class_may_be_called_na(tmp_path):
    names = ("NA", "bee", "null")
    before = write(tmp_path / "s.csv", table(P_SOURCE, named(Y_SOURCE, names), names))
    after = write(tmp_path / "t.csv", table(P_TARGET, names=names))
    check_same(read_pair(before, after))


@pytest.mark.parametrize("logits", [np.log(P_TARGET), np.log(P_TARGET) + 2], ids=["log", "logits"])
def test_logits_become_probabilities(logits, tmp_path):
    before = write(tmp_path / "s.csv", table(np.log(P_SOURCE), named(Y_SOURCE)))
    after = write(tmp_path / "t.csv", table(logits))
    pair = read_pair(before, after, ColumnSpec(logits=True))
    np.testing.assert_allclose(pair.source.p, P_SOURCE, rtol=1e-9)
    np.testing.assert_allclose(pair.target.p, P_TARGET, rtol=1e-9)


def test_logits_of_one_column(tmp_path):
    odds, now = np.log(SCORES / (1 - SCORES)), np.log(SCORES_NOW / (1 - SCORES_NOW))
    before = write(tmp_path / "s.csv", {"logit": odds.tolist(), "label": FRAUD.tolist()})
    after = write(tmp_path / "t.csv", {"logit": now.tolist()})
    pair = read_pair(before, after, ColumnSpec(logits=True))
    np.testing.assert_allclose(pair.source.p, SCORES, rtol=1e-9)
    np.testing.assert_allclose(pair.target.p, SCORES_NOW, rtol=1e-9)


# --- bad files: one line that says what to do


def test_a_missing_file(capsys, source, tmp_path):
    gone = tmp_path / "gone.csv"
    assert f"{gone}: no such file" in complaint(capsys, "check", gone, source)
    assert f"{gone}: no such file" in complaint(capsys, "check", source, gone)


@pytest.mark.parametrize("command", ["check", "weights", "monitor"])
def test_every_command_complains_alike(command, capsys, source, tmp_path):
    assert "no such file" in complaint(capsys, command, source, tmp_path / "gone.csv")


@pytest.mark.parametrize("ending", ["csv", "parquet", "jsonl", "npz", "npy", "arrow"])
def test_an_empty_file(ending, capsys, target, tmp_path):
    path = tmp_path / f"empty.{ending}"
    path.touch()
    assert f"{path} is empty" in complaint(capsys, "check", path, target)


def test_a_folder_without_files(capsys, source, tmp_path):
    (tmp_path / "none").mkdir()
    message = complaint(capsys, "check", source, tmp_path / "none")
    assert "none is a folder without a file of a known format (.parquet, .csv" in message


def test_a_folder_cannot_be_mended(capsys, source, target, tmp_path):
    folder = tmp_path / "parts.csv"
    folder.mkdir()
    (folder / "one.csv").write_bytes(Path(target).read_bytes())
    message = complaint(capsys, "recalibrate", source, folder, "-o", tmp_path / "out.csv")
    assert "parts.csv is a folder: name a file" in message


@pytest.mark.parametrize("name", ["data.xyz", "data", "data.json", "data.gz"])
def test_an_unknown_ending_is_told_the_known_ones(name, capsys, target, tmp_path):
    path = tmp_path / name
    path.write_text("x")
    assert ".parquet, .csv" in complaint(capsys, "check", path, target)


def test_a_name_that_is_too_long_is_no_fault_of_ours(capsys, target):
    assert "xxx" in complaint(capsys, "check", "x" * 300 + ".csv", target)


@pytest.mark.parametrize("ending", ["parquet", "arrow", "npz", "csv.gz", "jsonl.gz", "jsonl"])
def test_a_truncated_file(ending, capsys, target, tmp_path):
    path = tmp_path / f"cut.{ending}"
    write(path, table(P_SOURCE, named(Y_SOURCE)))
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) * 2 // 3])
    message = complaint(capsys, "check", path, target)
    assert f"{path} cannot be read" in message
    assert "is the file truncated" in message


def test_a_truncated_npy(capsys, target, tmp_path):
    path = tmp_path / "cut.npy"
    np.save(path, P_TARGET)
    path.write_bytes(path.read_bytes()[:1000])
    message = complaint(capsys, "check", target, path, "--label", "p_ant", "--columns", "p_bee")
    assert "cut.npy cannot be read" in message


@pytest.mark.parametrize("ending", ["parquet", "csv", "jsonl", "npz", "arrow"])
def test_a_file_of_another_kind_than_its_ending_says(ending, capsys, target, tmp_path):
    path = tmp_path / f"other.{ending}"
    path.write_bytes(bytes(range(256)) * 20)
    message = complaint(capsys, "check", path, target)
    assert str(path) in message
    assert message[:-1].isprintable()


@pytest.mark.parametrize("ending", ["csv", "parquet", "jsonl", "npz"])
def test_wrong_columns(ending, capsys, source, tmp_path):
    path = write(tmp_path / f"t.{ending}", table(P_TARGET, prefix="zz_"))
    message = complaint(capsys, "check", source, path)
    assert path in message
    assert "'zz_ant'" in message
    assert "--columns" in message


@pytest.mark.parametrize("ending", ["csv", "parquet", "jsonl", "npz"])
def test_labels_absent(ending, capsys, target, tmp_path):
    path = write(tmp_path / f"s.{ending}", table(P_SOURCE))
    message = complaint(capsys, "check", path, target)
    assert path in message
    assert "--label" in message


def test_labels_of_npy_absent(capsys, target, tmp_path):
    np.save(tmp_path / "p.npy", P_SOURCE)
    assert "--label labels.npy" in complaint(capsys, "check", tmp_path / "p.npy", target)
    message = complaint(capsys, "check", tmp_path / "p.npy", target, "--label", "none.npy")
    assert "no none.npy" in message


@pytest.mark.parametrize("ending", ["csv", "jsonl"])
def test_one_text_among_probabilities(ending, capsys, target, tmp_path):
    path = write(tmp_path / f"s.{ending}", table(P_SOURCE, named(Y_SOURCE)))
    text = Path(path).read_text()
    Path(path).write_text(text.replace(repr(float(P_SOURCE[7, 1])), '"oops"'))
    assert "oops" in Path(path).read_text()
    message = complaint(capsys, "check", path, target)
    assert path in message
    assert "p_bee" in message


@pytest.mark.parametrize("ending", ["csv", "parquet", "jsonl", "npz", "arrow"])
def test_a_column_of_text_in_the_place_of_probabilities(ending, capsys, target, tmp_path):
    columns = table(P_SOURCE, named(Y_SOURCE)) | {"p_bee": ["low"] * 600}
    message = complaint(capsys, "check", write(tmp_path / f"s.{ending}", columns), target)
    assert "'p_bee' must contain numbers" in message
    assert "low" in message


@pytest.mark.parametrize("ending", ["csv", "parquet", "jsonl"])
@pytest.mark.parametrize("column", ["p_bee", "label"])
def test_a_missing_value_is_named_by_its_row(column, ending, capsys, target, tmp_path):
    columns = table(P_SOURCE, named(Y_SOURCE))
    columns[column][7] = None
    message = complaint(capsys, "check", write(tmp_path / f"s.{ending}", columns), target)
    assert f"{column!r} has no value in row 7" in message
    assert "drop the row" in message


@pytest.mark.parametrize("ending", ["parquet", "npz"])
def test_a_probability_that_is_nan_is_named_by_its_row(ending, capsys, target, tmp_path):
    p = P_SOURCE.copy()
    p[7, 1] = np.nan
    path = write(tmp_path / f"s.{ending}", table(p, named(Y_SOURCE)))
    message = complaint(capsys, "check", path, target)
    assert path in message
    assert "row 7, column 1 is nan" in message


def test_a_missing_value_within_a_list_is_named_by_its_row(capsys, target, tmp_path):
    lists = P_SOURCE.tolist()
    lists[5][1] = None
    columns = {"probs": lists, "label": Y_SOURCE.tolist()}
    message = complaint(capsys, "check", write(tmp_path / "s.parquet", columns), target)
    assert "row 5" in message


@pytest.mark.parametrize("ending", ["csv", "parquet", "jsonl", "npz"])
def test_an_unknown_label(ending, capsys, target, tmp_path):
    labels = named(Y_SOURCE)
    labels[7] = "yak"
    message = complaint(
        capsys, "check", write(tmp_path / f"s.{ending}", table(P_SOURCE, labels)), target
    )
    assert "'yak' is not one of the classes 'ant', 'bee', 'cow'" in message


def test_a_label_out_of_range(capsys, target, tmp_path):
    labels = Y_SOURCE.tolist()
    labels[7] = 3
    path = write(tmp_path / "s.csv", table(P_SOURCE, labels))
    message = complaint(capsys, "check", path, target)
    assert path in message
    assert "row 7 is 3" in message


def test_a_label_between_two_numbers_is_the_one_that_is_named(capsys, target, tmp_path):
    labels = Y_SOURCE.astype(float).tolist()
    labels[7] = 1.5
    message = complaint(capsys, "check", write(tmp_path / "s.csv", table(P_SOURCE, labels)), target)
    assert "1.5" in message


def test_names_as_labels_need_names_of_classes(capsys, tmp_path):
    before = write(tmp_path / "s.jsonl", {"p": P_SOURCE.tolist(), "label": named(Y_SOURCE)})
    after = write(tmp_path / "t.jsonl", {"p": P_TARGET.tolist()})
    assert "p_NAME" in complaint(capsys, "check", before, after)


@pytest.mark.parametrize("ending", ["csv", "parquet", "jsonl"])
def test_mismatched_classes_are_named(ending, capsys, source, tmp_path):
    after = write(tmp_path / f"t.{ending}", table(P_TARGET, names=("ant", "bat", "cow")))
    message = complaint(capsys, "check", source, after)
    assert f"only {source} has 'bee'; only {after} has 'bat'" in message
    assert "--columns" in message


def test_a_class_too_few_without_names(capsys, tmp_path):
    np.savez(tmp_path / "a.npz", p=P_SOURCE, y=Y_SOURCE)
    np.savez(tmp_path / "b.npz", p=np.full((50, 2), 0.5))
    message = complaint(capsys, "check", tmp_path / "a.npz", tmp_path / "b.npz")
    assert "a.npz has 3" in message or "first has 3" in message


@pytest.mark.parametrize("side", ["source", "target"])
@pytest.mark.parametrize("ending", ["csv", "parquet", "jsonl", "npz"])
def test_percent_in_the_place_of_probability(side, ending, capsys, source, target, tmp_path):
    if side == "source":
        bad = write(tmp_path / f"bad.{ending}", table(100 * P_SOURCE, named(Y_SOURCE)))
        message = complaint(capsys, "check", bad, target)
    else:
        bad = write(tmp_path / f"bad.{ending}", table(100 * P_TARGET))
        message = complaint(capsys, "check", source, bad)
    assert bad in message
    assert "divide by 100" in message


@pytest.mark.parametrize("logits", [np.log(P_TARGET), np.log(P_TARGET) + 2], ids=["log", "logits"])
def test_logits_unannounced(logits, capsys, source, tmp_path):
    bad = write(tmp_path / "bad.csv", table(logits))
    message = complaint(capsys, "check", source, bad)
    assert bad in message
    assert "--logits" in message


@pytest.mark.parametrize(
    ("scores", "advice"),
    [(100 * SCORES_NOW, "divide by 100"), (np.log(SCORES_NOW / (1 - SCORES_NOW)), "--logits")],
    ids=["percent", "logits"],
)
def test_one_column_of_percent_or_logits_is_told_too(scores, advice, capsys, tmp_path):
    before = write(tmp_path / "s.csv", {"p_fraud": SCORES.tolist(), "label": FRAUD.tolist()})
    bad = write(tmp_path / "t.csv", {"p_fraud": scores.tolist()})
    message = complaint(capsys, "check", before, bad)
    assert bad in message
    assert advice in message


@pytest.mark.parametrize("ending", ["parquet", "jsonl", "arrow"])
def test_ragged_lists_are_named_by_their_rows(ending, capsys, target, tmp_path):
    lists = P_SOURCE.tolist()
    lists[5].pop()
    columns = {"probs": lists, "label": Y_SOURCE.tolist()}
    message = complaint(capsys, "check", write(tmp_path / f"s.{ending}", columns), target)
    assert "row 0 has 3, row 5 has 2" in message


@pytest.mark.parametrize("ending", ["csv", "parquet", "npz"])
def test_a_header_without_rows(ending, capsys, source, tmp_path):
    path = write(tmp_path / f"t.{ending}", table(P_TARGET[:0]))
    message = complaint(capsys, "check", source, path)
    assert f"{path} has columns but no row" in message


def test_two_columns_of_one_name(capsys, target, tmp_path):
    path = tmp_path / "s.csv"
    path.write_text("p_ant,p_bee,p_ant,label\n0.2,0.5,0.3,ant\n")
    message = complaint(capsys, "check", path, target)
    assert "two columns named 'p_ant'" in message


def test_pickled_objects_are_not_loaded(capsys, target, tmp_path):
    np.savez(tmp_path / "s.npz", p=np.array([{}, None]), y=[0, 1])
    message = complaint(capsys, "check", tmp_path / "s.npz", target)
    assert "s.npz: 'p' contains Python objects" in message
    np.save(tmp_path / "p.npy", np.array([{}, None]), allow_pickle=True)
    message = complaint(capsys, "check", target, tmp_path / "p.npy", "--label", "p_ant")
    assert "p.npy cannot be read" in message


def test_arrays_of_different_length(capsys, target, tmp_path):
    np.savez(tmp_path / "s.npz", p=P_SOURCE, y=Y_SOURCE[:9])
    message = complaint(capsys, "check", tmp_path / "s.npz", target)
    assert "'p' has 600, 'y' has 9" in message


def test_labels_of_npy_of_different_length(capsys, target, tmp_path):
    np.save(tmp_path / "p.npy", P_SOURCE)
    np.save(tmp_path / "y.npy", Y_SOURCE[:9])
    message = complaint(capsys, "check", tmp_path / "p.npy", target, "--label", tmp_path / "y.npy")
    assert "600" in message
    assert "9" in message


@pytest.mark.parametrize("shape", [(), (4, 3, 2), (9, 1)])
def test_an_array_of_the_wrong_shape_is_no_fault_of_ours(shape, capsys, source, tmp_path):
    path = tmp_path / "t.npy"
    np.save(path, np.full(shape, 0.5))
    assert str(path) in complaint(capsys, "check", source, path)


def test_a_label_file_of_the_wrong_shape_is_no_fault_of_ours(capsys, target, tmp_path):
    np.save(tmp_path / "p.npy", P_SOURCE)
    np.save(tmp_path / "y.npy", np.array(3))
    message = complaint(capsys, "check", tmp_path / "p.npy", target, "--label", tmp_path / "y.npy")
    assert "y.npy" in message


@pytest.mark.parametrize("classes", [("a", "b"), ("a", "a", "b")], ids=["too few", "twice"])
def test_wrong_names_in_an_npz_are_named_with_the_file(classes, capsys, tmp_path):
    np.savez(tmp_path / "s.npz", p=P_SOURCE, y=Y_SOURCE, classes=classes)
    np.savez(tmp_path / "t.npz", p=P_TARGET)
    assert "s.npz" in complaint(capsys, "check", tmp_path / "s.npz", tmp_path / "t.npz")


def test_labels_of_one_class_only_are_named_with_the_file(capsys, target, tmp_path):
    path = write(tmp_path / "s.csv", table(P_SOURCE, ["ant"] * 600))
    message = complaint(capsys, "check", path, target)
    assert "two classes" in message
    assert path in message


@pytest.mark.parametrize("rows", [2, 3])
def test_a_few_rows_are_not_said_to_be_one(rows, capsys, tmp_path):
    path = write(tmp_path / "s.csv", table(P_SOURCE[:rows], ["ant", "cow", "ant"][:rows]))
    few = write(tmp_path / "t.csv", table(P_TARGET[:2]))
    assert status(["check", path, few, "-q", "--json", str(tmp_path / "out.json")]) in (2, 3)
    assert "got 1" not in capsys.readouterr().err


# --- places to write that cannot be


@pytest.mark.parametrize("option", ["report", "json", "markdown", "prometheus"])
def test_an_output_in_a_folder_that_is_not_there(option, capsys, source, target, tmp_path):
    place = tmp_path / "none" / "out"
    message = complaint(capsys, "check", source, target, f"--{option}", place)
    assert f"there is no folder {place.parent}" in message


@pytest.mark.parametrize("option", ["report", "json", "markdown", "prometheus"])
def test_an_output_onto_a_folder(option, capsys, source, target, tmp_path):
    message = complaint(capsys, "check", source, target, f"--{option}", tmp_path)
    assert f"{tmp_path} is a folder: name a file" in message


def test_two_outputs_into_one_file(capsys, source, target, tmp_path):
    out = tmp_path / "out"
    message = complaint(capsys, "check", source, target, "--json", out, "--report", out)
    assert "same path" in message


def test_places_are_checked_before_files_are_read(capsys, tmp_path):
    message = complaint(capsys, "check", "gone.csv", "gone.csv", "--json", tmp_path)
    assert "is a folder" in message


def test_one_hot_labels_are_told_the_remedy(capsys, target, tmp_path):
    labels = np.eye(3, dtype=int)[Y_SOURCE].tolist()
    path = write(tmp_path / "s.parquet", table(P_SOURCE) | {"label": labels})
    assert "argmax" in complaint(capsys, "check", path, target)


def test_rows_that_do_not_add_up_say_which_columns_were_read(capsys, tmp_path):
    columns = table(P_SOURCE, Y_SOURCE.tolist()) | {"p_value": [0.5] * len(P_SOURCE)}
    path = write(tmp_path / "s.csv", columns)
    other = write(tmp_path / "t.csv", table(P_TARGET) | {"p_value": [0.5] * len(P_TARGET)})
    assert "'p_value': choose others with --columns" in complaint(capsys, "check", path, other)
