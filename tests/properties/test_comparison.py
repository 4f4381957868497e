"""Differences of two errors of the same rows."""

from __future__ import annotations

import numpy as np
import pytest

import calshift
from calshift import Predictions

from .samples import BINNED, drawn, result_of

LEVELS = (0.5, 0.9, 0.99)


def models(seed, kind="classwise", norm=2, **sizes):
    """Two models on the same rows, the second less confident."""
    p, y, q, w = drawn(seed, kind, **sizes)
    options = {"kind": kind, "norm": norm, "bins": 5}
    return result_of(p, y, q, w, **options), result_of(milder(p), y, milder(q), w, **options)


def milder(p, power=0.8):
    if p.ndim == 1:
        return p**power / (p**power + (1 - p) ** power)
    return p**power / (p**power).sum(axis=1, keepdims=True)


@pytest.mark.parametrize("norm", [1, 2])
@pytest.mark.parametrize("kind", BINNED)
def test_a_result_does_not_differ_from_itself(kind, norm):
    a, _ = models(1, kind, norm)
    same = calshift.compare(a, a)
    assert same.estimate == same.root == 0
    assert same.standard_error == pytest.approx(0, abs=1e-9)
    assert same.correlation == pytest.approx(1)
    for level in LEVELS:
        low, high = same.confidence_interval(level)
        assert low <= 0 <= high


@pytest.mark.parametrize("norm", [1, 2])
@pytest.mark.parametrize("kind", BINNED)
def test_antisymmetric(kind, norm):
    a, b = models(2, kind, norm)
    for one, other in ((a, b), (a, a.source)):
        there, back = calshift.compare(one, other), calshift.compare(other, one)
        assert there.estimate == pytest.approx(-back.estimate)
        assert there.estimate == pytest.approx(one.estimate - other.estimate)
        assert there.root == pytest.approx(one.root - other.root)
        assert there.standard_error == pytest.approx(back.standard_error)
        for root in (False, True):
            for level in LEVELS:
                low, high = there.confidence_interval(level, root=root)
                assert low < (there.root if root else there.estimate) < high
                assert back.confidence_interval(level, root=root) == pytest.approx((-high, -low))


@pytest.mark.parametrize("norm", [1, 2])
def test_correlation_and_ends_from_the_moves_of_the_rows(norm):
    """r = sum of products of the moves over the rows both have; the ends by their formula."""
    a, b = models(3, norm=norm)
    one, two = a._influence, b._influence
    shared = one.source @ two.source + one.target @ two.target
    length = [np.sqrt(i.source @ i.source + i.target @ i.target) for i in (one, two)]
    difference = calshift.compare(a, b)
    r = difference.correlation
    assert r == pytest.approx(shared / length[0] / length[1])
    one, two = a.standard_error, b.standard_error
    assert difference.standard_error == pytest.approx(np.sqrt(one**2 + two**2 - 2 * r * one * two))
    for root in (False, True):
        (la, ua), (lb, ub) = (one.confidence_interval(0.9, root=root) for one in (a, b))
        ea, eb = (one.root if root else one.estimate for one in (a, b))
        low, high = (
            ea - eb + sign * np.sqrt(x**2 + y**2 - 2 * r * x * y)
            for sign, x, y in ((-1, ea - la, ub - eb), (1, ua - ea, eb - lb))
        )
        assert difference.confidence_interval(0.9, root=root) == pytest.approx((low, high))
    with_source = calshift.compare(a, a.source)  # which shares the source's rows alone
    own = a.source._influence.source
    expected = a._influence.source @ own / length[0] / np.sqrt(own @ own)
    assert with_source.correlation == pytest.approx(expected)


@pytest.mark.slow
@pytest.mark.parametrize("norm", [1, 2])
def test_standard_error_is_the_spread_of_the_difference_over_draws(norm):
    """Two models: nearly the same rows' noise, so the difference is far surer than either.

    120 draws know a spread to 1 / sqrt(240) = 6.5%; asked: within 4 of these.
    """
    found = [calshift.compare(*models([9, k], "binary", norm, n=800, m=800)) for k in range(120)]
    spread = np.std([one.estimate for one in found], ddof=1)
    error = np.mean([one.standard_error for one in found])
    assert error == pytest.approx(spread, rel=0.26)
    apart = np.std([one.a.estimate for one in found], ddof=1)
    assert spread < 0.6 * apart


def test_refusals_say_why():
    p, y, q, w = drawn(4)
    a = result_of(p, y, q, w)
    other_norm = result_of(p, y, q, w, norm=1)
    with pytest.raises(calshift.InvalidInput, match="norm"):
        calshift.compare(a, other_norm)
    flipped = (y + 1) % 3
    weight = np.ones(len(p))
    weight[0] = 2.0
    others = [
        result_of(p[::-1], y[::-1], q, w),
        result_of(p, flipped, q, w),
        result_of(p[:-1], y[:-1], q, w),
        result_of(p, y, q[:-1], w),
        result_of(Predictions(p, y, sample_weight=weight), None, q, w),
    ]
    for other in others:
        with pytest.raises(calshift.InvalidInput, match="same rows"):
            calshift.compare(a, other)
    for one, other, name in ((a, 3, "b"), (None, a, "a")):
        with pytest.raises(calshift.InvalidInput, match=f"{name} must be"):
            calshift.compare(one, other)
    drawn_again = result_of(p, y, q, w, interval="bootstrap", n_boot=20, rng=0)
    with pytest.raises(calshift.InvalidInput, match=r'b must .*interval="influence"'):
        calshift.compare(a, drawn_again)


def test_it_says_in_words_whether_they_differ():
    p, y, q, w = drawn(5, n=2000, m=2000)
    options = {"bins": 5}
    a = result_of(p, y, q, w, **options)
    b = result_of(milder(p, 0.5), y, milder(q, 0.5), w, **options)
    assert str(calshift.compare(a, b)).endswith(": different")
    assert str(calshift.compare(a, a)).endswith("not significant")


@pytest.mark.parametrize(("name", "value"), [("estimator", "plugin"), ("kind", "top-label")])
def test_only_like_is_compared_with_like(name, value):
    p, y, q, w = drawn(2)
    with pytest.raises(calshift.InvalidInput, match=f"same {name}"):
        calshift.compare(result_of(p, y, q, w), result_of(p, y, q, w, **{name: value}))


def test_unit_sample_weights_are_the_same_rows():
    p, y, q, w = drawn(2)
    weighted = Predictions(p, y, sample_weight=np.ones(len(p)))
    same = calshift.compare(result_of(p, y, q, w), result_of(weighted, None, q, w))
    assert same.estimate == pytest.approx(0, abs=1e-12)


@pytest.mark.parametrize("seed", range(10))
def test_a_difference_lies_in_its_interval(seed):
    """Also where an estimate is negative: no error counts as less than 0."""
    p, y, q, w = drawn(seed, n=150, m=100)
    result = result_of(p, y, q, w)
    found = calshift.compare(result, result.source)
    for root in (False, True):
        low, high = found.confidence_interval(root=root)
        assert low <= (found.root if root else found.estimate) <= high
    assert len(str(found)) <= 100


def test_an_error_that_no_row_influences_has_no_correlation():
    """Equal rows: the influence of each is rounding, and so would be a correlation with it."""
    p, y = np.full((30, 20), 0.05), np.arange(30) % 3
    q = np.random.default_rng(0).dirichlet(np.ones(20), 40)
    with pytest.warns(calshift.UnreliableWeights):
        found = calshift.target_calibration_error(p, y, q, weights="em-nbvs", check=False)
    assert found.source._influence.variance < 1e-26
    assert calshift.compare(found, found.source).correlation == 0
