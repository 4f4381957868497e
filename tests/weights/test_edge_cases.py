"""Every method of class weights on awkward input: numbers, honest warnings, or InvalidInput.

numpy's warnings are errors here; UnreliableWeights is the only one that may come.
"""

from __future__ import annotations

import copy
import json
import pickle
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest

import calshift
from calshift import InvalidInput, Predictions, UnreliableWeights, label_shift_weights
from calshift.simulate import GaussianSimulation
from calshift.weights import DEFAULT, METHODS

pytestmark = pytest.mark.filterwarnings("ignore::calshift.UnreliableWeights")


def cycle(n, K):
    return np.arange(n) % K


def drawn(n, K, seed, prior=None, strength=2.0, y=None):
    """Predictions of a fair classifier, and labels."""
    rng = np.random.default_rng(seed)
    y = rng.choice(K, n, p=prior) if y is None else y
    z = rng.normal(size=(n, K))
    z[np.arange(n), y] += strength
    return calshift.softmax(strength * z), y


def lacking(absent, target=None):
    kept = ~np.isin(Y10, absent)
    return P10[kept], Y10[kept], Q10 if target is None else target


def merged(p):
    """Classes 0 and 1 get the same probability."""
    return np.column_stack([p[:, :2].mean(axis=1), p[:, :2].mean(axis=1), p[:, 2:]])


def emptied(p, where=slice(0, 1)):
    """No probability for some classes; the rest shares theirs."""
    p = p.copy()
    p[:, where] = 0
    return p / p.sum(axis=1, keepdims=True)


def weighted(source, target=None, dtype=float, sample=None):
    p, y, q = PLAIN if sample is None else sample
    return (
        Predictions(p.astype(dtype), y, sample_weight=source(len(p))),
        None,
        Predictions(q.astype(dtype), sample_weight=(target or source)(len(q))),
    )


def each(value):
    return lambda n: np.full(n, value)


P10, Y10 = drawn(600, 10, 0)
Q10 = drawn(400, 10, 1, np.arange(1, 11) / 55)[0]
P, Y = drawn(600, 4, 6)
Q = drawn(400, 4, 7, [0.1, 0.2, 0.3, 0.4])[0]
PLAIN = P, Y, Q
THREE, FEW = np.eye(3)[cycle(60, 3)], np.eye(3)[cycle(40, 3)]
NOISY = np.where(np.random.default_rng(3).random(60) < 0.3, 0, cycle(60, 3))
SCORES = np.random.default_rng(8).beta(2, 2, 500)
SCORED = (np.random.default_rng(9).random(500) < SCORES).astype(int)
TINY = np.array([[1e-300, 5e-324, 1.0], [1.0, 1e-300, 5e-324], [5e-324, 1.0, 1e-310]])
P50, Y50 = drawn(1500, 50, 15)
Q50 = drawn(1500, 50, 16)[0]
RARE = np.r_[np.ones(5, int), np.zeros(50_000, int)]


def constant(row, n):
    return np.tile(np.array(row, float), (n, 1))


CONSTANT = {
    "constant": (constant([1 / 3] * 3, 60), cycle(60, 3), constant([1 / 3] * 3, 40)),
    "constant, large": (
        *(constant([0.2, 0.3, 0.5], 6000), cycle(6000, 3)),
        constant([0.2, 0.3, 0.5], 4000),
    ),
    "constant but apart": (
        *(constant([1 / 3] * 3, 60), cycle(60, 3)),
        constant([0.2, 0.3, 0.5], 40),
    ),
    "constant, certain": (constant([1, 0, 0], 60), cycle(60, 3), constant([1, 0, 0], 40)),
    "certain, apart": (constant([1, 0, 0], 60), cycle(60, 3), constant([0, 1, 0], 40)),
    "all 0": (np.zeros(60), cycle(60, 2), np.zeros(30)),
    "all 1, then 0": (np.ones(60), cycle(60, 2), np.zeros(30)),
    "all 1, then .4": (np.ones(2), [0, 1], np.array([0.4250237603909166])),
}
ONE_HOT = {
    "one-hot, right": (THREE, cycle(60, 3), FEW),
    "one-hot, shifted": (THREE, cycle(60, 3), np.eye(3)[np.r_[cycle(40, 3), [0] * 40]]),
    "one-hot, some wrong": (np.eye(3)[NOISY], cycle(60, 3), FEW),
    "one-hot, all wrong": (THREE, cycle(61, 3)[1:], FEW),
}
SAMPLES = {
    "plain": (P10, Y10, Q10),
    **{f"lacks {a}": lacking(a) for a in ([0, 1], [0, 9], [4, 5], [8, 9], list(range(8)))},
    "lacks all of the target": lacking([0, 9], np.eye(10)[[0, 9] * 20]),
    "lacks the target's class": lacking([0, 9], np.eye(10)[[9] * 20]),
    "lacks nearly all of it": lacking([0, 9], constant([1e-9] * 9 + [1 - 9e-9], 30)),
    "never predicts what it has": (np.eye(10)[[0, 9] * 30], cycle(60, 8) + 1, np.eye(10)[[0, 9]]),
    "100 classes": (*drawn(2000, 100, 2), drawn(2000, 100, 3, np.arange(1, 101) / 5050)[0]),
    "300 classes, each once": (*drawn(300, 300, 4, y=np.arange(300)), drawn(300, 300, 5)[0]),
    "300 classes, some absent": (*drawn(300, 300, 4), drawn(300, 300, 5)[0]),
    **ONE_HOT,
    "one-hot, target of one class": (THREE, cycle(60, 3), constant([1, 0, 0], 40)),
    **CONSTANT,
    "two equal columns": (merged(P), Y, merged(Q)),
    "a column of zeros": (emptied(P), Y, emptied(Q)),
    "zeros for an absent class": (emptied(P)[Y > 0], Y[Y > 0], emptied(Q)),
    "never right": (P, (Y + 1) % 4, Q),
    "upside down": ((1 - P) / 3, Y, (1 - Q) / 3),
    "nothing to do with labels": (P, cycle(600, 4), Q),
    **{f"{m} target rows": (P, Y, Q[:m]) for m in (5, 2, 1)},
    "one target row, many times": (P, Y, constant(Q[0], 200)),
    "a certain target": (P, Y, np.eye(4)[[2] * 50]),
    "two source rows": (P[:2], [0, 1], Q),
    "two source scores": (np.array([0.2, 0.9]), [0, 1], np.linspace(0, 1, 50)),
    "two tied scores": (np.array([0.5, 0.5]), [0, 1], np.array([0.5, 0.5])),
    "two rows, one target": (np.array([0.3, 0.6]), [0, 1], np.array([0.5])),
    "a class once": (P, np.r_[3, np.minimum(Y[1:], 2)], Q),
    "single": (P.astype(np.float32), Y, Q.astype(np.float32)),
    "half": (P.astype(np.float16), Y, Q.astype(np.float16)),
    "scores": (SCORES, SCORED, SCORES[:200] ** 2),
    "scores 0 and 1": ((SCORES > 0.5) * 1.0, SCORED, SCORES[:200] > 0.6),
    "very confident": (
        calshift.softmax(1000 * np.random.default_rng(9).normal(size=(600, 4))),
        cycle(600, 4),
        calshift.softmax(1000 * np.random.default_rng(10).normal(size=(400, 4))),
    ),
    "very confident, mostly right": (
        *(calshift.softmax(500 * np.log(P)), Y),
        calshift.softmax(500 * np.log(Q)),
    ),
    "smallest numbers, right": (TINY[cycle(60, 3)], np.array([2, 0, 1] * 20), TINY[cycle(20, 3)]),
    "smallest numbers, wrong": (TINY[cycle(60, 3)], cycle(60, 3), TINY[cycle(20, 3)]),
    "smallest scores": (
        *(np.array([1e-300, 5e-324, 0.5, 1e-17, 0.0, 1.0] * 10), cycle(60, 2)),
        np.array([1e-310, 5e-324, 0.0, 1.0, 0.3]),
    ),
    "sums of 1.0009": (np.minimum(1.0009 * P, 1), Y, np.minimum(1.0009 * Q, 1)),
    "sums of .9991": (0.9991 * P, Y, 0.9991 * Q),
    "weights with zeros": weighted(lambda n: cycle(n, 2)),
    "huge weights": weighted(each(1e12)),
    "largest weights": weighted(each(1e96)),
    "huge weights, single": weighted(each(1e40), dtype=np.float32, sample=lacking([3])),
    "tiny weights": weighted(each(1e-12)),
    "tiniest weights": weighted(each(1e-90)),
    "fractional weights": weighted(lambda n: np.random.default_rng(n).random(n)),
    "one huge weight": weighted(lambda n: np.r_[1e12, np.ones(n - 1)]),
    "one tiny weight": weighted(lambda n: np.r_[1e-12, np.ones(n - 1)]),
    "weights of all sizes": weighted(lambda n: 10.0 ** np.random.default_rng(n).uniform(-9, 9, n)),
    "few fractional weights": weighted(
        *(lambda n: [0.5, 3, 2], each(3)),
        sample=(np.array([0.25, 0, 0.25]), [0, 1, 1], np.array([2 / 3])),
    ),
    "1 to 10 000": (
        np.random.default_rng(1).beta(1 + 2 * RARE, 50 - 49 * RARE),
        *(RARE, np.random.default_rng(14).beta(1, 5, 3000)),
    ),
    "rows many times": (np.repeat(P[:20], 30, 0), np.repeat(Y[:20], 30), np.repeat(Q[:5], 40, 0)),
    "sorted": (P[np.argsort(Y)], np.sort(Y), Q[np.argsort(Q[:, 0])]),
    "30 of 50 classes never predicted": (
        *(emptied(P50, slice(20, 50)), Y50),
        emptied(Q50, slice(20, 50)),
    ),
    "30 of 50 classes hardly predicted": (
        *(0.999 * emptied(P50, slice(20, 50)) + 0.001 * P50, Y50),
        0.999 * emptied(Q50, slice(20, 50)) + 0.001 * Q50,
    ),
    "small, large": (*drawn(100, 4, 17), drawn(200_000, 4, 18, [0.1, 0.2, 0.3, 0.4])[0]),
    "large, small": (*drawn(200_000, 4, 17), drawn(100, 4, 18, [0.1, 0.2, 0.3, 0.4])[0]),
    "no shift": (P, Y, P),
}


def complaint(call):
    """What is wrong with the answer of a call, or None."""
    try:
        w = call()
        return wrong(w)
    except Exception as error:
        return f"{type(error).__name__}: {error}"


def wrong(w):
    seen, error = w.prior_source > 0, w.standard_error
    numbers = [w.prior_source, w.prior_target, w.covariance, w.values_error, error, w.values[seen]]
    if not all(np.isfinite(x).all() for x in numbers) or not np.isnan(w.values[~seen]).all():
        return f"not finite: {w!r}"
    if (w.values[seen] < 0).any() or (w.prior_target < 0).any():
        return "negative"
    if abs(w.prior_target.sum() - 1) > 1e-9 or w.prior_target[~seen].any():
        return f"priors {w.prior_target}"
    C = w.covariance
    slack = 1e-9 * np.abs(C).max() + 1e-15
    if np.abs(C - C.T).max() > slack or np.linalg.eigvalsh((C + C.T) / 2)[0] < -slack:
        return "not a covariance"
    if not 0 <= w.ess <= w.n_source * (1 + 1e-9) or np.isnan(w.condition_number):
        return f"ess {w.ess}, condition {w.condition_number}"
    if not {int(c) for c in np.flatnonzero(~seen)} <= set(w.untrusted):
        return f"trusts a class it never saw: {w.untrusted}"
    if len(set(w.warnings)) < len(w.warnings) or (w.untrusted and not w.warnings):
        return f"warnings {w.warnings}, untrusted {w.untrusted}"
    low, high = w.confidence_interval(0.9)
    wide_low, wide_high = w.confidence_interval(0.99)
    if not (np.all(wide_low <= low) and np.all(low <= high) and np.all(high <= wide_high)):
        return "intervals do not nest"
    if any(getattr(w, name).flags.writeable for name in ARRAYS):
        return "writable"
    if not (w == pickle.loads(pickle.dumps(w)) == copy.deepcopy(w)):
        return "not equal to its copy"
    json.dumps(w.to_dict(), allow_nan=False)
    text = str(w)
    return text if "nan" in text or "inf " in text else None


ARRAYS = ("values", "prior_source", "prior_target", "covariance", "values_error")


def complaints(sample, methods=METHODS):
    found = {m: complaint(lambda m=m: label_shift_weights(*sample, method=m)) for m in methods}
    return {method: text for method, text in found.items() if text is not None}


@pytest.mark.slow
@pytest.mark.parametrize("name", SAMPLES)
def test_numbers_whatever_comes(name):
    assert complaints(SAMPLES[name]) == {}


NASTY = [0.0, 5e-324, 1e-300, 1e-17, 1e-12, 0.1, 0.5, 0.5 + 1e-16, 0.9, 1 - 1e-16, 1.0]


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(40))
def test_numbers_from_a_few_nasty_rows(seed):
    rng = np.random.default_rng(seed)
    K, n, m = rng.integers(2, 5), rng.integers(2, 9), rng.integers(1, 9)
    kind = rng.integers(3)

    def rows(n):
        if kind == 0:
            return np.eye(K)[rng.integers(0, K, n)]
        x = rng.choice(NASTY, (n, K)) if kind == 1 else rng.dirichlet(np.full(K, 0.1), n)
        x[np.arange(n), rng.integers(0, K, n)] += 0.5
        return x / x.sum(axis=1, keepdims=True)

    y = np.r_[rng.permutation(K)[:2], rng.integers(0, K, n - 2)]
    source = Predictions(rows(n), y, sample_weight=rng.choice([0.25, 1, 2, 3], n))
    target = Predictions(rows(m), sample_weight=rng.choice([0.25, 1, 3], m))
    assert complaints((source, None, target)) == {}


@pytest.mark.parametrize("name", [name for name, s in SAMPLES.items() if len(s[0]) < 10_000])
def test_errors_and_curves_with_estimated_weights(name):
    p, y, q = SAMPLES[name]
    sizes = [x.size if isinstance(x, Predictions) else len(x) for x in (p, q)]
    if min(sizes) < 2 or name == "few fractional weights":  # half a row of positive weight is left
        with pytest.raises(InvalidInput, match="at least two rows"):
            calshift.target_calibration_error(p, y, q)
        return
    result = calshift.target_calibration_error(p, y, q)
    curve = calshift.reliability_curve(p, y, q)
    assert np.isfinite([result.estimate, *curve.frequency]).all()


# --- honest warnings


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(
    "name", [*CONSTANT, "two equal columns", "a column of zeros", "2 target rows", "1 target rows"]
)
def test_says_so_where_nothing_is_known(name, method):
    if name == "a column of zeros" and method in ("kmm", "map"):
        pytest.skip("kmm knows the class by the other columns, map by its prior")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        weights = label_shift_weights(*SAMPLES[name], method=method)
    assert [str(w.message) for w in caught] == list(weights.warnings) != []
    assert {w.category for w in caught} == {UnreliableWeights}
    assert {w.filename for w in caught} == {__file__}


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("name", ONE_HOT)
def test_one_hot_predictions_that_settle_the_matter(name, method):
    """With three kinds of rows and three classes the confusion says all that can be known."""
    if method == "em" and "wrong" in name:
        pytest.skip("em believes the predictions")
    p, y, q = ONE_HOT[name]
    exact = np.linalg.solve(p.T @ np.eye(3)[y] / len(y), q.mean(axis=0))
    weights = label_shift_weights(p, y, q, method=method)
    assert np.abs(weights.values - exact).max() <= 2 * weights.values_error.max()
    assert (weights.standard_error > 0.01).all()


@pytest.mark.parametrize("method", METHODS)
def test_a_certain_row_many_times_is_its_class(method):
    row = Q[0]
    weights = label_shift_weights(P, Y, constant(row, 200), method=method)
    assert np.argmax(weights.prior_target) == np.argmax(row)


@pytest.mark.slow
@pytest.mark.parametrize("method", METHODS)
def test_standard_errors_have_the_size_of_the_errors(method):
    """Without a warning about the mix, its error is not many times the one announced."""
    ratios = []
    for seed in range(40):
        simulation = GaussianSimulation(4, 200, 1.0, dimensions=5, spread=0.9, seed=seed)
        p, y = simulation.source(1000, rng=seed)
        q, _ = simulation.target((20, 100)[seed % 2], rng=5000 + seed)
        weights = label_shift_weights(p, y, q, method=method)
        error = np.abs(weights.prior_target - simulation.prior("target")).sum()
        if not any("rlls" not in note for note in weights.warnings):
            ratios.append(error / (0.8 * weights.standard_error.sum()))
    assert len(ratios) > 10
    assert np.mean(np.array(ratios) > 3) <= 0.1


@pytest.mark.slow
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("temperature", [1.0, 0.5])
def test_a_known_shift_is_found(method, temperature):
    if method == "em" and temperature != 1:
        pytest.skip("em needs calibrated predictions")
    simulation = GaussianSimulation(5, 8, temperature, seed=3)
    p, y = simulation.source(20_000, rng=1)
    weights = label_shift_weights(p, y, simulation.target(20_000, rng=2)[0], method=method)
    gap = np.abs(weights.prior_target - simulation.prior("target"))
    assert (gap < 4 * weights.standard_error + 0.001).all()
    assert weights.standard_error.max() < 0.01
    assert weights.converged


@pytest.mark.parametrize("method", METHODS)
def test_no_shift_leaves_the_weights_near_1(method):
    weights = label_shift_weights(P, Y, P, method=method)
    np.testing.assert_allclose(weights.values, 1, atol=0.5 * weights.values_error.max())


# --- laws

LAWFUL = {
    "plain": PLAIN,
    "lacks 4 and 5": lacking([4, 5]),
    "one-hot": ONE_HOT["one-hot, some wrong"],
    "two equal columns": SAMPLES["two equal columns"],
}


def same(a, b, order=slice(None), close=1e-5):
    for name in ("values", "prior_source", "prior_target", "standard_error", "values_error"):
        np.testing.assert_allclose(
            getattr(a, name), getattr(b, name)[order], rtol=close, atol=close, err_msg=name
        )


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("name", LAWFUL)
def test_laws(name, method):
    p, y, q = LAWFUL[name]
    rng = np.random.default_rng(0)
    close = 2e-3 if name == "two equal columns" else 1e-5

    def found(*sample):
        return label_shift_weights(*sample, method=method)

    plain = found(p, y, q)
    i, j = rng.permutation(len(p)), rng.permutation(len(q))
    same(found(p[i], y[i], q[j]), plain, close=close)
    f, g = rng.integers(0, 4, len(p)), rng.integers(0, 4, len(q))
    counted = found(Predictions(p, y, sample_weight=f), None, Predictions(q, sample_weight=g))
    repeated = found(np.repeat(p, f, axis=0), np.repeat(y, f), np.repeat(q, g, axis=0))
    same(counted, repeated, close=close)
    k = np.roll(np.arange(p.shape[1]), 1)
    same(found(p[:, k], np.argsort(k)[y], q[:, k]), plain, k, close=close)


@pytest.mark.parametrize("method", METHODS)
def test_precision_and_layout(method):
    plain = label_shift_weights(P, Y, Q, method=method)
    single = label_shift_weights(P.astype("f4"), Y, Q.astype("f4"), method=method)
    close = 0.2 * plain.values_error.max() if method == "kmm" else 1e-4  # other landmarks
    np.testing.assert_allclose(single.values, plain.values, atol=close)
    locked = np.repeat(P, 2, axis=0)[::2]
    locked.flags.writeable = False
    for p in (np.asfortranarray(P), locked, P.tolist(), np.hstack([P, P])[:, :4]):
        same(label_shift_weights(p, Y, Q, method=method), plain, close=1e-7)


@pytest.mark.slow
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("name", ["plain", "lacks [4, 5]", "a class once", "never right"])
def test_a_name_is_short_for_its_weights(name, method):
    p, y, q = SAMPLES[name]
    weights = label_shift_weights(p, y, q, method=method)
    by_name = calshift.target_calibration_error(p, y, q, weights=method)
    by_weights = calshift.target_calibration_error(p, y, q, weights=weights)
    assert by_name.class_weights == weights
    assert by_name.warnings == by_weights.warnings
    assert by_name == by_weights
    if method == DEFAULT:
        assert calshift.target_calibration_error(p, y, q) == by_name
    curves = [calshift.reliability_curve(p, y, q, weights=w) for w in (method, weights)]
    assert curves[0] == curves[1]


# --- names, frames, drawings


def test_frames_and_names():
    names, rare = ["ant", "bee", "cat", "emu"], np.where(Y == 3, 0, Y)
    rare[:5] = 3
    labels = np.array(names)[rare]
    plain = label_shift_weights(P, rare, Q)
    for frame in (pd.DataFrame, pl.DataFrame):
        p, q = (frame({name: x[:, c] for c, name in enumerate(names)}) for x in (P, Q))
        same(label_shift_weights(p, labels, q), plain, close=1e-7)
    source = Predictions(P, labels, classes=names)
    with pytest.warns(UnreliableWeights, match=r"class emu has fewer than 20 source rows"):
        weights = label_shift_weights(source, None, Predictions(Q, classes=names))
    assert weights.classes == tuple(names)
    assert "emu" in str(weights)
    assert weights.untrusted[3] == "5 source rows"


@pytest.mark.parametrize("name", ["plain", "lacks [0, 9]", "100 classes", "constant", "scores"])
def test_drawings(name):
    weights = label_shift_weights(*SAMPLES[name])
    assert calshift.plot_weights(weights).get_figure() is not None
    weights.plot().get_figure().canvas.draw()


CALLERS = {
    "weights": lambda p, y, q: label_shift_weights(p, y, q),
    "error": lambda p, y, q: calshift.target_calibration_error(p, y, q, check=False),
    "curve": lambda p, y, q: calshift.reliability_curve(p, y, q),
}


@pytest.mark.parametrize("caller", CALLERS)
def test_warnings_come_once_and_from_the_callers_line(caller):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        CALLERS[caller](*lacking([4]))
    assert len(caught) == 1
    assert caught[0].filename == __file__
    assert caught[0].lineno == CALLERS[caller].__code__.co_firstlineno


# --- nonsense


@pytest.mark.parametrize("method", ["emm", "", "EM", None, 3, ["em"], ("em",), np.nan, b"em", {}])
def test_unknown_methods_are_refused_with_the_list(method):
    with pytest.raises(InvalidInput, match=f"method must be one of {', '.join(METHODS)}; got"):
        label_shift_weights(P, Y, Q, method=method)
    for call in (calshift.target_calibration_error, calshift.reliability_curve):
        with pytest.raises(InvalidInput, match=r"\bweights\b") as caught:
            call(P, Y, Q, weights=method)
        if isinstance(method, str) or method is None:
            assert ", ".join(METHODS) in str(caught.value)


@pytest.mark.parametrize("level", [0, 1, -0.1, 1.5, np.nan, None, "a", [0.9], np.array([0.5, 0.9])])
def test_levels_that_are_none(level):
    with pytest.raises(InvalidInput, match=r"\blevel\b"):
        label_shift_weights(P, Y, Q).confidence_interval(level)


REFUSED = {
    "p_source": ((-P, Y, Q), (P * 2, Y, Q), (P[:, :1], Y, Q), (np.nan * P, Y, Q), ([], [], Q)),
    "y_source": ((P, Y[1:], Q), (P, Y + 1, Q), (P, 0 * Y, Q), (P, None, Q), (P, Y + 0.5, Q)),
    "p_target": ((P, Y, Q[:, :3]), (P, Y, -Q), (P, Y, Q[:0]), (P, Y, None), (P, Y, SCORES)),
}


@pytest.mark.parametrize(
    ("argument", "number"), [(name, k) for name, calls in REFUSED.items() for k in range(5)]
)
def test_nonsense_is_refused_by_name(argument, number):
    for method in ("bbse", DEFAULT, "kmm"):
        with pytest.raises(InvalidInput, match=rf"\b{argument}\b"):
            label_shift_weights(*REFUSED[argument][number], method=method)


def test_rows_that_sum_to_a_little_more_than_1_are_not_called_logits():
    """Sums are accepted within 1e-3; a single number of 1.0005 is refused, but is no logit."""
    p = 1.0005 * np.eye(3)[cycle(30, 3)]
    found = complaint(lambda: label_shift_weights(p, cycle(30, 3), p))
    assert "logits" not in (found or "")


def test_rlls_of_a_class_that_is_never_predicted_gives_no_numerical_warning():
    """A column of 1e-300 leaves the confusion matrix regular in name; its inverse overflows."""
    rng = np.random.default_rng(0)
    first, y = rng.uniform(0.01, 0.99, 15), np.arange(15) % 3
    p = np.column_stack([np.resize([1e-300, 5e-324, 0.0], 15), first, 1 - first])
    q = np.repeat([[5e-36, 1e-6, 1 - 1e-6], [7e-7, 1 - 7e-7, 0.0], [0.9, 0.1, 0.0]], 80, axis=0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", UnreliableWeights)
        found = label_shift_weights(p, y, q, method="rlls-soft")
    assert np.isfinite(found.values).all()
