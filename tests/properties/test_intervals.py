"""What must hold of every standard error and interval, whatever the numbers.

Numbers that are the same sums in another order agree to 1e-9; interval ends, which are found by
bisection on such numbers, to 1e-7.
"""

from __future__ import annotations

import json
import pickle

import numpy as np
import pytest

import calshift
from calshift import Predictions
from calshift.results import SquaredErrorDistribution

from .samples import BINNED, drawn, result_of

LEVELS = (0.5, 0.8, 0.9, 0.95, 0.99, 0.999)
NORMS = (1, 2)
BINS = ("auto", 5)
METHODS = ("given", "em-bcts", "bbse-soft", "em")


def both(seed, kind, method="given", **options):
    """A label-free result and one with labels."""
    p, y, q, w = drawn(seed, kind)
    shifted = result_of(p, y, q, w if method == "given" else method, kind=kind, **options)
    return shifted, calshift.calibration_error(p, y, kind=kind, **options)


def numbers(result):
    """Estimate, standard error and some ends of one result."""
    ends = [result.confidence_interval(level) for level in (0.8, 0.95)]
    return np.array([result.estimate, result.standard_error, *np.ravel(ends)])


def assert_same(one, other):
    a, b = numbers(one), numbers(other)
    assert a[:2] == pytest.approx(b[:2], rel=1e-9, abs=1e-13)
    assert a[2:] == pytest.approx(b[2:], rel=1e-7, abs=1e-12)


@pytest.mark.parametrize("interval", ["influence", "bootstrap"])
@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("kind", BINNED)
def test_intervals_nest_are_never_below_0_and_their_roots_are_roots(kind, norm, interval):
    for result in both(1, kind, norm=norm, interval=interval, n_boot=40, rng=0):
        before = None
        for level in LEVELS:
            low, high = result.confidence_interval(level)
            assert 0 <= low <= high
            roots = result.confidence_interval(level, root=True)
            assert roots == pytest.approx((low ** (1 / norm), high ** (1 / norm)))
            if before is not None:
                assert low <= before[0]
                assert before[1] <= high
            before = low, high
        assert before[0] < max(result.estimate, 0) < before[1]
        if kind == "classwise":
            plain, roots = (np.array(result.class_intervals(root=root)) for root in (False, True))
            together = np.array(result.class_intervals(simultaneous=True))
            assert (plain >= 0).all()
            assert roots == pytest.approx(plain ** (1 / norm))
            assert (together[0] <= plain[0]).all()
            assert (together[1] > plain[1]).all()


@pytest.mark.parametrize("level", [0, 1, 95, -0.1, float("nan"), "0.95"])
def test_bad_levels_are_named(level):
    result, _ = both(1, "binary")
    for call in (result.confidence_interval, calshift.compare(result, result).confidence_interval):
        with pytest.raises(calshift.InvalidInput, match="level"):
            call(level)


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("bins", BINS)
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("kind", BINNED)
def test_order_of_rows_does_not_matter(kind, method, bins, norm):
    p, y, q, w = drawn(2, kind)
    rng = np.random.default_rng(0)
    a, b = rng.permutation(len(p)), rng.permutation(len(q))
    options = {"kind": kind, "bins": bins, "norm": norm}
    w = w if method == "given" else method
    one, other = result_of(p, y, q, w, **options), result_of(p[a], y[a], q[b], w, **options)
    # methods that search stop within 1e-8 of their weights
    loose = {"rel": 1e-5, "abs": 1e-9}
    assert numbers(one) == pytest.approx(numbers(other), **loose)
    size = np.abs(one._influence.source).max()
    assert one._influence.source[a] == pytest.approx(other._influence.source, abs=1e-5 * size)
    assert one._influence.target[b] == pytest.approx(other._influence.target, abs=1e-5 * size)


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("kind", ["classwise", "top-label"])
def test_names_of_classes_do_not_matter(kind, method, norm):
    p, y, q, w = drawn(3, kind, K=4)
    turn = np.array([2, 0, 3, 1])  # the class formerly called turn[k] is now called k
    given = method == "given"
    one = result_of(p, y, q, w if given else method, kind=kind, norm=norm)
    other = result_of(
        p[:, turn], np.argsort(turn)[y], q[:, turn], w[turn] if given else method,
        kind=kind, norm=norm,
    )  # fmt: skip
    assert numbers(one) == pytest.approx(numbers(other), rel=1e-5, abs=1e-9)
    if kind == "classwise":
        ends, turned = np.array(one.class_intervals()), np.array(other.class_intervals())
        assert ends[:, turn] == pytest.approx(turned, rel=1e-5, abs=1e-9)


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("bins", BINS)
@pytest.mark.parametrize("kind", BINNED)
def test_scale_of_given_weights_does_not_matter(kind, bins, norm):
    p, y, q, w = drawn(4, kind)
    options = {"kind": kind, "bins": bins, "norm": norm}
    for scale in (0.01, 37.0):
        assert_same(result_of(p, y, q, scale * w, **options), result_of(p, y, q, w, **options))


@pytest.mark.parametrize("stratified", [False, True], ids=["drawn", "stratified"])
@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("bins", BINS)
@pytest.mark.parametrize("method", ["given", "em-bcts", "bbse-soft", "rlls"])
@pytest.mark.parametrize("kind", BINNED)
def test_whole_sample_weights_are_repetition(kind, method, bins, norm, stratified):
    p, y, q, w = drawn(5, kind, n=200, m=150)
    rng = np.random.default_rng(1)
    a, b = rng.integers(0, 4, len(p)), rng.integers(0, 4, len(q))
    source, target = Predictions(p, y, sample_weight=a), Predictions(q, sample_weight=b)
    again = np.repeat(p, a, axis=0), np.repeat(y, a), np.repeat(q, b, axis=0)
    options = {"kind": kind, "bins": bins, "norm": norm, "stratified": stratified}
    w = w if method == "given" else method
    weighted, repeated = (
        result_of(source, None, target, w, **options),
        result_of(*again, w, **options),
    )
    assert numbers(weighted) == pytest.approx(numbers(repeated), rel=1e-5, abs=1e-9)
    assert_same(weighted.source, repeated.source)
    if kind == "classwise":
        ends = np.array(weighted.class_intervals()), np.array(repeated.class_intervals())
        assert ends[0] == pytest.approx(ends[1], rel=1e-5, abs=1e-9)
    shared = [calshift.compare(one, one.source).correlation for one in (weighted, repeated)]
    assert shared[0] == pytest.approx(shared[1], rel=1e-5)


@pytest.mark.parametrize("kind", BINNED)
def test_target_equal_to_source_gives_the_labelled_interval(kind):
    """Exactly on bins; on hats but for the covariance of the two parts of a row's move.

    With labels a row moves the fit by 2 a'x_i and the mix of scores by (g_i^2 - mean) / n, summed
    before they are squared; without, the two are rows of different samples. In a bin leverage is
    the same for all rows and residuals sum to 0, so the product vanishes for one event; hats, and
    the mean over events, leave a little.
    """
    p, y, _, w = drawn(7, kind)
    for bins in BINS:
        shifted = result_of(p, y, p, np.ones_like(w), kind=kind, bins=bins)
        labelled = calshift.calibration_error(p, y, kind=kind, bins=bins)
        if bins != "auto" and kind != "classwise":
            assert_same(shifted, labelled)
        elif bins != "auto":
            ends = np.array(shifted.class_intervals()), np.array(labelled.class_intervals())
            assert ends[0] == pytest.approx(ends[1], rel=1e-7, abs=1e-12)
        for name in ("plug", "bias", "second"):
            one, other = getattr(shifted._distribution, name), getattr(labelled._distribution, name)
            assert one == pytest.approx(other, rel=1e-9)
        cross = (
            2 * shifted._influence.source @ shifted._influence.target
        )  # the same rows in the same order
        expected = shifted._distribution.first + cross
        assert labelled._distribution.first == pytest.approx(expected, rel=1e-9)
        moved = shifted._influence.source + shifted._influence.target
        assert labelled._influence.source == pytest.approx(moved, rel=1e-9, abs=1e-15)


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("interval", ["influence", "bootstrap"])
def test_fixed_class_counts_leave_no_noise_in_a_constant_score(norm, interval):
    """All rows have the score 1/2: given the counts of the classes, the error is known."""
    y = np.repeat([0, 1], [90, 30])
    options = {"norm": norm, "bins": 1, "interval": interval, "n_boot": 30, "rng": 0}
    for stratified in (False, True):
        result = calshift.calibration_error(np.full(120, 0.5), y, stratified=stratified, **options)
        assert (result.standard_error > 1e-12) == (not stratified)
    assert result.estimate == pytest.approx(0.25**norm)
    assert result.confidence_interval() == pytest.approx((0.25**norm,) * 2)


@pytest.mark.filterwarnings("ignore::calshift.UnreliableWeights")  # the bad model looks reversed
@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("kind", BINNED)
def test_interval_of_a_calibrated_model_contains_0_and_of_a_bad_one_does_not(kind, norm):
    """Outcomes drawn from the scores: at level .99 one in 200 misses 0 by chance."""
    rng = np.random.default_rng(8)
    for _ in range(7):
        p = rng.dirichlet([1, 1, 1][: 2 if kind == "binary" else 3], 400)
        y = (rng.uniform(size=(400, 1)) > np.cumsum(p, axis=1)).sum(axis=1)
        q = rng.dirichlet([1, 1, 1][: p.shape[1]], 400)
        p, q = (p[:, 1], q[:, 1]) if kind == "binary" else (p, q)
        one = np.ones(2 if kind == "binary" else 3)
        results = (
            result_of(p, y, q, one, kind=kind, norm=norm),
            calshift.calibration_error(p, y, kind=kind, norm=norm),
        )
        for result in results:
            low, high = result.confidence_interval(0.99)
            assert low == 0 < high
    wrong = 1 - np.eye(3)[y] * 0.98 if kind != "binary" else 0.9 - 0.8 * y
    wrong = wrong / wrong.sum(axis=1, keepdims=True) if kind != "binary" else wrong
    worse = calshift.calibration_error(wrong, y, kind=kind, norm=norm)
    assert worse.confidence_interval()[0] > 0


UNASKED = {
    "paper": {"estimator": "paper"},
    "norm 3": {"norm": 3},
    "canonical": {"kind": "canonical"},
    "kernel": {"kernel": "triweight"},
    "none": {"interval": None},
}


@pytest.mark.parametrize("asked", UNASKED)
def test_an_interval_that_was_not_computed_raises(asked):
    p, y, q, w = drawn(9, n=60, m=50)
    options = UNASKED[asked]
    for result in (result_of(p, y, q, w, **options), calshift.calibration_error(p, y, **options)):
        for ask in (
            result.confidence_interval,
            lambda result=result: result.standard_error,
            result.class_intervals,
        ):
            with pytest.raises(calshift.InvalidInput, match="interval"):
                ask()
        with pytest.raises(calshift.InvalidInput, match='interval="influence"'):
            calshift.compare(result, result)
        with pytest.raises(calshift.InvalidInput, match='interval="bootstrap"'):
            result.confidence_interval()
        assert result.to_dict()["interval"] is None
        assert "estimate" in result.to_dict()


@pytest.mark.parametrize("options", [{}, {"norm": 1}, {"interval": "bootstrap", "n_boot": 25}])
@pytest.mark.parametrize("kind", BINNED)
def test_results_become_json_and_pickle(kind, options):
    p, y, q, w = drawn(10, kind)
    result = result_of(p, y, q, w, kind=kind, **options)
    shown = json.loads(json.dumps(result.to_dict(), allow_nan=False))
    assert shown["interval"]["power"] == list(result.confidence_interval(0.95))
    assert shown["interval"]["root"] == list(result.confidence_interval(0.95, root=True))
    assert shown["standard_error"] == result.standard_error
    if kind == "classwise":
        assert np.array(shown["class_intervals"]) == pytest.approx(
            np.array(result.class_intervals())
        )
    again = pickle.loads(pickle.dumps(result))
    assert again == result
    assert again.confidence_interval(0.9) == result.confidence_interval(0.9)
    if "interval" not in options:
        difference = calshift.compare(result, result.source)
        shown = json.loads(json.dumps(difference.to_dict(), allow_nan=False))
        assert shown["interval"]["power"] == list(difference.confidence_interval())
        assert pickle.loads(pickle.dumps(difference)) == difference


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize(("digits", "m"), [(17, 700), (2, 20_000)], ids=["distinct", "tied"])
def test_a_score_read_from_the_other_end_has_the_same_error(norm, digits, m):
    """1 - p of class 0 says what p of class 1 says; 1e-6 for what 1 - p loses of p.

    Tied scores of the source are all scores of the target too: none lies on an edge between two.
    """
    simulation = calshift.simulate.BetaSimulation()
    p, y = simulation.source(900, rng=1)
    q, _ = simulation.target(m, rng=2)
    p, q = p.round(digits), q.round(digits)
    w = np.array(simulation.class_weights)
    one = result_of(p, y, q, w, norm=norm)
    other = result_of(1 - p, 1 - y, 1 - q, w[::-1], norm=norm)
    assert numbers(one) == pytest.approx(numbers(other), rel=1e-6, abs=1e-12)
    both = result_of(np.stack([1 - p, p], axis=1), y, np.stack([1 - q, q], axis=1), w, norm=norm)
    assert both.per_class == pytest.approx([one.estimate] * 2, rel=1e-6)


@pytest.mark.parametrize("seed", range(25))
def test_absolute_intervals_nest_and_hold_the_estimate(seed):
    """Small samples and small levels, where the lower bound may lie above the estimate."""
    simulation = calshift.simulate.BetaSimulation()
    p, y = simulation.source(300, rng=seed)
    q, _ = simulation.target(300, rng=1000 + seed)
    result = result_of(p, y, q, np.array(simulation.class_weights), norm=1)
    square = result_of(p, y, q, np.array(simulation.class_weights))
    ends = np.array([result.confidence_interval(level) for level in (0.05, 0.3, *LEVELS)])
    assert (np.diff(ends[:, 0]) <= 0).all()
    assert (np.diff(ends[:, 1]) >= 0).all()
    assert (ends[:, 0] <= result.estimate).all()
    assert (ends[:, 1] >= result.estimate).all()
    assert (ends[:, 0] < ends[:, 1]).all()
    for level, (low, high) in zip((0.05, 0.3, *LEVELS), ends, strict=True):
        assert low <= square.confidence_interval(level, root=True)[1]
        largest = max(square.confidence_interval(level, root=True)[1], result.estimate)
        assert high <= largest * (1 + 1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("df", [1, 8, 200])
@pytest.mark.parametrize("sizes", [0.0, 0.3, 1.0, 10.0, 100.0])
def test_the_interval_covers_if_the_law_holds(df, sizes):
    """Noncentral chi-square draws with kap known: 95% of intervals hold t, at 0 and far from it.

    4000 draws: binomial standard error .0034; asked within 4 of them from below. From above .985,
    since a small t has .7 of the doubt, and the lower tail is all or nothing further on. The
    skewness of the law on the scale of roots, and kap from the plug-in itself, cost up to .01 with
    one degree of freedom.
    """
    kap, rng = 0.1, np.random.default_rng(int(df + 10 * sizes))
    bias, T = df * kap, df * kap**2
    t = sizes * np.sqrt(2 * T)
    plug = kap * (rng.noncentral_chisquare(df, t / kap, 4000) if t > 0 else rng.chisquare(df, 4000))
    first = 4 * kap * (plug + bias / 4) - T
    low, high = SquaredErrorDistribution(
        plug, np.full(4000, bias), first, np.full(4000, T)
    ).interval(0.95)
    covers = ((low <= t) & (t <= high)).mean()
    assert 0.95 - 4 * 0.0034 - (0.01 if df == 1 else 0) < covers < 0.985
    assert (low <= np.maximum(plug - bias, 0)).all()
    assert (np.maximum(plug - bias, 0) < high).all()


def test_constant_scores_with_fixed_class_counts_are_numbers():
    """All moves of a class are equal, so what is left within classes is 0 up to rounding."""
    for ones in range(5, 100, 5):
        y = np.r_[np.zeros(ones, int), np.ones(300 - ones, int)]
        p = np.full((300, 2), 0.5)
        for norm in NORMS:
            result = calshift.calibration_error(p, y, norm=norm, stratified=True)
            assert np.isfinite(result.confidence_interval()).all()
            assert np.isfinite(result.class_intervals()).all()


@pytest.mark.parametrize("size", [0.5, 0.1])
@pytest.mark.parametrize("stratified", [False, True])
def test_equal_weights_below_1_are_no_weights(size, stratified):
    """They count by their square in variances, in both samples, with bins that stay the same."""
    p, y, q, w = drawn(6, n=1500, m=1200)
    options = {"bins": [0.2, 0.5], "stratified": stratified}
    plain = result_of(p, y, q, w, **options)
    less = result_of(
        Predictions(p, y, sample_weight=np.full(len(p), size)), None,
        Predictions(q, sample_weight=np.full(len(q), size)), w, **options,
    )  # fmt: skip
    assert_same(plain, less)
    assert_same(plain.source, less.source)


def test_the_bootstrap_knows_weights_below_1_too():
    """Standard errors of 200 draws each differ by 5% at one standard error of either: asked 30%."""
    p, y, q, w = drawn(6, n=400, m=300)
    options = {"bins": [0.2, 0.5], "interval": "bootstrap", "n_boot": 200, "rng": 0}
    less = result_of(
        Predictions(p, y, sample_weight=np.full(len(p), 0.1)), None,
        Predictions(q, sample_weight=np.full(len(q), 0.1)), w, **options,
    )  # fmt: skip
    plain = result_of(p, y, q, w, **options)
    assert less.standard_error == pytest.approx(plain.standard_error, rel=0.3)


@pytest.mark.parametrize(
    "moments",
    [
        (0.0, 1e-3, 0.0, 1e-17),  # degrees of freedom beyond what the chi-square can
        (0.0, 1e-320, 0.0, 1e-3),
        (1e-3, 0.0, 0.0, 0.0),
        (0.0, 0.0, 0.0, 0.0),
        (1e-300, 1e-300, 1e-300, 1e-300),
        (1.0, 1e-9, 1e-12, 0.0),
    ],
)
def test_extreme_moments_have_ends(moments):
    low, high = SquaredErrorDistribution(*moments).interval(0.95)
    assert 0 <= low <= max(moments[0] - moments[1], 0) <= high


@pytest.mark.parametrize("wrong", [np.nan, np.inf])
def test_moments_that_are_no_numbers_have_no_ends_and_leave_the_others_alone(wrong):
    for k in range(4):
        moments = [np.array([value, value]) for value in (2e-3, 1e-3, 1e-7, 1e-7)]
        moments[k][0] = wrong
        low, high = SquaredErrorDistribution(*moments).interval(0.95)
        assert np.isnan([low[0], high[0]]).all()
        assert 0 <= low[1] < high[1] < 0.1
