"""Small valid files of every format, in several layouts of their columns."""

from __future__ import annotations

import gzip
import io
import json
from dataclasses import dataclass
from typing import Any

import numpy as np

NAMES = ("ant", "bee", "cow")


@dataclass(frozen=True)
class ValidFile:
    """A file that can be read, as source and as target; options are those of the command line."""

    layout: str
    extension: str
    content: bytes
    options: tuple[str, ...] = ()


def build_corpus() -> list[ValidFile]:
    """All formats of all layouts that they can have."""
    rng = np.random.default_rng(0)
    p = rng.dirichlet(np.full(3, 0.7), 80)
    y = (p.cumsum(axis=1) < rng.random((80, 1))).sum(axis=1).clip(0, 2)
    tables = dict(_layouts(p, y))
    files = [
        _text(name, columns, kind)
        for name, columns in tables.items()
        for kind in TEXT
        if name != "lists" or "json" in kind  # csv has no lists
    ]
    small = dict(_layouts(p[:24], y[:24]))  # most bytes describe the others, and lengths
    files += [_binary(name, columns, kind) for name, columns in small.items() for kind in ARROW]
    return files + _numpy(p, y)


def _layouts(p: np.ndarray, y: np.ndarray) -> Any:
    named = [NAMES[k] for k in y]
    columns = {f"p_{name}": p[:, k].tolist() for k, name in enumerate(NAMES)}
    yield "columns", {**columns, "label": named}
    time = np.datetime64("2024-02-01T12", "s") + np.arange(len(y)) * np.timedelta64(1, "h")
    yield "texts", {**columns, "label": named, "time": time.astype(str).tolist()}
    yield "numbers", {f"p_{k}": p[:, k].tolist() for k in range(3)} | {"label": y.tolist()}
    yield "lists", {"p": p.tolist(), "label": y.tolist()}
    yield "scores", {"p": p[:, 1].tolist(), "label": (y == 1).astype(int).tolist()}
    logits = np.log(p + 1e-6)
    yield "logits", {f"p_{k}": logits[:, k].tolist() for k in range(3)} | {"label": y.tolist()}


def _options(layout: str) -> tuple[str, ...]:
    return {"logits": ("--logits",), "scores": ("--columns", "p")}.get(layout, ())


def _text(layout: str, columns: dict[str, list[Any]], kind: str) -> ValidFile:
    rows = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    if kind.startswith(".jsonl"):
        content = "".join(json.dumps(row) + "\n" for row in rows)
    else:
        lines = [",".join(columns), *(",".join(map(str, row.values())) for row in rows)]
        content = "\n".join(lines) + "\n"
    raw = content.encode()
    if kind.endswith(".gz"):
        raw = gzip.compress(raw, mtime=0)
    return ValidFile(layout, kind, raw, _options(layout))


def _binary(layout: str, columns: dict[str, list[Any]], kind: str) -> ValidFile:
    import pyarrow as pa

    table = pa.table(columns)
    if layout == "columns":
        table = table.set_column(3, "label", table["label"].dictionary_encode())
    if layout == "lists":
        fixed = pa.FixedSizeListArray.from_arrays(pa.array(np.ravel(columns["p"]), pa.float32()), 3)
        table = table.set_column(0, "p", fixed) if "file" in kind or "lz4" in kind else table
    sink = io.BytesIO()
    ARROW[kind](table, sink)
    extension = {"parquet": ".parquet", "parquet plain": ".parquet"}.get(kind, "")
    extension = extension or (".feather" if "feather" in kind else ".arrow")
    return ValidFile(layout, extension, sink.getvalue(), _options(layout))


def _write_parquet(table: Any, sink: Any) -> None:
    from pyarrow import parquet

    parquet.write_table(table, sink, row_group_size=30)


def _write_plain_parquet(table: Any, sink: Any) -> None:
    from pyarrow import parquet

    parquet.write_table(
        table, sink, compression="none", use_dictionary=False, data_page_version="2.0"
    )


def _write_stream(table: Any, sink: Any) -> None:
    from pyarrow import ipc

    with ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table, 30)


def _write_file(table: Any, sink: Any) -> None:
    from pyarrow import ipc

    with ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table, 30)


def _write_feather(compression: str) -> Any:
    def write(table: Any, sink: Any) -> None:
        from pyarrow import feather

        feather.write_feather(table, sink, compression=compression, chunksize=30)

    return write


def _numpy(p: np.ndarray, y: np.ndarray) -> list[ValidFile]:
    def packed(save: Any, **arrays: np.ndarray) -> bytes:
        sink = io.BytesIO()
        save(sink, **arrays)
        return sink.getvalue()

    single = io.BytesIO()
    np.save(single, np.asfortranarray(p))
    plain = io.BytesIO()
    np.save(plain, p.astype(np.float32))
    return [
        ValidFile("arrays", ".npz", packed(np.savez, p=p, label=y)),
        ValidFile(
            "arrays", ".npz", packed(np.savez_compressed, p=p, label=y, classes=np.array(NAMES))
        ),
        ValidFile("scores", ".npz", packed(np.savez, p=p[:, 1], label=(y == 1).astype(np.int8))),
        ValidFile("array", ".npy", single.getvalue()),
        ValidFile("array", ".npy", plain.getvalue()),
    ]


TEXT = (".csv", ".csv.gz", ".jsonl", ".jsonl.gz")
ARROW = {
    "parquet": _write_parquet, "parquet plain": _write_plain_parquet, "file": _write_file,
    "stream": _write_stream, "feather lz4": _write_feather("lz4"),
    "feather zstd": _write_feather("zstd"), "feather": _write_feather("uncompressed"),
}  # fmt: skip
