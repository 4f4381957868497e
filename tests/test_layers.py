"""The architecture: packages import only packages to their left, and files form no cycle."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

import calshift

ROOT = Path(calshift.__file__).parent

LAYERS = (
    "errors", "compiled", "_core", "results", "io", "engines", "binning", "scaling", "weights",
    "diagnostics", "estimators", "inference", "metrics", "api", "recalibration", "decisions",
    "bounds", "simulate", "data", "plotting", "monitoring", "report", "cli", "__main__",
)  # fmt: skip
FORBIDDEN = {("estimators", "weights"), ("estimators", "diagnostics")}
# importer, imported, the method that may import late
LATE = {("results", "plotting", "plot"), ("results", "report", "_repr_html_")}
VERSION = {"cli"}  # packages that may take __version__ from calshift itself
MOST_FILES, MOST_FILES_AT_TOP = 16, 12


class Imports(ast.NodeVisitor):
    """Imports that are executed: (dotted name, names taken, enclosing function, line)."""

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
        if name.split(".")[0] == "calshift":
            function = self.functions[-1] if self.functions else None
            self.found.append((name, taken, function, node.lineno))


def imports_of(path: str, text: str) -> list[tuple[str, tuple[str, ...], str | None, int]]:
    walk = Imports(("calshift", *Path(path).parts[:-1]))
    walk.visit(ast.parse(text))
    return walk.found


def violations(files: dict[str, str]) -> Iterator[str]:
    """Imports against the layers, of files given as {path below calshift: text}."""
    for path, text in files.items():
        layer = Path(path).with_suffix("").parts[0]
        if layer == "__init__":
            continue
        if layer not in LAYERS:
            yield f"{path}: {layer} is not a layer"
            continue
        for name, taken, function, line in imports_of(path, text):
            below = name.split(".")[1:2]
            for other in below or taken or ("calshift",):
                reason = _reason(layer, other, function)
                if reason:
                    yield f"{path}:{line}: {reason}"


def _reason(layer: str, other: str, function: str | None) -> str:
    if other == "__version__" and layer in VERSION:
        return ""
    if other not in LAYERS:
        return f"{layer} imports {other} from the package itself"
    if (layer, other) in FORBIDDEN:
        return f"{layer} must not import {other}"
    if LAYERS.index(other) > LAYERS.index(layer) and (layer, other, function) not in LATE:
        return f"{layer} imports {other}, which is to its right"
    return ""


def cycle(files: dict[str, str]) -> list[str]:
    """Modules that import each other when they are loaded, or []."""
    modules = {_dotted(path): path for path in files}
    graph = {name: set(_loaded(path, files[path], modules)) for name, path in modules.items()}
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return list(error.args[1])
    return []


def _dotted(path: str) -> str:
    parts = Path(path).with_suffix("").parts
    return ".".join(("calshift", *(parts[:-1] if parts[-1] == "__init__" else parts)))


def _loaded(path: str, text: str, modules: dict[str, str]) -> Iterator[str]:
    """Modules of this package that a module imports at its top level."""
    own = _dotted(path)
    for name, taken, function, _ in imports_of(path, text):
        if function is None and name != "calshift":
            targets = {f"{name}.{item}" for item in taken} & set(modules)
            yield from (targets or {name} & set(modules)) - {own}


@pytest.fixture(scope="module")
def files() -> dict[str, str]:
    return {
        path.relative_to(ROOT).as_posix(): path.read_text(encoding="utf-8")
        for path in sorted(ROOT.rglob("*.py"))
    }


def test_packages_import_only_what_is_to_their_left(files):
    assert len(files) > 100
    assert list(violations(files)) == []


def test_modules_do_not_import_each_other_in_a_cycle(files):
    assert cycle(files) == []


def test_every_layer_exists_and_every_file_has_one(files):
    assert {path.split("/")[0].removesuffix(".py") for path in files} == {*LAYERS, "__init__"}


def test_folders_are_small(files):
    folders: dict[Path, int] = {}
    for path in files:
        folders[Path(path).parent] = folders.get(Path(path).parent, 0) + 1
    assert folders.pop(Path(".")) <= MOST_FILES_AT_TOP
    assert max(folders.values()) <= MOST_FILES


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("errors.py", "from calshift.api import accumulate"),
        ("errors.py", "import calshift.api"),
        ("errors.py", "import numpy, calshift._core.frozen as f"),
        ("errors.py", "from ._core import frozen"),
        ("errors.py", "from calshift import _core"),
        (
            "_core/frozen.py",
            "from calshift.errors import InvalidInput\nimport calshift.io.file_reader",
        ),
        ("_core/frozen.py", "from ..results import ClassWeights"),
        ("binning/edges.py", "def edges():\n    from calshift.weights import METHODS"),
        ("binning/edges.py", "try:\n    import calshift.cli.main\nexcept ImportError:\n    pass"),
        ("results/curve.py", "from calshift.plotting import plot_error"),
        ("results/curve.py", "def draw(self):\n    from calshift.plotting import plot_error"),
        ("results/curve.py", "def plot(self):\n    from calshift.cli.main import main"),
        ("results/__init__.py", "from calshift.io.file_reader import encode_labels"),
        ("estimators/debiased.py", "from calshift.inference.estimate import gathered"),
        ("estimators/debiased.py", "from calshift.weights import METHODS"),
        ("weights/given.py", "from calshift.estimators import from_statistics"),
        ("_core/predictions.py", "def plot():\n    from calshift.plotting import plot_error"),
        ("_core/predictions.py", "if 1:\n    from calshift.binning.events import Events"),
        ("_core/predictions.py", "if not DEBUG:\n    pass\nelse:\n    import calshift.api"),
        ("_core/predictions.py", "import calshift"),
        ("_core/predictions.py", "from calshift import Predictions"),
        ("api.py", "from calshift import __version__"),
        ("cli/options.py", "from calshift import __version__, accumulate"),
        ("cli/options.py", "import calshift"),
        ("novelty.py", ""),
        ("api.py", "from calshift.novelty import something"),
    ],
)
def test_violations_are_found(path, text):
    assert len(list(violations({path: text}))) == 1


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("__init__.py", "from calshift.cli.main import main"),
        ("_core/frozen.py", "import numpy as np\nfrom scipy.special import gammaln"),
        ("_core/validate.py", "from calshift._core.convert import to_numpy"),
        ("_core/validate.py", "from .convert import to_numpy\nfrom .. import errors"),
        ("results/curve.py", "from .._core.frozen import Frozen"),
        ("results/curve.py", "class C:\n  def plot(self):\n    from calshift.plotting import x"),
        ("results/a.py", "if TYPE_CHECKING:\n    from calshift.cli.main import main"),
        ("results/a.py", "if typing.TYPE_CHECKING:\n    from calshift.cli.main import main"),
        ("cli/options.py", "from calshift import __version__, simulate"),
    ],
)
def test_allowed_imports_pass(path, text):
    assert list(violations({path: text})) == []


def test_cycles_are_found():
    two = {"a/x.py": "from calshift.a.y import f", "a/y.py": "from calshift.a import x"}
    assert set(cycle(two)) == {"calshift.a.x", "calshift.a.y"}
    late = {**two, "a/y.py": "def g():\n    from calshift.a import x"}
    assert cycle(late) == []
