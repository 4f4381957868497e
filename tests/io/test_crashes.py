"""Damaged files that ended the process: each is read in a process of its own."""

from __future__ import annotations

import json
import subprocess
import sys

import numpy as np
import pyarrow as pa
import pytest

from calshift import InvalidInput
from calshift.io.formats.base import read_errors
from calshift.io.formats.text import DEEPEST, nesting_depth
from tests.prediction_files import NAMES, P_SOURCE, P_TARGET, Y_SOURCE, named, table, write

FAR = 2**30


def outside(column: pa.Array, buffer: int, kind: str, value: int, place: int) -> pa.Array:
    """The column with one number of a buffer replaced, which then points outside."""
    buffers = [None if b is None else bytearray(b.to_pybytes()) for b in column.buffers()]
    size = np.dtype(kind).itemsize
    buffers[buffer][place * size : (place + 1) * size] = np.array(value, kind).tobytes()
    made = [None if b is None else pa.py_buffer(bytes(b)) for b in buffers]
    if pa.types.is_dictionary(column.type):
        indices = pa.Array.from_buffers(column.type.index_type, len(column), made)
        return pa.DictionaryArray.from_arrays(indices, column.dictionary, safe=False)
    if pa.types.is_list(column.type):
        inside = column.values
        return pa.Array.from_buffers(column.type, len(column), made[:2], children=[inside])
    return pa.Array.from_buffers(column.type, len(column), made)


TEXT = pa.array(named(Y_SOURCE))
LISTS = pa.array(P_SOURCE.tolist())
PLAIN = table(P_SOURCE)
BAD = {
    "text offset": PLAIN | {"label": outside(TEXT, 1, "i4", FAR, 300)},
    "negative text offset": PLAIN | {"label": outside(TEXT, 1, "i4", -FAR, 300)},
    "dictionary index": PLAIN | {"label": outside(TEXT.dictionary_encode(), 1, "i4", FAR, 7)},
    "list offset": {"probs": outside(LISTS, 1, "i4", FAR, 30), "label": Y_SOURCE},
}


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "calshift", *arguments], capture_output=True, text=True, timeout=60
    )


def write_unchecked(path, columns, kind, compression=None) -> str:
    made = pa.table(columns)
    options = pa.ipc.IpcWriteOptions(compression=compression)
    new = pa.ipc.new_stream if kind == "stream" else pa.ipc.new_file
    with new(str(path), made.schema, options=options) as writer:
        writer.write_table(made)
    return str(path)


def check_refused(done, path) -> None:
    assert done.returncode == 2, done.stderr
    assert str(path) in done.stderr
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize("what", BAD)
@pytest.mark.parametrize("kind", ["file", "stream"])
@pytest.mark.parametrize("compression", [None, "lz4", "zstd"])
def test_offsets_and_indices_outside_of_an_arrow_file(what, kind, compression, tmp_path):
    path = write_unchecked(tmp_path / "s.arrow", BAD[what], kind, compression)
    target = write(tmp_path / "t.csv", table(P_TARGET))
    check_refused(run("check", path, target), path)


def test_offsets_outside_in_a_column_that_is_only_copied(tmp_path):
    notes = table(P_TARGET) | {"note": outside(TEXT, 1, "i4", FAR, 300)}
    path = write_unchecked(tmp_path / "t.arrow", notes, "file")
    source = write(tmp_path / "s.csv", table(P_SOURCE, named(Y_SOURCE)))
    check_refused(run("recalibrate", source, path, "-o", str(tmp_path / "o.arrow")), path)
    assert not (tmp_path / "o.arrow").exists()


# --- deep JSON


def lines(deep: str) -> str:
    row = dict(zip((f"p_{name}" for name in NAMES), P_SOURCE[0].tolist(), strict=True))
    text = json.dumps({**row, "label": "ant"})[:-1]
    return f'{text}, "note": {deep}}}\n' * 2


DEEP = {
    "lists": "[" * 20_000 + "]" * 20_000,
    "objects": '{"a":' * 20_000 + "1" + "}" * 20_000,
    "with closings in texts": '["]",' * 20_000 + "1" + "]" * 20_000,
    "with closings": "[[],[],[]," * 20_000 + "1" + "]" * 20_000,
    "over lines": "[\n" * 20_000 + "]" * 20_000,
    "not closed": "[" * 20_000,
    "escaped quotes": '["\\"]",' * 20_000 + "1" + "]" * 20_000,
}


@pytest.mark.parametrize("what", DEEP)
def test_deep_json_lines(what, tmp_path):
    path = tmp_path / "s.jsonl"
    path.write_text(lines(DEEP[what]))
    target = write(tmp_path / "t.csv", table(P_TARGET))
    done = run("check", str(path), target)
    check_refused(done, path)
    assert f"deeper than {DEEPEST}" in done.stderr


@pytest.mark.parametrize(
    ("text", "depth"),
    [
        ("", 0),
        ("{}", 1),
        ('{"a": [1, {"b": []}]}\n{"a": 1}', 4),
        ('{"a": "[[[["}', 1),
        ('{"a": "\\"[[[["}', 1),
        ('{"a\\\\": "[[[[", "b": [[]]}', 3),
        ('["]", ["]", ["]"]]]', 3),
        ("]]]][[", 2),
        ('{"a": "" , "[": "]"}', 1),
    ],
)
def test_brackets_in_texts_are_not_nested(text, depth):
    assert nesting_depth(text.encode()) == depth


def test_a_file_that_claims_more_than_it_can_hold_is_damaged_and_not_large(tmp_path):
    path = tmp_path / "a.arrow"
    path.write_bytes(b"x" * 100)
    for message in ("malloc of size {}000000 failed", "realloc of size {}", "capacity too large"):
        with pytest.raises(InvalidInput, match=r"a\.arrow .* damaged"), read_errors(path):
            raise MemoryError(message.format(824633720832))
    message = "malloc of size 1000000 failed"
    with pytest.raises(MemoryError), read_errors(path):
        raise MemoryError(message)
