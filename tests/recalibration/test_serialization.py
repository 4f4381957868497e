"""Recalibrators as JSON and among scikit-learn's estimators, and the answer of recalibrate."""

from __future__ import annotations

import copy
import functools
import json
import pickle
import subprocess
import sys

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import Pipeline
from sklearn.utils import get_tags
from sklearn.utils.validation import check_is_fitted

import calshift
from calshift import (
    BiasCorrectedTemperatureScaling,
    Chain,
    EnsembleTemperatureScaling,
    InvalidInput,
    IsotonicScaling,
    LabelFreeTemperatureScaling,
    Predictions,
    PriorCorrection,
    Recalibrator,
    ShiftScaling,
    TemperatureScaling,
    VectorScaling,
)

pytestmark = pytest.mark.filterwarnings("ignore::calshift.UnreliableWeights")

NAMES = ("cat", "dog", "eel")
LEARNED = {
    TemperatureScaling: ["temperature_", "floors_"],
    BiasCorrectedTemperatureScaling: ["temperature_", "biases_", "floors_"],
    VectorScaling: ["slopes_", "biases_", "floors_"],
    IsotonicScaling: ["scores_", "frequencies_"],
    EnsembleTemperatureScaling: ["temperature_", "shares_"],
    LabelFreeTemperatureScaling: ["temperature_", "class_weights_"],
    PriorCorrection: ["class_weights_"],
    ShiftScaling: ["slopes_", "biases_", "class_weights_", "floors_"],
}
KINDS = tuple(LEARNED)
every = pytest.mark.parametrize("kind", KINDS)


def both(*steps):
    return Chain(list(steps) or [TemperatureScaling(), PriorCorrection()])


def nested():
    return both(Chain([VectorScaling()]), EnsembleTemperatureScaling())


def drawn(n=400, m=300, K=3, seed=0):
    simulation = calshift.simulate.GaussianSimulation(K, dimensions=3, imbalance=4, temperature=0.5)
    p, y = simulation.source(n, rng=[0, seed])
    return p, y, simulation.target(m, rng=[1, seed])[0]


def saved(fitted):
    """What a file would hold; nothing in it is NaN or infinite."""
    return json.loads(json.dumps(fitted.to_dict(), allow_nan=False))


@functools.cache
def text_of(kind):
    return json.dumps(saved(kind().fit(*drawn())))


def saved_of(kind):
    return json.loads(text_of(kind))


# --- JSON -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("made", [*KINDS, both, nested])
@pytest.mark.parametrize("names", [None, NAMES])
def test_json_and_back_mends_the_same(made, names):
    p, y, q = drawn()
    fitted = made().fit(Predictions(p, y, classes=names), None, Predictions(q, classes=names))
    for reader in (Recalibrator, type(fitted)):
        back = reader.from_dict(saved(fitted))
        assert type(back) is type(fitted)
        assert (back.n_classes_, back.classes_) == (3, names)
        assert back.keeps_ranking == fitted.keeps_ranking
        np.testing.assert_allclose(back.transform(q), fitted.transform(q), rtol=0, atol=1e-12)
        assert saved(back) == saved(fitted)
        assert not np.allclose(back.transform(q), q, atol=1e-3)
        np.testing.assert_array_equal(back.fit(p, y, q).transform(q), fitted.transform(q))


@pytest.mark.parametrize("made", [*KINDS, both])
def test_scores_of_two_classes_and_a_lacking_class_survive_json(made):
    (p, y, q), (p3, y3, q3) = drawn(K=2), drawn()
    lacking = p3[y3 != 1], y3[y3 != 1], q3
    for sample in ((p[:, 1], y, q[:, 1]), lacking):
        fitted = made().fit(*sample)
        mended = Recalibrator.from_dict(saved(fitted)).transform(sample[2])
        np.testing.assert_allclose(mended, fitted.transform(sample[2]), rtol=0, atol=1e-12)


@pytest.mark.parametrize("weights", ["em", [1, 2, 0.5], (1, 2, 0.5), np.array([1, 2, 0.5])])
def test_the_constructors_weights_survive_json(weights):
    p, y, q = drawn()
    fitted = TemperatureScaling(weights=weights).fit(p, y, q)
    back = Recalibrator.from_dict(saved(fitted))
    np.testing.assert_allclose(back.fit(p, y, q).transform(q), fitted.transform(q), atol=1e-12)


@pytest.mark.parametrize("bad", [None, [], "saved", 5, [{}], {}])
def test_what_is_no_saved_recalibrator_is_refused(bad):
    with pytest.raises(InvalidInput, match="to_dict"):
        Recalibrator.from_dict(bad)


WRONG = {
    "format": ("pickle", None),
    "version": (2, "1", None),
    "name": ("Magic", "Recalibrator", None),
    "n_classes": (1, "3", 3.0, None),
    "classes": (["a", "b"], ["a", "b", "c", "d"]),
    "learned": ([1, 2], {}, {"magic_": 1}, None),
    "parameters": ([], {"magic": 1}, None),
}
WORDS = {"name": "reads version 1 of", "classes": "3 classes", "learned": "learned"}


@every
@pytest.mark.parametrize("field", WRONG)
def test_a_wrong_or_missing_field_is_refused(kind, field):
    for value in WRONG[field]:
        with pytest.raises(InvalidInput, match=WORDS.get(field, field)):
            Recalibrator.from_dict(saved_of(kind) | {field: value})
    if field != "classes":
        left = saved_of(kind)
        del left[field]
        with pytest.raises(InvalidInput, match=WORDS.get(field, field)):
            Recalibrator.from_dict(left)


@every
def test_missing_or_further_learned_values_are_refused(kind):
    whole = saved_of(kind)["learned"]
    assert list(whole) == LEARNED[kind]
    fewer = [{k: v for k, v in whole.items() if k != name} for name in whole]
    for learned in (*fewer, whole | {"magic_": 1.0}):
        with pytest.raises(InvalidInput, match=r"must have .* in learned"):
            Recalibrator.from_dict(saved_of(kind) | {"learned": learned})


CASES = [
    (kind, name)
    for kind in KINDS
    for name in LEARNED[kind]
    if (kind, name) != (LabelFreeTemperatureScaling, "class_weights_")
]


@pytest.mark.parametrize(("kind", "name"), CASES)
@pytest.mark.parametrize("bad", [None, "many", {}, float("nan"), [1.0, 2.0], [1.0] * 4, [None] * 3])
def test_a_wrong_value_in_place_of_what_was_learned_is_refused(kind, name, bad):
    wrong = saved_of(kind)
    wrong["learned"][name] = bad
    with pytest.raises(InvalidInput, match="saved"):
        Recalibrator.from_dict(wrong)


@pytest.mark.parametrize(("kind", "name"), [c for c in CASES if c[1] != "temperature_"])
@pytest.mark.parametrize("bad", [None, "many", float("nan")])
def test_a_wrong_number_among_those_learned_is_refused(kind, name, bad):
    wrong = saved_of(kind)
    wrong["learned"][name][1] = bad
    with pytest.raises(InvalidInput, match="saved"):
        Recalibrator.from_dict(wrong)


def test_a_recalibrator_reads_only_its_own_kind():
    vector = saved_of(VectorScaling)
    with pytest.raises(InvalidInput, match="VectorScaling, not a TemperatureScaling"):
        TemperatureScaling.from_dict(vector)


@pytest.mark.parametrize("made", [*KINDS, both])
def test_what_is_not_fitted_cannot_be_saved_or_used(made):
    p, _, _ = drawn()
    with pytest.raises(InvalidInput, match="not fitted"):
        made().to_dict()
    with pytest.raises(InvalidInput, match="not fitted"):
        made().transform(p)


@pytest.mark.parametrize("made", [*KINDS, both])
def test_other_classes_than_those_fitted_are_refused(made):
    p, y, q = drawn()
    fitted = made().fit(Predictions(p, y, classes=NAMES), None, q)
    with pytest.raises(InvalidInput, match="3 classes"):
        fitted.transform(drawn(K=4)[0])
    with pytest.raises(InvalidInput, match="3 classes"):
        fitted.transform(q[:, 0])
    for other in (NAMES[::-1], ("cat", "dog", "fly")):
        with pytest.raises(InvalidInput, match="same classes in the same order"):
            fitted.transform(Predictions(q, classes=other))
    same = fitted.transform(Predictions(q, classes=NAMES)).p
    np.testing.assert_array_equal(fitted.transform(q), same)  # without names none can differ


# --- scikit-learn ---------------------------------------------------------------------------------


@pytest.mark.parametrize("made", [*KINDS, both])
def test_scikit_learn_clones_and_asks_for_parameters(made):
    p, y, q = drawn()
    fitted = made().fit(p, y, q)
    check_is_fitted(fitted)
    other = clone(fitted)
    assert type(other) is type(fitted)
    with pytest.raises(NotFittedError):
        check_is_fitted(other)
    np.testing.assert_array_equal(other.fit(p, y, q).transform(q), fitted.transform(q))
    assert get_tags(fitted).target_tags.required
    if made is not both:
        w = np.array([1, 2, 0.5])
        assert made().get_params() == {"weights": None}
        assert made().set_params(weights="em").get_params() == {"weights": "em"}
        np.testing.assert_array_equal(clone(made(weights=w)).weights, w)
    with pytest.raises(InvalidInput, match="magic"):
        made().set_params(magic=1)


def test_a_pipeline_of_two_recalibrators():
    p, y, q = drawn()
    line = Pipeline([("one", VectorScaling()), ("two", TemperatureScaling())]).fit(p, y)
    first = VectorScaling().fit(p, y)
    last = TemperatureScaling().fit(first.transform(p), y)
    np.testing.assert_allclose(line.transform(q), last.transform(first.transform(q)), atol=1e-12)
    line.set_params(two__weights=[1, 2, 3]).fit(p, y)
    assert line.named_steps["two"].weights == [1, 2, 3]
    assert "VectorScaling" in repr(line)


def test_neither_importing_nor_fitting_needs_scikit_learn():
    code = """
import sys
import calshift
p, y = calshift.simulate.GaussianSimulation(3).source(200, rng=0)
for kind in (calshift.TemperatureScaling, calshift.IsotonicScaling, calshift.ShiftScaling):
    kind().fit(p, y).to_dict()
assert "sklearn" not in sys.modules
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


# --- recalibrate ----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def result():
    return calshift.recalibrate(*drawn(1500, 1200))


def test_the_result_is_the_recalibrator_of_all_rows_and_the_error_before(result):
    p, y, q = drawn(1500, 1200)
    fitted = ShiftScaling().fit(p, y, q)
    assert isinstance(result.recalibrator, ShiftScaling)
    np.testing.assert_array_equal(result.probabilities, result.recalibrator.transform(q))
    np.testing.assert_allclose(result.probabilities, fitted.transform(q), atol=1e-12)
    before = calshift.target_calibration_error(p, y, q, rng=0)
    assert result.before.estimate == before.estimate
    assert result.before.confidence_interval() == before.confidence_interval()
    assert result.before.assumption == before.assumption
    low, high = result.after.confidence_interval()
    assert 0 <= low < high < before.confidence_interval()[1]
    assert result.after.root < result.before.root / 3  # the model was overconfident
    assert result.change.root == result.after.root - before.root
    assert result.folds == 5


def test_the_error_after_is_that_of_rows_not_fitted_to(result):
    p, y, q = drawn(1500, 1200)
    own = result.recalibrator
    naive = calshift.target_calibration_error(own.transform(p), y, own.transform(q), rng=0)
    assert result.after.estimate != naive.estimate
    assert abs(result.after.estimate - naive.estimate) < 3 * result.after.standard_error


def test_one_seed_gives_one_answer(result):
    again = calshift.recalibrate(*drawn(1500, 1200), rng=0)
    assert again.after.estimate == result.after.estimate
    np.testing.assert_array_equal(again.probabilities, result.probabilities)
    other = calshift.recalibrate(*drawn(1500, 1200), rng=1)
    assert other.after.estimate != result.after.estimate
    np.testing.assert_array_equal(other.probabilities, result.probabilities)


def test_the_result_pickles_and_copies(result):
    q = drawn(1500, 1200)[2]
    for other in (pickle.loads(pickle.dumps(result)), copy.deepcopy(result)):
        np.testing.assert_array_equal(other.probabilities, result.probabilities)
        np.testing.assert_array_equal(other.recalibrator.transform(q), result.probabilities)
        assert other.after.estimate == result.after.estimate
        assert other.to_dict() == result.to_dict()
        assert str(other) == str(result)
    json.dumps(result.to_dict(), allow_nan=False)


METHODS = {
    "shift": ShiftScaling(),
    "temperature": TemperatureScaling(),
    "bcts": BiasCorrectedTemperatureScaling(),
    "vector": VectorScaling(),
    "isotonic": IsotonicScaling(),
    "ensemble": EnsembleTemperatureScaling(),
    "label-free": LabelFreeTemperatureScaling(),
    "prior": PriorCorrection(),
    "temperature+prior": both(),
    "bcts+prior": both(BiasCorrectedTemperatureScaling(), PriorCorrection()),
    "vector+prior": both(VectorScaling(), PriorCorrection()),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", METHODS)
def test_methods_by_name_and_by_object(name):
    (p, y, q), made = drawn(), METHODS[name]
    one, two = (calshift.recalibrate(p, y, q, method=m, check=False) for m in (name, made))
    with pytest.raises(NotFittedError):
        check_is_fitted(made)  # what was given stays as it was
    assert type(one.requested) is type(made)
    np.testing.assert_array_equal(one.probabilities, two.probabilities)
    np.testing.assert_array_equal(one.requested.transform(q), clone(made).fit(p, y, q).transform(q))
    assert one.after.estimate == two.after.estimate
    assert one.before.assumption is None
    json.dumps(one.to_dict(), allow_nan=False)


def test_given_weights_serve_the_recalibrator_and_both_errors():
    p, y, q = drawn()
    w = np.array([1.6, 0.9, 0.5])
    w /= w[y].mean()
    found = calshift.recalibrate(p, y, q, method="prior", weights=w, check=False)
    tilted = q * w
    np.testing.assert_allclose(found.probabilities, tilted / tilted.sum(axis=1, keepdims=True))
    np.testing.assert_allclose(found.before.class_weights.values, w)
    np.testing.assert_allclose(found.after.class_weights.values, w)


REFUSED = {
    "method": ("magic", None, ShiftScaling),
    "folds": (1, 0, 2.5, "5", None),
    "norm": (3, 0, "two"),
    "kind": ("canonical", "magic"),
    "weights": ("magic", [1, 2]),
    "rng": ("seed", -1),
}


@pytest.mark.parametrize("option", REFUSED)
def test_wrong_options_are_refused(option):
    for value in REFUSED[option]:
        with pytest.raises(InvalidInput, match=option):
            calshift.recalibrate(*drawn(), **{option: value})


def test_too_few_source_rows_are_refused():
    p, y, q = drawn()
    first = [int(np.flatnonzero(y == c)[0]) for c in range(2)]
    for rows in (first, np.flatnonzero(y == 0)[:50], [*np.flatnonzero(y == 0)[:50], first[1]]):
        with pytest.raises(InvalidInput, match="y_source"):
            calshift.recalibrate(p[rows], y[rows], q)


@pytest.mark.parametrize(("kind", "name"), CASES)
@pytest.mark.parametrize("bad", [-1e308, 1e308, 5e-324, 10**400, True])
def test_numbers_out_of_range_are_refused_or_harmless(kind, name, bad):
    """Each number in turn; what is read gives probabilities."""
    p = drawn()[2]
    whole = saved_of(kind)["learned"][name]
    for place in range(len(whole) if isinstance(whole, list) else 1):
        tampered = saved_of(kind)
        if not isinstance(whole, list):
            tampered["learned"][name] = bad
        elif isinstance(whole[place], list):
            tampered["learned"][name][place][0] = bad
        else:
            tampered["learned"][name][place] = bad
        try:
            found = Recalibrator.from_dict(tampered).transform(p)
        except InvalidInput:
            continue
        assert np.isfinite(found).all()
        np.testing.assert_allclose(found.sum(axis=1), 1, rtol=1e-9)


@pytest.mark.parametrize(("depth", "good"), [(5, True), (30, False), (400, False)])
def test_chains_within_chains_have_a_limit(depth, good):
    outer = saved_of(both)
    inner = outer
    for _ in range(depth):
        inner["learned"]["steps_"] = [saved_of(both)]
        inner = inner["learned"]["steps_"][0]
    if good:
        assert np.isfinite(Recalibrator.from_dict(outer).transform(drawn()[2])).all()
        return
    with pytest.raises(InvalidInput, match="at most 10 deep"):
        Recalibrator.from_dict(outer)
