"""Weights that need no estimation, and classes that the source lacks."""

from __future__ import annotations

import numpy as np
import pytest

import calshift
from tests.properties.samples import free, pair


def test_weights_from_labels_are_ratios_of_shares():
    weights = calshift.weights_from_labels([0, 0, 0, 1, 2, 2], [0, 1, 1, 1])
    np.testing.assert_allclose(weights.values, [0.5, 4.5, 0.0])
    np.testing.assert_allclose(weights.prior_source, [1 / 2, 1 / 6, 1 / 3])
    np.testing.assert_allclose(weights.prior_target, [1 / 4, 3 / 4, 0])
    w = np.array([0.5] * 3 + [4.5] + [0, 0])
    assert weights.ess == pytest.approx(w.sum() ** 2 / (w**2).sum())
    np.testing.assert_array_equal(np.asarray(weights), weights.values)


def test_a_class_the_source_lacks_has_no_weight_and_says_so():
    weights = calshift.weights_from_labels([0, 0, 1, 1], [0, 2, 2, 1], n_classes=3)
    assert np.isnan(weights.values[2])
    assert "class 2, which makes up 50.0% of the target" in weights.warnings[0]
    assert "unseen" in str(weights)
    assert "nan" not in str(weights)
    assert weights.to_dict()["values"][2] is None


@pytest.mark.parametrize("estimator", ["debiased", "plugin", "paper"])
def test_a_missing_class_is_left_out_of_the_mean_and_named(estimator):
    p, y, q, w = pair(2, "classwise", K=4)
    kept = y != 3
    p, y, w = p[kept], y[kept], np.append(w[:3] / w[y[kept]].mean(), np.nan)
    with pytest.warns(calshift.UnreliableWeights, match="lacks class 3, to which predictions give"):
        result = calshift.target_calibration_error(p, y, q, weights=w, estimator=estimator)
    assert np.isnan(result.per_class[3])
    assert result.estimate == pytest.approx(result.per_class[:3].mean())
    assert "class 3" in result.warnings[0]
    assert "nan" not in str(result)
    for c in range(3):  # each class as the library counts it alone
        alone = free(p[:, c], (y == c).astype(int), q[:, c], [1, 1], kind="binary")
        assert np.isfinite(alone)


def test_a_vector_is_used_as_it_is():
    p, y, q, w = pair(2, "classwise")
    result = calshift.target_calibration_error(p, y, q, weights=list(w))
    np.testing.assert_array_equal(result.class_weights.values, w)
    with pytest.warns(calshift.UnreliableWeights, match="sum of prior x weight is 1.06,"):
        calshift.target_calibration_error(p, y, q, weights=1.06 * w)
    result = calshift.target_calibration_error(p, y, q, weights=1.04 * w)  # within the tolerance
    prior = np.bincount(y) / len(y)
    np.testing.assert_allclose(result.class_weights.prior_target, prior * w / (prior @ w))


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ([1, 1], "3 numbers, one for each class"),
        ([1, -1, 1], "class 1 has -1"),
        ([1, np.nan, 1], "class 1 has nan"),
        ([1, np.inf, 1], "class 1 has inf"),
        ([0, 0, 0], "positive for at least one class"),
        ("emm", r"weights must be one of auto, bbse, .*, matched, or class weights; got 'emm'"),
        (None, "got None"),
        (["a", "b", "c"], "must be 3 numbers, .* dtype"),
    ],
)
def test_bad_weights_are_named(weights, message):
    p, y, q, _ = pair(2, "classwise")
    with pytest.raises(calshift.InvalidInput, match=message):
        calshift.target_calibration_error(p, y, q, weights=weights)


def test_class_weights_of_another_number_of_classes_are_refused():
    p, y, q, _ = pair(2, "classwise")
    with pytest.raises(calshift.InvalidInput, match="3 numbers"):
        calshift.target_calibration_error(
            p, y, q, weights=calshift.weights_from_labels([0, 1], [1])
        )


def test_class_weights_are_fitted_to_the_source_they_meet():
    p, y, q, _ = pair(2, "classwise")
    elsewhere = calshift.weights_from_labels([0, 1, 1, 1, 2], [0, 0, 1, 2, 2])
    with pytest.warns(calshift.UnreliableWeights) as told:
        result = calshift.target_calibration_error(p, y, q, weights=elsewhere)
    said = " ".join(str(one.message) for one in told)
    assert "do not fit the source" in said
    assert "estimated on other rows" in said
    used = result.class_weights
    np.testing.assert_array_equal(used.values, elsewhere.values)
    assert used.n_source == len(y)
    np.testing.assert_allclose(used.prior_source, np.bincount(y) / len(y))


def test_the_source_is_averaged_over_the_same_classes():
    p, y, _, _ = pair(2, "classwise", K=4)
    p, y = p[y != 3], y[y != 3]
    with pytest.warns(calshift.UnreliableWeights, match="lacks class 3"):
        result = calshift.target_calibration_error(p, y, p, weights=[1, 1, 1, np.nan])
    assert result.estimate == pytest.approx(result.source.estimate, abs=1e-13)


def test_warnings_call_classes_by_their_names():
    from calshift import Predictions

    names = ["ant", "bee", "emu"]
    source = Predictions([[0.2, 0.3, 0.5]] * 4, ["ant", "bee"] * 2, classes=names)
    target = Predictions([[0.3, 0.3, 0.4]] * 4, classes=names)
    with pytest.warns(
        calshift.UnreliableWeights, match=r"class emu, to which predictions give 40.0%"
    ):
        calshift.target_calibration_error(source, None, target, weights=[1, 1, np.nan])
