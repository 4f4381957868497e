"""Answers are values: frozen, picklable, read-only, and fit to print or to write as JSON."""

from __future__ import annotations

import copy
import dataclasses
import json
import pickle
import re

import numpy as np
import pytest

import calshift
from calshift import CalibrationErrorResult, ClassWeights, InvalidInput, Predictions

pytestmark = pytest.mark.filterwarnings("ignore::calshift.UnreliableWeights")

RNG = np.random.default_rng(7)
P_SOURCE, P_TARGET = RNG.dirichlet(np.ones(3), 60), RNG.dirichlet(np.ones(3), 50)
Y_SOURCE = np.array([RNG.choice(3, p=row) for row in P_SOURCE])
WIDE_SOURCE, WIDE_TARGET = RNG.dirichlet(np.ones(120), 30), RNG.dirichlet(np.ones(120), 25)
LONG_NAMES = [f"a class with a rather long name, number {c}" for c in range(3)]


def target_error(**options):
    return calshift.target_calibration_error(P_SOURCE, Y_SOURCE, P_TARGET, **options)


def unseen_class(**options):
    return calshift.target_calibration_error(
        P_SOURCE, Y_SOURCE % 2, P_TARGET, weights=[1, 2, 3], **options
    )


def statistics():
    return calshift.accumulate(
        P_SOURCE, Y_SOURCE, P_TARGET, edges=calshift.bin_edges(P_TARGET, bins=4)
    )


def curve(**options):
    return calshift.reliability_curve(P_SOURCE, Y_SOURCE, P_TARGET, weights=[1, 1, 1], **options)


ANSWERS = {
    "labelled": lambda: calshift.calibration_error(P_SOURCE, Y_SOURCE),
    "binary": lambda: calshift.calibration_error(P_SOURCE[:, 0], Y_SOURCE == 0),
    "L1": lambda: calshift.calibration_error(P_SOURCE, Y_SOURCE, norm=1, bins=5),
    "norm 2.5": lambda: calshift.calibration_error(P_SOURCE, Y_SOURCE, norm=2.5, bins=5),
    "norm from numpy": lambda: calshift.calibration_error(P_SOURCE, Y_SOURCE, norm=np.int64(2)),
    "norm in float32": lambda: calshift.calibration_error(P_SOURCE, Y_SOURCE, norm=np.float32(1)),
    "target": lambda: target_error(weights=[0.5, 1, 1.5]),
    "top-label": lambda: target_error(weights=[1, 1, 1], kind="top-label"),
    "canonical": lambda: target_error(weights=[1, 1, 1], kind="canonical"),
    "paper": lambda: target_error(weights=[1, 1, 1], estimator="paper"),
    "kernel": lambda: target_error(weights=[1, 1, 1], kernel="triweight", bandwidth=1e-4),
    "weights that do not fit": lambda: target_error(weights=[3, 3, 3]),
    "unseen class": unseen_class,
    "unseen class, paper": lambda: unseen_class(estimator="paper"),
    "named": lambda: calshift.calibration_error(
        Predictions(P_SOURCE, Y_SOURCE, classes=LONG_NAMES)
    ),
    "many classes, most unseen": lambda: calshift.target_calibration_error(
        WIDE_SOURCE, 100 + np.arange(30) % 7, WIDE_TARGET, weights=np.full(120, 5.0)
    ),
    "from sums": lambda: calshift.target_calibration_error_from(
        statistics(), weights=[1, 1, 1], norm=1
    ),
    "curve": curve,
    "curve of a class": lambda: curve(label=np.int64(2), bins=3),
    "variance": lambda: calshift.variance_algorithm1(P_SOURCE, Y_SOURCE),
    "variance, target": lambda: calshift.variance_algorithm1(
        P_SOURCE, Y_SOURCE % 2, P_TARGET, weights=[1, 2, 3]
    ),
    "weights": lambda: calshift.weights_from_labels(Y_SOURCE, np.arange(30) % 3),
    "weights, one unseen": lambda: calshift.weights_from_labels([0, 1], [0, 1, 2, 2]),
    "weights, most unseen": lambda: calshift.weights_from_labels([100, 101], np.arange(300)),
}
VALUES = {
    **ANSWERS,
    "predictions": lambda: Predictions(P_SOURCE, Y_SOURCE, sample_weight=np.ones(60)),
    "edges": lambda: calshift.bin_edges(P_TARGET, bins=4),
    "statistics": statistics,
}
AGAIN = {
    "made": lambda value: value,
    "pickled": lambda value: pickle.loads(pickle.dumps(value)),
    "pickled, old protocol": lambda value: pickle.loads(pickle.dumps(value, protocol=2)),
    "copied": copy.copy,
    "deepcopied": copy.deepcopy,
}
REACHED = {}


def made(name):
    if name not in REACHED:
        REACHED[name] = VALUES[name]()
    return REACHED[name]


def arrays_in(value):
    """Every array that can be reached through fields and tuples."""
    if isinstance(value, np.ndarray):
        yield value
    elif isinstance(value, tuple | list):
        for item in value:
            yield from arrays_in(item)
    elif dataclasses.is_dataclass(value):
        for field in dataclasses.fields(value):
            yield from arrays_in(getattr(value, field.name))


@pytest.mark.parametrize("again", AGAIN)
@pytest.mark.parametrize("name", VALUES)
def test_values_travel_and_stay_read_only(name, again):
    value = made(name)
    other = AGAIN[again](value)
    assert type(other) is type(value)
    assert other == value
    assert str(other) == str(value)
    held = list(arrays_in(other))
    assert not any(array.flags.writeable for array in held)
    for array in held:
        if array.size:
            with pytest.raises(ValueError, match="read-only"):
                array[...] = 0


@pytest.mark.parametrize("name", VALUES)
def test_values_are_frozen(name):
    value = made(name)
    field = dataclasses.fields(value)[0].name
    with pytest.raises(dataclasses.FrozenInstanceError):
        setattr(value, field, None)
    with pytest.raises(dataclasses.FrozenInstanceError):
        delattr(value, field)
    with pytest.raises(dataclasses.FrozenInstanceError):
        value.an_attribute_nobody_promised = 1


def test_equality_looks_at_the_content():
    assert made("target") == target_error(weights=[0.5, 1, 1.5])
    assert made("target") != target_error(weights=[0.5, 1, 1.6])
    assert made("target") != made("weights")
    assert made("unseen class") == unseen_class()  # NaN stands where NaN stood


@pytest.mark.parametrize("name", ANSWERS)
def test_to_dict_is_json(name):
    answer = made(name)
    plain = json.loads(json.dumps(answer.to_dict(), allow_nan=False))
    assert plain == answer.to_dict()


def test_to_dict_says_none_for_what_is_unknown():
    plain = made("unseen class").to_dict()
    assert plain["per_class"][2] is None
    assert plain["class_weights"]["values"][2] is None
    assert plain["source"]["per_class"][0] is not None
    assert made("labelled").to_dict()["class_weights"] is None


@pytest.mark.parametrize("name", ANSWERS)
def test_text_fits_and_shows_no_nan(name):
    text = str(made(name))
    too_wide = [line for line in text.splitlines() if len(line) > 100]
    assert not too_wide
    assert not re.search(r"\bnan\b", text, re.IGNORECASE)


def test_text_fits_when_numbers_are_absurd():
    shown = [
        target_error(weights=np.array([1, 1, 1]) * 1e100),
        target_error(weights=[1, 1, 1], estimator="paper", kernel="dirichlet", bandwidth=1e-7),
        target_error(weights=[1, 1, 1]).class_weights,
        ClassWeights(np.array([1e-100, 1e100]), np.full(2, 0.5), np.full(2, 0.5), 10.0),
    ]
    for answer in shown:
        assert max(map(len, str(answer).splitlines())) <= 100


@pytest.mark.parametrize("name", ANSWERS)
def test_text_tells_the_warnings(name):
    answer = made(name)
    words = " ".join(str(answer).split())
    for note in getattr(answer, "warnings", ()):
        assert " ".join(note.split()[:4]) in words


def test_text_of_an_error_shows_the_number():
    result = made("target")
    assert f"{result.root:.4f}" in str(result)
    assert f"{result.source.root:.4f}" in str(result)


@pytest.mark.parametrize("name", ["labelled", "L1", "norm 2.5", "target", "paper", "from sums"])
def test_root_and_estimate(name):
    result = made(name)
    assert type(result.estimate) is float
    assert result.root == pytest.approx(max(result.estimate, 0.0) ** (1 / result.norm))


def test_a_negative_estimate_keeps_its_sign_and_its_root_is_zero():
    result = CalibrationErrorResult(-0.01, "binary", 2, "debiased", 10.0)
    assert result.estimate == -0.01
    assert result.root == 0.0


def test_per_class_is_there_for_classwise_only():
    assert made("target").per_class.shape == (3,)
    assert made("target").estimate == pytest.approx(made("target").per_class.mean())
    for name in ("binary", "top-label", "canonical"):
        assert made(name).per_class is None


def test_an_unseen_class_is_left_out_of_the_mean_and_named():
    result = made("unseen class")
    assert np.isnan(result.per_class[2])
    assert result.estimate == pytest.approx(result.per_class[:2].mean())
    assert np.isnan(result.class_weights.values[2])
    assert any("class 2" in note for note in result.warnings)


def test_the_source_stands_beside_the_target():
    assert made("target").source == made("labelled")
    assert made("labelled").source is None
    assert made("target").class_weights.values.tolist() == [0.5, 1, 1.5]


def test_class_weights_are_an_array_where_one_is_needed():
    weights = made("weights")
    array = np.asarray(weights)
    np.testing.assert_array_equal(array, weights.values)
    array[0] = 17.0
    assert weights.values[0] != 17.0
    assert np.asarray(weights, dtype=np.float32).dtype == np.float32
    np.testing.assert_allclose(weights.values * weights.prior_source, weights.prior_target)


def test_effective_sample_size_is_n_without_shift():
    labels = np.arange(30) % 3
    assert calshift.weights_from_labels(labels, labels).ess == pytest.approx(30)
    assert calshift.weights_from_labels(labels, [0, 0, 0, 1, 2]).ess < 30


def test_the_users_weights_stay_writable():
    weights = np.array([0.5, 1.0, 1.5])
    result = target_error(weights=weights)
    weights[0] = 9.0
    assert result.class_weights.values[0] == 0.5


def test_statistics_of_other_edges_do_not_add():
    other = calshift.accumulate(P_SOURCE, Y_SOURCE, edges=calshift.bin_edges(P_SOURCE, bins=3))
    with pytest.raises(InvalidInput, match="same edges"):
        statistics() + other
