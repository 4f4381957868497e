"""Mending files: the same file again, other numbers in its probabilities, and nothing else."""

from __future__ import annotations

import gzip
import json
import re
from dataclasses import replace
from importlib.resources import files
from pathlib import Path

import jsonschema
import numpy as np
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet
import pytest

import calshift
from calshift.cli.main import status
from calshift.cli.samples import read_pair
from calshift.io.columns import ColumnSpec
from calshift.report import recalibration_dict
from calshift.report.verdict import Gate
from tests.prediction_files import (
    FRAUD,
    NAMES,
    OTHER,
    P_SOURCE,
    P_TARGET,
    SCORES,
    SCORES_NOW,
    Y_SOURCE,
    named,
    table,
    write,
)

pytestmark = pytest.mark.filterwarnings("ignore::calshift.UnreliableWeights")
FORMATS = ("parquet", "csv", "csv.gz", "tsv", "arrow", "feather", "jsonl", "jsonl.gz")
TURNED = ("cow", "ant", "bee")
KEYS = [f"0{k}" for k in range(len(P_TARGET))]  # text that a reader of numbers would spoil


@pytest.fixture(scope="module")
def place(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("mending")
    write(folder / "source.csv", table(P_SOURCE, named(Y_SOURCE)))
    return folder


@pytest.fixture(scope="module")
def expected() -> np.ndarray:
    source = calshift.Predictions(P_SOURCE, named(Y_SOURCE), classes=NAMES)
    return calshift.recalibrate(source, None, P_TARGET).probabilities


def mend(*arguments: object) -> int:
    return status(["recalibrate", *map(str, arguments)])


def probabilities(path: Path, names=NAMES) -> np.ndarray:
    pair = read_pair(path.parent / "source.csv", path, ColumnSpec())
    assert pair.target.classes == names
    return pair.target.p


@pytest.mark.parametrize("ending", FORMATS)
def test_the_same_file_comes_back_with_mended_probabilities(ending, place, expected):
    # columns in another order than the source's, and others around them
    columns = {"key": KEYS} | table(P_TARGET[:, [2, 0, 1]], names=TURNED) | {"note": ["a,b"] * 600}
    before = Path(write(place / f"target.{ending}", columns))
    after = place / f"mended.{ending}"
    assert mend(place / "source.csv", before, "-o", after) == 0
    np.testing.assert_allclose(probabilities(after), expected, rtol=1e-12)
    if ending.startswith(("csv", "tsv")):
        shown = gzip.decompress(after.read_bytes()) if ending.endswith("gz") else after.read_bytes()
        separator = "\t" if ending == "tsv" else ","
        lines = shown.decode().splitlines()
        assert lines[0] == separator.join(f'"{name}"' for name in columns)
        assert lines[1].startswith(f'"00"{separator}')
        assert lines[1].endswith(f'{separator}"a,b"')
    if ending.startswith("jsonl"):
        shown = gzip.decompress(after.read_bytes()) if ending.endswith("gz") else after.read_bytes()
        line = json.loads(shown.splitlines()[1])
        assert list(line) == list(columns)
        assert (line["key"], line["note"]) == ("01", "a,b")


@pytest.mark.parametrize("kind", [pa.float32(), pa.float64(), pa.int64()])
def test_parquet_keeps_types_and_metadata_but_for_whole_numbers(kind, place):
    certain = np.eye(3)[P_TARGET.argmax(axis=1)] if kind == pa.int64() else P_TARGET
    whole = pa.table({
        **{f"p_{c}": pa.array(certain[:, k], pa.float64()).cast(kind) for k, c in enumerate(NAMES)},
        "when": pa.array(range(600), pa.timestamp("ms")),
    }).replace_schema_metadata({"owner": "me"})  # fmt: skip
    before, after = place / "typed.parquet", place / "typed_mended.parquet"
    pa.parquet.write_table(whole, before)
    assert mend(place / "source.csv", before, "-o", after, "--no-check") in (0, 3)
    found = pa.parquet.read_table(after)
    assert found.column_names == whole.column_names
    assert found.schema.field("p_ant").type == (pa.float64() if kind == pa.int64() else kind)
    assert found["when"] == whole["when"]
    assert found.schema.metadata[b"owner"] == b"me"


@pytest.mark.parametrize(
    "kind", [pa.list_(pa.float64()), pa.large_list(pa.float32()), pa.list_(pa.float64(), 3)]
)
def test_lists_stay_lists_of_their_kind(kind, place, expected):
    before, after = place / "lists.parquet", place / "lists_mended.parquet"
    column = pa.array(P_TARGET.tolist(), kind)
    pa.parquet.write_table(pa.table({"key": KEYS, "probs": column}), before)
    labelled = place / "source_lists.parquet"
    lists = pa.table({"probs": P_SOURCE.tolist(), "label": Y_SOURCE.tolist()})
    pa.parquet.write_table(lists, labelled)
    assert mend(labelled, before, "-o", after) == 0
    found = pa.parquet.read_table(after)
    assert found["key"].to_pylist() == KEYS
    assert pa.types.is_large_list(found["probs"].type) == pa.types.is_large_list(kind)
    assert found["probs"].type.value_type == kind.value_type
    np.testing.assert_allclose(np.array(found["probs"].to_pylist()), expected, atol=1e-6)


def test_an_arrow_stream_stays_a_stream(place, expected):
    before, after = place / "stream.arrow", place / "stream_mended.arrow"
    whole = pa.table(table(P_TARGET))
    with pa.OSFile(str(before), "wb") as file, pa.ipc.new_stream(file, whole.schema) as writer:
        writer.write_table(whole)
    assert mend(place / "source.csv", before, "-o", after) == 0
    with pa.OSFile(str(after)) as file:
        found = pa.ipc.open_stream(file).read_all()
    np.testing.assert_allclose(found["p_ant"].to_numpy(), expected[:, 0], rtol=1e-12)


def soft(p: np.ndarray) -> np.ndarray:
    """Less sure: half a float would round the surest to exactly 1."""
    root = p**0.3
    return root / root.sum(axis=1, keepdims=True)


def test_npz_keeps_every_other_array_and_half_floats_grow(tmp_path):
    before, after = tmp_path / "both.npz", tmp_path / "mended.npz"
    kept = {
        "p": np.eye(2),  # not the target's: p_target is
        "p_source": soft(P_SOURCE).astype(np.float16),
        "y_source": Y_SOURCE,
        "classes": np.array(NAMES),
        "cube": np.ones((2, 2, 2)),
    }
    np.savez(before, p_target=soft(P_TARGET).astype(np.float16), **kept)
    assert mend(before, before, "-o", after) == 0
    with np.load(after) as found:
        assert sorted(found.files) == sorted([*kept, "p_target"])
        for name, array in kept.items():
            np.testing.assert_array_equal(found[name], array)
        assert found["p_target"].dtype == np.float32
        np.testing.assert_allclose(found["p_target"].sum(axis=1), 1, atol=1e-6)


def test_npy_comes_back_as_npy(tmp_path, expected):
    for name, array in (("p", P_SOURCE), ("y", Y_SOURCE), ("q", P_TARGET)):
        np.save(tmp_path / f"{name}.npy", array)
    labels = ["--label", tmp_path / "y.npy"]
    assert mend(tmp_path / "p.npy", tmp_path / "q.npy", *labels, "-o", tmp_path / "r.npy") == 0
    np.testing.assert_allclose(np.load(tmp_path / "r.npy"), expected, rtol=1e-12)


def test_logits_come_back_as_logits(tmp_path, expected):
    shift = np.linspace(-3, 3, 600)[:, None]
    write(tmp_path / "s.csv", table(np.log(P_SOURCE), named(Y_SOURCE), prefix="logit_"))
    write(tmp_path / "t.csv", table(np.log(P_TARGET) + shift, prefix="logit_"))
    assert mend(tmp_path / "s.csv", tmp_path / "t.csv", "--logits", "-o", tmp_path / "m.csv") == 0
    found = read_pair(tmp_path / "s.csv", tmp_path / "m.csv", ColumnSpec(logits=True)).target.p
    np.testing.assert_allclose(found, expected, rtol=1e-6)


@pytest.mark.parametrize("logits", [False, True])
def test_one_column_of_scores_stays_one_column(logits, tmp_path):
    def as_written(p):
        return (np.log(p / (1 - p)) if logits else p).tolist()

    write(tmp_path / "s.csv", {"p_fraud": as_written(SCORES), "label": FRAUD.tolist()})
    write(tmp_path / "t.csv", {"id": list(range(400)), "p_fraud": as_written(SCORES_NOW)})
    flags = ["--logits", "--columns", "p_fraud"] if logits else []
    assert mend(tmp_path / "s.csv", tmp_path / "t.csv", *flags, "-o", tmp_path / "m.csv") in (
        0,
        3,
    )  # accuracy falls
    asked = ColumnSpec(columns="p_fraud" if logits else None, logits=logits)
    found = read_pair(tmp_path / "s.csv", tmp_path / "m.csv", asked).target.p
    wanted = calshift.recalibrate(SCORES, FRAUD, SCORES_NOW).probabilities
    np.testing.assert_allclose(found, wanted, rtol=1e-6, atol=1e-9)


def test_a_saved_recalibrator_mends_the_same_rows_the_same_way(place, tmp_path, expected):
    turned = write(tmp_path / "t.parquet", table(P_TARGET[:, [2, 0, 1]], names=TURNED))
    saved = tmp_path / "saved.json"
    assert mend(place / "source.csv", turned, "-o", tmp_path / "m.parquet", "--save", saved) == 0
    assert status(["apply", str(saved), turned, "-o", str(tmp_path / "n.parquet")]) == 0
    one, two = (pa.parquet.read_table(tmp_path / f"{k}.parquet") for k in "mn")
    assert one == two
    assert one.column_names == ["p_cow", "p_ant", "p_bee"]
    np.testing.assert_allclose(one["p_ant"].to_numpy(), expected[:, 0], rtol=1e-12)


def test_one_column_of_scores_can_be_applied_to(tmp_path):
    source = write(tmp_path / "s.csv", {"p_fraud": SCORES.tolist(), "label": FRAUD.tolist()})
    target = write(tmp_path / "t.csv", {"p_fraud": SCORES_NOW.tolist()})
    out, again, saved = (str(tmp_path / name) for name in ("m.csv", "n.csv", "saved.json"))
    assert mend(source, target, "-o", out, "--save", saved) in (0, 3)
    assert status(["apply", saved, target, "-o", again]) == 0
    assert Path(out).read_bytes() == Path(again).read_bytes()


def schema() -> dict:
    place = files("calshift.report") / "schemas" / "recalibration.json"
    return json.loads(place.read_text(encoding="utf-8"))


@pytest.mark.parametrize("method", ["shift", "temperature", "isotonic", "vector+prior"])
def test_json_keeps_its_schema_and_says_what_python_says(method, place, tmp_path, capsys):
    target = write(tmp_path / "t.csv", table(P_TARGET))
    out, told = tmp_path / "m.csv", tmp_path / "told.json"
    asked = ["--method", method, "--json", told, "--max-error", "0.0001", "--gate", "upper"]
    assert mend(place / "source.csv", target, "-o", out, *asked) == 1
    report = json.loads(told.read_text(encoding="utf-8"))
    jsonschema.validate(report, schema())
    source = calshift.Predictions(P_SOURCE, named(Y_SOURCE), classes=NAMES)
    wanted = calshift.recalibrate(source, None, P_TARGET, method=method)
    assert report["before"]["root"] == pytest.approx(wanted.before.root)
    assert report["after"]["root"] == pytest.approx(wanted.after.root)
    ends = wanted.change.confidence_interval(root=True)
    assert report["change"]["interval"] == pytest.approx(list(ends))
    assert report["status"] == "breached"
    shown = capsys.readouterr().out
    assert f"{wanted.after.root:.4f}" in shown
    assert max(map(len, shown.splitlines())) <= 100
    saved = calshift.Recalibrator.from_dict(report["recalibrator"])
    np.testing.assert_allclose(saved.transform(P_TARGET), wanted.probabilities, rtol=1e-12)


def test_the_schema_can_be_broken(place, tmp_path):
    target = write(tmp_path / "t.csv", table(P_TARGET))
    told = tmp_path / "told.json"
    mend(place / "source.csv", target, "-o", tmp_path / "m.csv", "--json", told)
    report = json.loads(told.read_text(encoding="utf-8"))
    jsonschema.validate({**report, "more": 1}, schema())  # open to additions
    for spoilt in ({**report, "folds": 1}, {**report, "after": None}):
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate(spoilt, schema())


def test_what_cannot_be_trusted_ends_with_status_3_and_says_so(place, tmp_path, capsys):
    target = write(tmp_path / "t.csv", table(OTHER))
    told = tmp_path / "told.json"
    assert mend(place / "source.csv", target, "-o", tmp_path / "m.csv", "--json", told) == 3
    assert capsys.readouterr().out.startswith("Not reliable: more than the class")
    assert (tmp_path / "m.csv").exists()
    report = json.loads(told.read_text(encoding="utf-8"))
    jsonschema.validate(report, schema())
    assert report["gist"] == "Not reliable"


def test_the_output_can_be_the_terminal(place, tmp_path, capfdbinary):
    target = write(tmp_path / "t.csv", table(P_TARGET))
    assert mend(place / "source.csv", target, "-o", "-") == 0
    shown = capfdbinary.readouterr()
    assert shown.out.startswith(b'"p_ant","p_bee","p_cow"\n')
    assert len(shown.out.splitlines()) == 601
    assert b"before" in shown.err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["-o", "{0}/m.parquet"], "must have the extension of {0}/t.csv (.csv)"),
        (["-o", "{0}/m.csv.gz"], "must have the extension of {0}/t.csv (.csv)"),
        (["-o", "{0}/t.csv"], "is an input; choose another output path"),
        (["-o", "{0}/nowhere/m.csv"], "there is no folder"),
        (["-o", "{0}/m.csv", "--save", "{0}/m.csv"], "two outputs have the same path"),
        (["-o", "-", "--json", "-"], "only one output can be -"),
        (["-o", "{0}/m.csv", "--folds", "1"], "--folds must be a whole number of at least 2"),
        (["-o", "{0}/m.csv", "--weights", "1,2"], "3"),
        (["-o", "{0}/m.csv", "--method", "magic"], "magic"),
        ([], "--output"),
    ],
)
def test_wrong_usage_is_one_line_and_leaves_nothing(arguments, said, place, tmp_path, capsys):
    target = write(tmp_path / "t.csv", table(P_TARGET))
    before = Path(target).read_bytes()
    asked = [part.format(tmp_path) for part in arguments]
    assert mend(place / "source.csv", target, *asked) == 2
    told = capsys.readouterr().err.strip()
    assert said.format(tmp_path) in told
    assert "Traceback" not in told
    assert Path(target).read_bytes() == before
    assert [path.name for path in tmp_path.iterdir()] == ["t.csv"]


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("", "is empty"),
        ("{", "cannot be read as JSON"),
        ("[1, 2]", "is not a file of `calshift recalibrate --save`"),
        ('{"format": "calshift recalibrator", "version": 2, "name": "X"}', "version 2"),
    ],
)
def test_a_spoilt_recalibrator_is_named(content, said, tmp_path, capsys):
    target = write(tmp_path / "t.csv", table(P_TARGET))
    saved = tmp_path / "saved.json"
    saved.write_text(content)
    assert status(["apply", str(saved), target, "-o", str(tmp_path / "m.csv")]) == 2
    told = capsys.readouterr().err
    assert said in told
    assert "saved.json" in told
    assert not (tmp_path / "m.csv").exists()


@pytest.mark.parametrize(
    "change",
    [
        lambda learned: learned["slopes_"].__setitem__(0, -1e308),
        lambda learned: learned["slopes_"].__setitem__(0, 10**400),
        lambda learned: learned["biases_"].__setitem__(1, float("nan")),
        lambda learned: learned["biases_"].__setitem__(1, [[[0.1]]]),
        lambda learned: learned.pop("slopes_"),
    ],
    ids=["-1e308", "400 digits", "NaN", "lists", "missing"],
)
def test_a_tampered_recalibrator_writes_nothing(change, tmp_path, capsys):
    target = write(tmp_path / "t.csv", table(P_TARGET))
    source = calshift.Predictions(P_SOURCE, named(Y_SOURCE), classes=NAMES)
    content = calshift.VectorScaling().fit(source).to_dict()
    change(content["learned"])
    saved = tmp_path / "saved.json"
    saved.write_text(json.dumps(content))
    assert status(["apply", str(saved), target, "-o", str(tmp_path / "m.csv")]) == 2
    told = capsys.readouterr().err
    assert "saved.json" in told
    assert told.count("\n") == 1
    assert sorted(path.name for path in tmp_path.iterdir()) == ["saved.json", "t.csv"]


def test_other_classes_than_the_recalibrator_knows_are_named(place, tmp_path, capsys):
    target = write(tmp_path / "t.csv", table(P_TARGET))
    saved = str(tmp_path / "saved.json")
    assert mend(place / "source.csv", target, "-o", tmp_path / "m.csv", "--save", saved) == 0
    other = write(tmp_path / "o.csv", table(P_TARGET, names=("ant", "bee", "dog")))
    assert status(["apply", saved, other, "-o", str(tmp_path / "n.csv")]) == 2
    assert "'dog'" in capsys.readouterr().err


def test_given_weights_are_used(place, tmp_path):
    target = write(tmp_path / "t.csv", table(P_TARGET))
    asked = ["--weights", "1,1,1", "--method", "prior"]
    assert mend(place / "source.csv", target, "-o", tmp_path / "m.csv", *asked) in (0, 3)
    found = read_pair(place / "source.csv", tmp_path / "m.csv").target.p
    np.testing.assert_allclose(found, P_TARGET, rtol=1e-12)


def odd_csv(rows: int, line: str = "\r\n", mark: str = "\ufeff", coding: str = "utf-8") -> bytes:
    """What programs write: a mark, quotes everywhere, other line ends, a cell with lines in it."""
    head = '"key";"p_ant";"note";"p_bee";"p_cow"'
    cells = [
        f'"0{k}";{float(a)!r};"a ""b""; \r\n ü{k}";"{float(b)!r}";{float(c)!r}'
        for k, (a, b, c) in enumerate(P_TARGET[np.arange(rows) % 600])
    ]
    return (mark + line.join([head, *cells[:3], "", *cells[3:]]) + line).encode(coding)


@pytest.mark.parametrize(
    ("line", "mark", "coding"),
    [("\r\n", "\ufeff", "utf-8"), ("\n", "", "utf-8"), ("\n", "", "latin-1")],
)
def test_every_other_byte_of_a_csv_stays(line, mark, coding, place, tmp_path, expected):
    before, after = tmp_path / "t.csv", tmp_path / "m.csv"
    before.write_bytes(odd_csv(600, line, mark, coding))
    assert mend(place / "source.csv", before, "-o", after) == 0
    number = r"\d\.\d+(?:e-?\d+)?"
    old, new = (path.read_bytes().decode(coding) for path in (before, after))
    # the quotes around a number that is replaced go; nothing else does
    assert re.split(number, new) == re.split(f'"{number}"|{number}', old)
    found = np.array(re.findall(number, new), dtype=float).reshape(600, 3)
    np.testing.assert_allclose(found, expected, rtol=1e-9)


@pytest.mark.slow
def test_cells_with_lines_in_them_are_read_in_files_of_many_blocks(place, tmp_path):
    before, after = tmp_path / "t.csv", tmp_path / "m.csv"
    before.write_bytes(odd_csv(24_000))  # pyarrow reads blocks of about a megabyte
    assert mend(place / "source.csv", before, "-o", after, "--no-check") in (0, 3)
    assert after.read_bytes().count(b"\r\n") == before.read_bytes().count(b"\r\n")


def test_a_lone_carriage_return_stays_within_its_cell(place, tmp_path):
    import csv

    before, after = tmp_path / "t.csv", tmp_path / "m.csv"
    lines = [f'"a\rb{k}",{",".join(map(repr, row))}' for k, row in enumerate(P_TARGET.tolist())]
    before.write_text("\n".join(["note,p_ant,p_bee,p_cow", *lines]) + "\n", newline="")
    assert mend(place / "source.csv", before, "-o", after) == 0
    with after.open(newline="") as file:
        rows = list(csv.reader(file))
    assert len(rows) == 601
    assert rows[5][0] == "a\rb4"


def test_jsonl_with_rare_line_separators_in_texts_is_mended(place, tmp_path):
    before, after = tmp_path / "t.jsonl", tmp_path / "m.jsonl"
    objects = [
        {
            **dict(zip(("p_ant", "p_bee", "p_cow"), row, strict=True)),
            "note": "a\u2028b\x85c",
            "n": {"x": [1]},
        }
        for row in P_TARGET.tolist()
    ]
    before.write_text(
        "".join(json.dumps(one, ensure_ascii=False) + "\n" for one in objects), encoding="utf-8"
    )
    assert mend(place / "source.csv", before, "-o", after) == 0
    found = [json.loads(line) for line in after.read_text(encoding="utf-8").split("\n") if line]
    assert [(one["note"], one["n"]) for one in found] == [("a\u2028b\x85c", {"x": [1]})] * 600


def test_rows_that_are_certain_cannot_be_mended_and_that_is_said(place, tmp_path, capsys):
    certain = np.eye(3)[P_TARGET.argmax(axis=1)]
    target = write(tmp_path / "t.csv", table(certain))
    assert mend(place / "source.csv", target, "-o", tmp_path / "m.csv", "--no-check") == 3
    said = capsys.readouterr().out
    assert said.startswith("Not reliable: 100% of the target's rows")


def test_weights_that_are_given_are_said_to_judge_themselves(place, tmp_path, capsys):
    target = write(tmp_path / "t.csv", table(P_TARGET))
    mend(place / "source.csv", target, "-o", tmp_path / "m.csv", "--weights", "1,1,1")
    assert "use the weights given, not compared with the data" in " ".join(
        capsys.readouterr().out.split()
    )


def test_a_worse_answer_ends_with_status_3():
    found = calshift.recalibrate(P_SOURCE, Y_SOURCE, P_TARGET)
    turned = replace(
        found,
        before=found.after,
        after=found.before,
        change=calshift.compare(found.before, found.after),
    )
    assert recalibration_dict(found, Gate())["exit_code"] == 0
    report = recalibration_dict(turned, Gate())
    assert report["exit_code"] == 3
    assert "Keep the model's own probabilities" in report["verdict"]


def test_one_target_row_is_too_few_and_blamed_on_the_target(place, tmp_path, capsys):
    target = write(tmp_path / "t.csv", table(P_TARGET[:1]))
    assert mend(place / "source.csv", target, "-o", tmp_path / "m.csv") == 2
    assert "at least two rows" in (told := capsys.readouterr().err)
    assert "y_source" not in told


def test_another_number_of_classes_is_said_in_numbers(place, tmp_path, capsys):
    target = write(tmp_path / "t.csv", table(P_TARGET))
    saved = str(tmp_path / "saved.json")
    assert mend(place / "source.csv", target, "-o", tmp_path / "m.csv", "--save", saved) == 0
    two = write(
        tmp_path / "two.csv",
        table(P_TARGET[:, :2] / P_TARGET[:, :2].sum(axis=1)[:, None], names=("ant", "bee")),
    )
    assert status(["apply", saved, two, "-o", str(tmp_path / "n.csv")]) == 2
    assert "has 2 classes, and the recalibrator 3" in capsys.readouterr().err
