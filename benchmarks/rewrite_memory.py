"""Memory of `calshift apply` and `calshift recalibrate`, which write a csv file again.

    python benchmarks/rewrite_memory.py

A target of 235 MB and a source of 1 MB, ten classes, with all digits or 6 decimals, which are twice
as many rows; each command in a process of its own, with the most memory that it had (ru_maxrss) and
its CPU time. `apply` needs as much for any number of rows. `recalibrate` has the probabilities in
memory about twice (8 bytes each), besides some 300 MB. Limit: 600 MB, which `recalibrate` exceeds
with 6 decimals.
"""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

import numpy as np
from tables import write_table

TARGET, SOURCE = 235e6, 1e6  # bytes
BLOCK, CLASSES = 5_000, 10


def write_sample(path: Path, size: float, labelled: bool, seed: int, decimals: int) -> None:
    rng = np.random.default_rng(seed)
    head = ["label"] * labelled + [f"p_{k}" for k in range(CLASSES)]
    with open(path, "w", encoding="utf-8") as file:
        file.write(",".join(head) + "\n")
        while file.tell() < size:
            p = np.exp(2 * rng.normal(size=(BLOCK, CLASSES)))
            p = np.round(p / p.sum(axis=1, keepdims=True), decimals)
            y = (p.cumsum(axis=1) < rng.random((BLOCK, 1))).sum(axis=1).clip(max=CLASSES - 1)
            for label, row in zip(y.tolist(), p.tolist(), strict=True):
                file.write(",".join(map(repr, [label] * labelled + row)) + "\n")


def measured(*arguments: str) -> list[str]:
    """Peak memory and CPU time of a command."""
    asked = [sys.executable, "-m", "calshift", *arguments]
    quiet = [(os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0)]
    _, code, used = os.wait4(
        os.posix_spawn(sys.executable, asked, os.environ, file_actions=quiet), 0
    )
    assert code == 0
    return [f"{used.ru_maxrss * 1024 / 1e6:.0f} MB", f"{used.ru_utime + used.ru_stime:.1f} s"]


def main() -> None:
    rows = []
    for digits, decimals in {"all digits": 20, "6 decimals": 6}.items():
        with tempfile.TemporaryDirectory() as folder:
            source, target = Path(folder, "source.csv"), Path(folder, "target.csv")
            saved, out = str(Path(folder, "saved.json")), str(Path(folder, "out.csv"))
            write_sample(source, SOURCE, True, 0, decimals)
            write_sample(target, TARGET, False, 1, decimals)
            file = f"{target.stat().st_size / 1e6:.0f} MB, {digits}"
            fit = ["recalibrate", str(source), str(target), "-o", out, "--save", saved]
            rows.append(["recalibrate", file, *measured(*fit)])
            rows.append(["apply", file, *measured("apply", saved, str(target), "-o", out)])
    write_table("rewrite_memory", __doc__, ["command", "file", "peak memory", "CPU time"], rows)


if __name__ == "__main__":
    main()
