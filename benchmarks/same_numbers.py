"""Whether calshift still gives the numbers that it gave, call by call.

    python benchmarks/same_numbers.py record FILE.json [--spark]
    python benchmarks/same_numbers.py compare FILE.json [--spark] [--tolerance 1e-9]

For large changes of the code that must not change an answer. `record` makes some hundred calls of
the public functions and of the command line, on small simulated samples, and writes what they
answer; `compare` makes them again, tells the largest difference by group, and ends in 1 if one is
beyond the tolerance. calshift is the one of the interpreter's environment. Loops are compiled
unless CALSHIFT_COMPILED=0 is set or numba is absent: each has a record of its own, and it is an
error (2) if the loops that the mode asks for did not run. `--only WORD` takes groups whose name has
that word; `--without NAME` leaves out values of that name. Set OPENBLAS_NUM_THREADS=1.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
import warnings
from collections.abc import Callable
from importlib.util import find_spec
from math import isfinite
from pathlib import Path
from typing import Any

import numpy as np
import same_numbers_calls as calls
import same_numbers_elsewhere as elsewhere
import same_numbers_others as others
from same_numbers_values import Leaf, difference, leaves, values_of

import calshift

GROUPS: dict[str, Callable[[], calls.Calls]] = {
    "labelled errors": calls.labelled_errors,
    "shifted errors": calls.shifted_errors,
    "class weights": calls.class_weights,
    "checks": calls.checks,
    "curves": calls.curves,
    "comparisons": calls.comparisons,
    "sums": calls.sums,
    "variances": others.variances,
    "mended": others.mended,
    "recalibrators": others.recalibrators,
    "series": others.series,
    "draws": others.draws,
    "refused": others.refused,
    "scans": elsewhere.scans,
    "commands": elsewhere.commands,
}
SPARK = {"spark": elsewhere.spark}
TOLERANCE = {"numpy": 1e-9, "compiled": 1e-7}
MOST_SHOWN = 30
Record = dict[str, dict[str, Leaf]]  # what was called -> path -> value


def main() -> None:
    asked = _arguments()
    mode = _mode()
    groups = {**GROUPS, **(SPARK if asked.spark else {})}
    groups = {name: make for name, make in groups.items() if asked.only in name}
    print(f"calshift of {Path(calshift.__file__).parent}, {mode}", file=sys.stderr)
    asked.tolerance = TOLERANCE[mode] if asked.tolerance is None else asked.tolerance
    before = _read(asked.file, mode, groups) if asked.what == "compare" else {}
    found = {name: _made(name, make) for name, make in groups.items()}
    ran = _loops_that_ran(mode)
    if asked.what == "record":
        _write(asked.file, mode, ran, found)
    else:
        sys.exit(_compared(before, found, asked))


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=("record", "compare"))
    parser.add_argument("file", type=Path)
    parser.add_argument("--spark", action="store_true", help="also Spark's tables")
    parser.add_argument("--tolerance", type=float)
    parser.add_argument(
        "--without", action="append", default=[], metavar="NAME", help="values not compared"
    )
    parser.add_argument("--only", default="", metavar="WORD", help="groups with this in their name")
    return parser.parse_args()


def _mode() -> str:
    wanted = os.environ.get("CALSHIFT_COMPILED", "1") != "0" and find_spec("numba") is not None
    return "compiled" if wanted else "numpy"


def _ended(problem: str) -> None:
    print(f"same_numbers: {problem}", file=sys.stderr)
    sys.exit(2)


def _made(group: str, make: Callable[[], calls.Calls]) -> dict[str, Any]:
    """The answers of a group."""
    start, cpu = time.perf_counter(), sum(os.times()[:4])
    found: dict[str, Any] = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name, ask in make():
            assert name not in found, name
            found[name] = _answered(ask)
    spent = f"{time.perf_counter() - start:.1f} s, {sum(os.times()[:4]) - cpu:.1f} s of processors"
    print(f"{group}: {len(found)} calls, {spent}", file=sys.stderr)
    return found


def _answered(ask: Callable[[], Any]) -> dict[str, Any]:
    """Numbers and texts of an answer, or the type of what was raised."""
    try:
        tree = values_of(ask())
    except Exception as problem:
        tree = {"raised": type(problem).__name__, "message": str(problem)}
    told = dict(leaves(tree))
    texts = {path: value for path, value in told.items() if isinstance(value, str)}
    values = {path: value for path, value in told.items() if path not in texts}
    if "raised" in texts:
        values[f"raised {texts['raised']}"] = True
    return {"values": values, "texts": texts}


def _loops_that_ran(mode: str) -> list[str]:
    """Names of compiled functions of calshift that were called; ends if they do not fit the mode.

    Modules move, so all of them are looked through.
    """
    if "numba" not in sys.modules:
        if mode == "compiled":
            _ended("numba is there, but calshift did not import it: no compiled loop ran")
        return []
    if mode == "numpy":
        _ended("numba was imported, though the loops of numpy were asked for")
    from numba.core.dispatcher import Dispatcher

    modules = [module for name, module in sys.modules.items() if name.split(".")[0] == "calshift"]
    objects = [value for module in modules for value in list(vars(module).values())]
    loops = [one for one in objects if isinstance(one, Dispatcher) and one.signatures]
    names = sorted({one.py_func.__name__ for one in loops})
    if not names:
        _ended("numba was imported, but no compiled loop of calshift was called")
    print(f"{len(names)} compiled loops ran: {', '.join(names)}", file=sys.stderr)
    return names


def _write(path: Path, mode: str, ran: list[str], found: dict[str, Any]) -> None:
    versions = {"python": sys.version.split()[0], "numpy": np.__version__}
    kept = {"mode": mode, "loops": ran, "versions": versions, "calls": found}
    path.write_text(json.dumps(kept, indent=0), encoding="utf-8")
    numbers = sum(len(call["values"]) for group in found.values() for call in group.values())
    total = sum(map(len, found.values()))
    print(f"{mode}: {total} calls, {numbers} values, written to {path}")


def _read(path: Path, mode: str, groups: dict[str, Any]) -> dict[str, Any]:
    """What was recorded, of the groups asked for."""
    kept = json.loads(path.read_text(encoding="utf-8"))
    if kept["mode"] != mode:
        _ended(f"{path} was recorded in mode {kept['mode']!r}, and this is {mode!r}")
    lacking = [name for name in groups if name not in kept["calls"]]
    if lacking:
        _ended(f"{path} has no calls of {', '.join(lacking)}")
    return {name: kept["calls"][name] for name in groups}


def _compared(before: dict[str, Any], found: dict[str, Any], asked: argparse.Namespace) -> int:
    """Print the largest difference of each group, and what is beyond the limit."""
    beyond: list[tuple[float, str]] = []
    for group, recorded in before.items():
        apart = {
            name: _apart(recorded.get(name), found[group].get(name), asked.without)
            for name in recorded | found[group]
        }
        largest = max((size for size, _ in apart.values() if isfinite(size)), default=0.0)
        here = [(size, f"{group}: {name}: {where}") for name, (size, where) in apart.items()]
        beyond += [one for one in here if not one[0] <= asked.tolerance]
        print(f"{group:16} {len(found[group]):4} calls, largest difference {largest:.1e}")
    total = sum(map(len, found.values()))
    print(f"{total} calls compared, {len(beyond)} beyond {asked.tolerance:g}")
    for size, where in sorted(beyond, reverse=True)[:MOST_SHOWN]:
        print(f"  {size:.1e}  {where}")
    return 1 if beyond else 0


def _apart(recorded: Any, found: Any, without: list[str]) -> tuple[float, str]:
    """The largest difference of a call, and where it is."""
    if recorded is None or found is None:
        return float("inf"), "only recorded" if found is None else "not recorded"
    a, b = (
        {path: value for path, value in call["values"].items() if not _left_out(path, without)}
        for call in (recorded, found)
    )
    lost, new = [path for path in a if path not in b], [path for path in b if path not in a]
    sizes = [(difference(path, a[path], b[path]), path) for path in a if path in b]
    size, path = max(sizes, default=(0.0, ""))
    told = f"{path}: {_short(a[path])} -> {_short(b[path])}" if path else ""
    if lost or new:
        return float("inf"), f"lost {_short(lost)}, new {_short(new)}; {size:.1e}  {told}"
    return size, told


def _left_out(path: str, without: list[str]) -> bool:
    return any(name in path.replace("[", ".").split(".") for name in without)


def _short(value: Leaf) -> str:
    text = json.dumps(value)
    return text if len(text) < 60 else text[:56] + " ..."


if __name__ == "__main__":
    main()
