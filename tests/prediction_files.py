"""Two small samples, and files of them in every format."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.feather
import pyarrow.parquet

from calshift.simulate import BetaSimulation, GaussianSimulation

NAMES = ("ant", "bee", "cow")
SIMULATION = GaussianSimulation(n_classes=3, imbalance=3)
P_SOURCE, Y_SOURCE = SIMULATION.source(600, rng=1)
P_TARGET, Y_TARGET = SIMULATION.target(600, rng=2)
# more than the mix of classes differs: every second row fits no class of the source
OTHER = np.where(np.arange(600)[:, None] % 2, [0.45, 0.45, 0.1], P_TARGET)
SCORES, FRAUD = BetaSimulation().source(400, rng=3)
SCORES_NOW = BetaSimulation().target(400, rng=4)[0]


def table(p, y=None, names=NAMES, prefix="p_", **more) -> dict[str, list]:
    """Columns: one a class, the labels, whatever else."""
    labels = {} if y is None else {"label": y}
    return {f"{prefix}{name}": p[:, k].tolist() for k, name in enumerate(names)} | labels | more


def named(y, names=NAMES) -> list[str]:
    return [names[k] for k in y]


def write(path: Path, columns: dict[str, list]) -> str:
    """A table in the format of the path's ending."""
    kind = path.name.split(".", 1)[1]
    whole = pa.table(columns)
    if kind == "parquet":
        pa.parquet.write_table(whole, path, row_group_size=250)
    elif kind in ("arrow", "feather", "ipc"):
        pa.feather.write_feather(whole, str(path), chunksize=250)
    elif kind.startswith(("jsonl", "ndjson")):
        lines = (json.dumps(row) + "\n" for row in whole.to_pylist())
        _put(path, "".join(lines).encode())
    elif kind == "npz":
        np.savez(path, **{name: np.array(values) for name, values in columns.items()})
    else:
        separator = {"csv": ",", "csv.gz": ",", "semicolon.csv": ";", "tsv": "\t"}[kind]
        out = pa.BufferOutputStream()
        pa.csv.write_csv(whole, out, pa.csv.WriteOptions(delimiter=separator))
        _put(path, out.getvalue().to_pybytes())
    return str(path)


def _put(path: Path, content: bytes) -> None:
    path.write_bytes(gzip.compress(content) if path.suffix == ".gz" else content)
