"""What every recalibrator keeps to, whatever the numbers."""

from __future__ import annotations

import numpy as np
import pytest

import calshift
from calshift import (
    BiasCorrectedTemperatureScaling,
    Chain,
    EnsembleTemperatureScaling,
    IsotonicScaling,
    LabelFreeTemperatureScaling,
    Predictions,
    PriorCorrection,
    ShiftScaling,
    TemperatureScaling,
    VectorScaling,
)

pytestmark = pytest.mark.filterwarnings("ignore::calshift.UnreliableWeights")

MAKERS = {
    "temperature": TemperatureScaling,
    "bcts": BiasCorrectedTemperatureScaling,
    "vector": VectorScaling,
    "isotonic": IsotonicScaling,
    "ensemble": EnsembleTemperatureScaling,
    "prior": PriorCorrection,
    "label-free": LabelFreeTemperatureScaling,
    "shift": ShiftScaling,
    "chain": lambda: Chain([VectorScaling(), PriorCorrection()]),
    "ranked chain": lambda: Chain([EnsembleTemperatureScaling(), TemperatureScaling()]),
}
SCALINGS = ("temperature", "bcts", "vector", "isotonic", "ensemble")  # need no target
ZERO_KEEPERS = ("isotonic", "prior", "label-free")
KINDS = ("1-D", 2, 3, 10)
every = pytest.mark.parametrize("name", MAKERS)
kinds = pytest.mark.parametrize("K", KINDS)
seeds = pytest.mark.parametrize("seed", [1, 2])


def drawn(K, seed=0, n=300, m=250):
    """(p_source, y_source, p_target, w) of an overconfident model, with any weights w."""
    classes = 2 if K == "1-D" else K
    simulation = calshift.simulate.GaussianSimulation(
        classes, dimensions=3, imbalance=4, temperature=0.5, seed=seed % 7
    )
    p, y = simulation.source(n, rng=[0, seed])
    q, _ = simulation.target(m, rng=[1, seed])
    w = np.random.default_rng(seed).uniform(0.4, 2.0, classes)
    if K == "1-D":
        p, q = (np.round(a[:, 1] * 2**20) / 2**20 for a in (p, q))  # so that 1 - p is exact
    return p, y, q, w / w[y].mean()


def matrix(p):
    return np.stack([1 - p, p], axis=1) if p.ndim == 1 else p


def uneven(y, seed):
    """Sample weights under which no two blocks of an isotonic regression have equal frequencies."""
    return np.random.default_rng(seed).uniform(1, 2, len(y))


def with_zeros(p):
    """The same with exact zeros in place of what is small; some labels will have one."""
    p = np.where(p < 0.03, 0.0, p)
    return np.where(p > 0.97, 1.0, p) if p.ndim == 1 else p / p.sum(axis=1, keepdims=True)


def fits(name, p, y, q, w):
    """A fit with the target, one with both, and where it can be one with neither."""
    yield MAKERS[name]().fit(p, y, q)
    yield MAKERS[name]().fit(p, y, q, weights=w)
    if name in SCALINGS:
        yield MAKERS[name]().fit(p, y)


# --- transform ------------------------------------------------------------------------------------


@every
@kinds
@seeds
def test_rows_stay_on_the_simplex_and_keep_their_shape(name, K, seed):
    p, y, q, w = drawn(K, seed, n=120, m=100)
    if seed % 2:
        p, q = with_zeros(p), with_zeros(q)
    for fitted in fits(name, p, y, q, w):
        mended = fitted.transform(q)
        assert (mended.shape, mended.dtype) == (q.shape, q.dtype)
        assert np.isfinite(mended).all()
        assert mended.min() >= 0
        assert mended.max() <= 1
        np.testing.assert_allclose(matrix(mended).sum(axis=1), 1, rtol=0, atol=1e-9)


@every
@kinds
def test_single_precision_stays_single_precision(name, K):
    p, y, q, w = drawn(K)
    for fitted in fits(name, p.astype("f4"), y, q.astype("f4"), w):
        mended = fitted.transform(q.astype("f4"))
        assert (mended.shape, mended.dtype) == (q.shape, np.float32)
        np.testing.assert_allclose(matrix(mended).sum(axis=1), 1, rtol=0, atol=1e-6)
        # the inputs differ by 6e-8, and slopes and weights stretch this by less than a hundred
        np.testing.assert_allclose(mended, fitted.transform(q), atol=1e-5)


@every
@kinds
def test_a_row_is_mended_by_itself(name, K):
    p, y, q, _ = drawn(K, 1)
    fitted = MAKERS[name]().fit(p, y, q)
    batch = fitted.transform(q)
    order = np.random.default_rng(0).permutation(len(q))
    np.testing.assert_allclose(fitted.transform(q[order]), batch[order], rtol=0, atol=1e-12)
    for row in range(20):
        np.testing.assert_allclose(fitted.transform(q[row : row + 1])[0], batch[row], atol=1e-12)


@every
@kinds
def test_exact_zeros_stay_finite_and_zero_only_where_no_floor_is_fitted(name, K):
    p, y, q, _ = drawn(K, 2)
    for source in (p, with_zeros(p)):
        mended = MAKERS[name]().fit(source, y, q).transform(with_zeros(q))
        assert np.isfinite(mended).all()
        zero = matrix(with_zeros(q)) == 0
        assert zero.any()
        if name in ZERO_KEEPERS:
            assert (matrix(mended)[zero] == 0).all()
        elif name not in ("ensemble", "ranked chain"):  # whose uniform share may be 0
            assert (matrix(mended)[zero] > 0).all()


@every
@kinds
def test_sure_rows_stay_finite(name, K):
    p, y, q, _ = drawn(K, 3)
    sure = np.array([0.0, 1.0, 1e-300]) if q.ndim == 1 else np.eye(q.shape[1])
    if q.ndim == 2:
        sure[-1] = [1.0] + (q.shape[1] - 1) * [1e-300]
    mended = MAKERS[name]().fit(p, y, q).transform(sure)
    assert np.isfinite(mended).all()
    np.testing.assert_allclose(matrix(mended).sum(axis=1), 1, rtol=0, atol=1e-9)


@every
@kinds
@seeds
def test_a_recalibrator_that_keeps_the_ranking_does(name, K, seed):
    p, y, q, w = drawn(K, seed, n=120, m=100)
    order = np.argsort(matrix(q), axis=1)
    moved = False
    for fitted in fits(name, p, y, q, w):
        mended = np.take_along_axis(matrix(fitted.transform(q)), order, axis=1)
        moved |= not np.allclose(mended, np.take_along_axis(matrix(q), order, axis=1), atol=1e-4)
        assert not fitted.keeps_ranking or (np.diff(mended, axis=1) >= 0).all()
    assert moved


def test_which_recalibrators_keep_the_ranking():
    kept = {name for name, made in MAKERS.items() if made().keeps_ranking}
    assert kept == {"temperature", "ensemble", "label-free", "ranked chain"}
    assert not Chain([TemperatureScaling(), PriorCorrection()]).keeps_ranking


@every
def test_predictions_come_back_with_labels_names_and_weights(name):
    p, y, q, _ = drawn(3)
    names, z = ("cat", "dog", "eel"), np.arange(len(q)) % 3
    target = Predictions(q, z, classes=names, sample_weight=np.arange(1, len(q) + 1))
    fitted = MAKERS[name]().fit(Predictions(p, y, classes=names), None, target)
    mended = fitted.transform(target)
    assert isinstance(mended, Predictions)
    assert mended.classes == names
    np.testing.assert_array_equal(mended.y, z)
    np.testing.assert_array_equal(mended.sample_weight, target.sample_weight)
    np.testing.assert_array_equal(mended.p, fitted.transform(q))
    bare = fitted.transform(Predictions(q))
    assert bare.y is bare.classes is bare.sample_weight is None


# --- fit ------------------------------------------------------------------------------------------


@every
@kinds
def test_fit_returns_itself_and_fit_transform_mends_the_source(name, K):
    p, y, q, w = drawn(K)
    made = MAKERS[name]()
    assert made.fit(p, y, q, weights=w) is made
    np.testing.assert_array_equal(
        MAKERS[name]().fit_transform(p, y, q, weights=w), made.transform(p)
    )


@every
def test_a_second_fit_forgets_the_first(name):
    (p, y, q, _), (p2, y2, q2, _) = drawn(3, 0), drawn(3, 1)
    twice = MAKERS[name]().fit(p2, y2, q2).fit(p, y, q)
    once = MAKERS[name]().fit(p, y, q)
    np.testing.assert_array_equal(twice.transform(q), once.transform(q))
    assert not np.allclose(MAKERS[name]().fit(p2, y2, q2).transform(q), once.transform(q))


@every
@kinds
def test_fit_and_transform_leave_their_inputs_alone(name, K):
    given = drawn(K)
    kept = [part.copy() for part in given]
    p, y, q, w = given
    for fitted in fits(name, p, y, q, w):
        fitted.transform(p)
        fitted.transform(q)
    for part, before in zip(given, kept, strict=True):
        assert part.flags.writeable
        np.testing.assert_array_equal(part, before)


@every
@kinds
@seeds
def test_order_of_the_fitted_rows_does_not_matter(name, K, seed):
    p, y, q, w = drawn(K, seed)
    rng = np.random.default_rng(seed)
    a, b = rng.permutation(len(p)), rng.permutation(len(q))
    f = uneven(y, seed)
    source = Predictions(p, y, sample_weight=f)
    mixed = Predictions(p[a], y[a], sample_weight=f[a])
    pairs = zip(fits(name, source, None, q, w), fits(name, mixed, None, q[b], w), strict=True)
    for one, other in pairs:
        np.testing.assert_allclose(other.transform(q), one.transform(q), atol=1e-6)


@every
@kinds
@seeds
def test_names_of_classes_do_not_matter(name, K, seed):
    p, y, q, w = drawn(K, seed)
    turn = np.random.default_rng(seed).permutation(len(w)) if K != "1-D" else np.array([1, 0])
    renamed = np.argsort(turn)[y]  # the class formerly called turn[k] is now called k
    p2, q2 = (1 - p, 1 - q) if K == "1-D" else (p[:, turn], q[:, turn])
    f = uneven(y, seed)
    source, turned = Predictions(p, y, sample_weight=f), Predictions(p2, renamed, sample_weight=f)
    pairs = zip(fits(name, source, None, q, w), fits(name, turned, None, q2, w[turn]), strict=True)
    for one, other in pairs:
        np.testing.assert_allclose(
            matrix(other.transform(q2)), matrix(one.transform(q))[:, turn], atol=1e-6
        )


@every
@kinds
@seeds
def test_whole_sample_weights_are_repetition_and_zero_is_removal(name, K, seed):
    p, y, q, w = drawn(K, seed)
    rng, f = np.random.default_rng(seed), uneven(y, seed)
    a, b = rng.integers(0, 4, len(p)), rng.integers(0, 4, len(q))
    source, target = Predictions(p, y, sample_weight=a * f), Predictions(q, sample_weight=b)
    p2, y2, q2 = np.repeat(p, a, axis=0), np.repeat(y, a), np.repeat(q, b, axis=0)
    repeated = Predictions(p2, y2, sample_weight=np.repeat(f, a))
    pairs = zip(fits(name, source, None, target, w), fits(name, repeated, None, q2, w), strict=True)
    for one, other in pairs:
        np.testing.assert_allclose(other.transform(q), one.transform(q), atol=1e-6)


@pytest.mark.parametrize("name", [*SCALINGS, "shift"])
@kinds
def test_weights_of_one_are_no_weights(name, K):
    p, y, q, w = drawn(K)
    plain = MAKERS[name]().fit(p, y).transform(q)
    ones = MAKERS[name]().fit(p, y, weights=np.ones(len(w))).transform(q)
    np.testing.assert_allclose(ones, plain, rtol=0, atol=1e-9)
    assert not np.allclose(MAKERS[name]().fit(p, y, weights=w).transform(q), plain, atol=1e-4)


@every
@kinds
def test_scale_of_the_weights_does_not_matter(name, K):
    p, y, q, w = drawn(K)
    source = Predictions(p, y, sample_weight=uneven(y, 0))
    one = MAKERS[name]().fit(source, None, q, weights=w).transform(q)
    for scale in (3, 0.01):
        scaled = MAKERS[name]().fit(source, None, q, weights=scale * w).transform(q)
        np.testing.assert_allclose(scaled, one, rtol=0, atol=1e-9)


@every
def test_weights_of_the_constructor_count_and_those_of_fit_come_first(name):
    p, y, q, w = drawn(3)
    made = MAKERS[name]()
    holder = made.steps[-1] if isinstance(made, Chain) else made
    with_w = MAKERS[name]().fit(p, y, q, weights=w).transform(q)
    holder.set_params(weights=w)
    np.testing.assert_array_equal(made.fit(p, y, q).transform(q), with_w)
    holder.set_params(weights=[5, 1, 0.2])
    np.testing.assert_array_equal(made.fit(p, y, q, weights=w).transform(q), with_w)
    assert not np.allclose(made.fit(p, y, q).transform(q), with_w, atol=1e-3)


@every
@pytest.mark.parametrize("K", [3, 10])
def test_a_class_that_the_source_lacks_stays_possible(name, K):
    p, y, q, w = drawn(K, 4)
    p, y = p[y != 1], y[y != 1]
    for fitted in fits(name, p, y, q, w):
        for rows in (q, p):
            mended = fitted.transform(rows)
            assert np.isfinite(mended).all()
            assert (mended[rows[:, 1] > 0, 1] > 0).all()
            np.testing.assert_allclose(mended.sum(axis=1), 1, rtol=0, atol=1e-9)


# --- Bayes' rule ----------------------------------------------------------------------------------


@kinds
def test_prior_correction_is_bayes_rule(K):
    p, y, q, w = drawn(K)
    mended = matrix(PriorCorrection().fit(p, y, weights=w).transform(q))
    tilted = matrix(q) * w
    np.testing.assert_allclose(mended, tilted / tilted.sum(axis=1, keepdims=True), atol=1e-12)
    same = PriorCorrection().fit(p, y, weights=np.ones(len(w))).transform(q)
    np.testing.assert_allclose(same, q, rtol=0, atol=1e-15)


def test_a_weight_of_zero_removes_its_class_unless_nothing_else_is_there():
    p, y, q, _ = drawn(3)
    q[0], q[1] = [0, 1, 0], [0.25, 0.75, 0]
    mended = PriorCorrection().fit(p, y, weights=[2, 0, 1]).transform(q)
    np.testing.assert_array_equal(mended[0], q[0])
    np.testing.assert_array_equal(mended[1], [1, 0, 0])
    assert (mended[1:, 1] == 0).all()
    np.testing.assert_allclose(mended[2:, 0], 2 * q[2:, 0] / (2 * q[2:, 0] + q[2:, 2]))


def test_a_weight_of_zero_takes_the_rows_of_its_class_from_the_fit():
    p, y, q, _ = drawn(3)
    for name in ("temperature", "ensemble"):
        zero = MAKERS[name]().fit(p, y, weights=[1, 0, 1]).transform(q)
        without = MAKERS[name]().fit(p[y != 1], y[y != 1]).transform(q)
        np.testing.assert_allclose(zero, without, atol=1e-9)


@pytest.mark.parametrize("name", ["prior", "label-free", "chain"])
def test_what_needs_a_target_says_so(name):
    p, y, *_ = drawn(3)
    with pytest.raises(calshift.InvalidInput, match="p_target"):
        MAKERS[name]().fit(p, y)


def test_a_method_of_weights_needs_a_target():
    p, y, *_ = drawn(3)
    with pytest.raises(calshift.InvalidInput, match="needs a p_target"):
        TemperatureScaling().fit(p, y, weights="em")


@pytest.mark.parametrize("steps", [[], None, TemperatureScaling(), ["temperature"], [Chain]])
def test_a_chain_of_nothing_or_of_other_things_is_refused(steps):
    p, y, q, _ = drawn(3)
    with pytest.raises(calshift.InvalidInput, match="steps"):
        Chain(steps).fit(p, y, q)


def test_a_chain_is_its_steps_in_turn():
    p, y, q, _ = drawn(3)
    first = VectorScaling().fit(p, y)
    last = PriorCorrection().fit(first.transform(p), y, first.transform(q))
    chain = Chain([VectorScaling(), PriorCorrection()]).fit(p, y, q)
    np.testing.assert_allclose(chain.transform(q), last.transform(first.transform(q)), atol=1e-12)
    nested = Chain([Chain([VectorScaling()]), Chain([PriorCorrection()])]).fit(p, y, q)
    np.testing.assert_array_equal(nested.transform(q), chain.transform(q))
    assert not hasattr(chain.steps[0], "slopes_")  # what was given stays unfitted
