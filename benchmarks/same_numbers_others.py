"""The calls of same_numbers.py that mend, watch, and read rows from elsewhere, by group."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache, partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from same_numbers_calls import METHODS, RECALIBRATORS, Calls
from same_numbers_samples import batches, pair, write_samples

import calshift

FILES = ("beta", "3 classes", "3 classes, flattened", "10 classes")
CLASSES = {
    "shift": calshift.ShiftScaling,
    "temperature": calshift.TemperatureScaling,
    "bcts": calshift.BiasCorrectedTemperatureScaling,
    "vector": calshift.VectorScaling,
    "isotonic": calshift.IsotonicScaling,
    "ensemble": calshift.EnsembleTemperatureScaling,
    "label-free": calshift.LabelFreeTemperatureScaling,
    "prior": calshift.PriorCorrection,
    "chain": lambda: calshift.Chain([calshift.VectorScaling(), calshift.PriorCorrection()]),
}
NEEDS_TARGET = ("label-free", "prior", "chain")


def variances() -> Calls:
    """variance_algorithm1 with labels and without."""
    for name, norm in product(("beta", "3 classes", "unseen classes"), (1, 2, 3)):
        p, y, q, _ = pair(name)
        yield f"{name}, norm {norm}", partial(calshift.variance_algorithm1, p, y, norm=norm)
        asked = partial(
            calshift.variance_algorithm1, p, y, q, weights="bbse", norm=norm, bins=8,
            stratified=norm == 3,
        )  # fmt: skip
        yield f"{name}, norm {norm}, target", asked
    sample = pair("beta").shifted
    drawn = partial(calshift.variance_algorithm1, *sample, weights=[0.7, 1.9], sampled=True, rng=4)
    yield "drawn", drawn


def mended() -> Calls:
    """recalibrate by method, kind and norm."""
    for name, method in product(("beta", "3 classes", "10 classes"), RECALIBRATORS):
        yield f"{name}, {method}", partial(calshift.recalibrate, *pair(name).shifted, method=method)
    asked: list[tuple[str, dict[str, Any]]] = [
        ("fractions", {"folds": 3, "rng": 9}),
        ("unseen classes", {"norm": 1, "check": False}),
        ("3 classes, float32", {"kind": "top-label"}),
        ("3 classes", {"weights": "bbse-soft", "method": "vector+prior"}),
        ("beta", {"weights": [0.7, 1.9], "kind": "binary"}),
        ("3 classes, flattened", {}),
    ]
    for name, options in asked:
        called = f"{name}, {options}"
        yield called, partial(calshift.recalibrate, *pair(name).shifted, **options)


def recalibrators() -> Calls:
    """Each class, fitted to the source alone and for the target."""
    for name, (kind, made) in product(("beta", "fractions"), CLASSES.items()):
        p, y, q, _ = pair(name)
        if kind not in NEEDS_TARGET:
            yield f"{name}, {kind}, source", partial(_fitted, made, p, y, None, q)
        yield f"{name}, {kind}, target", partial(_fitted, made, p, y, q, q)
    for name in ("10 classes", "unseen classes", "100 classes"):
        p, y, q, _ = pair(name)
        yield f"{name}, shift", partial(_fitted, calshift.ShiftScaling, p, y, q, q)


def _fitted(made: Any, p: Any, y: Any, q: Any, rows: Any) -> Any:
    fitted = made().fit(p, y, q)
    again = calshift.Recalibrator.from_dict(json.loads(json.dumps(fitted.to_dict())))
    return {"learned": fitted, "mended": fitted.transform(rows), "again": again.transform(rows)}


def series() -> Calls:
    """monitor by rows and by time."""
    sample = pair("3 classes, many").shifted
    size = len(sample[2])
    times = np.datetime64("2024-03-01") + 17 * np.arange(size).astype("timedelta64[m]")
    yield "rows", partial(calshift.monitor, *sample, rows=800)
    yield "rows, weights", partial(calshift.monitor, *sample, rows=600, weights="rlls", norm=1)
    yield "days", partial(calshift.monitor, *sample, times, window="1w", check=False)
    shuffled = times[np.random.default_rng(1).permutation(size)]
    yield "days, not in order", partial(calshift.monitor, *sample, shuffled, window="1w", bins=10)
    seconds = times.astype("datetime64[s]").astype(float)
    yield "seconds", partial(calshift.monitor, *sample, seconds, window="1mo", kind="top-label")
    fractions = pair("fractions").shifted
    yield "fractions", partial(calshift.monitor, *fractions, rows=250, interval=None)
    beta = pair("beta").shifted
    boot = {"interval": "bootstrap", "n_boot": 20, "rng": 1, "norm": 3}
    yield "bootstrap", partial(calshift.monitor, *beta, rows=300, **boot)
    scanned = calshift.scan(batches(sample[2], None), labelled=False)
    yield "scanned", partial(calshift.monitor, *sample[:2], scanned, times, window="1w")


def draws() -> Calls:
    """What makes data: resample_label_shift, softmax, the truths of simulations."""
    y = pair("10 classes").y
    resample, rng = calshift.resample_label_shift, np.random.default_rng(3)
    yield "imbalance", lambda: resample(y, imbalance_factor=10, rng=0)
    yield "prior", lambda: resample(y[y < 3], prior=[0.2, 0.3, 0.5], size=300, rng=1)
    logits = rng.normal(size=(40, 5))
    yield "softmax", lambda: calshift.softmax(logits)
    beta = calshift.simulate.BetaSimulation()
    yield "beta", lambda: [beta.true_error(norm) for norm in (1, 2, 3)]
    gaussian = calshift.simulate.GaussianSimulation(n_classes=4)
    yield "gaussian", lambda: [gaussian.true_error(norm, rows=20_000) for norm in (1, 2)]
    yield "gaussian, draw", lambda: list(gaussian.draw(50, rng=1))


def refused() -> Calls:
    """What ends in an exception: its type is recorded."""
    sample = pair("3 classes").shifted
    target = partial(calshift.target_calibration_error, *sample)
    yield "kind", partial(target, kind="binary")
    yield "kernel and bins", partial(target, kernel="triweight", bins=15)
    yield "canonical bins", partial(target, kind="canonical", bins=15)
    yield "weights", partial(target, weights=[1.0, 2.0])
    yield "labels", partial(calshift.calibration_error, sample[0], sample[1] + 1)
    yield "sums", partial(calshift.calibration_error, sample[0] * 1.1, sample[1])


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
    p, y, q, _ = pair("3 classes")
    made = {
        "batches": lambda: (calshift.scan(batches(p, y)), calshift.scan(batches(q, None))),
        "function": lambda: (
            calshift.scan(lambda: iter(batches(p, y, 150)), jobs=2),
            calshift.scan(lambda: iter(batches(q, None, 90)), labelled=False, jobs=2),
        ),
        "generator": lambda: (
            calshift.scan(one for one in batches(p, y)), calshift.scan(iter(batches(q, None)))
        ),
        "parquet": lambda: (
            calshift.scan(_file("3-classes-source"), batch_rows=128),
            calshift.scan(_file("3-classes-target/*.parquet"), labelled=False),
        ),
    }  # fmt: skip
    asked: dict[str, dict[str, Any]] = {
        "default": {}, "norm 1": {"norm": 1}, "15 bins": {"bins": 15, "weights": "bbse"},
        "top-label": {"kind": "top-label", "estimator": "plugin", "stratified": True},
        "paper": {"estimator": "paper", "interval": None, "norm": 3},
    }  # fmt: skip
    target, weights = calshift.target_calibration_error, calshift.label_shift_weights
    for (name, make), (called, options) in product(made.items(), asked.items()):
        yield f"{name}, {called}", partial(_scanned, make, target, options)
    for method in METHODS:
        asked_method = {"method": method}
        yield f"batches, {method}", partial(_scanned, made["batches"], weights, asked_method)
    yield "check", partial(_scanned, made["function"], calshift.check_label_shift, {})
    yield from _single_scans()


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
    three = "3-classes-source.csv 3-classes-target.csv"
    asked = [
        f"check {three}",
        "check beta-source.csv beta-target.jsonl --max-error 0.01 --prometheus metrics.prom",
        "check 10-classes-source 10-classes-target --engine batches --jobs 2",
        f"check {three} --max-error 0.5 --gate upper --kind top-label --norm 1 --level 0.9",
        f"check {three} --interval bootstrap --draws 20 --jobs 2 --seed 5 --bins 10 --norm 3",
        f"check {three} --weights bbse-soft --estimator plugin --binning width --bins 12",
        f"check {three} --weights 1.5,0.9,0.6 --no-check --estimator paper",
        "check 10-classes.npz 10-classes.npz --logits",
        "check 3-classes-flattened-source.csv 3-classes-flattened-target.csv --max-error 0.01",
        f"weights {three}",
        "weights 10-classes-source.jsonl 10-classes-target --method rlls --level 0.8",
        "weights beta-source beta-target --method kmm --engine batches",
        f"monitor {three} --rows 200",
        f"monitor {three} --time time --window 1d --max-error 0.05 --alert last",
        f"recalibrate {three} -o mended.csv --save saved.json",
        "apply saved.json 3-classes-target.jsonl -o mended.jsonl",
        "recalibrate beta-source.csv beta-target.jsonl -o mended.jsonl --method bcts+prior",
        "recalibrate 10-classes.npz 10-classes.npz -o mended.npz --logits --method temperature",
        "demo --files . --report page.html",
        "check absent.csv 3-classes-target.csv",
        f"check {three} --norm many",
    ]
    for line in asked:
        yield line, partial(_command, line)
    both = (
        (f"weights {three} --method bbse", "found.json"),
        (f"check {three} --weights found.json",),
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
