"""Files with other numbers, written block by block."""

from __future__ import annotations

import bz2
import gzip
import io
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet
import pytest

from calshift._core.outputs import Outputs
from calshift.cli.main import status
from calshift.errors import InvalidInput
from calshift.io.columns import ColumnSpec
from calshift.io.formats.csv_records import split_records
from calshift.io.formats.new_numbers import NewNumbers
from calshift.io.prediction_file import open_predictions
from tests.prediction_files import NAMES, P_SOURCE, P_TARGET, Y_SOURCE, named, table, write

NEW = np.linspace(0, 1, 1800).reshape(600, 3) + 0.125  # no probabilities: the file does not mind


def rewritten(path) -> bytes:
    file, out = open_predictions(path, "target", ColumnSpec()), Path(path).with_name("out")
    with Outputs() as files:
        assert file.rewrite([NEW[:7], NEW[7:300], NEW[300:]], files.open(out)) == 600
    return out.read_bytes()


# --- csv


TEXTS = {
    "plain": "a,p,b\n1,0.5,x\n2,0.25,y\n",
    "no end": "a,p,b\n1,0.5,x\n2,0.25,y",
    "windows": "a,p,b\r\n1,0.5,x\r\n2,0.25,y\r\n",
    "old mac": "a,p,b\r1,0.5,x\r2,0.25,y\r",
    "blank lines": "\n\na,p,b\n\n1,0.5,x\n\n\n2,0.25,y\n\n",
    "quotes": '"a","p","b"\n"1","0.5","x"\n"2","0.25","y ""z"" \n\r\n,"\n',
    "quotes later": 'a,p,b\n1,0.5,x\n2,0.25,"y\nz"',
    "quote inside": 'a,p,b\n1,0.5,x"y\n2,0.25,"',
    "empty fields": "a,p,b\n,0.5,\n,,\n",
    "trailing comma": "a,p,b\n1,0.5,x\n2,0.25,",
    "nothing": "",
}


@pytest.mark.parametrize("what", TEXTS)
@pytest.mark.parametrize("size", [1, 2, 3, 5, 8, 1000])
def test_records_join_to_the_same_text_for_any_blocks(what, size):
    text = TEXTS[what]
    blocks = [text[at : at + size] for at in range(0, len(text), size)]
    found = [record for records in split_records(blocks, ",") for record in records]
    assert "".join(",".join(fields) + end for fields, end in found) == text
    assert found == [record for records in split_records([text], ",") for record in records]


@pytest.mark.parametrize("ending", ["csv", "csv.gz", "csv.bz2", "csv.zst", "tsv"])
@pytest.mark.parametrize("line", ["\n", "\r\n"])
def test_every_byte_of_csv_but_the_numbers_stays(ending, line, tmp_path, monkeypatch):
    monkeypatch.setattr("calshift.io.formats.text.CSV_BLOCK", 100)
    separator = "\t" if ending == "tsv" else ","
    rows = [["id", "p_ant", "note", "p_bee", "p_cow"]]
    for k, p in enumerate(P_TARGET.tolist()):
        note = f'"{k} ""b""{separator} {line} \u00fc"' if k % 3 == 0 else f"note {k}"
        rows.append([f"0{k}", repr(p[0]), note, repr(p[1]), repr(p[2])])
    text = line.join(separator.join(row) for row in rows) + line
    plain, path = text.encode(), tmp_path / f"t.{ending}"
    path.write_bytes(pack(plain, ending))
    for row, values in zip(rows[1:], NEW.tolist(), strict=True):
        row[1], row[3], row[4] = map(repr, values)
    expected = line.join(separator.join(row) for row in rows) + line
    assert unpack(rewritten(path), ending) == expected.encode()


def pack(content: bytes, ending: str) -> bytes:
    kind = ending.split(".")[-1]
    if kind == "zst":
        out = pa.BufferOutputStream()
        with pa.CompressedOutputStream(out, "zstd") as stream:
            stream.write(content)
        return out.getvalue().to_pybytes()
    return {"gz": gzip.compress, "bz2": bz2.compress}.get(kind, bytes)(content)


def unpack(content: bytes, ending: str) -> bytes:
    kind = ending.split(".")[-1]
    if kind == "zst":
        return pa.CompressedInputStream(pa.BufferReader(content), "zstd").read()
    return {"gz": gzip.decompress, "bz2": bz2.decompress}.get(kind, bytes)(content)


# --- the other formats


def test_jsonl_in_many_blocks(tmp_path, monkeypatch):
    monkeypatch.setattr("calshift.io.formats.text.JSON_BLOCK", 500)
    path = write(tmp_path / "t.jsonl", table(P_TARGET, note=[f"\u00fc {k}" for k in range(600)]))
    found = [json.loads(line) for line in rewritten(path).decode().splitlines()]
    assert [[one[f"p_{name}"] for name in NAMES] for one in found] == NEW.tolist()
    assert [one["note"] for one in found] == [f"\u00fc {k}" for k in range(600)]


@pytest.mark.parametrize("kind", ["parquet", "file", "stream"])
@pytest.mark.parametrize("lists", [False, True])
def test_arrow_in_many_batches(kind, lists, tmp_path):
    notes = pa.array([f"note {k % 7}" for k in range(600)])
    columns = {"probs": pa.array(P_TARGET.tolist(), pa.list_(pa.float32()))} if lists else {}
    columns = columns or table(P_TARGET)
    before = pa.table(columns | {"note": notes.dictionary_encode(), "n": range(600)})
    before = before.replace_schema_metadata({"who": "me"})
    path = tmp_path / ("t.parquet" if kind == "parquet" else "t.arrow")
    if kind == "parquet":
        pa.parquet.write_table(before, path, row_group_size=77)
    else:
        new = pa.ipc.new_file if kind == "file" else pa.ipc.new_stream
        with new(str(path), before.schema) as writer:
            writer.write_table(before, max_chunksize=77)
    content = pa.BufferReader(rewritten(path))
    if kind == "parquet":
        after = pa.parquet.read_table(content)
    else:
        after = (pa.ipc.open_file if kind == "file" else pa.ipc.open_stream)(content).read_all()
    if not (lists and kind == "parquet"):  # which has another name for the values of lists
        assert after.schema.equals(before.schema, check_metadata=True)
    assert after["note"].to_pylist() == notes.to_pylist()
    assert after["n"].to_pylist() == list(range(600))
    if lists:
        found = np.array(after["probs"].to_pylist())
        np.testing.assert_array_equal(found, NEW.astype(np.float32))
    else:
        found = np.stack([after[f"p_{name}"].to_numpy() for name in NAMES], axis=1)
        np.testing.assert_array_equal(found, NEW)


def test_dictionaries_that_grow_from_batch_to_batch(tmp_path):
    path, names = tmp_path / "t.arrow", ["a", "b", "c", "d"]
    parts = [
        pa.record_batch(
            table(P_TARGET[k * 150 : k * 150 + 150])
            | {"note": pa.array([names[k]] * 150).dictionary_encode()}
        )
        for k in range(4)
    ]
    with pa.ipc.new_stream(str(path), parts[0].schema) as writer:
        for part in parts:
            writer.write_batch(part)
    after = pa.ipc.open_stream(pa.BufferReader(rewritten(path))).read_all()
    assert after["note"].to_pylist() == [name for name in names for _ in range(150)]


@pytest.mark.parametrize("order", ["C", "F"])
def test_numpy_files_in_many_blocks(order, tmp_path, monkeypatch):
    monkeypatch.setattr(sys.modules["calshift.io.formats.npy"], "BATCH", 77)
    np.save(tmp_path / "t.npy", np.asarray(P_TARGET, order=order))
    found = np.load(io.BytesIO(rewritten(tmp_path / "t.npy")))
    np.testing.assert_array_equal(found, NEW)
    columns = {f"p_{name}": P_TARGET[:, k].astype(np.float32) for k, name in enumerate(NAMES)}
    np.savez(tmp_path / "t.npz", **columns, note=np.arange(3))
    with np.load(io.BytesIO(rewritten(tmp_path / "t.npz"))) as found:
        for k, name in enumerate(NAMES):
            np.testing.assert_array_equal(found[f"p_{name}"], NEW[:, k].astype(np.float32))
        np.testing.assert_array_equal(found["note"], np.arange(3))


# --- rows that do not fit


@pytest.mark.parametrize("ending", ["csv", "parquet", "arrow", "jsonl", "npz"])
@pytest.mark.parametrize("blocks", [[NEW[:300]], [NEW, NEW[:1]], []], ids=["fewer", "more", "none"])
def test_another_number_of_rows_is_an_error(ending, blocks, tmp_path):
    path = write(tmp_path / f"t.{ending}", table(P_TARGET))
    file = open_predictions(path, "target", ColumnSpec())
    with pytest.raises(InvalidInput, match="changed while it was read"):
        file.rewrite(blocks, io.BytesIO())


def test_numbers_are_taken_in_other_blocks_than_they_come():
    blocks = ({"p": np.arange(k, k + 3)} for k in range(0, 12, 3))
    numbers = NewNumbers(("p",), blocks, "some.csv")
    found = [numbers.take(rows) for rows in (1, 4, 0, 5, 2)]
    assert [one["p"].tolist() for one in found if one] == [
        [0],
        [1, 2, 3, 4],
        [5, 6, 7, 8, 9],
        [10, 11],
    ]
    assert numbers.finish() == 12


@pytest.mark.parametrize("ending", ["csv", "parquet", "jsonl", "npz"])
def test_a_late_row_that_is_wrong_leaves_no_output(ending, tmp_path, monkeypatch, capsys):
    source = write(tmp_path / "s.csv", table(P_SOURCE, named(Y_SOURCE)))
    target = write(tmp_path / "t.csv", table(P_TARGET))
    out, saved = tmp_path / f"o.{ending}", str(tmp_path / "saved.json")
    asked = ["-o", str(tmp_path / "m.csv"), "--save", saved]
    assert status(["recalibrate", source, target, *asked]) == 0
    wrong = P_TARGET.copy()
    wrong[599] = [0.9, 0.9, 0.9]
    path = write(tmp_path / f"wrong.{ending}", table(wrong))
    monkeypatch.setattr("calshift.io.file_reader.MOST_ROWS", 50)
    monkeypatch.setattr("calshift.io.file_reader.LEAST_ROWS", 50)
    for output in (str(out), "-"):
        capsys.readouterr()
        assert status(["apply", saved, path, "-o", output]) == 2
        told = capsys.readouterr()
        assert "row 599" in told.err
        assert told.out == ""
    assert not out.exists()
    assert [name for name in os.listdir(tmp_path) if name.endswith(".part")] == []


# --- memory


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="kilobytes on Linux")
def test_memory_does_not_grow_with_the_file(tmp_path):
    source = write(tmp_path / "s.csv", table(P_SOURCE, named(Y_SOURCE)))
    small = write(tmp_path / "t.csv", table(P_TARGET))
    saved = str(tmp_path / "saved.json")
    asked = ["-o", str(tmp_path / "m.csv"), "--save", saved]
    assert status(["recalibrate", source, small, *asked]) == 0
    header, _, rows = (tmp_path / "t.csv").read_bytes().partition(b"\n")
    large = tmp_path / "large.csv"
    large.write_bytes(header + b"\n" + rows * 1200)  # 40 MB
    peaks = [peak(saved, path, str(tmp_path / "o.csv")) for path in (small, str(large))]
    assert len(re.findall(b"\n", (tmp_path / "o.csv").read_bytes())) == 600 * 1200 + 1
    assert peaks[1] - peaks[0] < 200_000_000


def peak(saved: str, path: str, out: str) -> int:
    """The most memory of `calshift apply`, in bytes."""
    code = (
        "import resource, sys\nfrom calshift.cli.main import status\n"
        f"assert status(['apply', {saved!r}, {path!r}, '-o', {out!r}]) == 0\n"
        "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return int(done.stdout.split()[-1])
