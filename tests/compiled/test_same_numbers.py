"""Whole calls give the same numbers with and without compiled functions."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import calshift
from calshift import compiled as fast

numba = pytest.importorskip("numba", reason="compiled functions need numba: calshift[fast]")


@pytest.fixture
def switch(monkeypatch):
    """Turn compiled functions on or off; restored afterwards."""

    def switch_to(on: bool) -> None:
        monkeypatch.setenv(fast.SWITCH, "1" if on else "0")
        fast.compiled_functions.cache_clear()
        assert (fast.compiled_functions() is not None) == on

    yield switch_to
    monkeypatch.undo()
    fast.compiled_functions.cache_clear()


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
    own = (
        [] if result.per_class is None else [*result.per_class, *result._class_distributions.second]
    )
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
    assert fast.compiled_functions() is None


def test_views_of_one_array_that_begin_at_the_same_place_are_distinguished(switch):
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


def both_ways(switch, ask) -> None:
    """The same numbers with and without compiled functions."""
    found = []
    for on in (False, True):
        switch(on)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found.append([x for x in numbers(ask()) if not np.isnan(x)])
    np.testing.assert_allclose(found[0], found[1], rtol=1e-9, atol=1e-15)


@pytest.mark.parametrize("arrange", [np.asfortranarray, lambda p: np.repeat(p, 2, axis=1)[:, ::2]])
def test_columns_that_do_not_lie_side_by_side(switch, arrange):
    source, target = sample(900, 5, "f4", 3, False), sample(700, 5, "f4", 4, False)
    w, check = np.array([0.8, 1.2, 1.0, 0.9, 1.1]), {"check": False}
    switch(True)
    ask = calshift.target_calibration_error
    plain = ask(source.p, source.y, target.p, weights=w, **check)
    other = ask(arrange(source.p), source.y, arrange(target.p), weights=w, **check)
    assert not arrange(source.p).flags.c_contiguous
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
    """Scores are transposed 512 rows at a time."""
    source, target = sample(300 + rows, 4, "f8", 7, False), sample(rows + 1, 4, "f4", 8, False)
    w = np.array([0.9, 1.0, 1.1, 1.0])
    both_ways(
        switch,
        lambda: calshift.target_calibration_error(source, None, target, weights=w, check=False),
    )


@pytest.mark.parametrize("seed", [3, 10, 19, 40])
def test_warnings_and_knots_do_not_depend_on_rounding(switch, seed):
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
