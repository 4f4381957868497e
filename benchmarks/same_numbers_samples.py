"""The samples of same_numbers.py: small, simulated from seeds, in memory and as files."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import calshift
from calshift.simulate import BetaSimulation, GaussianSimulation


class Pair(NamedTuple):
    """Both samples as arguments of the public functions, and the target's labels."""

    p: Any
    y: Any
    q: Any
    z: np.ndarray

    @property
    def shifted(self) -> tuple[Any, Any, Any]:
        """p_source, y_source, p_target."""
        return self.p, self.y, self.q


def _drawn(simulation: Any, n: int, m: int) -> Pair:
    (p, y), (q, z) = simulation.source(n, rng=1), simulation.target(m, rng=2)
    return Pair(p, y, q, z)


def _gaussian(K: int, n: int, m: int, **options: Any) -> Pair:
    return _drawn(GaussianSimulation(n_classes=K, seed=K, **options), n, m)


def _two_columns() -> Pair:
    p, y, q, z = pair("beta")
    return Pair(np.stack([1 - p, p], axis=1), y, np.stack([1 - q, q], axis=1), z)


def _single(name: str) -> Pair:
    p, y, q, z = pair(name)
    return Pair(p.astype(np.float32), y, q.astype(np.float32), z)


def _weighed(name: str, draw: Callable[[np.random.Generator, int], np.ndarray]) -> Pair:
    p, y, q, z = pair(name)
    rng = np.random.default_rng(5)
    before, after = (draw(rng, len(rows)) for rows in (p, q))
    source = calshift.Predictions(p, y, sample_weight=before)
    return Pair(source, None, calshift.Predictions(q, sample_weight=after), z)


def _unseen() -> Pair:
    """Two classes of the source have no row."""
    p, y, q, z = _gaussian(6, 800, 600)
    kept = (y != 2) & (y != 5)
    return Pair(p[kept], y[kept], q, z)


def _flattened() -> Pair:
    """More than the mix has changed."""
    p, y, q, z = pair("3 classes, many")
    q = q**0.5
    return Pair(p, y, q / q.sum(axis=1, keepdims=True), z)


def _tied() -> Pair:
    """Scores of few different values, some of them 0 and 1."""
    p, y, q, z = pair("beta")
    return Pair(np.round(p, 1), y, np.round(q, 1), z)


def _fashion() -> Pair:
    source, target = calshift.data.fashion_mnist()
    return Pair(source, None, target.unlabelled(), np.asarray(target.y))


def _frame(library: str) -> Pair:
    """Frames whose columns name the classes; labels are names."""
    module = __import__(library)
    p, y, q, z = pair("3 classes")
    names = np.array(["ant", "bee", "cat"])

    def frame(rows: np.ndarray) -> Any:
        return module.DataFrame({name: rows[:, c] for c, name in enumerate(names)})

    return Pair(calshift.Predictions(frame(p), names[y]), None, frame(q), z)


SAMPLES: dict[str, Callable[[], Pair]] = {
    "beta": lambda: _drawn(BetaSimulation(), 700, 600),
    "beta, many": lambda: _drawn(BetaSimulation(), 4000, 3000),
    "beta, float32": lambda: _single("beta"),
    "beta, tied": _tied,
    "2 columns": _two_columns,
    "3 classes": lambda: _gaussian(3, 700, 600, imbalance=4),
    "3 classes, many": lambda: _gaussian(3, 3000, 2500, imbalance=4),
    "3 classes, calibrated": lambda: _gaussian(3, 2000, 2000, temperature=1.0),
    "3 classes, float32": lambda: _single("3 classes"),
    "3 classes, flattened": _flattened,
    "10 classes": lambda: _gaussian(10, 2000, 1500),
    "10 classes, float32": lambda: _single("10 classes"),
    "10 classes, tail": lambda: _gaussian(10, 2000, 1500, long_tail="source", temperature=1.4),
    "30 classes": lambda: _gaussian(30, 3000, 2000),
    "100 classes": lambda: _gaussian(100, 4000, 3000),
    "whole weights": lambda: _weighed("3 classes", lambda rng, n: rng.integers(1, 4, n)),
    "fractions": lambda: _weighed("3 classes", lambda rng, n: rng.uniform(0.2, 1.8, n)),
    "weights of 0": lambda: _weighed("3 classes", lambda rng, n: rng.integers(0, 3, n)),
    "beta, fractions": lambda: _weighed("beta", lambda rng, n: rng.uniform(0.1, 1, n)),
    "unseen classes": _unseen,
    "polars": lambda: _frame("polars"),
    "pandas": lambda: _frame("pandas"),
    "fashion": _fashion,
}


@cache
def pair(name: str) -> Pair:
    """The sample of that name, made once."""
    return SAMPLES[name]()


def batches(rows: Any, labels: Any, size: int = 400) -> list[Any]:
    """A sample in memory, cut in batches."""
    starts = range(0, len(rows), size)
    if labels is None:
        return [rows[k : k + size] for k in starts]
    return [(rows[k : k + size], labels[k : k + size]) for k in starts]


def columns_of(sample: Pair, target: bool) -> dict[str, list[Any]]:
    """Columns of a file: probabilities by name, the source's labels, the target's times."""
    rows = np.asarray(sample.q if target else sample.p)
    if rows.ndim == 1:
        found = {"score": rows.tolist()}
    else:
        found = {f"p_{c}": rows[:, c].tolist() for c in range(rows.shape[1])}
    if target:
        start = np.datetime64("2024-01-01T00:00:00")
        found["time"] = [str(start + np.timedelta64(7 * k, "m")) for k in range(len(rows))]
    else:
        found["label"] = np.asarray(sample.y).tolist()
    return found


def write_csv(path: Path, columns: dict[str, list[Any]]) -> None:
    """Numbers in full precision."""
    lines = [",".join(columns)]
    lines += [",".join(map(str, row)) for row in zip(*columns.values(), strict=True)]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def write_json_lines(path: Path, columns: dict[str, list[Any]]) -> None:
    """One object a line."""
    lines = (dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True))
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")


def write_parquet(folder: Path, columns: dict[str, list[Any]], parts: int = 3) -> None:
    """A folder of several files."""
    import pyarrow as pa
    import pyarrow.parquet as parquet

    folder.mkdir()
    table = pa.table(columns)
    step = -(-len(table) // parts)
    for k in range(parts):
        parquet.write_table(table.slice(k * step, step), folder / f"part-{k}.parquet")


def write_samples(folder: Path, names: tuple[str, ...]) -> Iterator[Path]:
    """Each sample as csv, jsonl, npz of logits, and folders of parquet."""
    for name in names:
        sample, stem = pair(name), name.replace(" ", "-").replace(",", "")
        for target, role in ((False, "source"), (True, "target")):
            columns, place = columns_of(sample, target), folder / f"{stem}-{role}"
            write_csv(place.with_suffix(".csv"), columns)
            write_json_lines(place.with_suffix(".jsonl"), columns)
            write_parquet(place, columns)
            yield place
        if np.ndim(sample.p) == 2:
            logits = {"logits_source": np.log(sample.p), "logits_target": np.log(sample.q)}
            np.savez(folder / f"{stem}.npz", y_source=sample.y, **logits)
