"""Data and measuring of the speed benchmark, the same in every process. Needs numpy alone."""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import resource
import signal
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np

SPREAD, TEMPERATURE = 2.0, 1.3  # of the logits, and of the labels beside the model
CELLS = 500_000  # made at a time, so that making the data takes no memory beside them
RUNS, LEAST, ENOUGH = 5, 1.0, 40.0  # runs of a case, and least seconds of all; most seconds
Runs = dict[str, Callable[[], float]]


def softmax(logits: np.ndarray) -> np.ndarray:
    raised = np.exp(logits - logits.max(axis=1, keepdims=True))
    return raised / raised.sum(axis=1, keepdims=True)


def drawn(p: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """One label a row."""
    below = np.cumsum(p, axis=1) < rng.uniform(size=(len(p), 1))
    return np.minimum(below.sum(axis=1), p.shape[1] - 1)


def parts(n: int, K: int) -> list[slice]:
    rows = max(1, CELLS // K)
    return [slice(start, min(n, start + rows)) for start in range(0, n, rows)]


def predictions(n: int, K: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """(n, K) probabilities in float32, too confident, and labels."""
    rng = np.random.default_rng([seed, n, K])
    p, y = np.empty((n, K), np.float32), np.empty(n, np.int64)
    for part in parts(n, K):
        logits = rng.standard_normal(p[part].shape, np.float32) * np.float32(SPREAD)
        p[part] = softmax(logits)
        y[part] = drawn(softmax(logits / np.float32(TEMPERATURE)), rng)
    return p, y


def scores(n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """The same for two classes: (n,) probabilities of the second, and labels."""
    rng = np.random.default_rng([seed, n])
    p, y = np.empty(n, np.float32), np.empty(n, np.int64)
    for part in parts(n, 1):
        logits = rng.standard_normal(len(p[part]), np.float32) * np.float32(SPREAD)
        p[part] = 1 / (1 + np.exp(-logits))
        y[part] = rng.uniform(size=len(logits)) < 1 / (1 + np.exp(-logits / TEMPERATURE))
    return p, y


def mild_weights(y: np.ndarray, K: int) -> np.ndarray:
    """Class weights from 0.7 to 1.3 or so; their mean over the source is 1."""
    w = np.linspace(0.7, 1.3, K)
    return w / (np.bincount(y, minlength=K) / len(y) @ w)


def most_memory() -> int:
    """Bytes: the most this process has held since `forget_memory`, or ever where /proc is not."""
    try:
        status = Path("/proc/self/status").read_text(encoding="ascii")
    except OSError:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    return int(status.split("VmHWM:")[1].split()[0]) * 1024


def forget_memory() -> int:
    """Bytes held now, from which `most_memory` counts anew."""
    with contextlib.suppress(OSError, AttributeError):  # what was freed is given back first
        ctypes.CDLL(None).malloc_trim(0)
        Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
    return most_memory()


def first_run(run: Callable[[], float], most: int) -> dict[str, float]:
    """Time, memory and answer. After `most` seconds the process ends, by an alarm."""
    held = forget_memory()
    signal.alarm(most)
    start = time.perf_counter()
    answer = run()
    seconds = time.perf_counter() - start - apart(run)
    signal.alarm(0)
    return {"seconds": seconds, "bytes": most_memory() - held, "answer": answer}


def apart(run: Callable[[], float]) -> float:
    """Seconds of a run that are not counted, such as those of making its rows."""
    return float(getattr(run, "apart", float)())


def measured(runs: Runs, most: int) -> dict[str, dict[str, float]]:
    """Each in turns: the best time, and the memory of the first run."""
    begun = time.perf_counter()
    found = {name: first_run(run, most) for name, run in runs.items()}
    turns = 1
    while time.perf_counter() - begun < (ENOUGH if turns < RUNS else LEAST):
        for name, run in runs.items():
            start = time.perf_counter()
            run()
            seconds = time.perf_counter() - start - apart(run)
            found[name]["seconds"] = min(found[name]["seconds"], seconds)
        turns += 1
    return found


def answer(cases: dict[str, Callable[[int, int], Runs]]) -> None:
    """Measure `case n K seconds` of the command line, warmed up on few rows, and print JSON."""
    warnings.simplefilter("ignore")
    name, n, K, most = sys.argv[1], *map(int, sys.argv[2:5])
    try:
        for run in cases[name](min(n, 2000), min(K, 10)).values():
            run()
        found: dict = measured(cases[name](n, K), most)
    except Exception as error:  # what a peer does not do is shown, not hidden
        found = {"failed": f"{type(error).__name__}: {error}"}
    print(json.dumps(found), flush=True)
    os._exit(0)  # some peers take long to end
