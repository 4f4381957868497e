"""Cases in which a recalibrator went wrong once, or would be easy to get wrong."""

from __future__ import annotations

import json
import pickle
import warnings

import numpy as np
import pytest
from scipy.optimize import minimize_scalar

import calshift
from calshift import InvalidInput, Predictions, Recalibrator
from calshift.recalibration import RECALIBRATORS, make_recalibrator
from calshift.simulate import GaussianSimulation

pytestmark = pytest.mark.filterwarnings("ignore::calshift.UnreliableWeights")
MODEL = GaussianSimulation(3, dimensions=3, imbalance=4)
P, Y = MODEL.source(300, rng=0)
Q, _ = MODEL.target(250, rng=1)


def fitted(name: str) -> Recalibrator:
    return make_recalibrator(name).fit(P, Y, Q)


@pytest.mark.parametrize("names", [[2, 0, 1], [5, 7, 9], ["10", "20", "30"], [False, True, 2]])
@pytest.mark.parametrize("name", ["temperature", "vector+prior", "shift"])
def test_labels_stay_whatever_the_classes_are_called(name, names):
    source = Predictions(P, [names[c] for c in Y], classes=names)
    target = Predictions(Q, classes=names)
    found = make_recalibrator(name).fit(source, None, target).transform(source)
    np.testing.assert_array_equal(found.y, Y)
    assert found.classes == tuple(names)
    mended = calshift.recalibrate(source, None, target, method=name, check=False)
    assert mended.after.n_source == 300


@pytest.mark.parametrize("sharpness", [0.3, 0.1])
def test_the_temperature_of_a_very_sharp_model_is_the_likelihoods(sharpness):
    p, y = GaussianSimulation(10, temperature=sharpness).source(3000, rng=10)
    log_p = np.log(p)  # none is 0

    def loss(log_slope: float) -> float:
        z = np.exp(log_slope) * log_p
        top = z.max(axis=1, keepdims=True)
        return float((np.log(np.exp(z - top).sum(axis=1)) + top[:, 0] - z[range(3000), y]).mean())

    best = np.exp(-minimize_scalar(loss, bounds=(-5, 2), method="bounded").x)
    found = calshift.TemperatureScaling().fit(p, y).temperature_
    assert found == pytest.approx(best, rel=2e-3)  # a normal prior, N(1, 10^2), on the slope


def test_one_label_of_probability_zero_does_not_ruin_a_fit():
    p = P.copy()
    p[0] = np.where(np.arange(3) == Y[0], 0.0, 0.5)
    with_zero = calshift.TemperatureScaling().fit(p, Y).temperature_
    assert with_zero < 3 * calshift.TemperatureScaling().fit(P, Y).temperature_


def test_equal_neighbours_of_an_isotonic_fit_join_whatever_the_rounding():
    score, y = np.linspace(0.1, 0.9, 6), [1, 1, 0, 0, 1, 0]
    one, other = (
        calshift.IsotonicScaling().fit(score, y, weights=w).transform(score)
        for w in ([0.7, 1.3], [2.1, 3.9])
    )
    np.testing.assert_allclose(one, other, rtol=1e-9)


@pytest.mark.parametrize("name", RECALIBRATORS)
def test_rows_that_sum_to_one_roughly_come_back_exact(name):
    rough = np.array([[0.3333, 0.3333, 0.3333], [0.5003, 0.3, 0.2], [0.9995, 0.0, 0.0]])
    np.testing.assert_allclose(fitted(name).transform(rough).sum(axis=1), 1, rtol=1e-12)
    lost = calshift.PriorCorrection().fit(P, Y, weights=[0, 1, 1]).transform(rough)
    np.testing.assert_allclose(lost[2], [1, 0, 0], rtol=1e-12)


def test_a_given_weight_of_a_class_that_the_source_lacks_is_used():
    found = calshift.PriorCorrection().fit(P, np.minimum(Y, 1), weights=[1, 2, 9])
    np.testing.assert_array_equal(found.class_weights_, [1, 2, 9])


def test_far_steps_of_the_joint_fit_raise_no_warning():
    model = GaussianSimulation(2, dimensions=3, imbalance=4, temperature=0.5, seed=3)
    p, y = model.source(200, rng=[0, 143])
    q, _ = model.target(150, rng=[1, 143])
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        found = calshift.ShiftScaling().fit(p, y, q)
    assert np.isfinite(found.class_weights_).all()


@pytest.mark.parametrize(
    "weights", [[np.int64(1), 2, np.float32(3)], np.array([1, 2, 3]), (1, 2, 3), "map", None]
)
def test_any_weights_of_the_constructor_can_be_saved(weights):
    made = calshift.TemperatureScaling(weights).fit(P, Y, Q)
    again = Recalibrator.from_dict(json.loads(json.dumps(made.to_dict())))
    assert again.fit(P, Y, Q).temperature_ == pytest.approx(made.temperature_)


def test_saved_class_weights_with_an_unseen_class_fit_again():
    y = np.minimum(Y, 1)
    weights = calshift.label_shift_weights(P, y, Q)
    made = calshift.TemperatureScaling(weights).fit(P, y)
    again = Recalibrator.from_dict(json.loads(json.dumps(made.to_dict())))
    assert again.fit(P, y).temperature_ == pytest.approx(made.temperature_)


def saved(name: str, **learned) -> dict:
    whole = json.loads(json.dumps(fitted(name).to_dict()))
    whole["learned"].update(learned)
    return whole


SPOILT = [
    ("temperature", "temperature_", wrong)
    for wrong in (0, -1, float("inf"), float("nan"), "1.5", [1.0], None, True)
]
SPOILT += [
    ("vector", "slopes_", wrong)
    for wrong in ([], 1.0, [[1, 1, 1]], ["1", "2", "3"], [1, 2], [1, None, 1], [1, float("nan"), 1])
]
SPOILT += [("shift", "biases_", wrong) for wrong in ([0], 0, [0, 0, "0"], [0, 0, 0, 0])]
SPOILT += [
    (name, "class_weights_", wrong)
    for name in ("prior", "label-free", "shift")
    for wrong in ([1], [1, 1, -1], [0, 0, 0], [1, 1, 1, 1], None, [], [1, 1, float("inf")])
]
SPOILT += [("ensemble", "shares_", wrong) for wrong in ([1.5, -0.5, 0], [1, 1, 1], [1], [0.5, 0.5])]
SPOILT += [
    ("isotonic", name, wrong)
    for name in ("scores_", "frequencies_")
    for wrong in (
        [[0.1, 0.2]] * 2,
        [[0.1], [0.1], [7]],
        [[0.2, 0.1]] * 3,
        [[], [], []],
        [[None]] * 3,
        5,
    )
]
SPOILT += [("vector+prior", "steps_", wrong) for wrong in ([], None, [1], {})]


@pytest.mark.parametrize(("name", "field", "wrong"), SPOILT)
def test_what_was_learned_must_be_whole(name, field, wrong):
    with pytest.raises(InvalidInput, match="saved"):
        Recalibrator.from_dict(saved(name, **{field: wrong}))


@pytest.mark.parametrize(
    ("field", "wrong"),
    [
        ("name", []),
        ("name", {"a": 1}),
        ("version", True),
        ("version", 1.5),
        ("classes", 5),
        ("classes", "abc"),
        ("classes", ["a", "b"]),
        ("classes", ["a", "a", "b"]),
        ("classes", [1, 2, 3]),
        ("n_classes", 1),
        ("n_classes", 3.0),
        ("n_classes", 4),
        ("parameters", None),
        ("parameters", {"wieghts": 1}),
        ("learned", None),
        ("learned", {}),
    ],
)
@pytest.mark.parametrize("name", ["vector", "vector+prior", "isotonic"])
def test_the_rest_must_be_whole_too(name, field, wrong):
    with pytest.raises(InvalidInput, match="saved"):
        Recalibrator.from_dict({**saved(name), field: wrong})
    short = saved(name)
    del short[field]
    with pytest.raises(InvalidInput, match="saved"):
        Recalibrator.from_dict(short)


def test_a_chain_asks_for_recalibrators():
    for steps in ([], None, [1], "shift"):
        with pytest.raises(InvalidInput, match="steps must be a list of recalibrators"):
            calshift.Chain(steps).fit(P, Y, Q)


def test_only_the_last_step_of_a_chain_may_need_the_target():
    for first in (calshift.TemperatureScaling("bbse"), calshift.LabelFreeTemperatureScaling()):
        with pytest.raises(
            InvalidInput, match="only the last step of a Chain is fitted to the target"
        ):
            calshift.Chain([first, calshift.PriorCorrection()]).fit(P, Y, Q)


def test_equal_answers_are_equal_also_after_pickling():
    one, two = (calshift.recalibrate(P, Y, Q, check=False) for _ in range(2))
    assert one == two
    assert pickle.loads(pickle.dumps(one)) == one
    assert one != calshift.recalibrate(P, Y, Q, check=False, method="temperature")
    assert calshift.Chain([calshift.ShiftScaling()]) == calshift.Chain([calshift.ShiftScaling()])
    assert calshift.ShiftScaling() != calshift.ShiftScaling("map")


def test_whole_numbers_of_numpy_seed_as_pythons_do():
    one, two, other = (calshift.recalibrate(P, Y, Q, rng=rng) for rng in (3, np.int64(3), 4))
    assert one == two
    assert one.after.estimate != other.after.estimate


def test_parts_are_fitted_from_the_start_each():
    """A fit that began where the one to all rows ended would know of the rows it is judged on."""
    found = calshift.recalibrate(P, Y, Q, folds=2, check=False)
    again = calshift.recalibrate(P, Y, Q, folds=2, check=False, method=found.requested)
    assert found.after.estimate == again.after.estimate
    assert len(pickle.dumps(found.requested)) < 2000


def test_a_notebook_shows_the_table():
    assert "before" in calshift.recalibrate(P, Y, Q, check=False)._repr_html_()


@pytest.mark.parametrize("name", ["temperature", "isotonic", "label-free", "prior"])
def test_warnings_about_weights_point_at_whoever_called_fit(name):
    with pytest.warns(calshift.UnreliableWeights) as told:
        make_recalibrator(name).fit(P, np.minimum(Y, 1), Q)
    assert {warning.filename for warning in told} == {__file__}


@pytest.mark.parametrize("target", [None, Q], ids=["source", "both"])
@pytest.mark.parametrize("scale", [1e-300, 1e155, 6e299])
@pytest.mark.parametrize("name", [name for name in RECALIBRATORS if name != "label-free"])
def test_the_scale_of_given_weights_does_not_matter(name, scale, target):
    weights = np.array([0.5, 1.0, 2.0])
    plain = make_recalibrator(name).fit(P, Y, target, weights=weights).transform(Q)
    scaled = make_recalibrator(name).fit(P, Y, target, weights=weights * scale).transform(Q)
    np.testing.assert_allclose(scaled, plain, rtol=1e-9, atol=1e-300)


@pytest.mark.parametrize("scale", [1e-300, 1e-120, 1e120, 1e308])
@pytest.mark.parametrize("name", ["prior", "shift", "label-free"])
def test_what_was_fitted_with_weights_of_any_scale_is_restored(name, scale):
    fitted = make_recalibrator(name).fit(P, Y, Q, weights=[scale] * 3)
    restored = calshift.Recalibrator.from_dict(json.loads(json.dumps(fitted.to_dict())))
    np.testing.assert_array_equal(restored.transform(Q), fitted.transform(Q))


@pytest.mark.parametrize("weight", [1e17, 1e30, 1e99])
def test_one_row_that_outweighs_all_others(weight):
    rng = np.random.default_rng(39)
    p = rng.dirichlet(np.full(5, 0.5), 300)
    y = (p.cumsum(axis=1) < rng.random((300, 1))).sum(axis=1).clip(max=4)
    q = rng.dirichlet(np.full(5, 0.5), 300)
    source = calshift.Predictions(p, y, sample_weight=np.r_[weight, np.ones(299)])
    for name in RECALIBRATORS:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", calshift.UnreliableWeights)
            made = make_recalibrator(name).fit(source, None, q, weights=np.linspace(0.8, 1.2, 5))
        assert np.isfinite(made.transform(q)).all()


def test_chains_within_chains_have_the_same_limit_as_saved_ones():
    chain = calshift.TemperatureScaling()
    for _ in range(10):
        chain = calshift.Chain([chain])
    saved = chain.fit(P, Y).to_dict()
    assert np.isfinite(calshift.Recalibrator.from_dict(saved).transform(Q)).all()
    for _ in range(1500):
        chain = calshift.Chain([chain])
        if _ in (0, 1499):
            with pytest.raises(calshift.InvalidInput, match="at most 10 deep"):
                chain.fit(P, Y)


def test_vector_scaling_of_many_classes_has_one_slope():
    rng = np.random.default_rng(0)
    p = rng.dirichlet(np.full(201, 0.1), 60)
    y = p.argmax(axis=1)
    many, few = calshift.VectorScaling().fit(p, y), calshift.VectorScaling().fit(P, Y)
    one = calshift.BiasCorrectedTemperatureScaling().fit(p, y)
    assert (len(many.slopes_), len(few.slopes_)) == (1, 3)
    np.testing.assert_array_equal(many.transform(p), one.transform(p))


@pytest.mark.filterwarnings("default::calshift.UnreliableWeights")
@pytest.mark.parametrize(("K", "sharpness"), [(10, 1), (5, 20), (8, 100)])
def test_a_joint_fit_to_an_uninformative_model_says_so(K, sharpness):
    rng = np.random.default_rng(3)
    y, p = rng.integers(0, K, 200), rng.dirichlet([sharpness] * K, 200)
    q = rng.dirichlet(sharpness * np.arange(1, K + 1), 200)
    with pytest.warns(calshift.UnreliableWeights, match="undetermined|not reliable|converge"):
        calshift.ShiftScaling().fit(p, y, q)


@pytest.mark.filterwarnings("error::calshift.UnreliableWeights")
def test_a_joint_fit_to_an_informative_model_does_not_warn():
    calshift.ShiftScaling().fit(P, Y, Q)
