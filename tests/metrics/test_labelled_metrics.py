"""Metrics of labelled rows are those of scikit-learn, or of their definition."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn import metrics as sklearn_metrics

import calshift
from tests.metrics.samples import incomplete, labelled, labelled_metrics, values

AVERAGED = {
    "precision": sklearn_metrics.precision_score,
    "recall": sklearn_metrics.recall_score,
    "f1": sklearn_metrics.f1_score,
}
SAMPLES = {"plain": lambda K: labelled(1, K), "ties": lambda K: labelled(2, K, ties=True)}
WEIGHTS = ("none", "whole", "fractions", "zeros")


def weight_of(kind: str, n: int) -> Any:
    rng = np.random.default_rng(n)
    if kind == "none":
        return None
    if kind == "fractions":
        return rng.uniform(0.2, 3.0, n)
    return rng.integers(0 if kind == "zeros" else 1, 4, n)


def expected_values(p: Any, y: Any, weight: Any) -> dict[str, float]:
    """By name, of scikit-learn."""
    K, predicted = p.shape[1], p.argmax(axis=1)
    some = {"sample_weight": weight}
    every = {"labels": np.arange(K), **some}
    found = {
        "accuracy": sklearn_metrics.accuracy_score(y, predicted, **some),
        "log_loss": sklearn_metrics.log_loss(y, p, **every),
        "brier_score": sklearn_metrics.brier_score_loss(
            y, p if K > 2 else p[:, 1], labels=np.arange(K), **some
        ),
        "cohen_kappa": sklearn_metrics.cohen_kappa_score(y, predicted, **some),
        "matthews_corrcoef": sklearn_metrics.matthews_corrcoef(y, predicted, **some),
    }
    found["balanced_accuracy"] = np.mean(
        sklearn_metrics.recall_score(y, predicted, labels=np.unique(y), average=None, **some)
    )
    options: dict[str, Any] = {"zero_division": 0, **some}
    for name, function in AVERAGED.items():
        for average in ("macro", "micro", "weighted"):
            found[f"{name}_{average}"] = function(y, predicted, average=average, **options)
        each = function(y, predicted, labels=np.arange(K), average=None, **options)
        found |= {f"{name}[{k}]": value for k, value in enumerate(each)}
        if K == 2:
            found[name] = each[1]
    for k in range(2, K):
        found[f"top_{k}_accuracy"] = sklearn_metrics.top_k_accuracy_score(y, p, k=k, **every)
    return found


def expected_areas(p: Any, y: Any, weight: Any) -> dict[str, float]:
    """Areas under curves, of scikit-learn, of samples in which every class occurs."""
    K, some = p.shape[1], {"sample_weight": weight}
    area = sklearn_metrics.roc_auc_score
    found = {f"roc_auc[{k}]": area(y == k, p[:, k], **some) for k in range(K)}
    if K == 2:
        return found | {"roc_auc": area(y, p[:, 1], **some)}
    ovr = {"multi_class": "ovr", "labels": np.arange(K), **some}
    found["roc_auc_ovr"] = area(y, p, average="macro", **ovr)
    found["roc_auc_ovr_weighted"] = area(y, p, average="weighted", **ovr)
    return found


def compare(p: Any, y: Any, expected: dict[str, float], tolerance: float = 1e-12) -> None:
    found = values(labelled_metrics(p, y, metrics=list(expected)))
    assert list(found) == list(expected)
    np.testing.assert_allclose(list(found.values()), list(expected.values()), atol=tolerance)


@pytest.mark.parametrize("weights", WEIGHTS)
@pytest.mark.parametrize("K", [2, 3, 10])
@pytest.mark.parametrize("sample", SAMPLES)
def test_metrics_are_those_of_scikit_learn(sample, K, weights):
    p, y = SAMPLES[sample](K)
    weight = weight_of(weights, len(y))
    expected = expected_values(p, y, weight) | expected_areas(p, y, weight)
    compare(calshift.Predictions(p, y, sample_weight=weight), None, expected)


@pytest.mark.parametrize("weights", ["none", "fractions"])
@pytest.mark.parametrize("K", [3, 10])
def test_absent_classes_count_as_in_scikit_learn(K, weights):
    p, y = incomplete(3, K)
    weight = weight_of(weights, len(y))
    compare(calshift.Predictions(p, y, sample_weight=weight), None, expected_values(p, y, weight))


def test_one_column_of_probabilities_is_the_second_of_two():
    p, y = labelled(4, 2)
    expected = expected_values(p, y, None) | expected_areas(p, y, None)
    compare(p[:, 1], y, expected)


@pytest.mark.parametrize("K", [2, 3])
def test_single_precision_gives_the_metrics_of_its_values(K):
    p, y = labelled(5, K)
    p = p.astype(np.float32)
    compare(p, y, expected_values(p, y, None), 1e-6)  # scikit-learn sums in single precision
    compare(p, y, expected_areas(p.astype(float), y, None))


def test_probabilities_of_0_and_1_have_the_log_loss_of_scikit_learn():
    p, y = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 0.0]]), np.array([0, 1, 1])
    for dtype in (np.float64, np.float32):
        expected = sklearn_metrics.log_loss(y, p.astype(dtype))
        found = labelled_metrics(p.astype(dtype), y, metrics="log_loss")["log_loss"].estimate
        assert found == pytest.approx(expected, rel=1e-6)


def test_tiny_probabilities_of_one_column_keep_their_order():
    p = np.array([1e-20, 3e-20, 2e-20, 4e-20, 0.5, 0.3])
    y = np.array([0, 1, 0, 1, 1, 0])
    expected = sklearn_metrics.roc_auc_score(y, p)
    found = labelled_metrics(p, y, metrics=["roc_auc", "roc_auc_ovr"])
    assert found["roc_auc"].estimate == pytest.approx(expected, abs=1e-12)
    assert found["roc_auc_ovr"].estimate == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("positive", [0, 1])
@pytest.mark.parametrize("weights", WEIGHTS)
def test_metrics_of_two_classes_by_definition(weights, positive):
    p, y = labelled(6, 2)
    weight = weight_of(weights, len(y))
    w = np.ones(len(y)) if weight is None else weight / weight.mean()
    truth, predicted = y == positive, p.argmax(axis=1) == positive
    cost = np.array([[0.5, 7.0], [1.0, -2.0]])  # by predicted and true class
    expected = {
        "specificity": np.sum(w * ~truth * ~predicted) / np.sum(w * ~truth),
        "npv": np.sum(w * ~truth * ~predicted) / np.sum(w * ~predicted),
        "alarm_rate": np.mean(w * predicted),
        "prevalence": np.mean(w * truth),
        "missed_cases": np.mean(w * (truth & ~predicted)),
        "false_alarms": np.mean(w * (predicted & ~truth)),
        "oe_ratio": np.sum(w * truth) / np.sum(w * p[:, positive]),
        "expected_cost": np.mean(w * cost[p.argmax(axis=1), y]),
    }
    rows = calshift.Predictions(p, y, sample_weight=weight)
    found = labelled_metrics(rows, metrics=list(expected), positive=positive, cost=cost)
    assert values(found) == pytest.approx(expected, abs=1e-12)


def test_metrics_of_a_class_of_many_by_definition():
    p, y = labelled(7, 4)
    predicted = p.argmax(axis=1)
    expected = {}
    for k in range(4):
        truth, hit = y == k, predicted == k
        expected |= {
            f"specificity[{k}]": np.mean(~hit[~truth]),
            f"npv[{k}]": np.mean(~truth[~hit]),
            f"oe_ratio[{k}]": truth.sum() / p[:, k].sum(),
        }
    names = ["specificity_per_class", "npv_per_class", "oe_ratio_per_class"]
    assert values(labelled_metrics(p, y, metrics=names)) == pytest.approx(expected, abs=1e-12)
    truth, hit = y == 2, predicted == 2
    found = labelled_metrics(p, y, metrics=["prevalence", "recall", "alarm_rate"], positive=2)
    shares = {"prevalence": truth.mean(), "recall": hit[truth].mean(), "alarm_rate": hit.mean()}
    assert values(found) == pytest.approx(shares, abs=1e-12)


def test_a_function_is_averaged_over_rows():
    p, y = labelled(8, 3)
    weight = np.random.default_rng(0).uniform(0.1, 2, len(y))
    rows = calshift.Predictions(p, y, sample_weight=weight)

    def own(p, y):
        return (p[np.arange(len(y)), y] - 0.2) ** 3

    found = labelled_metrics(rows, metrics=["accuracy", {"own": own}])
    assert found["own"].estimate == pytest.approx(np.average(own(p, y), weights=weight), abs=1e-12)


@pytest.mark.parametrize("dtype", [float, np.float32])
def test_decisions(dtype):
    p, y = labelled(9, 2, ties=True)
    p = p.astype(dtype)
    cost = np.array([[0.0, 5.0], [1.0, 0.0]])
    names = ["alarm_rate", "accuracy"]
    by_threshold = p[:, 1] >= 0.25
    by_cost = (p.astype(float) @ cost.T).argmin(axis=1) == 1
    for decision, alarm in (
        (0.25, by_threshold),
        ("cost", by_cost),
        (lambda p: (p[:, 1] >= 0.25).astype(int), by_threshold),
    ):
        found = labelled_metrics(p, y, metrics=names, decision=decision, cost=cost)
        expected = {"alarm_rate": alarm.mean(), "accuracy": np.mean(alarm == (y == 1))}
        assert values(found) == pytest.approx(expected, abs=1e-12)
    found = labelled_metrics(p, y, metrics=names, decision=0.25, positive=0)
    assert found["alarm_rate"].estimate == pytest.approx(np.mean(p[:, 0] >= 0.25), abs=1e-12)


def test_costs_of_outcomes_are_a_matrix():
    p, y = labelled(10, 2)
    costs = {"false_negative": 20, "false_positive": 1}
    for positive, matrix in ((1, [[0, 20], [1, 0]]), (0, [[0, 1], [20, 0]])):
        both = [
            labelled_metrics(p, y, metrics="expected_cost", cost=cost, positive=positive)
            for cost in (costs, matrix)
        ]
        assert values(both[0]) == pytest.approx(values(both[1]), abs=1e-14)


def test_standard_errors_are_those_of_means_and_of_delta_method():
    """sd / sqrt(n) of a mean (the sample's own, without n - 1); a recall is one of its rows."""
    p, y = labelled(11, 2, n=400)
    hit = p.argmax(axis=1) == y
    found = labelled_metrics(p, y, metrics=["accuracy", "recall", "oe_ratio"])
    n, n1 = len(y), np.sum(y == 1)
    assert found["accuracy"].standard_error == pytest.approx(hit.std() / n**0.5, rel=0.01)
    assert found["recall"].standard_error == pytest.approx(hit[y == 1].std() / n1**0.5, rel=0.01)
    ratio = (y == 1).sum() / p[:, 1].sum()
    residual = (y == 1) - ratio * p[:, 1]
    expected = residual.std() / p[:, 1].mean() / n**0.5
    assert found["oe_ratio"].standard_error == pytest.approx(expected, rel=0.01)


def jackknife(p: Any, y: Any, names: list[str]) -> Any:
    """Standard errors by leaving out one row after the other."""
    n = len(y)
    kept = [np.arange(n) != i for i in range(n)]
    found = np.array(
        [
            list(values(labelled_metrics(p[k], y[k], metrics=names, interval=None)).values())
            for k in kept
        ]
    )
    return np.sqrt((n - 1) * found.var(axis=0))


@pytest.mark.parametrize("K", [2, 3])
def test_standard_errors_agree_with_the_jackknife(K):
    """Both are linear to first order and differ by O(1 / n) relatively: n = 300, a few percent."""
    p, y = labelled(12, K, n=300)
    names = ["accuracy", "balanced_accuracy", "log_loss", "brier_score", "cohen_kappa"]
    names += ["matthews_corrcoef", "roc_auc_ovr", "roc_auc_ovr_weighted"]
    names += [f"{one}_{by}" for one in ("precision", "recall", "f1", "specificity", "npv")
              for by in ("macro", "micro", "weighted")]  # fmt: skip
    names += ["f1_per_class", "npv_per_class", "oe_ratio_per_class", "roc_auc_per_class"]
    found = labelled_metrics(p, y, metrics=names)
    errors = np.array([one.standard_error for one in found.values()])
    np.testing.assert_allclose(errors, jackknife(p, y, names), rtol=0.05)
