"""Importing is silent and light, and a module imports only modules that stand above it."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import calshift

ROOT = Path(calshift.__file__).parent

# Top to bottom: a module or folder may import those before it, never itself or those after it.
ORDER = (
    "errors",
    "frozen",
    "wording",
    "grid",
    "vectors",
    "grid_loops",
    "band_loops",
    "hat_loops",
    "loops",
    "fast",
    "conversion",
    "checks",
    "tables",
    "results",
    "predictions",
    "sums",
    "facts",
    "engine",
    "mapped",
    "writing",
    "journal",
    "moments",
    "columns",
    "values",
    "opening",
    "arrow_columns",
    "stored",
    "formats",
    "parts",
    "folders",
    "coding",
    "readers",
    "handed",
    "spooling",
    "table_rows",
    "events",
    "binning",
    "basis",
    "folded",
    "gaps",
    "kernels",
    "statistics",
    "partitions",
    "complaints",
    "engines",
    "spark_tables",
    "runs",
    "scanning",
    "pairs",
    "tiles",
    "quantiles",
    "ranking",
    "fits",
    "cells",
    "tallies",
    "linear",
    "calibrators",
    "penalised",
    "scaling",
    "influence",
    "weighting",
    "matching",
    "mixture",
    "shrinkage",
    "weights",
    "confidence",
    "overidentification",
    "assumptions",
    "options",
    "estimators",
    "moves",
    "moving",
    "uncertainty",
    "estimation",
    "algorithm1",
    "bootstrap",
    "inference",
    "comparison",
    "curves",
    "objections",
    "answers",
    "api",
    "tempering",
    "shifting",
    "temperature_search",
    "saved",
    "recalibrator",
    "reweighting",
    "recalibration",
    "mending",
    "resampling",
    "simulate",
    "plotting",
    "data",
    "windows",
    "monitoring",
    "verdicts",
    "diagrams",
    "report",
    "files",
    "written_weights",
    "openings",
    "bars",
    "arguments",
    "outputs",
    "commands",
    "cli",
    "__main__",
)
# importer, imported, the method that may do it
LATE = {("results", "plotting", "plot"), ("results", "report", "_repr_html_")}
FROM_THE_SHELF = {("commands", "__version__")}  # importer, the name taken from calshift itself

HEAVY = (
    "scipy",
    "narwhals",
    "matplotlib",
    "torch",
    "pandas",
    "polars",
    "pyarrow",
    "click",
    "tqdm",
    "numba",
    "pyspark",
)
PROBE = """
import json, logging, sys, warnings
import numpy  # which adds filters of its own
before = list(warnings.filters), list(logging.getLogger().handlers)
import calshift
after = list(warnings.filters), list(logging.getLogger().handlers)
print(json.dumps({"modules": sorted(sys.modules), "unchanged": before == after}))
"""


def fresh_python(code: str) -> dict:
    """What a new interpreter prints, which must be one line of JSON and nothing else."""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    return json.loads(done.stdout)


def heavy(modules: list[str]) -> list[str]:
    return [name for name in modules if name.split(".")[0] in HEAVY]


def test_importing_is_silent_and_light():
    found = fresh_python(PROBE)
    assert "calshift.api" in found["modules"]
    assert heavy(found["modules"]) == []
    assert found["unchanged"]


def test_the_probe_sees_heavy_packages():
    found = fresh_python(PROBE.replace("import calshift", "import calshift, scipy.special"))
    assert "scipy.special" in heavy(found["modules"])


def test_arrays_need_no_frame_library():
    code = """
import json, sys
import numpy as np
import calshift
p = np.linspace(0.1, 0.9, 50)
y = np.arange(50) % 2
calshift.target_calibration_error(p, y, p, weights=[1, 1])
calshift.target_calibration_error(p.tolist(), y.tolist(), p.tolist(), weights=[1, 1], bins=5)
calshift.reliability_curve(p, y)
print(json.dumps({"modules": sorted(sys.modules)}))
"""
    loaded = heavy(fresh_python(code)["modules"])  # scipy is needed: an interval is asked for
    expected = ("scipy", "numba")  # and numba, where it is installed, for the loops
    assert [name for name in loaded if name.split(".")[0] not in expected] == []


# --- the order of the modules


class Imports(ast.NodeVisitor):
    """The imports of a file that count: (dotted name, names taken, enclosing function, line)."""

    def __init__(self, package: tuple[str, ...]) -> None:
        self.package, self.functions, self.found = package, [], []

    def visit_Import(self, node: ast.Import) -> None:
        for alias in node.names:
            self._add(alias.name, (), node)

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        above = self.package[: len(self.package) - node.level + 1] if node.level else ()
        name = ".".join([*above, *([node.module] if node.module else [])])
        self._add(name, tuple(alias.name for alias in node.names), node)

    def visit_If(self, node: ast.If) -> None:
        if "TYPE_CHECKING" not in ast.unparse(node.test):
            self.generic_visit(node)
            return
        for statement in node.orelse:
            self.visit(statement)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        self.functions.append(node.name)
        self.generic_visit(node)
        self.functions.pop()

    visit_AsyncFunctionDef = visit_FunctionDef  # noqa: N815

    def _add(self, name: str, taken: tuple[str, ...], node: ast.stmt) -> None:
        function = self.functions[-1] if self.functions else None
        self.found.append((name, taken, function, node.lineno))


def breaches(files: dict[str, str]) -> Iterator[str]:
    """Imports against the order, of files given as {path below calshift: text}."""
    for path, text in files.items():
        parts = Path(path).with_suffix("").parts
        if parts == ("__init__",):
            continue
        if parts[0] not in ORDER:
            yield f"{path}: has no place in the order"
            continue
        walk = Imports(("calshift", *parts[:-1]))
        walk.visit(ast.parse(text))
        for name, taken, function, line in walk.found:
            for reason in _reasons(parts, name, taken, function):
                yield f"{path}:{line}: {reason}"


def _reasons(
    parts: tuple[str, ...], name: str, taken: tuple[str, ...], function: str | None
) -> Iterator[str]:
    room, gathers = parts[0], parts[-1] == "__init__"
    head, *below = name.split(".")
    if head != "calshift":
        return
    if not below:
        for item in taken or ("calshift",):
            if item in ORDER:
                yield from _step(room, item, gathers, function)
            elif (room, item) not in FROM_THE_SHELF:
                yield f"{room} takes {item} from the package itself"
    else:
        yield from _step(room, below[0], gathers, function)


def _step(room: str, other: str, gathers: bool, function: str | None) -> Iterator[str]:
    if other not in ORDER:
        yield f"{room} imports {other}, which has no place in the order"
    elif other == room:
        if not gathers:
            yield f"a file of {room} imports its own folder"
    elif ORDER.index(other) > ORDER.index(room) and (room, other, function) not in LATE:
        yield f"{room} imports {other}, which stands below it"


def test_modules_import_only_what_stands_above_them():
    files = {
        path.relative_to(ROOT).as_posix(): path.read_text(encoding="utf-8")
        for path in sorted(ROOT.rglob("*.py"))
    }
    assert len(files) > 20
    assert list(breaches(files)) == []


def test_every_place_in_the_order_is_taken():
    there = {path.stem for path in ROOT.iterdir() if path.suffix == ".py" or path.is_dir()}
    assert set(ORDER) <= there


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("errors.py", "from calshift.api import accumulate"),
        ("errors.py", "import calshift.api"),
        ("errors.py", "import numpy, calshift.frozen as f"),
        ("errors.py", "from .frozen import Frozen"),
        ("errors.py", "from . import frozen"),
        ("errors.py", "from calshift import frozen"),
        ("frozen.py", "from calshift.errors import InvalidInput\nimport calshift.checks"),
        ("binning.py", "def edges():\n    from calshift.statistics import moments"),
        ("binning.py", "try:\n    import calshift.cli\nexcept ImportError:\n    pass"),
        ("results/curve.py", "from calshift.results.class_weights import ClassWeights"),
        ("results/curve.py", "from calshift.results import ClassWeights"),
        ("results/curve.py", "from .class_weights import ClassWeights"),
        ("results/curve.py", "from . import class_weights"),
        ("results/curve.py", "from ..predictions import Predictions"),
        ("results/curve.py", "from calshift.plotting import plot_error"),
        ("results/curve.py", "def draw(self):\n    from calshift.plotting import plot_error"),
        ("results/curve.py", "def plot(self):\n    from calshift.cli import main"),
        ("results/__init__.py", "from calshift.predictions import Predictions"),
        ("estimators/binned.py", "from calshift.estimation import gathered"),
        ("estimators/binned.py", "from calshift.estimators.pointwise import Ratio"),
        ("weights/given.py", "from calshift.estimators import from_statistics"),
        ("predictions.py", "def plot():\n    from calshift.plotting import plot_error"),
        ("predictions.py", "if 1:\n    from calshift.events import Events"),
        ("predictions.py", "if not DEBUG:\n    pass\nelse:\n    import calshift.api"),
        ("predictions.py", "import calshift"),
        ("predictions.py", "from calshift import Predictions"),
        ("api.py", "from calshift import __version__"),
        ("commands.py", "from calshift import __version__, accumulate"),
        ("commands.py", "import calshift"),
        ("novelty.py", ""),
        ("api.py", "from calshift.novelty import wonder"),
    ],
)
def test_the_order_can_be_broken(path, text):
    assert len(list(breaches({path: text}))) == 1


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("__init__.py", "from calshift.cli import main"),
        ("frozen.py", "import numpy as np\nfrom scipy.special import gammaln"),
        ("checks.py", "from calshift.conversion import to_numpy"),
        ("checks.py", "from .conversion import to_numpy\nfrom . import errors"),
        ("results/curve.py", "from ..frozen import Frozen"),
        ("results/__init__.py", "from calshift.results.curve import ReliabilityCurve"),
        ("results/__init__.py", "from .curve import ReliabilityCurve"),
        ("results/curve.py", "class C:\n  def plot(self):\n    from calshift.plotting import x"),
        ("results/a.py", "if TYPE_CHECKING:\n    from calshift.results.b import B"),
        ("results/a.py", "if typing.TYPE_CHECKING:\n    from calshift.cli import main"),
        ("commands.py", "from calshift import __version__, simulate"),
        ("cli.py", "def main():\n    from calshift.commands import run"),
    ],
)
def test_the_order_allows(path, text):
    assert list(breaches({path: text})) == []
