"""Samples in memory and the same in batches and folders."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet

from calshift.simulate import GaussianSimulation
from tests.prediction_files import NAMES, named, table, write

SIMULATION = GaussianSimulation(n_classes=3, imbalance=3)
P_SOURCE, Y_SOURCE = SIMULATION.source(1500, rng=11)
P_TARGET, _ = SIMULATION.target(1300, rng=12)


def cut(array: np.ndarray, rows: int = 400) -> list[np.ndarray]:
    """Batches of an array."""
    return [array[start : start + rows] for start in range(0, len(array), rows)]


def source_batches(rows: int = 400) -> list[tuple[np.ndarray, np.ndarray]]:
    return list(zip(cut(P_SOURCE, rows), cut(Y_SOURCE, rows), strict=True))


def folder_of(
    folder: Path, p: np.ndarray, y: np.ndarray | None = None, ending: str = "parquet"
) -> str:
    """Parts of 400 rows, one a file; every second one has its columns in another order."""
    folder.mkdir()
    for k, part in enumerate(cut(p)):
        order = [0, 1, 2] if k % 2 == 0 else [2, 0, 1]
        labels = None if y is None else named(cut(y)[k])
        columns = table(part[:, order], labels, [NAMES[c] for c in order])
        write(folder / f"part-{k}.{ending}", columns)
    return str(folder)


def lists(path: Path, p: np.ndarray, y: np.ndarray | None, kind: pa.DataType) -> str:
    """A file with one column of lists of that type."""
    columns = {"probs": pa.array(p.tolist(), kind)}
    if y is not None:
        columns["label"] = pa.array(y)
    pa.parquet.write_table(pa.table(columns), path, row_group_size=170)
    return str(path)


def rows_of(engine) -> tuple[np.ndarray, np.ndarray | None]:
    """All rows of a scanned sample."""
    batches = list(engine.reader.batches(0))
    p = np.concatenate([batch.p for batch in batches])
    return p, None if batches[0].y is None else np.concatenate([batch.y for batch in batches])
