"""Damaged and hostile files end in one line that names the file."""

from __future__ import annotations

import io
import json
import struct
import tracemalloc
import zipfile
from contextlib import suppress

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

import calshift
from calshift.cli.main import status
from calshift.errors import InvalidInput
from calshift.io.formats.base import read_errors
from tests.prediction_files import NAMES, P_SOURCE, P_TARGET, Y_SOURCE, named, table, write


@pytest.fixture
def target(tmp_path):
    return write(tmp_path / "target.csv", table(P_TARGET))


def refused(path, capsys, *arguments: str) -> str:
    """The line of `calshift check` about a damaged source."""
    assert status(["check", str(path), *arguments]) == 2
    err = capsys.readouterr().err
    assert err.count("\n") == 1
    assert str(path) in err
    return err


# --- every error of a reader


@pytest.mark.parametrize(
    "problem",
    [
        zipfile.BadZipFile("x"), RuntimeError("encrypted"), NotImplementedError("method"),
        OverflowError("too large"), RecursionError("deep"),
        UnicodeDecodeError("utf-8", b"", 0, 1, "x"),
        pa.ArrowNotImplementedError("x"), pa.ArrowTypeError("x"), IndexError("x"), SyntaxError("x"),
    ],
    ids=lambda problem: type(problem).__name__,
)  # fmt: skip
def test_every_error_of_a_reader_names_the_file(problem):
    with pytest.raises(InvalidInput, match=r"some[.]csv cannot be read"), read_errors("some.csv"):
        raise problem


@pytest.mark.parametrize("problem", [MemoryError, KeyboardInterrupt])
def test_memory_and_interrupts_are_no_errors_of_a_reader(problem):
    with pytest.raises(problem), read_errors("some.csv"):
        raise problem


# --- numpy's files


def npy_bytes(shape, kind="<f8", content=b"", header=None) -> bytes:
    text = header or f"{{'descr': '{kind}', 'fortran_order': False, 'shape': {shape}, }}"
    text = text.ljust(117) + "\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text.encode("latin-1") + content


HEADERS = {
    "negative": npy_bytes("(-3, 3)", content=bytes(720)),
    "both negative": npy_bytes("(-3, -3)", content=bytes(720)),
    "absurd": npy_bytes("(1000000000000000000000, 3)", content=bytes(720)),
    "product overflows": npy_bytes("(4294967296, 4294967296)", content=bytes(720)),
    "no integers": npy_bytes("(3.0, 3)", content=bytes(720)),
    "tokens": npy_bytes("", header="{'descr': '''<f8, (", content=bytes(720)),
    "deep": npy_bytes("", header="(" * 5000 + ")" * 5000),
    "syntax": npy_bytes("", header="{'descr': "),
    "no dictionary": npy_bytes("", header="3"),
    "type": npy_bytes("(3, 3)", kind="<zz", content=bytes(720)),
    "empty type": npy_bytes("(3, 3)", kind="<V0", content=bytes(720)),
    "operators": npy_bytes("", header="-" * 9000 + "1"),
    "escape": npy_bytes("", header="{'descr': '\\z<f8', 'fortran_order': False, 'shape': (3, 3)}"),
    "version": b"\x93NUMPY\x96\x93" + bytes(100),
    "long header": b"\x93NUMPY\x02\x00" + struct.pack("<I", 2**31 - 1) + b"{" * 100,
    "not latin": b"\x93NUMPY\x03\x00\xff\xff\xff\xff" + bytes(100),
}


@pytest.mark.parametrize("what", HEADERS)
@pytest.mark.parametrize("ending", ["npy", "npz"])
def test_headers_that_cannot_be(what, ending, tmp_path, capsys, target):
    path = tmp_path / f"s.{ending}"
    if ending == "npy":
        path.write_bytes(HEADERS[what])
        np.save(tmp_path / "y.npy", Y_SOURCE)
        refused(path, capsys, target, "--label", str(tmp_path / "y.npy"))
        return
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("p.npy", HEADERS[what])
        archive.writestr("y.npy", npy_bytes("(3,)", content=bytes(24)))
    refused(path, capsys, target)


def packed(folder, **arrays):
    path = folder / "s.npz"
    np.savez_compressed(path, **arrays)
    return path


def test_damaged_compressed_data(tmp_path, capsys, target):
    path = packed(tmp_path, p=P_SOURCE, y=Y_SOURCE)
    content = bytearray(path.read_bytes())
    content[500:520] = b"\xff" * 20
    path.write_bytes(content)
    refused(path, capsys, target)


@pytest.mark.parametrize(("place", "value"), [(6, 1), (8, 99)], ids=["encrypted", "unknown method"])
def test_archives_that_cannot_be_unpacked(place, value, tmp_path, capsys, target):
    path = packed(tmp_path, p=P_SOURCE, y=Y_SOURCE)
    content = bytearray(path.read_bytes())
    for mark, shift in ((b"PK\x03\x04", 0), (b"PK\x01\x02", 2)):
        at = content.find(mark)
        while at >= 0:
            content[at + place + shift] = value
            at = content.find(mark, at + 4)
    path.write_bytes(content)
    refused(path, capsys, target)


@pytest.mark.parametrize("order", [False, True])
def test_sizes_that_an_archive_claims_are_not_allocated(order, tmp_path, capsys, target):
    """Rows of 2 GB each, of which one kilobyte is there; the directory claims them all."""
    text = f"{{'descr': '<f8', 'fortran_order': {order}, 'shape': (250000000, 3), }}"
    real = npy_bytes("", header=text, content=bytes(1000))
    path = tmp_path / "s.npz"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("p.npy", real)
        archive.writestr("y.npy", npy_bytes("(250000000,)", content=bytes(1000)))
    content = bytearray(path.read_bytes())
    at = content.find(b"PK\x01\x02")
    while at >= 0:
        content[at + 24 : at + 28] = struct.pack("<I", 4_200_000_000)
        at = content.find(b"PK\x01\x02", at + 4)
    path.write_bytes(content)
    tracemalloc.start()
    refused(path, capsys, target)
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert most < 200_000_000


def test_objects_are_still_not_loaded(tmp_path, capsys, target):
    path = packed(tmp_path, p=P_SOURCE, y=np.array(named(Y_SOURCE), dtype=object))
    assert "Python objects" in refused(path, capsys, target)


# --- columns that cannot be decoded


@pytest.mark.parametrize("ending", ["parquet", "arrow"])
def test_labels_that_are_no_text(ending, tmp_path, capsys, target):
    names = pa.array([b"\xff\xfe" if y else b"ant" for y in Y_SOURCE], pa.binary())
    labels = pa.Array.from_buffers(pa.string(), len(names), names.buffers())
    path = write(tmp_path / f"s.{ending}", table(P_SOURCE, labels))
    refused(path, capsys, target)


@pytest.mark.parametrize("ending", ["parquet", "csv", "jsonl", "npz"])
def test_no_flipped_byte_of_a_small_file_ends_in_an_internal_error(ending, tmp_path, target):
    rng = np.random.default_rng(0)
    path = tmp_path / f"s.{ending}"
    write(path, table(P_SOURCE[:40], named(Y_SOURCE[:40])))
    whole = path.read_bytes()
    for _ in range(60):
        content = bytearray(whole)
        content[rng.integers(len(whole))] ^= 1 << rng.integers(8)
        path.write_bytes(content)
        with suppress(InvalidInput, MemoryError):
            calshift.scan(path).summary  # noqa: B018


# --- files of JSON


def weights_file(folder, **changes) -> str:
    classes = [
        {"class": name, "weight": 1.0, "prior_source": 1 / 3, "prior_target": 1 / 3}
        for name in NAMES
    ]
    content = {"classes": classes, "weights": {"method": "em", "n_source": 600}}
    path = folder / "weights.json"
    path.write_text(json.dumps(content | changes))
    return str(path)


def with_first(**values):
    first = {"class": "ant", "weight": 1.0, "prior_source": 0.3, "prior_target": 0.3} | values
    others = [{**first, "class": name, "weight": 1.0} for name in NAMES[1:]]
    return [{k: v for k, v in first.items() if v != "gone"}, *others]


WEIGHTS = {
    "no source prior": {"classes": with_first(prior_source="gone")},
    "no target prior": {"classes": with_first(prior_target="gone")},
    "negative": {"classes": with_first(weight=-1)},
    "NaN": {"classes": with_first(weight=float("nan"))},
    "infinite": {"classes": with_first(weight=float("inf"))},
    "huge": {"classes": with_first(weight=1e300)},
    "400 digits": {"classes": with_first(weight=10**400)},
    "text": {"classes": with_first(weight="many")},
    "truth": {"classes": with_first(weight=True)},
    "prior above 1": {"classes": with_first(prior_source=2)},
    "negative prior": {"classes": with_first(prior_target=-0.1)},
    "records": {"classes": [1, 2, 3]},
    "text for records": {"classes": "abc"},
    "one record": {"classes": {"class": "ant"}},
    "a list for a class": {"classes": with_first(**{"class": ["ant"]})},
    "size": {"weights": {"method": "em", "n_source": -5}},
    "size NaN": {"weights": {"method": "em", "n_source": float("nan")}},
    "no weights": {"weights": None},
    "size of 400 digits": {"weights": {"method": "em", "n_source": 10**400}},
}


@pytest.mark.parametrize("what", WEIGHTS)
def test_a_file_of_weights_that_cannot_be(what, tmp_path, target, capsys):
    source = write(tmp_path / "s.csv", table(P_SOURCE, named(Y_SOURCE)))
    path = weights_file(tmp_path, **WEIGHTS[what])
    assert status(["check", source, target, "--weights", path]) == 2
    err = capsys.readouterr().err
    assert path in err
    assert err.count("\n") == 1


@pytest.mark.parametrize(
    "content",
    [b"[" * 100_000 + b"]" * 100_000, b"\xff\xfe", b'{"a": ' + b"9" * 5000 + b"}", b"null"],
    ids=["deep", "bytes", "digits", "null"],
)
@pytest.mark.parametrize("command", ["check", "apply"])
def test_json_that_cannot_be(command, content, tmp_path, target, capsys):
    path = tmp_path / "some.json"
    path.write_bytes(content)
    if command == "check":
        source = write(tmp_path / "s.csv", table(P_SOURCE, named(Y_SOURCE)))
        arguments = ["check", source, target, "--weights", str(path)]
    else:
        arguments = ["apply", str(path), target, "-o", str(tmp_path / "out.csv")]
    assert status(arguments) == 2
    err = capsys.readouterr().err
    assert str(path) in err
    assert err.count("\n") == 1


def test_a_good_file_of_weights_is_read(tmp_path, target):
    source = write(tmp_path / "s.csv", table(P_SOURCE, named(Y_SOURCE)))
    assert status(["check", source, target, "--weights", weights_file(tmp_path)]) in (0, 3)


def test_empty_archives(tmp_path, capsys, target):
    path = tmp_path / "s.npz"
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w"):
        pass
    path.write_bytes(out.getvalue())
    refused(path, capsys, target)
