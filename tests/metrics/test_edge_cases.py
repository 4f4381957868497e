"""Few rows, absent classes, exact predictions: numbers within their range, and no warnings."""

from __future__ import annotations

import json
import pickle
import time
import warnings
from typing import Any

import numpy as np
import pytest

import calshift
from tests.metrics.samples import pair

NAMES = [
    "accuracy", "balanced_accuracy", "log_loss", "brier_score", "cohen_kappa",
    "matthews_corrcoef", "f1_macro", "precision_weighted", "recall_micro", "specificity_macro",
    "npv_micro", "roc_auc_ovr", "recall_per_class", "f1_per_class", "oe_ratio_per_class",
]  # fmt: skip
OF_TWO = [*NAMES, "prevalence", "alarm_rate", "missed_cases", "false_alarms", "roc_auc", "npv"]
P, Y, Q = pair(1)
B, YB, QB = pair(1, 2)
EXACT = np.eye(3)


def zeroed(p: Any, k: int = 2) -> Any:
    """The same predictions with a probability of 0 for a class."""
    p = np.where(np.arange(p.shape[1]) == k, 0.0, p)
    return p / p.sum(axis=1, keepdims=True)


ALIKE = np.tile([0.8, 0.1, 0.1], (len(Y), 1))
FIRST = np.array([np.argmax(np.equal(Y, k)) for k in range(3)])
RARE = np.append(np.flatnonzero(Y < 2), FIRST[2])
PAIRS = {
    "one row a class": (P[FIRST], Y[FIRST], Q),
    "a class with one row": (P[RARE], Y[RARE], Q),
    "the source lacks the last class": (P[Y < 2], Y[Y < 2], Q),
    "the source lacks the first class": (P[Y > 0], Y[Y > 0], Q),
    "exact and right": (EXACT[Y], Y, EXACT[Q.argmax(axis=1)]),
    "exact and wrong": (EXACT[P.argmax(axis=1)], Y, EXACT[Q.argmax(axis=1)]),
    "the target is predicted alike": (P, Y, ALIKE[:50]),
    "all is predicted alike": (ALIKE, Y, ALIKE[:50]),
    "one target row": (P, Y, Q[:1]),
    "a class is never predicted": (zeroed(P) * [0.9, 0.9, 0.9] + [0.04, 0.03, 0.03], Y, Q),
    "a probability of 0": (zeroed(P), Y, zeroed(Q)),
    "two, exact": (YB.astype(float), YB, QB[:, 1].round()),
    "two, never predicted": (B[:, 1] * 0.4, YB, QB[:, 1] * 0.4),
    "two, always predicted": (0.55 + 0.4 * B[:, 1], YB, 0.55 + 0.4 * QB[:, 1]),
    "two, probability 0": (0 * YB, YB, 0 * QB[:, 1]),
}
LABELLED = {
    "one class": (P[Y == 1], Y[Y == 1]),
    "one row": (P[:1], Y[:1]),
    "two, no positive": (B[YB == 0], YB[YB == 0]),
    "two, all positive": (B[YB == 1, 1], YB[YB == 1]),
}


def quietly(function: Any, *args: Any, **options: Any) -> Any:
    """A result without warnings other than that weights are unreliable."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", calshift.UnreliableWeights)
        return function(*args, **options)


def check_numbers(result: Any) -> None:
    """Finite, within the range and the interval; can be saved."""
    for name, one in result.items():
        low, high = one.confidence_interval(0.9)
        assert np.isfinite([one.estimate, low, high, one.standard_error]).all(), name
        assert one.bounds[0] <= low <= one.estimate + 1e-12, name
        assert one.estimate - 1e-12 <= high <= one.bounds[1], name
    json.dumps(result.to_dict(), allow_nan=False)
    assert pickle.loads(pickle.dumps(result)).to_dict() == result.to_dict()
    assert str(result)


def names_of(p: Any) -> list[str]:
    return OF_TWO if np.ndim(p) == 1 or p.shape[1] == 2 else NAMES


@pytest.mark.parametrize("check", [True, False])
@pytest.mark.parametrize("case", PAIRS)
def test_targets(case, check):
    p, y, q = PAIRS[case]
    result = quietly(calshift.target_metrics, p, y, q, metrics=names_of(p), check=check)
    check_numbers(result)
    assert not (check and result.trusted) or case.startswith("two, always")


@pytest.mark.parametrize("case", PAIRS)
def test_a_drift(case):
    p, y, q = PAIRS[case]
    options: dict[str, Any] = {"metrics": names_of(p), "check": False}
    found = quietly(calshift.target_metrics, p, y, q, drift=0.1, **options)
    check_numbers(found)


@pytest.mark.parametrize("case", [*PAIRS, *LABELLED])
def test_labels(case):
    p, y = (PAIRS | LABELLED)[case][:2]
    check_numbers(quietly(calshift.labelled_metrics, p, y, metrics=names_of(p)))


@pytest.mark.parametrize("case", ["a class with one row", "the source lacks the last class"])
def test_the_bootstrap(case):
    p, y, q = PAIRS[case]
    options: dict[str, Any] = {"interval": "bootstrap", "n_boot": 20, "rng": 1, "metrics": NAMES}
    check_numbers(quietly(calshift.target_metrics, p, y, q, check=False, **options))
    check_numbers(quietly(calshift.labelled_metrics, p, y, **options))


@pytest.mark.parametrize(
    ("rows", "options"),
    [
        (Y >= 0, {"weights": [1, 1, 0]}),
        (Y >= 0, {"weights": [0, 1, 0]}),
        pytest.param(Y < 2, {"drift": 0.1}),
    ],
)
def test_areas_weighted_by_prior_without_rows_of_a_class(rows, options):
    name = "roc_auc_ovr_weighted"
    found = quietly(
        calshift.target_metrics, P[rows], Y[rows], Q, metrics=name, check=False, **options
    )
    check_numbers(found)


@pytest.mark.parametrize("case", LABELLED)
def test_areas_weighted_by_prior_of_one_class(case):
    found = quietly(calshift.labelled_metrics, *LABELLED[case], metrics="roc_auc_ovr_weighted")
    check_numbers(found)


@pytest.mark.parametrize("case", ["a probability of 0", "two, probability 0"])
def test_a_ratio_to_an_expectation_of_0_is_no_number(case):
    p, y, q = PAIRS[case]
    label = 2 if np.ndim(p) == 2 else 1
    options: dict[str, Any] = {"metrics": f"oe_ratio[{label}]"}
    for found in (
        quietly(calshift.labelled_metrics, p, y, **options),
        quietly(calshift.target_metrics, p, y, q, check=False, **options),
    ):
        (one,) = found.values()
        assert one.estimate < 1e6 or one.note
        assert not one.trusted


def test_the_interval_of_a_small_ratio_is_not_wider_than_its_error_allows():
    p, y, q = PAIRS["a class is never predicted"]
    found = quietly(calshift.target_metrics, p, y, q, metrics="oe_ratio_per_class", check=False)
    for name, one in found.items():
        most = one.estimate + 100 * one.standard_error
        assert one.confidence_interval(0.95)[1] <= most, name


def test_undefined_metrics_are_noted_and_not_trusted():
    """Of a class without rows there is no recall, however many rows the others have."""
    found = quietly(
        calshift.labelled_metrics, P[Y < 2], Y[Y < 2], metrics=["recall[2]", "accuracy"]
    )
    assert found["accuracy"].trusted
    assert "undefined" in found["recall[2]"].note
    assert not found["recall[2]"].trusted


def test_exact_predictions_have_the_interval_of_their_rows():
    """A share of 1 of n rows is at least about n / (n + z^2), whatever its rounding error."""
    for p, y, q in (PAIRS["exact and right"], PAIRS["two, exact"]):
        names = ["accuracy", "balanced_accuracy", "f1_macro", "roc_auc_ovr"]
        found = quietly(calshift.target_metrics, p, y, q, metrics=names, check=False)
        for name, one in found.items():
            assert one.estimate == pytest.approx(1, abs=1e-9)
            assert one.confidence_interval(0.95)[0] < 1 - 1 / len(y), name
            assert one.source_interval(0.95)[0] < 1 - 1 / len(y), name


def test_an_interval_at_0_begins_there():
    found = quietly(
        calshift.target_metrics, P[Y < 2], Y[Y < 2], Q, metrics="recall_per_class", check=False
    )
    assert found["recall[2]"].estimate == 0
    for level in (0.5, 0.9, 0.95, 0.99):
        assert found["recall[2]"].confidence_interval(level)[0] == 0


def test_all_rows_predicted_positive_leave_no_missed_case():
    """The recall is 1, so that missed cases = prevalence (1 - recall) = 0; a hit is a positive."""
    p, y, q = PAIRS["two, always predicted"]
    names = ["recall", "missed_cases", "accuracy", "prevalence", "precision", "specificity"]
    found = quietly(calshift.target_metrics, p, y, q, metrics=names, check=False)
    assert found["recall"].estimate == pytest.approx(1, abs=1e-9)
    prevalence = found["prevalence"].estimate
    for name, value in (("missed_cases", 0.0), ("accuracy", prevalence), ("precision", prevalence)):
        assert found[name].estimate == pytest.approx(value, abs=1e-9), name


def test_the_accuracy_is_the_pooled_recall_where_a_class_is_lacking():
    p, y, q = PAIRS["the source lacks the last class"]
    found = quietly(
        calshift.target_metrics, p, y, q, metrics=["accuracy", "recall_micro"], check=False
    )
    assert found["accuracy"].estimate == pytest.approx(found["recall_micro"].estimate, abs=1e-9)


@pytest.mark.slow
def test_many_classes_take_seconds():
    rng = np.random.default_rng(0)
    K, n = 1000, 2000
    p = rng.dirichlet(np.full(K, 0.05), n).astype(np.float32)
    y = p.argmax(axis=1)
    start = time.perf_counter()
    check_numbers(quietly(calshift.labelled_metrics, p, y, metrics=["accuracy", "f1_macro"]))
    assert time.perf_counter() - start < 60


def test_a_bootstrap_of_few_labelled_rows():
    """Some draws have no row at all."""
    options: dict[str, Any] = {"interval": "bootstrap", "n_boot": 100, "rng": 1}
    try:
        found = quietly(calshift.labelled_metrics, P[FIRST], Y[FIRST], metrics=NAMES, **options)
    except calshift.InvalidInput:
        return
    check_numbers(found)


@pytest.mark.filterwarnings("ignore::calshift.UnreliableWeights")
def test_averages_leave_out_classes_that_the_source_lacks():
    model = calshift.simulate.GaussianSimulation(n_classes=4, dimensions=4, seed=1)
    p, y = model.source(2000, rng=1)
    q, _ = model.target(1000, rng=2)
    kept = y != 3
    names = ("recall_macro", "recall_per_class", "f1_macro", "f1_per_class")
    found = calshift.target_metrics(p[kept], y[kept], q, metrics=names)
    for stem in ("recall", "f1"):
        classes = [found[f"{stem}[{k}]"] for k in range(4)]
        mean = np.mean([one.estimate for one in classes[:3]])
        less = 0.0 if stem == "recall" else 0.02  # the bias of ratios is subtracted from averages
        assert found[f"{stem}_macro"].estimate == pytest.approx(mean, abs=max(less, 1e-12))
        assert classes[3].note
        assert not classes[3].trusted
