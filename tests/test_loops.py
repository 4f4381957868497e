"""Compiled loops make the sums of the numpy kernels."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import calshift
from calshift import compiled as fast

numba = pytest.importorskip("numba", reason="the compiled loops need numba: calshift[fast]")


@pytest.fixture
def switch(monkeypatch):
    """Compiled loops on or off; as they were afterwards."""

    def turn(on: bool) -> None:
        monkeypatch.setenv(fast.SWITCH, "1" if on else "0")
        fast.loops.cache_clear()
        assert (fast.loops() is not None) == on

    yield turn
    monkeypatch.undo()
    fast.loops.cache_clear()


def sample(n: int, K: int, kind: str, seed: int, weighed: bool) -> calshift.Predictions:
    rng = np.random.default_rng([n, K, seed])
    z = 2 * rng.normal(size=(n, K))
    p = np.exp(z - z.max(axis=1, keepdims=True))
    p /= p.sum(axis=1, keepdims=True)
    y = (p.cumsum(axis=1) > rng.random((n, 1))).argmax(axis=1)
    p = p**1.4
    p = (p / p.sum(axis=1, keepdims=True)).astype(kind)
    weight = rng.uniform(0.3, 3, n) if weighed else None
    return calshift.Predictions(p, y, sample_weight=weight)


def numbers(result) -> list[float]:
    ends = result.confidence_interval(0.9)
    own = [] if result.per_class is None else [*result.per_class, *result.class_distribution.second]
    return [result.estimate, result.standard_error, *ends, *own, result.merged_bins]


@pytest.mark.parametrize("weighed", [False, True])
@pytest.mark.parametrize(
    ("n", "m", "K", "kind"),
    [(300, 500, 2, "f8"), (2000, 900, 5, "f4"), (700, 800, 70, "f4"), (40, 30, 3, "f8")],
)
def test_the_same_numbers_with_and_without(switch, n, m, K, kind, weighed):
    source, target = sample(n, K, kind, 0, weighed), sample(m, K, kind, 1, weighed)
    w = np.random.default_rng(K).uniform(0.7, 1.3, K)
    w[0] = 0.0 if K > 3 else w[0]
    w /= np.average(w[source.y], weights=source.sample_weight)
    found = []
    for on in (False, True):
        switch(on)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            shifted = calshift.target_calibration_error(
                source, None, target.unlabelled(), weights=w, check=False
            )
            labelled = calshift.calibration_error(source)
            top = calshift.calibration_error(source, kind="top-label")
        found.append([x for r in (shifted, labelled, top) for x in numbers(r)])
    np.testing.assert_allclose(found[0], found[1], rtol=1e-9, atol=1e-15)


def test_few_distinct_scores_and_one_alone(switch):
    f = np.array([0.2, 0.2, 0.7, 0.7, 0.7, 0.2, 0.7, 0.2])
    y = np.array([0, 1, 1, 0, 1, 0, 1, 0])
    found = []
    for on in (False, True):
        switch(on)
        several = calshift.calibration_error(f, y)
        alone = calshift.calibration_error(np.full(8, 0.4), y)
        found.append([*numbers(several), *numbers(alone)])
    np.testing.assert_allclose(found[0], found[1], rtol=1e-9, atol=1e-15)


def test_edges_are_the_same(switch):
    p = sample(4000, 6, "f4", 2, False)
    edges = []
    for on in (False, True):
        switch(on)
        edges.append(calshift.bin_edges(p))
    assert edges[0] == edges[1]


def test_going_without_is_a_matter_of_one_variable(switch):
    switch(False)
    assert fast.loops() is None


def test_views_of_one_array_that_begin_at_the_same_place_are_told_apart(switch):
    rng = np.random.default_rng(0)
    p = rng.random(2000)
    p[1::2] **= 3
    y = (rng.random(1000) < p[:1000]).astype(int)
    switch(True)
    ask = {"weights": np.ones(2), "check": False}
    view = calshift.target_calibration_error(p[:1000], y, p[::2], **ask)
    copy = calshift.target_calibration_error(p[:1000].copy(), y, p[::2].copy(), **ask)
    assert numbers(view) == numbers(copy)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, -1e-6, 0.6])
@pytest.mark.parametrize("kind", ["f4", "f8"])
def test_what_is_no_probability_is_named_as_without(switch, kind, value):
    p = np.full((50, 4), 0.25, dtype=kind)
    p[30, 2] = value
    said = []
    for on in (False, True):
        switch(on)
        with pytest.raises(calshift.InvalidInput, match="row 30") as caught:
            calshift.Predictions(p)
        said.append(str(caught.value))
    assert said[0] == said[1]


def pencil(rng: np.random.Generator, R: int, thin: int, nearly: float) -> tuple[np.ndarray, ...]:
    """Two definite tridiagonal matrices (2, R); in ``thin`` places the first is small."""
    M = np.zeros((2, R))
    M[0] = rng.uniform(0.5, 2, R)
    M[1, :-1] = rng.uniform(0.1, 0.24, R - 1)
    A = M * rng.uniform(0.7, 2, R)
    A[1, :-1] = M[1, :-1]
    small = rng.choice(R, thin, replace=False)
    A[0, small] = 0.6 * nearly
    A[1, small] *= nearly
    A[1, small[small > 0] - 1] *= nearly
    return A, M


@pytest.mark.parametrize("nearly", [0.3, 1e-2, 1e-6])
@pytest.mark.parametrize("thin", [1, 3, 9])
def test_few_small_eigenvalues_are_raised_as_all_are_by_lapack(thin, nearly):
    """Found one by one or left to LAPACK; never both wrong and said to be done."""
    from calshift.compiled import tridiagonal as band_loops
    from calshift.estimators.regression import _turned_inverse, dense_band

    floor, done, rng = 0.5, 0, np.random.default_rng([thin, int(1 / nearly)])
    for R in [*range(10, 30)] * 3:
        A, M = pencil(rng, R, thin, nearly)
        below = np.sum(np.linalg.eigvalsh(whitened(A, M)) < floor)
        assert band_loops.values_below(A, M, floor, R) == below
        found, room = np.zeros((R, R)), np.zeros((band_loops.MOST_RAISED, R + 1))
        if not band_loops.floored_inverse(A, M, floor, R, room, found):
            continue
        done += 1
        full = [dense_band(one[:1], one[1:]) for one in (A, M)]
        expected = _turned_inverse(*full)[0]
        np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-10 * np.abs(expected).max())
    # the others are many, or near 0: these must have been left
    assert done == (60 if thin <= 3 and nearly > 1e-3 else 0)


def whitened(A: np.ndarray, M: np.ndarray) -> np.ndarray:
    from calshift.estimators.regression import dense_band

    dense_A, dense_M = (dense_band(one[:1], one[1:])[0] for one in (A, M))
    root = np.linalg.inv(np.linalg.cholesky(dense_M))
    return root @ dense_A @ root.T


@pytest.mark.parametrize(("apart", "told"), [(0.0, False), (1e-13, True), (1e-7, True)])
def test_equal_small_eigenvalues_are_left_to_lapack_and_near_ones_told_apart(apart, told):
    """Two halves that do not touch and are nearly the same: their vectors could come out alike."""
    from calshift.compiled import tridiagonal as band_loops
    from calshift.estimators.regression import _turned_inverse, dense_band

    M = np.zeros((2, 12))
    M[0], M[1] = 1.0, [0.2, 0.2, 0.2, 0.2, 0.2, 0, 0.2, 0.2, 0.2, 0.2, 0.2, 0]
    A = M.copy()
    A[0, [2, 8]] = 0.3, 0.3 + apart
    found, room = np.zeros((12, 12)), np.zeros((band_loops.MOST_RAISED, 13))
    assert band_loops.floored_inverse(A, M, 0.5, 12, room, found) == told
    if told:
        expected = _turned_inverse(*[dense_band(one[:1], one[1:]) for one in (A, M)])[0]
        np.testing.assert_allclose(found, expected, atol=1e-10)


def both_ways(switch, ask) -> None:
    """The same numbers with and without compiled loops."""
    found = []
    for on in (False, True):
        switch(on)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found.append([x for x in numbers(ask()) if not np.isnan(x)])
    np.testing.assert_allclose(found[0], found[1], rtol=1e-9, atol=1e-15)


@pytest.mark.parametrize("lay", [np.asfortranarray, lambda p: np.repeat(p, 2, axis=1)[:, ::2]])
def test_columns_that_do_not_lie_side_by_side(switch, lay):
    source, target = sample(900, 5, "f4", 3, False), sample(700, 5, "f4", 4, False)
    w, check = np.array([0.8, 1.2, 1.0, 0.9, 1.1]), {"check": False}
    switch(True)
    ask = calshift.target_calibration_error
    plain = ask(source.p, source.y, target.p, weights=w, **check)
    other = ask(lay(source.p), source.y, lay(target.p), weights=w, **check)
    assert not lay(source.p).flags.c_contiguous
    assert numbers(other) == numbers(plain)


def test_classes_that_the_source_lacks(switch):
    """Events that are left out: columns of the matrix that are not next to each other."""
    source, target = sample(1500, 6, "f4", 5, False), sample(800, 6, "f4", 6, False)
    kept = ~np.isin(source.y, [1, 4])
    p, y = source.p[kept], source.y[kept]
    w = np.array([1.1, 1.0, 0.9, 1.2, 1.0, 0.8])

    def ask():
        found = calshift.target_calibration_error(p, y, target.p, weights=w, check=False)
        assert np.isnan(found.per_class).tolist() == [False, True, False, False, True, False]
        return found

    both_ways(switch, ask)


@pytest.mark.parametrize("rows", [1, 511, 512, 513, 1025])
def test_rows_that_do_not_fill_a_block(switch, rows):
    """Loops turn 512 rows at a time."""
    source, target = sample(300 + rows, 4, "f8", 7, False), sample(rows + 1, 4, "f4", 8, False)
    w = np.array([0.9, 1.0, 1.1, 1.0])
    both_ways(
        switch,
        lambda: calshift.target_calibration_error(source, None, target, weights=w, check=False),
    )


def test_lanes_are_added_at_once():
    from calshift.compiled.support import LANES, add_scaled, compiled

    @compiled
    def add(x, i, y, j, lane, size):
        add_scaled(x, i, y, j, lane, size)

    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(5, 3 * LANES)), rng.normal(size=(4, 3 * LANES))
    expected = x.copy()
    expected[3, LANES : 2 * LANES] += 0.7 * y[2, LANES : 2 * LANES]
    add(x, 3, y, np.uint8(2), 1, 0.7)
    np.testing.assert_allclose(x, expected, rtol=1e-15)


def test_machine_code_is_made_anew_when_any_of_the_loops_changes(tmp_path):
    """numba looks at the file of a loop alone, not at those that it calls."""
    from pathlib import Path

    from calshift.compiled import regression as hat_loops
    from calshift.compiled import support as vectors

    here = Path(vectors.__file__).parent
    for name in vectors.MADE_OF:
        (tmp_path / f"{name}.py").write_bytes((here / f"{name}.py").read_bytes())
    before = vectors.edition(tmp_path)
    assert before == vectors.edition(here)
    assert before in hat_loops.invert_hats.py_func.__qualname__
    made = {file.stem for file in here.glob("*.py") if "@compiled" in file.read_text("utf-8")}
    assert made <= set(vectors.MADE_OF)
    for name in vectors.MADE_OF:
        with (tmp_path / f"{name}.py").open("a") as file:
            file.write("# more")
        after = vectors.edition(tmp_path)
        assert after != before
        before = after


@pytest.mark.parametrize("seed", [3, 10, 19, 40])
def test_doubts_and_knots_do_not_hang_on_rounding(switch, seed):
    """Shares in round tenths, and weights of a tenth of a row: both stand at their bounds."""
    rng = np.random.default_rng(seed)
    target, p = rng.random(1000), rng.beta(1, 4, 150)
    y = (rng.random(150) < p).astype(int)
    light = sample(600, 12, "f8", seed, False)
    light = calshift.Predictions(light.p, light.y, sample_weight=np.full(600, 0.1))
    found = []
    for on in (False, True):
        switch(on)
        thin = calshift.target_calibration_error(p, y, target, weights=[1, 1], bins=10, check=False)
        knots = calshift.calibration_error(light)
        found.append((thin.trusted, thin.warnings, knots.merged_bins, round(knots.estimate, 9)))
    assert found[0] == found[1]
