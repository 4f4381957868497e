"""The calls of same_numbers.py on rows that are elsewhere, and commands, by group."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache, partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from same_numbers_calls import METHODS, Calls
from same_numbers_samples import batches, pair, write_samples

import calshift

FILES = ("beta", "3 classes", "3 classes, flattened", "10 classes")
SCANNED: dict[str, dict[str, Any]] = {
    "default": {},
    "norm 1": {"norm": 1},
    "15 bins": {"bins": 15, "weights": "bbse"},
    "top-label": {"kind": "top-label", "estimator": "plugin", "stratified": True},
    "paper": {"estimator": "paper", "interval": None, "norm": 3},
}
THREE = "3-classes-source.csv 3-classes-target.csv"
COMMANDS = (
    f"check {THREE}",
    "check beta-source.csv beta-target.jsonl --max-error 0.01 --prometheus metrics.prom",
    "check 10-classes-source 10-classes-target --engine batches --jobs 2",
    f"check {THREE} --max-error 0.5 --gate upper --kind top-label --norm 1 --level 0.9",
    f"check {THREE} --interval bootstrap --draws 20 --jobs 2 --seed 5 --bins 10 --norm 3",
    f"check {THREE} --weights bbse-soft --estimator plugin --binning width --bins 12",
    f"check {THREE} --weights 1.5,0.9,0.6 --no-check --estimator paper",
    "check 10-classes.npz 10-classes.npz --logits",
    "check 3-classes-flattened-source.csv 3-classes-flattened-target.csv --max-error 0.01",
    f"weights {THREE}",
    "weights 10-classes-source.jsonl 10-classes-target --method rlls --level 0.8",
    "weights beta-source beta-target --method kmm --engine batches",
    f"monitor {THREE} --rows 200",
    f"monitor {THREE} --time time --window 1d --max-error 0.05 --alert last",
    f"recalibrate {THREE} -o mended.csv --save saved.json",
    "apply saved.json 3-classes-target.jsonl -o mended.jsonl",
    "recalibrate beta-source.csv beta-target.jsonl -o mended.jsonl --method bcts+prior",
    "recalibrate 10-classes.npz 10-classes.npz -o mended.npz --logits --method temperature",
    "demo --files . --report page.html",
    "check absent.csv 3-classes-target.csv",
    f"check {THREE} --norm many",
)


@cache
def _folder() -> tempfile.TemporaryDirectory[str]:
    """Files of some samples; they go away with the process."""
    kept = tempfile.TemporaryDirectory()
    list(write_samples(Path(kept.name), FILES))
    return kept


def _file(name: str) -> str:
    return str(Path(_folder().name) / name)


def scans() -> Calls:
    """Rows that are read in passes, from batches and from files, and two threads or processes."""
    made, target = _made(), calshift.target_calibration_error
    for (name, make), (called, options) in product(made.items(), SCANNED.items()):
        yield f"{name}, {called}", partial(_scanned, make, target, options)
    for method in METHODS:
        options, ask = {"method": method}, calshift.label_shift_weights
        yield f"batches, {method}", partial(_scanned, made["batches"], ask, options)
    yield "check", partial(_scanned, made["function"], calshift.check_label_shift, {})
    yield from _single_scans()


def _made() -> dict[str, Callable[[], tuple[Any, Any]]]:
    """Both samples, from where they are read."""
    scan, (p, y, q, _) = calshift.scan, pair("3 classes")
    return {
        "batches": lambda: (scan(batches(p, y)), scan(batches(q, None))),
        "function": lambda: (
            scan(lambda: iter(batches(p, y, 150)), jobs=2),
            scan(lambda: iter(batches(q, None, 90)), labelled=False, jobs=2),
        ),
        "generator": lambda: (scan(one for one in batches(p, y)), scan(iter(batches(q, None)))),
        "parquet": lambda: (
            scan(_file("3-classes-source"), batch_rows=128),
            scan(_file("3-classes-target/*.parquet"), labelled=False),
        ),
    }


def _scanned(make: Any, ask: Any, options: dict[str, Any]) -> Any:
    source, target = make()
    return ask(source, None, target, **options)


def _single_scans() -> Calls:
    beta, many = pair("beta"), _file("10-classes-source")
    yield "paths", lambda: calshift.target_calibration_error(many, None, _file("10-classes-target"))
    yield "csv", lambda: calshift.calibration_error(_file("beta-source.csv"), kind="binary")
    lines = _file("3-classes-source.jsonl")
    yield "jsonl", lambda: calshift.calibration_error(calshift.scan(lines))
    yield "edges", lambda: calshift.bin_edges(_file("10-classes-target"), bins=15)
    weighed = [(beta.p[:300], beta.y[:300], np.linspace(0.1, 2, 300)), (beta.p[300:], beta.y[300:])]
    yield "weights of rows", lambda: calshift.calibration_error(calshift.scan(weighed))
    boot = {"interval": "bootstrap", "n_boot": 20, "rng": 2, "n_jobs": 2}
    yield "two processes", lambda: calshift.target_calibration_error(*beta.shifted, **boot)


@contextmanager
def _session() -> Iterator[Any]:
    """Spark on this machine, with two threads."""
    from pyspark.sql import SparkSession

    os.environ.update(PYSPARK_PYTHON=sys.executable, SPARK_LOCAL_IP="127.0.0.1")
    builder = SparkSession.builder.master("local[2]").appName("same_numbers")
    for name in ("spark.ui.enabled", "spark.ui.showConsoleProgress"):
        builder = builder.config(name, "false")
    session = builder.config("spark.sql.shuffle.partitions", "2").getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    try:
        yield session
    finally:
        session.stop()


def spark() -> Calls:
    """Spark's tables."""
    target = calshift.target_calibration_error
    with _session() as session:
        beta, three = (partial(_tables, session, stem) for stem in ("beta", "3-classes"))
        yield "beta, default", partial(_scanned, beta, target, {})
        given = {"weights": [0.7, 1.9], "norm": 1, "check": False}
        yield "beta, given", partial(_scanned, beta, target, given)
        mass = {"weights": "bbse", "bins": 15, "check": False}
        yield "3 classes, 15 bins", partial(_scanned, three, target, mass)
        method = {"method": "map"}
        yield "3 classes, map", partial(_scanned, three, calshift.label_shift_weights, method)
        yield "3 classes, check", partial(_scanned, three, calshift.check_label_shift, {})
        yield "3 classes, error", lambda: calshift.calibration_error(three()[0], kind="top-label")


def _tables(session: Any, stem: str) -> tuple[Any, Any]:
    paths = (_file(f"{stem}-{role}") for role in ("source", "target"))
    source, target = (session.read.parquet(path) for path in paths)
    scanned = calshift.scan_spark(source)
    return scanned, calshift.scan_spark(target, labelled=False, classes=scanned.classes)


def commands() -> Calls:
    """The command line, each in a new process, by its JSON, its files and its exit status."""
    for line in COMMANDS:
        yield line, partial(_command, line)
    both = (
        (f"weights {THREE} --method bbse", "found.json"),
        (f"check {THREE} --weights found.json",),
    )
    yield "weights, then check", lambda: [_command(*one) for one in both]


def _command(line: str, answer: str = "answer.json") -> dict[str, Any]:
    """Exit status and whatever numbers were written."""
    folder, words = Path(_folder().name), line.split()
    made = [folder / word for word in words if word.startswith(("mended.", "metrics."))]
    if words[0] not in ("apply", "demo"):
        words += ["--json", answer]
    for path in (folder / answer, *made):
        path.unlink(missing_ok=True)
    asked = [sys.executable, "-m", "calshift", *words]
    done = subprocess.run(asked, capture_output=True, cwd=folder, check=False, timeout=300)
    json_written = (folder / answer).exists() and words[0] not in ("apply", "demo")
    return {
        "status": done.returncode,
        "json": json.loads((folder / answer).read_text()) if json_written else None,
        "files": {path.name: _numbers(path) for path in made if path.exists()},
        "said": done.stdout.decode(errors="replace") + done.stderr.decode(errors="replace"),
    }


def _numbers(path: Path) -> Any:
    """Probabilities of a file that was mended, or metrics."""
    if path.suffix == ".prom":
        lines = [line.rsplit(" ", 1) for line in path.read_text().splitlines() if line[:1] != "#"]
        return {name: float(value) for name, value in lines if "timestamp" not in name}
    if path.suffix == ".npz":
        with np.load(path) as found:
            return {name: found[name] for name in found.files if found[name].dtype.kind == "f"}
    if path.suffix == ".csv":
        head, *rows = (line.split(",") for line in path.read_text().splitlines())
    else:
        lines = [json.loads(line) for line in path.read_text().splitlines()]
        head, rows = list(lines[0]), [list(line.values()) for line in lines]
    kept = [k for k, name in enumerate(head) if name != "time"]
    return np.array([[float(row[k]) for k in kept] for row in rows])
