"""Arguments that cannot be meant are refused, with a message that says what to do."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import calshift
from tests.metrics.samples import pair

P, Y, Q = pair(1)
B, YB, QB = pair(1, 2)


def refuses(match: str, K: int = 3, **options: Any) -> None:
    p, y, q = (P, Y, Q) if K == 3 else (B, YB, QB)
    with pytest.raises(calshift.InvalidInput, match=match):
        calshift.labelled_metrics(p, y, **options)
    with pytest.raises(calshift.InvalidInput, match=match):
        calshift.target_metrics(p, y, q, check=False, **options)


@pytest.mark.parametrize(
    ("name", "near"), [("acuracy", "accuracy"), ("f1_marco", "f1_macro"), ("recal", "recall")]
)
def test_an_unknown_metric_suggests_near_names(name, near):
    refuses(rf"no metric '{name}': did you mean .*{near}", metrics=name)


@pytest.mark.parametrize("metrics", [3, b"accuracy", [], [3], "", {"a": 3}, [None], {"": len}])
def test_metrics_are_names_or_functions(metrics):
    refuses("metric", metrics=metrics)


@pytest.mark.parametrize("name", ["precision", "recall", "f1", "specificity", "npv"])
def test_a_metric_of_one_class_needs_a_positive_class(name):
    refuses(rf"{name} is of one class.*{name}_macro.*{name}_per_class.*positive=", metrics=name)


@pytest.mark.parametrize("name", ["prevalence", "alarm_rate", "roc_auc", "oe_ratio"])
def test_a_share_of_one_class_needs_a_positive_class(name):
    refuses(rf"{name} is of one class.*name the class by positive=", metrics=name)


@pytest.mark.parametrize("name", ["top_0_accuracy", "top_3_accuracy", "top_99_accuracy"])
def test_a_rank_is_less_than_the_number_of_classes(name):
    refuses(f"{name} needs k from 1 to 2", metrics=name)


@pytest.mark.parametrize("name", ["recall[3]", "f1[x]", "roc_auc[]"])
def test_a_class_in_brackets_must_exist(name):
    refuses("one of the classes 0, 1, 2", metrics=name)


@pytest.mark.parametrize("positive", [3, -1, "x", 1.5, float("nan"), [1], True])
def test_the_positive_class_must_exist(positive):
    refuses("positive must be one of the classes 0, 1, 2", positive=positive)


@pytest.mark.parametrize("decision", ["max", None, True, [0.5], -0.1, 1.5, float("nan")])
def test_a_decision_is_a_rule_or_a_threshold(decision):
    refuses("decision must be", K=2, decision=decision)


def test_a_threshold_needs_two_classes():
    refuses("there are 3: pass a function", decision=0.5)


@pytest.mark.parametrize("names", [{"metrics": "expected_cost"}, {"decision": "cost"}])
def test_costs_must_be_given_where_they_are_used(names):
    refuses("needs cost=", **names)


COSTS = [1, [1, 2], np.ones((3, 3)) - np.eye(3), [["a", "b"], ["c", "d"]], [[0, 1j], [1, 0]]]
COSTS += [np.ones((2, 2)), [[0, np.nan], [1, 0]], [[0, np.inf], [1, 0]], "x", {}, {"fp": 1}]
COSTS += [{"false_positive": "x"}, {"false_positive": np.nan}, [[0, 1], [1]]]


@pytest.mark.parametrize("cost", COSTS, ids=repr)
def test_costs_are_a_finite_matrix_or_named_outcomes(cost):
    refuses("cost must be", K=2, cost=cost)


def test_named_costs_need_two_classes():
    refuses("3 classes", cost={"false_positive": 1})


FUNCTIONS = {
    "nan": lambda p, y: np.nan * y,
    "matrix": lambda p, y: p,
    "number": lambda p, y: 1.0,
    "short": lambda p, y: p[1:, 0],
    "nothing": lambda p, y: None,
    "text": lambda p, y: y.astype(str),
    "complex": lambda p, y: y * 1j,
}


@pytest.mark.parametrize("kind", FUNCTIONS)
def test_a_function_returns_one_finite_number_a_row(kind):
    refuses("own", metrics={"own": FUNCTIONS[kind]})


RULES = {
    "matrix": lambda p: p,
    "fractions": lambda p: p[:, 1],
    "large": lambda p: np.full(len(p), 3),
    "negative": lambda p: np.full(len(p), -1),
    "nan": lambda p: np.full(len(p), np.nan),
    "short": lambda p: p.argmax(axis=1)[1:],
    "nothing": lambda p: None,
    "number": lambda p: 1,
    "text": lambda p: ["a"] * len(p),
}


@pytest.mark.parametrize("kind", RULES)
def test_a_rule_returns_one_class_a_row(kind):
    refuses(r"decision\(p\) must", decision=RULES[kind])


@pytest.mark.parametrize("drift", [-0.1, 1.1, float("nan"), "x", True])
def test_a_drift_is_a_share(drift):
    with pytest.raises(calshift.InvalidInput, match="drift must be"):
        calshift.target_metrics(P, Y, Q, drift=drift)


def test_a_drift_needs_the_influence():
    for interval in ("bootstrap", None):
        with pytest.raises(calshift.InvalidInput, match="interval="):
            calshift.target_metrics(P, Y, Q, drift=0.1, interval=interval)


def test_a_confusion_matrix_of_too_many_classes_names_other_metrics():
    K = 2001
    p, y = np.full((4, K), 1 / K), np.arange(4)
    for name in ("f1_macro", "oe_ratio_per_class", "cohen_kappa"):
        with pytest.raises(calshift.InvalidInput, match="ask for accuracy"):
            calshift.labelled_metrics(p, y, metrics=name)


def test_very_large_costs_do_not_give_nan():
    try:
        found = calshift.labelled_metrics(
            B, YB, metrics="expected_cost", cost=[[0, 1e308], [-1e308, 0]]
        )
    except calshift.InvalidInput:
        return
    assert np.isfinite(found["expected_cost"].estimate)


@pytest.mark.parametrize(
    ("name", "meant"),
    [("auc", "roc_auc"), ("F1", "f1"), ("ppv", "precision"), ("Sensitivity", "recall"),
     ("mcc", "matthews_corrcoef"), ("f1_score", "f1")],
)  # fmt: skip
def test_other_names_of_metrics_are_recognised(name, meant):
    refuses(f"it is called {meant} here", 2, metrics=name)


def test_costs_in_a_frame_are_matched_by_name():
    pandas = pytest.importorskip("pandas", reason="pandas is not installed")
    names = ["no", "yes"]
    source = calshift.Predictions(B, YB, classes=names)
    cost = pandas.DataFrame([[0, 10], [1, 0]], index=names, columns=names)
    options = {"metrics": "expected_cost", "check": False}
    one = calshift.target_metrics(source, None, QB, cost=cost, **options)
    other = calshift.target_metrics(source, None, QB, cost=cost.iloc[::-1, ::-1], **options)
    bare = calshift.target_metrics(source, None, QB, cost=cost.to_numpy(), **options)
    assert one["expected_cost"].estimate == other["expected_cost"].estimate
    assert one["expected_cost"].estimate == bare["expected_cost"].estimate
    wrong = cost.rename(columns={"yes": "maybe"})
    with pytest.raises(calshift.InvalidInput, match="cost must have the classes no, yes"):
        calshift.target_metrics(source, None, QB, cost=wrong, **options)


def test_a_boolean_names_the_positive_class():
    one = calshift.labelled_metrics(B, YB, metrics="recall", positive=True)
    assert (
        one["recall"].estimate
        == calshift.labelled_metrics(B, YB, metrics="recall")["recall"].estimate
    )
