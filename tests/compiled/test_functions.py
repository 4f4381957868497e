"""Every compiled function returns what its numpy version returns, and its file stands alone."""

from __future__ import annotations

import ast
import logging
import os
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import calshift
from calshift import compiled
from calshift._core import linalg, predictions, score_grid
from calshift.binning import find_edges, hat_basis, placement
from calshift.diagnostics import label_tables
from calshift.estimators import row_sums
from calshift.inference import block_sums, drift_sums, reliability_sums
from calshift.results import drift as results_drift

functions = pytest.importorskip(
    "calshift.compiled.functions", reason="compiled functions need numba: calshift[fast]"
)

N, E, B, D = 700, 5, 30, 4
ZERO_COLUMNS = np.zeros((E, 0))


class Sample:
    """Arguments of the functions, drawn at random."""

    def __init__(self, dtype: str, weighted: bool, seed: int = 0) -> None:
        rng = np.random.default_rng(seed)
        self.score = rng.beta(0.3, 1.0, (E, N)).astype(dtype)
        self.score[:, :4] = 0.0, 0.5, 1.0, 1e-13
        self.frequency = rng.uniform(0.2, 3, N) if weighted else None
        self.bins = rng.integers(0, B, (E, N)).astype(np.uint8)
        self.true = rng.integers(-1, E + 1, N)
        self.weight = rng.uniform(0.3, 1, N)
        self.fit = rng.normal(size=(4, E, B)) ** 2 / 20
        self.plugin = rng.uniform(size=E)
        self.through = rng.normal(size=(E, N))
        self.sketch = rng.normal(size=(E, B, D))
        self.group = rng.integers(0, 3, N)
        self.lines = rng.normal(size=(4, E, 3 * B))
        self.band = rng.uniform(0.5, 2, (E, B)), rng.uniform(0.1, 0.6, (E, B))
        self.cells = find_edges.count_cells.__wrapped__(self.score, self.frequency)


def bins_of_cells(a: Sample) -> tuple:
    return a.cells, score_grid.MIDDLE, score_grid.ANGLE, 256


def deviations(a: Sample) -> tuple:
    return a.score, a.bins, a.fit[0], a.frequency


def knots(a: Sample, hats: int) -> tuple:
    rng = np.random.default_rng(hats)
    t = np.sort(rng.uniform(size=(E, B)), axis=1)
    rows = rng.poisson(4.0, (2, E, B)).astype(float)
    return t, *rows, np.array([B, 1, 2, B // 2, B]), hats, hat_basis.LEAST_ROWS


def few_scores(a: Sample) -> tuple:
    """Events with enough rows a score for a knot each, with too few, and with too many scores."""
    rng = np.random.default_rng(5)
    t = np.sort(rng.uniform(size=(E, 110)), axis=1)
    rows = rng.poisson(14.0, (2, E, 110)).astype(float)
    rows[:, 1] = 9.0
    return t, *rows, np.array([100, 90, 101, 60, 110]), 21, hat_basis.LEAST_ROWS


def source_influence(a: Sample, through: np.ndarray, own: float, threshold: float) -> tuple:
    total, x = np.zeros(N), np.zeros((N, D))
    rows = a.score, a.bins, a.true, a.weight, a.frequency
    return *rows, a.fit, a.plugin, through, own, a.sketch, threshold, 0.1, total, x


def influence(a: Sample, groups: int, through: np.ndarray, threshold: float) -> tuple:
    total, x = np.zeros(N), np.zeros((N, D))
    rows, lines = (a.score, a.bins, a.true), np.ascontiguousarray(a.lines[..., : groups * B])
    found = through, a.sketch, a.fit[3], threshold, total, x
    return *rows, a.group, groups, a.frequency, lines, *found


def labelled(a: Sample, kinds: int) -> tuple:
    left = np.sort(np.random.default_rng(3).integers(0, 7, (E, B)), axis=1)
    hats = left, np.where(left < 6, a.band[0] / 2, 0.0)
    sums, means = np.zeros((E, kinds, 7, 3)), np.zeros((E, 2, 3))
    return a.score, a.bins, a.true, a.group, a.weight, a.frequency, a.fit, 0.1, *hats, sums, means


def products(a: Sample) -> tuple:
    rows, hats = (a.score, a.bins, a.true, a.weight, a.frequency), labelled(a, 1)[8:10]
    return *rows, a.fit[:2], 0.1, *hats, a.sketch[0, a.true], np.zeros((E, 7, D))


def matrix(a: Sample) -> np.ndarray:
    """Rows with ties."""
    return np.ascontiguousarray(np.round(a.score, 1).T)


def drift(a: Sample, absolute: bool) -> tuple:
    return a.score, a.bins, a.fit[0], a.fit[1] if absolute else ZERO_COLUMNS, np.zeros((5, N))


CASES = [
    (results_drift.count_sizes, lambda a: (a.lines[:, 0] ** 9, a.lines[0, 1] ** 2)),
    (drift_sums.find_changes, lambda a: (a.score.astype(float), a.weight, 0.1, 0.2, False, 3)),
    (drift_sums.find_changes, lambda a: (a.score.astype(float), a.weight, 0.1, 0.2, True, 3)),
    (drift_sums.add_drift, lambda a: drift(a, False)),
    (drift_sums.add_drift, lambda a: drift(a, True)),
    (linalg.row_max, lambda a: (matrix(a),)),
    (predictions.find_largest, lambda a: (matrix(a),)),
    (predictions.find_largest, lambda a: (np.ascontiguousarray(matrix(a)[:, :3]),)),
    (label_tables.sum_residuals, lambda a: (a.score.T, a.true % E, a.frequency)),
    (row_sums.sum_groups, lambda a: (a.score, a.bins, B, a.true, a.group, 1, a.frequency)),
    (row_sums.sum_groups, lambda a: (a.score, a.bins, B, a.true, a.group, 3, a.frequency)),
    (block_sums.add_products, products),
    (row_sums.add_labelled, lambda a: labelled(a, 4)),
    (row_sums.add_labelled, lambda a: labelled(a, 1)),
    (block_sums.add_influence, lambda a: influence(a, 3, a.through, -1.0)),
    (block_sums.add_influence, lambda a: influence(a, 1, ZERO_COLUMNS, 0.01)),
    (block_sums.add_influence, lambda a: influence(a, 3, ZERO_COLUMNS, 3.0)),
    (placement.locate, lambda a: (a.score, np.tile(np.arange(9985) // 40, (E, 1)).astype("u1"))),
    (find_edges.count_cells, lambda a: (a.score, a.frequency)),
    (find_edges.cut_cells, bins_of_cells),
    (find_edges.cut_scores, lambda a: (a.score, a.frequency, *bins_of_cells(a)[1:])),
    (hat_basis.choose_knots, lambda a: knots(a, 7)),
    (hat_basis.choose_knots, lambda a: knots(a, 61)),
    (hat_basis.choose_knots, few_scores),
    (row_sums.sum_source, lambda a: (a.score, a.bins, B, a.true, a.weight, a.frequency)),
    (row_sums.sum_source, lambda a: (a.score, a.bins, B, a.true, 0 * a.weight + 2, a.frequency)),
    (block_sums.add_source_influence, lambda a: source_influence(a, a.through, 0.0, -1.0)),
    (block_sums.add_source_influence, lambda a: source_influence(a, ZERO_COLUMNS, 0.02, 1e-4)),
    (block_sums.add_source_influence, lambda a: source_influence(a, ZERO_COLUMNS, 0.0, 0.1)),
    (
        block_sums.add_target_influence,
        lambda a: (a.bins, a.frequency, a.fit[0], a.through, np.zeros(N)),
    ),
    (
        block_sums.add_target_influence,
        lambda a: (a.bins, a.frequency, a.fit[0], ZERO_COLUMNS, np.zeros(N)),
    ),
    (reliability_sums.sum_deviations, deviations),
    (reliability_sums.sum_weighted_rows, lambda a: (a.bins, a.through, a.sketch[0, a.true], B)),
    (linalg.factor_band, lambda a: (*a.band, 1e-12)),
]


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize(("function", "arguments"), CASES, ids=lambda v: getattr(v, "__name__", ""))
def test_compiled_and_numpy_versions_agree(function, arguments, dtype, weighted):
    plain, fast = (arguments(Sample(dtype, weighted)) for _ in range(2))
    expected = function.__wrapped__(*plain)
    found = getattr(functions, function.__name__)(*fast)
    pairs = zip(_arrays(expected), _arrays(found), strict=True)
    in_place = zip(_arrays(plain), _arrays(fast), strict=True)
    for one, other in (*pairs, *in_place):
        np.testing.assert_allclose(other, one, rtol=1e-10, atol=1e-13)


def _arrays(values) -> list[np.ndarray]:
    several = values if isinstance(values, tuple) else (values,)
    return [one for one in several if isinstance(one, np.ndarray)]


def test_every_compiled_function_has_a_numpy_version_of_the_same_form():
    import inspect

    dispatchers = {
        name: one.py_func for name, one in vars(functions).items() if hasattr(one, "py_func")
    }
    public = {name for name in dispatchers if not name.startswith("_")}
    tested = {function.__name__: function.__wrapped__ for function, _ in CASES}
    assert public == set(tested)
    for name in public:
        one, other = dispatchers[name], tested[name]
        assert list(inspect.signature(one).parameters) == list(inspect.signature(other).parameters)
        assert inspect.getdoc(one) == inspect.getdoc(other)


def test_the_file_of_compiled_functions_imports_nothing_of_calshift():
    """numba invalidates cached machine code when this file changes, and looks at no other."""
    tree = ast.parse(Path(functions.__file__).read_text(encoding="utf-8"))
    imported = {
        (node.module or "") if isinstance(node, ast.ImportFrom) else node.names[0].name
        for node in ast.walk(tree)
        if isinstance(node, ast.Import | ast.ImportFrom)
    }
    assert imported == {"__future__", "numpy", "numba"}
    assert functions.CELLS == score_grid.CELLS
    assert functions.CENTRE == score_grid.CENTRE
    assert functions.MANTISSA == results_drift.MANTISSA
    assert functions.FIRST == results_drift.FIRST
    assert functions.SIZES == results_drift.CELLS_AN_OCTAVE * results_drift.OCTAVES
    assert functions.DISTINCT == hat_basis.DISTINCT
    assert functions.ROWS_A_SCORE == hat_basis.ROWS_A_SCORE
    assert score_grid.SHIFT[8] == functions.SHIFT
    assert score_grid.HALF + score_grid.WIDER[8] == functions.HALF


@pytest.fixture
def fresh(monkeypatch):
    """The switch is read again, before and after."""
    compiled.compiled_functions.cache_clear()
    yield monkeypatch
    monkeypatch.undo()
    compiled.compiled_functions.cache_clear()


def test_the_variable_turns_compiled_functions_off(fresh):
    fresh.setenv(compiled.SWITCH, "0")
    assert compiled.compiled_functions() is None


def test_a_numba_that_cannot_be_imported_is_logged_and_not_used(fresh, caplog):
    import builtins
    import sys

    fresh.setenv(compiled.SWITCH, "1")
    fresh.delitem(sys.modules, "calshift.compiled.functions")
    fresh.delattr(compiled, "functions")
    real = builtins.__import__

    def failing(name, *rest):
        if name == "calshift.compiled" and rest and "functions" in (rest[2] or ()):
            msg = "numba needs another numpy"
            raise ImportError(msg)
        return real(name, *rest)

    fresh.setattr(builtins, "__import__", failing)
    with caplog.at_level(logging.DEBUG, logger="calshift.compiled"):
        assert compiled.compiled_functions() is None
    assert "numba needs another numpy" in caplog.text
    assert calshift.calibration_error([0.2, 0.8, 0.3], [0, 1, 1]).estimate is not None


def test_numba_is_imported_for_the_first_large_array(fresh, caplog):
    small, large = np.full((2, 3), 0.5), np.full((2, compiled.LEAST_SIZE), 0.5)
    expected = linalg.factor_band.__wrapped__(small, small / 9, 1e-12)
    np.testing.assert_allclose(linalg.factor_band(small, small / 9, 1e-12), expected)
    assert compiled.GRID_CELLS == score_grid.CELLS
    placement.locate(np.full((8, 3), 0.5), np.zeros((8, score_grid.CELLS), np.uint8))
    assert compiled.compiled_functions.cache_info().currsize == 0
    linalg.factor_band(large, large / 9, 1e-12)
    assert compiled.compiled_functions.cache_info().currsize == 1


@pytest.mark.parametrize(("made", "told"), [(0, 1), (2e9, 0)])
def test_a_compilation_is_logged_once(fresh, caplog, tmp_path, made, told):
    file, index = tmp_path / "functions.py", tmp_path / "functions.factor_band-1.nbi"
    for one in (file, index):
        one.touch()
    os.utime(file, (1e9, 1e9))
    os.utime(index, (made, made))
    stats = SimpleNamespace(cache_path=str(tmp_path))
    module = SimpleNamespace(__file__=str(file), factor_band=SimpleNamespace(stats=stats))
    fresh.setenv(compiled.SWITCH, "1")
    fresh.setitem(sys.modules, "calshift.compiled.functions", module)
    fresh.setattr(compiled, "functions", module, raising=False)
    with caplog.at_level(logging.INFO, logger="calshift"):
        compiled.compiled_functions()
        compiled.compiled_functions()
    assert [one.levelname for one in caplog.records] == ["INFO"] * told
