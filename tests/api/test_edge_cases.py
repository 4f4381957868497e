"""Awkward but legal input gives numbers, and nonsense gives InvalidInput: never NaN, never worse.

numpy's warnings are errors here, so every division and overflow on the way counts too.
"""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import calshift
from calshift import ClassWeights, InvalidInput, Predictions

pytestmark = pytest.mark.filterwarnings("ignore::calshift.UnreliableWeights")

ESTIMATORS = ("debiased", "plugin", "paper")
NORMS = (1, 2, 3.5)
FEW_BINS = ("auto", 2, 15)
BINS = ("auto", 1, 2, 15, 1000, [0.5], [-1.0, 0.0, 0.5, 1.0, 2.0], [1.5, 3.0])


def simplex(n, K, seed, spread=0.5):
    return np.random.default_rng(seed).dirichlet(np.full(K, spread), n)


def cycle(n, K):
    return np.arange(n) % K


SAMPLES = {  # source, its labels, target
    "plain": (simplex(40, 3, 0), cycle(40, 3), simplex(30, 3, 1)),
    "constant": (np.full((20, 2), 0.5), cycle(20, 2), np.full((15, 2), 0.5)),
    "constant scores": (np.full(20, 0.3), cycle(20, 2), np.full(15, 0.3)),
    "constant but apart": (np.full(20, 0.3), cycle(20, 2), np.full(15, 0.6)),
    "all 0": (np.zeros(20), cycle(20, 2), np.zeros(5)),
    "all 1": (np.ones(20), cycle(20, 2), np.ones(5)),
    "0 and 1": (cycle(20, 2).astype(float), cycle(20, 4) // 2, cycle(9, 2).astype(float)),
    "certain and right": (np.eye(3)[cycle(30, 3)], cycle(30, 3), np.eye(3)[cycle(20, 3)]),
    "certain and wrong": (np.eye(3)[cycle(30, 3)], cycle(31, 3)[1:], np.eye(3)[cycle(20, 3)]),
    "ties": (np.repeat([0.2, 0.5, 0.9], 8), cycle(24, 2), np.repeat([0.2, 0.9], [1, 20])),
    "two rows": (np.array([[0.2, 0.8], [0.9, 0.1]]), [0, 1], np.array([[0.5, 0.5], [0.3, 0.7]])),
    "two scores": (np.array([0.2, 0.9]), [0, 1], np.array([0.5, 0.3])),
    "two tied rows": (np.array([0.5, 0.5]), [0, 1], np.array([0.5, 0.5])),
    "two target rows": (np.linspace(0, 1, 90), cycle(90, 2), np.array([0.2, 0.2])),
    "two source rows": (np.array([0.2, 0.4]), [0, 1], np.linspace(0, 1, 90)),
    "far apart": (np.linspace(0, 0.1, 30), cycle(30, 2), np.linspace(0.9, 1, 30)),
    "half precision": (
        simplex(40, 3, 2).astype(np.float16),
        cycle(40, 3),
        simplex(30, 3, 3).astype(np.float16),
    ),
    "smallest numbers": (
        np.array([1e-300, 5e-324, 0.5, 1e-17, 0.0, 1.0]),
        cycle(6, 2),
        np.array([1e-310, 5e-324, 0.0, 1.0, 0.3]),
    ),
    "unseen classes": (simplex(40, 4, 4), cycle(40, 2), simplex(25, 4, 5)),
    "a class once": (simplex(40, 3, 6), np.r_[2, cycle(39, 2)], simplex(25, 3, 7)),
}
ALIKE = {  # others are much like these: they are for the slow lane
    "constant",
    "constant scores",
    "all 1",
    "certain and right",
    "two rows",
    "two tied rows",
    "two target rows",
    "two source rows",
}
samples = pytest.mark.parametrize(
    "name", [pytest.param(s, marks=pytest.mark.slow) if s in ALIKE else s for s in SAMPLES]
)
MANY = simplex(60, 50, 8), np.r_[np.arange(50), np.zeros(10, int)], simplex(60, 50, 9)
MANY_UNSEEN = simplex(60, 50, 10, 0.05), cycle(60, 9), simplex(60, 50, 11, 0.05)


def classes_of(sample):
    return 2 if sample[0].ndim == 1 else sample[0].shape[1]


def class_weights_for(sample):
    """Ones, one class switched off, all but one, and very unequal ones."""
    K = classes_of(sample)
    last = np.arange(K) == np.max(sample[1])
    yield np.ones(K)
    yield np.where(np.arange(K) == 0, 0.0, 1.0)
    yield last.astype(float)
    yield np.where(last, 1e-12, 1.0)
    yield np.where(last, 1e9, 1.0)


def complaint(call, allow_refusal=False):
    """What is wrong with the answer of a call, or None."""
    try:
        answer = call()
    except InvalidInput as error:
        return None if allow_refusal else f"refused: {error}"
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    if isinstance(answer, calshift.ReliabilityCurve):
        numbers = [answer.score, answer.frequency, answer.mass, answer.edges]
    elif isinstance(answer, ClassWeights):
        numbers = [answer.prior_source, answer.prior_target, answer.ess]
    else:
        numbers = [answer.estimate, answer.root, *_seen(answer)]
        if answer.source is not None:
            numbers += [answer.source.estimate, answer.source.root]
            numbers += _seen(answer.source, answer.class_weights)
    if not all(np.isfinite(number).all() for number in numbers):
        return f"not finite: {answer!r}"
    str(answer)
    return None


def _seen(result, weights=None):
    """The errors of the classes that have a weight; the others are not numbers."""
    if result.per_class is None:
        return []
    weights = result.class_weights if weights is None else weights
    seen = np.ones(len(result.per_class), bool) if weights is None else ~np.isnan(weights.values)
    return [result.per_class[seen]]


def complaints(calls, **options):
    """{name of the call: complaint} of those that have one."""
    found = {name: complaint(call, **options) for name, call in calls.items()}
    return {name: text for name, text in found.items() if text is not None}


def binned_calls(sample, kind, estimator, norms=NORMS, all_bins=BINS):
    p, y, q = sample
    for norm, bins in itertools.product(norms, all_bins):
        if norm != 2 and bins not in FEW_BINS:
            continue
        asked = {"kind": kind, "estimator": estimator, "norm": norm, "bins": bins}
        yield str(asked), p, y, q, asked
    if kind != "canonical":
        asked = {"kind": kind, "estimator": estimator, "bins": 7, "binning": "width"}
        yield str(asked), p, y, q, asked


def kernel_calls(sample, kind, estimator, bandwidths, norms=(2, 1)):
    p, y, q = sample
    for kernel, h, norm in itertools.product(("dirichlet", "triweight"), bandwidths, norms):
        if not (norm == 1 and h == "auto"):
            asked = {"kind": kind, "estimator": estimator, "norm": norm, "kernel": kernel}
            yield f"{asked} {h}", p, y, q, {**asked, "bandwidth": h}


def labelled(calls):
    return {
        name: (lambda p=p, y=y, asked=asked: calshift.calibration_error(p, y, **asked))
        for name, p, y, _, asked in calls
    }


def shifted(calls, weights):
    return {
        name: (
            lambda p=p, y=y, q=q, asked=asked: calshift.target_calibration_error(
                p, y, q, weights=weights, **asked
            )
        )
        for name, p, y, q, asked in calls
    }


@pytest.mark.parametrize("estimator", ESTIMATORS)
@pytest.mark.parametrize("kind", ["classwise", "top-label"])
@samples
def test_binned_errors(name, kind, estimator):
    sample = SAMPLES[name]
    calls = list(binned_calls(sample, kind, estimator))  # .source is the error with labels
    few = list(binned_calls(sample, kind, estimator, norms=(2,), all_bins=FEW_BINS))
    for k, weights in enumerate(class_weights_for(sample)):
        rows = np.bincount(sample[1], minlength=len(weights)) @ (weights > 0)
        asked = shifted(few if k else calls, weights)
        assert complaints(asked, allow_refusal=rows < 2) == {}


@pytest.mark.slow
@pytest.mark.parametrize("estimator", ESTIMATORS)
@pytest.mark.parametrize("kind", ["classwise", "canonical"])
@samples
def test_kernel_errors(name, kind, estimator):
    sample = SAMPLES[name]
    calls = list(kernel_calls(sample, kind, estimator, ("auto", 1e-3, 10.0)))
    few = list(kernel_calls(sample, kind, estimator, (1e-8,)))
    for k, weights in enumerate(class_weights_for(sample)):
        rows = np.bincount(sample[1], minlength=len(weights)) @ (weights > 0)
        asked = shifted(few if k else calls, weights)
        assert complaints(asked, allow_refusal=rows < 2) == {}


@pytest.mark.parametrize("estimator", ESTIMATORS)
@pytest.mark.parametrize("sample", [MANY, MANY_UNSEEN], ids=["all seen", "most unseen"])
def test_more_classes_than_rows_can_tell(sample, estimator):
    calls = [
        *binned_calls(sample, "classwise", estimator, norms=(2,), all_bins=("auto",)),
        *binned_calls(sample, "top-label", estimator, norms=(2,), all_bins=("auto", 15)),
        *binned_calls(sample, "canonical", estimator, norms=(2,), all_bins=("auto",)),
    ]
    for weights in itertools.islice(class_weights_for(sample), 2):
        assert complaints(shifted(calls, weights)) == {}


@samples
def test_curves_and_sums(name):
    p, y, q = sample = SAMPLES[name]
    calls = {}
    for kind, bins in itertools.product(("classwise", "top-label"), BINS):
        calls[f"{kind} {bins}"] = lambda kind=kind, bins=bins: calshift.reliability_curve(
            p, y, kind=kind, bins=bins
        )
    assert complaints(calls) == {}
    for weights in itertools.islice(class_weights_for(sample), 3):
        rows = np.bincount(y, minlength=len(weights)) @ (weights > 0)
        calls = {}
        for kind, bins in itertools.product(("classwise", "top-label"), BINS):

            def curve(kind=kind, bins=bins, weights=weights):
                return calshift.reliability_curve(p, y, q, weights=weights, kind=kind, bins=bins)

            def error(estimator, kind=kind, bins=bins, weights=weights):
                edges = calshift.bin_edges(q, kind=kind, bins=bins)
                sums = calshift.accumulate(p, y, q, edges=edges)
                return calshift.target_calibration_error_from(
                    sums, weights=weights, estimator=estimator
                )

            calls[f"curve {kind} {bins}"] = curve
            for estimator in ESTIMATORS:
                if estimator != "paper" or bins != "auto":  # the paper knows no smooth basis
                    calls[f"{estimator} {kind} {bins}"] = lambda e=estimator, error=error: error(e)
        assert complaints(calls, allow_refusal=rows < 2) == {}


def test_a_curve_of_one_row():
    curve = calshift.reliability_curve([0.3], [1])
    np.testing.assert_array_equal([curve.score, curve.frequency, curve.mass], [[0.3], [1], [1]])
    p, y, _ = SAMPLES["constant scores"]
    call = lambda: calshift.reliability_curve(p, y, [0.4], weights=[1, 1])  # noqa: E731
    assert complaint(call, allow_refusal=True) is None


@pytest.mark.parametrize("estimator", ["debiased", "plugin"])
@pytest.mark.parametrize("bins", ["auto", 1, 5])
@pytest.mark.parametrize("scale", [1e-300, 1e-200, 1e-100, 1e-12, 1e12, 1e100, 1e200])
def test_the_scale_of_the_weights_does_not_matter(scale, bins, estimator):
    p, y, q = SAMPLES["plain"]
    weights = np.array([0.5, 1.0, 1.5])
    asked = {"bins": bins, "estimator": estimator}
    plain = calshift.target_calibration_error(p, y, q, weights=weights, **asked)
    scaled = calshift.target_calibration_error(p, y, q, weights=weights * scale, **asked)
    assert scaled.estimate == pytest.approx(plain.estimate, rel=1e-9)
    assert scaled.class_weights.ess == pytest.approx(plain.class_weights.ess)
    curve = calshift.reliability_curve(p, y, q, weights=weights * scale, bins=bins)
    plain_curve = calshift.reliability_curve(p, y, q, weights=weights, bins=bins)
    np.testing.assert_allclose(curve.frequency, plain_curve.frequency, rtol=1e-9)


@pytest.mark.parametrize("scale", [1e-300, 1e-200, 1e-12, 1e12])
@pytest.mark.parametrize("kind", ["classwise", "canonical"])
def test_the_papers_estimator_stands_weights_of_any_size(kind, scale):
    sample = SAMPLES["plain"]
    calls = list(binned_calls(sample, kind, "paper", all_bins=("auto",)))
    assert complaints(shifted(calls, np.array([0.5, 1.0, 1.5]) * scale)) == {}


@pytest.mark.parametrize("estimator", ["debiased", "plugin"])
@samples
def test_an_error_without_weights_has_the_size_of_an_error(name, estimator):
    p, y, _ = SAMPLES[name]
    for bins in ("auto", 3):
        result = calshift.calibration_error(p, y, estimator=estimator, bins=bins)
        assert abs(result.estimate) <= 2
        if estimator == "plugin":
            assert result.estimate >= 0


# --- the same numbers however they lie in memory

LAYOUTS = {
    "Fortran": np.asfortranarray,
    "every second": lambda p: np.repeat(p, 2, axis=0)[::2],
    "backwards twice": lambda p: p[::-1].copy()[::-1],
    "columns of a wider one": lambda p: np.concatenate([p, p], axis=1)[:, : p.shape[1]],
    "list": lambda p: p.tolist(),
    "long double": lambda p: p.astype(np.longdouble),
    "big endian": lambda p: p.astype(p.dtype.newbyteorder(">")),
}


def read_only(array):
    array = array.copy()
    array.flags.writeable = False
    return array


@pytest.mark.parametrize("kind", ["classwise", "top-label", "canonical"])
@pytest.mark.parametrize("layout", [*LAYOUTS, "read-only"])
def test_layouts(layout, kind):
    p, y, q = SAMPLES["plain"]
    lay = LAYOUTS.get(layout, read_only)
    w = np.array([0.5, 1.0, 1.5])
    asked = {"kind": kind}
    plain = calshift.target_calibration_error(p, y, q, weights=w, **asked)
    other = calshift.target_calibration_error(
        lay(p), read_only(y), lay(q), weights=read_only(w), **asked
    )
    assert other.estimate == pytest.approx(plain.estimate, rel=1e-12)
    assert other.source.estimate == pytest.approx(plain.source.estimate, rel=1e-12)


@pytest.mark.parametrize("estimator", ESTIMATORS)
@pytest.mark.parametrize("dtype", [np.float16, np.float32])
def test_low_precision_costs_little(dtype, estimator):
    p, q = simplex(400, 3, 20), simplex(300, 3, 21)
    y = np.array([np.random.default_rng(i).choice(3, p=row) for i, row in enumerate(p)])
    asked = {"weights": [1, 1, 1], "estimator": estimator, "bins": [0.2, 0.5, 0.8]}
    exact = calshift.target_calibration_error(p, y, q, **asked).estimate
    rough = calshift.target_calibration_error(p.astype(dtype), y, q.astype(dtype), **asked).estimate
    assert rough == pytest.approx(exact, abs=2e-3)


# --- sample weights

UNEVEN = {
    "fractions": lambda n: np.linspace(0.4, 1.7, n),
    "halves": lambda n: np.full(n, 0.5),
    "small": lambda n: np.full(n, 0.11),
    "counts": lambda n: 1.0 + np.arange(n) % 3,
    "some removed": lambda n: (np.arange(n) % 4 > 0).astype(float),
    "far apart": lambda n: np.where(np.arange(n) % 2, 1e-6, 1e6),
    "large": lambda n: np.full(n, 1e20),
    "nearly nothing": lambda n: np.where(np.arange(n) < 5, 1.0, 1e-300),
}


@pytest.mark.parametrize("estimator", ESTIMATORS)
@pytest.mark.parametrize("weight", UNEVEN)
@pytest.mark.parametrize("name", ["plain", "constant scores", "certain and wrong", "far apart"])
def test_sample_weights(name, weight, estimator):
    p, y, q = SAMPLES[name]
    source = Predictions(p, y, sample_weight=UNEVEN[weight](len(p)))
    target = Predictions(q, sample_weight=UNEVEN[weight](len(q)))
    sample = (source, None, target)
    calls = [
        *binned_calls(sample, "classwise", estimator, norms=(1, 2), all_bins=("auto", 1, 15)),
        *binned_calls(sample, "top-label", estimator, norms=(2,), all_bins=("auto", 3)),
        *binned_calls(sample, "canonical", estimator, norms=(2,), all_bins=("auto",)),
        *kernel_calls(sample, "classwise", estimator, ("auto", 1e-3), norms=(2,)),
    ]
    few = min(source.size, target.size) < 2
    assert complaints(shifted(calls, np.ones(source.n_classes)), allow_refusal=few) == {}
    curve = lambda: calshift.reliability_curve(  # noqa: E731
        source, None, target, weights=np.ones(source.n_classes)
    )
    assert complaint(curve, allow_refusal=few) is None


@pytest.mark.parametrize("weight", ["fractions", "halves", "counts"])
@pytest.mark.parametrize(
    "asked",
    [
        {"bins": "auto"},
        {"bins": 5},
        {"kernel": "dirichlet", "bandwidth": 1e-3},
        {"kernel": "triweight", "bandwidth": 0.05},
        {"kind": "canonical"},
    ],
    ids=["auto", "bins", "dirichlet", "triweight", "canonical"],
)
def test_fractional_weights_keep_the_size_of_an_error(weight, asked):
    p, y, _ = SAMPLES["plain"]
    sample = Predictions(p, y, sample_weight=UNEVEN[weight](len(p)))
    assert abs(calshift.calibration_error(sample, **asked).estimate) <= 5


@pytest.mark.parametrize("bins", ["auto", 1, 2])
@pytest.mark.parametrize("weights", [[0.1, 1.0], [0.01, 1.0], [0.001, 1.0]])
def test_rows_that_count_less_than_one_do_not_explode(weights, bins):
    sample = Predictions(
        [0.1, 0.2, 0.3, 0.6, 0.7, 0.8], [0, 1, 0, 1, 0, 1], sample_weight=[3, 0.1] * 3
    )
    result = calshift.target_calibration_error(sample, None, sample, weights=weights, bins=bins)
    assert abs(result.estimate) <= 5


# --- options at their limits


@pytest.mark.parametrize("kernel", ["dirichlet", "triweight"])
@pytest.mark.parametrize("estimator", ESTIMATORS)
@pytest.mark.parametrize("bandwidth", [1e-307, 1e-200, 1e-160, 1e-20, 1e10, 1e200, np.inf])
def test_bandwidths_at_their_limits(bandwidth, estimator, kernel):
    for name in ("plain", "constant", "certain and wrong", "smallest numbers"):
        p, y, q = SAMPLES[name]
        asked = {"kernel": kernel, "bandwidth": bandwidth, "estimator": estimator}
        calls = [("", p, y, q, asked), ("canonical", p, y, q, {**asked, "kind": "canonical"})]
        assert complaints(labelled(calls), allow_refusal=True) == {}
        weights = np.ones(classes_of(SAMPLES[name]))
        assert complaints(shifted(calls, weights), allow_refusal=True) == {}


@pytest.mark.parametrize("estimator", ESTIMATORS)
@pytest.mark.parametrize("norm", [1 + 1e-12, np.float32(1.5), 20, 100, 170.5, 300, 1e4])
def test_norms_at_their_limits(norm, estimator):
    p, y, q = SAMPLES["plain"]
    calls = [("", p, y, q, {"norm": norm, "estimator": estimator, "bins": 3})]
    assert complaints(labelled(calls), allow_refusal=norm > 100) == {}
    assert complaints(shifted(calls, np.ones(3)), allow_refusal=norm > 100) == {}


@pytest.mark.parametrize("bins", [10**6, 50_000.0, np.int64(12), np.array(4)])
def test_numbers_of_bins(bins):
    p, y, q = SAMPLES["plain"]
    for estimator in ESTIMATORS:
        calls = [("", p, y, q, {"bins": bins, "estimator": estimator})]
        assert complaints(labelled(calls)) == {}
        assert complaints(shifted(calls, np.ones(3))) == {}
    assert len(calshift.bin_edges(q, bins=bins)[0]) < len(q)
    assert calshift.bin_edges(q, bins=10**6) == calshift.bin_edges(q, bins=10**5)


def test_edges_outside_the_range_only_close_it():
    p, y, q = SAMPLES["plain"]
    for edges, same in (([-3, 0, 0.5, 1, 7], [0.5]), ([1.5, 2.5], 1), ([], 1), ([-2, 0.0], 1)):
        for estimator in ESTIMATORS:
            first, second = (
                calshift.target_calibration_error(
                    p, y, q, weights=[1, 1, 1], bins=bins, estimator=estimator
                ).estimate
                for bins in (edges, same)
            )
            assert first == second


def test_every_class_may_have_edges_of_its_own():
    p, y, q = SAMPLES["plain"]
    edges = calshift.bin_edges(q, bins=[[0.5], [0.3, 0.6], []])
    assert [len(inner) for inner in edges] == [1, 2, 0]
    by_sums = calshift.target_calibration_error_from(
        calshift.accumulate(p, y, q, edges=edges), weights=[1, 1, 1]
    )
    by_rows = calshift.target_calibration_error(
        p, y, q, weights=[1, 1, 1], bins=[[0.5], [0.3, 0.6], []]
    )
    assert by_sums.estimate == pytest.approx(by_rows.estimate, rel=1e-12)


@pytest.mark.parametrize("label", [1, np.int64(1), np.uint8(1), np.intp(1)])
def test_a_label_may_be_a_numpy_integer(label):
    p, y, _ = SAMPLES["plain"]
    curve = calshift.reliability_curve(p, y, label=label, bins=2)
    assert curve == calshift.reliability_curve(p, y, label=1, bins=2)
    assert type(curve.to_dict()["label"]) is int


P, Y, Q = [0.2, 0.3, 0.6, 0.9], [0, 0, 1, 1], [0.4, 0.7, 0.8, 0.9]
PAIR = np.stack([1 - np.array(P), P], axis=1)


def error(**options):
    return lambda: calshift.calibration_error(P, Y, **options)


def target_error(weights):
    return lambda: calshift.target_calibration_error(P, Y, Q, weights=weights)


def curve(**options):
    return lambda: calshift.reliability_curve(PAIR, Y, **options)


REFUSED = {
    "kind": (
        error(kind="binar"),
        error(kind=None),
        lambda: calshift.bin_edges(P, kind="canonical"),
        lambda: calshift.calibration_error(np.eye(3), [0, 1, 2], kind="binary"),
    ),
    "norm": tuple(error(norm=norm) for norm in (0.5, -1, np.nan, np.inf, None, "2", True, [2])),
    "estimator": (error(estimator="debias"), error(estimator=None), error(estimator=["paper"])),
    "bins": tuple(
        error(bins=bins)
        for bins in (
            *(0, -3, 2.5, np.nan, np.inf, True, None, "many", {}, {3}, object()),
            *([0.5, 0.2], [0.2, 0.2], [0.2, np.nan], [0.2, np.inf], [0.2, "x"], [[[0.2]]]),
            [[0.2], [0.5]],
        )
    ),
    "binning": (error(bins=3, binning="mas"), error(binning="width"), error(binning=None)),
    "kernel": (error(kernel="gauss"), error(kernel=3), error(kernel=[])),
    "bandwidth": tuple(
        error(kernel="dirichlet", bandwidth=h)
        for h in (0, -1.0, np.nan, "large", None, [0.1], np.array([0.1, 0.2]), True)
    ),
    "weights": tuple(
        target_error(weights)
        for weights in (
            *(None, "no such method", 1.0, [1], [1, 1, 1], [[1, 1]], {0: 1, 1: 1}, [1, "a"]),
            *([1, -1], [1, np.nan], [1, np.inf], [0, 0], [1, [1, 2]], object()),
        )
    ),
    "label": tuple(curve(label=label) for label in (2, -1, 1.5, "a", [1], np.nan)),
    "edges": (
        lambda: calshift.accumulate(P, Y, edges=[0.5]),
        lambda: calshift.accumulate(P, Y, edges=None),
        lambda: calshift.accumulate(np.eye(3), [0, 1, 2], edges=calshift.bin_edges(Q)),
    ),
    "statistics": (
        lambda: calshift.target_calibration_error_from(None, weights=[1, 1]),
        lambda: calshift.target_calibration_error_from(
            calshift.accumulate(edges=calshift.bin_edges(Q)), weights=[1, 1]
        ),
        lambda: calshift.target_calibration_error_from(
            calshift.accumulate(P, Y, edges=calshift.bin_edges(Q)), weights=[1, 1]
        ),
    ),
    "logits": tuple(
        lambda z=z: calshift.softmax(z)
        for z in (
            *([[np.nan, 0.0]], [[np.inf, 0.0]], [[-np.inf, -np.inf]], [], 3.0, None, "a"),
            *([["a"]], [[1.0], [2.0, 3.0]], [[1j, 2.0]]),
        )
    ),
    "axis": tuple(lambda axis=axis: calshift.softmax([[1, 2]], axis=axis) for axis in (2, -3, "a")),
    "y_source": tuple(
        lambda y=y: calshift.weights_from_labels(y, [0, 1])
        for y in ([], 1, None, ["a", "b"], [[0, 1]], [0, 0.5], [0, -1], [0, np.nan], [0, 2**62])
    ),
    "y_target": tuple(
        lambda y=y: calshift.weights_from_labels([0, 1], y) for y in ([], 1, None, [0, np.inf])
    ),
    "n_classes": tuple(
        lambda K=K: calshift.weights_from_labels([0, 0], [0, 0], n_classes=K)
        for K in (1, 0, -2, 2.5, "2", np.nan)
    ),
    "prior": tuple(
        lambda prior=prior: calshift.resample_label_shift(Y, prior=prior)
        for prior in (
            *(0.5, [0.5, 0.6], [1.5, -0.5], [np.nan, 1.0], ["a", "b"], [[0.5], [0.5, 2]]),
            *([], "half", None),
        )
    ),
    "imbalance_factor": tuple(
        lambda factor=factor: calshift.resample_label_shift(Y, imbalance_factor=factor)
        for factor in (0.5, -1, np.nan, "a", [2, 3])
    ),
    "size": tuple(
        lambda size=size: calshift.resample_label_shift(Y, prior=[0.5, 0.5], size=size)
        for size in (-1, 5, 2.5, "3", np.nan)
    ),
    "y": tuple(
        lambda y=y: calshift.resample_label_shift(y, imbalance_factor=2)
        for y in ([], 3, None, ["a", "b"], [[0, 1]], [0, 0.5], [0, np.nan], [0, -1])
    ),
}


@pytest.mark.parametrize(
    ("argument", "number"),
    [(name, k) for name, calls in REFUSED.items() for k in range(len(calls))],
)
def test_nonsense_is_refused_by_name(argument, number):
    with pytest.raises(InvalidInput, match=rf"\b{argument}\b"):
        REFUSED[argument][number]()


# --- weights that come from other data than they are used on


def test_weights_from_other_data_do_not_bring_an_unseen_class_back():
    p, y, q = simplex(40, 3, 30), cycle(40, 2), simplex(30, 3, 31)
    elsewhere = calshift.weights_from_labels([0, 1, 2], [0, 1, 2])
    by_hand = calshift.target_calibration_error(p, y, q, weights=[1, 1, 1])
    given = calshift.target_calibration_error(p, y, q, weights=elsewhere)
    np.testing.assert_allclose(given.per_class, by_hand.per_class)
    assert given.estimate == pytest.approx(by_hand.estimate)
    assert any("class 2" in note for note in given.warnings)


@pytest.mark.parametrize("bins", ["auto", 3])
def test_weights_only_on_classes_that_the_source_lacks(bins):
    p, y, q = simplex(40, 3, 30), cycle(40, 2), simplex(30, 3, 31)
    nothing = calshift.weights_from_labels([0, 1, 2], [2, 2])
    sums = calshift.accumulate(p, y, q, edges=calshift.bin_edges(q, bins=bins))
    for call in (
        lambda: calshift.target_calibration_error(p, y, q, weights=nothing, bins=bins),
        lambda: calshift.reliability_curve(p, y, q, weights=nothing, bins=bins),
        lambda: calshift.target_calibration_error_from(sums, weights=nothing),
    ):
        with pytest.raises(InvalidInput):
            call()


# --- weights, resampling, softmax


def test_weights_from_labels_of_any_kind():
    expected = calshift.weights_from_labels([0, 1, 2, 2], [0, 1, 1, 2])
    for kind in (np.int8, np.uint64, np.float32, float):
        y_source, y_target = np.array([0, 1, 2, 2], kind), np.array([0, 1, 1, 2], kind)
        assert calshift.weights_from_labels(y_source, y_target) == expected
    assert calshift.weights_from_labels([True, False], [True, True]).values.tolist() == [0, 2]
    padded = calshift.weights_from_labels([0, 1], [0, 1], n_classes=np.int64(4))
    assert np.isnan(padded.values).tolist() == [False, False, True, True]


def test_resampling_keeps_to_what_there_is():
    y = np.array([0] * 10 + [1] * 5 + [2] * 2)
    for asked in (
        {"prior": [1, 0, 0]},
        {"prior": [0.2, 0.3, 0.5]},
        {"prior": [0.2, 0.3, 0.5], "size": 3},
        {"imbalance_factor": 1},
        {"imbalance_factor": 1e300},
        {"prior": np.array([1 / 3] * 3, np.float32), "size": np.int64(6)},
    ):
        rows = calshift.resample_label_shift(y, rng=0, **asked)
        assert rows.dtype.kind == "i"
        assert len(set(rows.tolist())) == len(rows)
        assert set(rows.tolist()) <= set(range(17))
        assert len(rows) == asked.get("size", len(rows))
        np.testing.assert_array_equal(rows, calshift.resample_label_shift(y, rng=0, **asked))


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_softmax_at_the_ends_of_the_range(dtype):
    top = np.finfo(dtype).max
    z = np.array([[top, -top], [-top, -top], [0, -np.inf], [top, top]], dtype)
    np.testing.assert_array_equal(calshift.softmax(z), [[1, 0], [0.5, 0.5], [1, 0], [0.5, 0.5]])


def test_softmax_makes_probabilities_of_everything():
    z = np.random.default_rng(3).normal(0, 300, (50, 7)).astype(np.float32)
    assert calshift.softmax(z).dtype == np.float32
    Predictions(calshift.softmax(z))
    np.testing.assert_allclose(
        calshift.softmax(z.T.astype(float), axis=0).T, calshift.softmax(z.astype(float))
    )
    p = simplex(5, 4, 40)
    np.testing.assert_allclose(calshift.softmax(np.log(p)), p)


# --- and whatever nobody thought of

NASTY = st.sampled_from([0.0, 5e-324, 1e-17, 0.1, 0.5, 0.5 + 1e-16, 0.9, 1 - 1e-16, 1.0])


@st.composite
def questions(draw):
    n, m = draw(st.integers(2, 8)), draw(st.integers(2, 8))
    scores = NASTY | st.floats(0, 1)
    p = draw(st.lists(scores, min_size=n, max_size=n))
    q = draw(st.lists(scores, min_size=m, max_size=m))
    y = [0, 1, *draw(st.lists(st.integers(0, 1), min_size=n - 2, max_size=n - 2))]
    frequency = st.sampled_from([0.25, 0.5, 1.0, 2.0, 3.0])
    weights = [
        None if draw(st.booleans()) else draw(st.lists(frequency, min_size=k, max_size=k))
        for k in (n, m)
    ]
    asked = {
        "weights": draw(
            st.lists(st.sampled_from([0.0, 1e-9, 0.5, 1.0, 3.0]), min_size=2, max_size=2)
        ),
        "kind": draw(st.sampled_from(["binary", "top-label", "canonical"])),
        "estimator": draw(st.sampled_from(ESTIMATORS)),
        "norm": draw(st.sampled_from([1, 1.5, 2, 3])),
    }
    if draw(st.booleans()):
        asked["kernel"] = draw(st.sampled_from(["dirichlet", "triweight"]))
        asked["bandwidth"] = draw(st.sampled_from(["auto", 1e-6, 0.01, 0.3]))
    else:
        asked["bins"] = draw(st.sampled_from(["auto", 1, 2, 3, 20, [0.5]]))
    source = Predictions(p, y, sample_weight=weights[0])
    return source, Predictions(q, sample_weight=weights[1]), asked


@settings(
    max_examples=100, derandomize=True, database=None, suppress_health_check=list(HealthCheck)
)
@given(questions())
def test_a_number_or_a_refusal(question):
    source, target, asked = question
    call = lambda: calshift.target_calibration_error(source, None, target, **asked)  # noqa: E731
    assert complaint(call, allow_refusal=True) is None
    unweighted = lambda: calshift.reliability_curve(  # noqa: E731
        source, None, target, weights=asked["weights"], kind="top-label"
    )
    assert complaint(unweighted, allow_refusal=True) is None


@pytest.mark.parametrize("scale", [1e155, 6e299])
def test_the_papers_estimator_refuses_weights_beyond_the_range_of_numbers(scale):
    p, y, q = SAMPLES["plain"]
    weights = np.array([0.5, 1.0, 1.5]) * scale
    sums = calshift.accumulate(p, y, q, edges=calshift.bin_edges(q, bins=5))
    for call in (
        lambda: calshift.target_calibration_error(p, y, q, weights=weights, estimator="paper"),
        lambda: calshift.target_calibration_error_from(sums, weights=weights, estimator="paper"),
        lambda: calshift.target_calibration_error(
            p, y, q, weights=[1e6, 1, 1], estimator="paper", norm=100
        ),
    ):
        with pytest.raises(calshift.InvalidInput, match="weights are too large for norm"):
            call()


@pytest.mark.parametrize("interval", ["influence", "bootstrap"])
@pytest.mark.parametrize("norm", [1, 2])
def test_an_interval_contains_its_estimate_at_any_level(interval, norm):
    for seed in range(12):
        rng = np.random.default_rng(seed)
        p, y = rng.dirichlet(np.ones(3), 60), rng.integers(0, 3, 60)
        found = calshift.calibration_error(
            p, y, norm=norm, interval=interval, bins=20, n_boot=20, rng=seed
        )
        for level in (0.01, 0.1, 0.5, 0.95):
            low, high = found.confidence_interval(level)
            each = found.class_intervals(level)
            assert 0 <= low <= max(found.estimate, 0) <= high
            assert (each[0] <= np.maximum(found.per_class, 0)).all()
            assert (each[1] >= np.maximum(found.per_class, 0)).all()


@pytest.mark.parametrize("stratified", [False, True])
def test_a_bootstrap_counts_rows_of_any_weight(stratified):
    p, y, _ = SAMPLES["plain"]
    heavy = calshift.Predictions(p, y, sample_weight=np.full(len(p), 1e95))
    found = calshift.calibration_error(
        heavy, interval="bootstrap", n_boot=20, rng=0, stratified=stratified
    )
    low, high = found.confidence_interval()
    assert 0 <= low <= high <= 1


def test_a_weight_that_is_negligible_beside_another_is_zero():
    p, y, q = SAMPLES["plain"]
    for kind in ("classwise", "top-label"):
        tiny, none = (
            calshift.target_calibration_error(
                p, y, q, weights=[2.0, 1.0, least], kind=kind, norm=1, bins=4, check=False
            )
            for least in (1e-300, 0.0)
        )
        assert tiny.confidence_interval() == none.confidence_interval()


def test_a_level_that_no_draws_reach_is_refused():
    p, y, q = SAMPLES["plain"]
    with pytest.raises(calshift.InvalidInput, match="n_boot must be at least"):
        calshift.check_label_shift(p, y, q, level=5e-324)
    with pytest.raises(calshift.InvalidInput, match=r"n_boot .* at most 1,000,000"):
        calshift.calibration_error(p, y, interval="bootstrap", n_boot=np.uint64(2**63))
