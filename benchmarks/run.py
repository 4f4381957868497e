"""Speed: CPU and wall time of this version, of another one and of other packages, in turns.

    git worktree add ../other 9571bf2
    python benchmarks/run.py [--quick] [--only PART] [--source ../other/src] [--peers DIR]

Parts, each in a table of its own: default, others, growth, peers, threads, streams. Each version
and setting is a process of its own with one thread of BLAS, which calls a case once, and then as
often as takes a quarter of a second in each of five turns; what takes over 20 s of CPU time is
called once, and on few rows before. Ratios are of CPU time, ours over its, the median and range
over the turns; "numba": with compiled functions or with CALSHIFT_COMPILED=0. "MB": the most held
during the first call beside the inputs. With --quick, which is to see that it runs, tables go to
benchmarks/cache. Where nothing else is said the data are simulated Gaussian classes with other
class priors in the target, n = m rows of source and target, in float32.
"""

from __future__ import annotations

import argparse
import os
import platform
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, version
from inspect import cleandoc
from pathlib import Path

import speed_alone as alone
import speed_beside as beside
import speed_versions as versions
import tables
from speed_children import HERE
from speed_environment import PeersEnvironment
from speed_rows import GROWTH_HEAD, HEAD, THREADS_HEAD, Row
from speed_setup import Setup
from speed_sizes import FULL, QUICK

Table = tuple[Callable[[Setup], list[Row]], list[str]]
PARTS: dict[str, Table] = {  # lines, whose description says what the table shows, and columns
    "default": (versions.default_rows, HEAD),
    "others": (versions.other_rows, HEAD),
    "growth": (alone.growth_rows, GROWTH_HEAD),
    "peers": (beside.peer_rows, HEAD),
    "threads": (alone.thread_rows, THREADS_HEAD),
    "streams": (versions.stream_rows, HEAD),
}


def machine() -> str:
    try:
        numba = f"numba {version('numba')}"
    except PackageNotFoundError:
        numba = "no numba"
    load = f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f} at the start"
    return f"Python {platform.python_version()}, numpy {version('numpy')}, {numba}; {load}."


def about(name: str, setup: Setup) -> str:
    """The command, and what the table shows."""
    shown = cleandoc(PARTS[name][0].__doc__ or "")
    lines = [__doc__.replace("[--quick] [--only PART]", f"--only {name}"), shown, ""]
    lines += [machine(), f"Turns: {setup.pairs}."]
    return "\n".join(lines + ([setup.peers.versions()] if name == "peers" else []))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="small sizes, to see that it runs")
    parser.add_argument("--only", choices=PARTS, action="append", metavar="PART")
    parser.add_argument("--source", type=Path, default=HERE.parents[1] / "other" / "src")
    parser.add_argument("--peers", type=Path, default=HERE / "cache" / "peers", metavar="DIR")
    parser.add_argument("--pairs", type=int, default=5)
    asked = parser.parse_args()
    if not (asked.source / "calshift").is_dir():
        parser.error(f"--source {asked.source}: no calshift there; see above")
    if asked.quick:
        tables.RESULTS = HERE / "cache"
    peers = PeersEnvironment(asked.peers)
    setup = Setup(QUICK if asked.quick else FULL, asked.pairs, asked.source, peers)
    for name in asked.only or PARTS:
        make, head = PARTS[name]
        rows = make(setup)
        tables.write_table(f"speed_{name}", about(name, setup), head, rows)


if __name__ == "__main__":
    main()
