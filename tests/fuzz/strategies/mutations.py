"""Damage to files: of bytes, of text, of the headers of numpy and zip."""

from __future__ import annotations

import gzip
import re
import struct
from collections.abc import Callable

from tests.fuzz.strategies.corpus import ValidFile
from tests.fuzz.strategies.samples import Rng, chance, pick

Mutation = Callable[[Rng, bytearray], bytes | bytearray]
INTEGERS = (0, 1, -1, 0x7F, 0x7FFF, 0x7FFFFFFF, -(2**31), 2**31, 0x7FFFFFFFFFFFFFFF, -(2**63), 0x80)


def _flip_bit(rng: Rng, raw: bytearray) -> bytearray:
    for _ in range(pick(rng, (1, 1, 3, 20))):
        raw[int(rng.integers(len(raw)))] ^= 1 << int(rng.integers(8))
    return raw


def _replace_byte(rng: Rng, raw: bytearray) -> bytearray:
    raw[int(rng.integers(len(raw)))] = pick(rng, (0, 1, 0x7F, 0x80, 0xFF, int(rng.integers(256))))
    return raw


def _write_integer(rng: Rng, raw: bytearray) -> bytearray:
    """An integer with a meaning for lengths and offsets, most often near an end of the file."""
    size = pick(rng, (4, 4, 8))
    if len(raw) < 2 * size:
        return raw
    reach = len(raw) - size if chance(rng, 0.4) else min(len(raw) - size, 600)
    at = int(rng.integers(reach // size + 1)) * size
    at = at if chance(rng, 0.5) else max(0, len(raw) - size - at)
    at -= at % size if chance(rng, 0.7) else 0
    value = pick(rng, INTEGERS) % 2 ** (8 * size)
    raw[at : at + size] = struct.pack("<Q", value)[:size]
    return raw


def _truncate(rng: Rng, raw: bytearray) -> bytearray:
    return raw[: int(rng.integers(len(raw) + 1))]


def _remove_start(rng: Rng, raw: bytearray) -> bytearray:
    return raw[int(rng.integers(1, 20)) :]


def _span(rng: Rng, raw: bytearray) -> tuple[int, int]:
    start = int(rng.integers(len(raw)))
    return start, min(len(raw), start + int(pick(rng, (1, 4, 8, 64, 500))))


def _duplicate(rng: Rng, raw: bytearray) -> bytearray:
    a, b = _span(rng, raw)
    return raw[:b] + raw[a:b] * pick(rng, (1, 1, 30)) + raw[b:]


def _remove(rng: Rng, raw: bytearray) -> bytearray:
    a, b = _span(rng, raw)
    return raw[:a] + raw[b:]


def _swap(rng: Rng, raw: bytearray) -> bytearray:
    (a, b), (c, _) = _span(rng, raw), _span(rng, raw)
    size = min(b - a, len(raw) - c)
    raw[a : a + size], raw[c : c + size] = raw[c : c + size], raw[a : a + size]
    return raw


def _zero(rng: Rng, raw: bytearray) -> bytearray:
    a, b = _span(rng, raw)
    raw[a:b] = bytes([pick(rng, (0, 255))]) * (b - a)
    return raw


def _append(rng: Rng, raw: bytearray) -> bytearray:
    return raw + pick(rng, (b"\0" * 100, bytes(raw[:200]), b"\n\n", b"garbage"))


BYTES: tuple[Mutation, ...] = (
    _flip_bit, _flip_bit, _replace_byte, _write_integer, _write_integer, _write_integer, _truncate,
    _remove_start, _duplicate, _remove, _swap, _zero, _append,
)  # fmt: skip


TOKENS = (
    b'"', b",", b"\n", b"\r", b"\0", b"\xff\xfe", b"\xef\xbb\xbf", b"nan", b"NaN", b"inf",
    b"-Infinity", b"1e999", b"-1", b"9" * 400, b"null", b"None", b"", b"[", b"{", b"]", b"}", b":",
    b"1e-400", b"0x1p3", b"true", b"\xed\xa0\x80", b"\\u0000", b"\\ud800", b"'", b";", b"\t",
    b"1_000", b"0.5.5", b"[]", b"{}", b'"a"', b'{"p_ant": {"x": 1}}', b"\xc3", b"--", b"1,5",
)  # fmt: skip


def _insert_token(rng: Rng, raw: bytearray) -> bytearray:
    at = int(rng.integers(len(raw) + 1))
    return raw[:at] + pick(rng, TOKENS) + raw[at:]


def _replace_number(rng: Rng, raw: bytearray) -> bytes:
    found = list(re.finditer(rb"-?\d+\.?\d*(e-?\d+)?", raw))
    if not found:
        return bytes(raw)
    one = pick(rng, found)
    return bytes(raw[: one.start()]) + pick(rng, TOKENS) + bytes(raw[one.end() :])


def _change_line(rng: Rng, raw: bytearray) -> bytes:
    lines = bytes(raw).split(b"\n")
    k = int(rng.integers(len(lines)))
    how = pick(rng, ("remove", "double", "empty", "header", "cut", "more"))
    changed = {
        "remove": [], "double": [lines[k]] * 2, "empty": [b""], "header": [lines[0]],
        "cut": [lines[k][: len(lines[k]) // 2]], "more": [lines[k] + b",1,2,3"],
    }[how]  # fmt: skip
    return b"\n".join([*lines[:k], *changed, *lines[k + 1 :]])


def _nest_deeply(rng: Rng, raw: bytearray) -> bytes:
    depth = pick(rng, (100, 20_000, 20_000))
    left, right = pick(rng, ((b"[", b"]"), (b'{"a":', b"}")))
    nested = left * depth + b"1" + right * pick(rng, (depth, 0))
    return pick(rng, (nested, nested + b"\n" + bytes(raw), _into_first_value(raw, nested)))


def _into_first_value(raw: bytearray, nested: bytes) -> bytes:
    return re.sub(rb"(: |,)(\[?[\d.e-]+)", lambda found: found[1] + nested, bytes(raw), count=1)


def _encode(rng: Rng, raw: bytearray) -> bytes:
    text = bytes(raw).decode("utf-8", "replace")
    return pick(rng, ("\ufeff" + text, text)).encode(pick(rng, ("utf-16", "utf-32", "utf-8")))


def _repeat_names(rng: Rng, raw: bytearray) -> bytes:
    return bytes(raw).replace(b"p_bee", b"p_ant").replace(b"p_1", b"p_0")


TEXTS: tuple[Mutation, ...] = (
    _insert_token, _insert_token, _replace_number, _replace_number, _change_line, _nest_deeply,
    _nest_deeply,    _encode, _repeat_names,
)  # fmt: skip
SHAPES = (b"(-3, 3)", b"(80, -3)", b"(10**9, 3)", b"(9999999999, 3)", b"()", b"(0, 3)", b"(80, 0)",
          b"(80, 3, 1)", b"(3, 80)", b"(True, 3)", b"('a',)", b"(80.0, 3)", b"(80,)", b"(240,)",
          b"(2305843009213693952, 8)", b"(-80, -3)")  # fmt: skip
KINDS = (b"|O", b"<f2", b">f8", b"|S8", b"<U2", b"<c16", b"<M8[s]", b"|V8", b"<i8", b"<f16", b"<f9",
         b"|b1", b"[('a','<f8')]")  # fmt: skip


def _edit_header(rng: Rng, raw: bytearray) -> bytes:
    """Shape, type or order in the header of an array, with the length of the header kept."""
    found = re.search(rb"\{'descr'.*?\n", bytes(raw), re.DOTALL)
    if found is None:
        return bytes(raw)
    header = found[0]
    how = pick(rng, ("shape", "shape", "kind", "order", "other"))
    new = {
        "shape": re.sub(rb"\([^)]*\)", pick(rng, SHAPES), header, count=1),
        "kind": re.sub(rb"'[<>|=][^']*'", b"'" + pick(rng, KINDS) + b"'", header, count=1),
        "order": header.replace(b"False", b"True ") if b"False" in header else header,
        "other": header.replace(b"'shape'", b"'shope'"),
    }[how]
    return bytes(raw).replace(
        header, new.rstrip().ljust(len(header) - 1)[: len(header) - 1] + b"\n", 1
    )


def _edit_zip(rng: Rng, raw: bytearray) -> bytearray:
    """The encrypted flag, the compression method or sizes, in both headers of a member."""
    offset, width = pick(rng, ((0, 2), (2, 2), (12, 4), (16, 4), (8, 4)))
    value = pick(rng, (1, 8, 12, 14, 97, 0xFFFF, 0, 0xFFFFFFFF, 0x7FFFFFFF, 9)) % 2 ** (8 * width)
    for mark, at in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        for found in re.finditer(re.escape(mark), bytes(raw)):
            place = found.start() + at + offset
            raw[place : place + width] = value.to_bytes(width, "little")
    return raw


def mutate(rng: Rng, file: ValidFile, other: bytes) -> tuple[str, bytes]:
    """The file with one to four mutations, and their names."""
    raw, packed = bytearray(file.content), file.extension.endswith(".gz")
    if packed and chance(rng, 0.7):
        raw = bytearray(gzip.decompress(raw))
        name, made = _mutate_some(rng, raw, file.extension.removesuffix(".gz"), other)
        return name, gzip.compress(made, 1, mtime=0)
    return _mutate_some(rng, raw, file.extension, other)


def _mutate_some(rng: Rng, raw: bytearray, extension: str, other: bytes) -> tuple[str, bytes]:
    named = []
    for _ in range(pick(rng, (1, 1, 1, 2, 4))):
        if not raw:
            break
        mutation = pick(rng, BYTES)
        if extension in (".csv", ".jsonl") and chance(rng, 0.75):
            mutation = pick(rng, TEXTS)
        if extension in (".npy", ".npz") and chance(rng, 0.4):
            mutation = _edit_header if extension == ".npy" or chance(rng, 0.5) else _edit_zip
        raw = bytearray(mutation(rng, raw))
        named.append(mutation.__name__.strip("_"))
    if chance(rng, 0.05):
        cut = int(rng.integers(len(raw) + 1))
        raw, named = raw[:cut] + other[cut:], [*named, "splice"]
    return " ".join(named), bytes(raw)
