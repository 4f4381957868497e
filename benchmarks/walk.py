"""What one default call, and one `calshift check`, go through.

    python benchmarks/walk.py [--names]

A call of target_calibration_error with default options on arrays in memory, and `calshift check` of
the same rows in csv files, run in this process; 5 classes, 2000 source and 1900 target rows. Both
are run once before, so that what is imported or kept is not counted. Python's profiler sees every
call of a function that is written in Python, and of a compiled loop, but not what a loop calls.
--names also prints the files, classes and passes. The table has

modules : files of calshift in which at least one function was called, bodies of modules not counted
functions : different ones, without lambdas and comprehensions
classes : different ones of calshift of which an instance was made
deepest stack : frames of calshift on top of each other, others between them not counted
passes over rows : calls of an engine's `total` that are not part of another one, and readings of
    all rows without it (ALONE below); in the solver of the class weights while a function of it
    is on the stack (SOLVER), else outside
source binned : passes over the source outside that solver in which scores were looked up in the
    bins of the error, or on the grid from which they are cut (BINNING)

Passes in the solver depend on the data: it stops when it has converged. `calshift check` also works
out the error on the source, in bins of its own. Not counted: what is known of a sample as a whole,
and the one writing of calibrated probabilities of each sample. Instances that are made without a
constructor written in Python are not seen. Loops are compiled unless CALSHIFT_COMPILED=0 is set or
numba is absent; the table says which.
"""

from __future__ import annotations

import contextlib
import io
import os
import sys
import tempfile
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from importlib.metadata import entry_points
from importlib.util import find_spec
from inspect import CO_GENERATOR
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
from tables import write_table

import calshift

PACKAGE = str(Path(calshift.__file__).parent) + os.sep
CLASSES, SOURCE_ROWS, TARGET_ROWS = 5, 2000, 1900
# Files within the package, and functions in them
SOLVER = ("weights/", "scaling")
PASS = "total"  # the method of every engine
ALONE = {  # all rows, without an engine's total
    ("binning/placement.py", "score_blocks"),
    ("inference/reliability_sums.py", "of"),
}
BINNING = {
    ("binning/placement.py", "_locate"),
    ("binning/find_edges.py", "__call__"),  # on the grid, from which fine bins are cut
    ("binning/edges.py", "locate"),  # one event at a time
}
MADE_BY = ("__init__", "__new__", "__post_init__")


@dataclass
class Pass:
    """A reading of all rows of a sample."""

    sample: str
    inside: bool
    binned: bool = False


@dataclass
class Walk:
    """What the profiler saw."""

    files: set[str] = field(default_factory=set)
    functions: set[tuple[str, str]] = field(default_factory=set)
    classes: set[str] = field(default_factory=set)
    passes: list[Pass] = field(default_factory=list)
    depth: int = 0
    deepest: int = 0
    solving: int = 0
    totals: int = 0
    begun: dict[int, FrameType] = field(default_factory=dict)  # generators are called several times

    def __call__(self, frame: FrameType, event: str, _: Any) -> None:
        """For sys.setprofile."""
        if event not in ("call", "return"):
            return
        path = frame.f_code.co_filename
        if path.startswith(PACKAGE):
            self._step(frame, path.removeprefix(PACKAGE), 1 if event == "call" else -1)
        elif event == "call" and path.startswith("<"):  # written by dataclass or NamedTuple
            self._made(frame)

    def _step(self, frame: FrameType, file: str, change: int) -> None:
        name = frame.f_code.co_name
        if change > 0 and id(frame) not in self.begun:
            self._called(frame, file, name)
            if frame.f_code.co_flags & CO_GENERATOR:
                self.begun[id(frame)] = frame
        self.depth += change
        self.deepest = max(self.deepest, self.depth)
        self.solving += change * file.replace(os.sep, "/").startswith(SOLVER)
        self.totals += change * (name == PASS)

    def _called(self, frame: FrameType, file: str, name: str) -> None:
        if name != "<module>":
            self.files.add(file)
        if not name.startswith("<"):
            self.functions.add((file, frame.f_code.co_qualname))
        if name in MADE_BY:
            self._made(frame)
        alone = self.totals == 0 and (file, name) in ALONE
        if alone or (self.totals == 0 and name == PASS):
            read = next(iter(frame.f_locals.values()))
            self.passes.append(Pass(_sample(read), self.solving > 0))
        if (alone or self.totals) and (file, name) in BINNING:
            self.passes[-1].binned = True

    def _made(self, frame: FrameType) -> None:
        first = next(iter(frame.f_locals.values()), None)
        kind = first if isinstance(first, type) else type(first)
        name = frame.f_code.co_name
        made = name in MADE_BY or (name == "<lambda>" and "_cls" in frame.f_locals)
        if made and kind.__module__.split(".")[0] == "calshift":
            self.classes.add(f"{kind.__module__}.{kind.__qualname__}")

    def count(self, *, inside: bool, sample: str | None = None, binned: bool = False) -> int:
        """Passes of some kind."""
        kept = [one for one in self.passes if one.inside == inside and one.binned >= binned]
        return sum(sample in (None, one.sample) for one in kept)


def _sample(read: Any, depth: int = 4) -> str:
    """Whose rows an engine has: the samples differ in their number of rows."""
    rows = {SOURCE_ROWS: "source", TARGET_ROWS: "target"}
    if type(read).__module__.split(".")[0] != "calshift" or depth == 0:
        return "other"
    if hasattr(type(read), "__len__") and len(read) in rows:
        return rows[len(read)]
    found = (_sample(value, depth - 1) for value in vars(read).values())
    return next((name for name in found if name != "other"), "other")


def walked(call: Callable[[], Any]) -> Walk:
    """The second call of a function."""
    walk = Walk()
    call()
    sys.setprofile(walk)
    try:
        call()
    finally:
        sys.setprofile(None)
    return walk


def default_call() -> Callable[[], Any]:
    """`target_calibration_error` of arrays, as it comes."""
    (p, y), q = _samples()
    return lambda: calshift.target_calibration_error(p, y, q)


def _samples() -> tuple[tuple[np.ndarray, np.ndarray], np.ndarray]:
    simulation = calshift.simulate.GaussianSimulation(n_classes=CLASSES, seed=1)
    return simulation.source(SOURCE_ROWS, rng=1), simulation.target(TARGET_ROWS, rng=2)[0]


def command(folder: Path) -> Callable[[], Any]:
    """`calshift check` of two csv files, as the installed script runs it."""
    (p, y), q = _samples()
    head = [f"p_{c}" for c in range(CLASSES)]
    source, target = folder / "source.csv", folder / "target.csv"
    rows = np.column_stack([p, y])
    np.savetxt(source, rows, "%.17g", ",", header=",".join([*head, "label"]), comments="")
    np.savetxt(target, q, "%.17g", ",", header=",".join(head), comments="")
    (found,) = entry_points(group="console_scripts", name="calshift")
    main = found.load()

    def call() -> None:
        typed, sys.argv = sys.argv, ["calshift", "check", str(source), str(target)]
        said = io.StringIO()
        try:
            with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
                main()
        except SystemExit as end:
            if end.code:
                raise RuntimeError(said.getvalue()) from end
        finally:
            sys.argv = typed

    return call


ROWS: dict[str, Callable[[Walk], int]] = {
    "modules entered": lambda walk: len(walk.files),
    "functions": lambda walk: len(walk.functions),
    "classes instantiated": lambda walk: len(walk.classes),
    "deepest stack": lambda walk: walk.deepest,
    "passes over rows": lambda walk: len(walk.passes),
    "... outside the solver of the weights": lambda walk: walk.count(inside=False),
    "... ... over the source": lambda walk: walk.count(inside=False, sample="source"),
    "... ... over the target": lambda walk: walk.count(inside=False, sample="target"),
    "... in the solver, over the source": lambda walk: walk.count(inside=True, sample="source"),
    "... in the solver, over the target": lambda walk: walk.count(inside=True, sample="target"),
    "source binned": lambda walk: walk.count(inside=False, sample="source", binned=True),
}


def main() -> None:
    warnings.simplefilter("ignore", calshift.UnreliableWeights)
    with tempfile.TemporaryDirectory() as folder:
        walks = [walked(default_call()), walked(command(Path(folder)))]
    if "--names" in sys.argv:
        for walk in walks:
            print(*sorted(walk.files), *sorted(walk.classes), *walk.passes, sep="\n")
    wanted = os.environ.get("CALSHIFT_COMPILED", "1") != "0" and find_spec("numba") is not None
    mode = "compiled" if wanted else "numpy"
    rows = [[name, *(str(count(walk)) for walk in walks)] for name, count in ROWS.items()]
    write_table("walk", __doc__, [f"what ({mode} loops)", "default call", "calshift check"], rows)


if __name__ == "__main__":
    main()
