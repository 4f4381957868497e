"""Requirements of metrics: how they are read, and which end of the interval decides."""

from __future__ import annotations

from dataclasses import replace

import pytest

import calshift
from calshift.report.requirements import Requirement, judge, outcome_sentence
from calshift.simulate import BetaSimulation, GaussianSimulation


@pytest.fixture(scope="module")
def found():
    simulation = BetaSimulation()
    p, y = simulation.source(1500, rng=1)
    q, _ = simulation.target(1500, rng=2)
    return calshift.target_metrics(p, y, q, metrics=["accuracy", "log_loss"], check=False)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("accuracy>=0.9", ("accuracy", ">=", 0.9)),
        (" accuracy  >  0.9 ", ("accuracy", ">", 0.9)),
        ("log_loss<=1e-3", ("log_loss", "<=", 1e-3)),
        ("matthews_corrcoef>-0.5", ("matthews_corrcoef", ">", -0.5)),
        ("recall[a>b]>=0.5", ("recall[a>b]", ">=", 0.5)),
        ("recall[two words]<0.5", ("recall[two words]", "<", 0.5)),
    ],
)
def test_a_requirement_is_a_metric_a_comparison_and_a_number(text, expected):
    one = Requirement.parse(text)
    assert (one.metric, one.comparison, one.limit) == expected


@pytest.mark.parametrize(
    "text",
    ["", "accuracy", ">=0.9", "accuracy>=", "accuracy=0.9", "accuracy==0.9", "accuracy=>0.9",
     "accuracy!=0.9", "accuracy>=90%", "accuracy>=nan", "accuracy>=inf", "0.9<=accuracy",
     "accuracy>>0.9"],
)  # fmt: skip
def test_a_malformed_requirement_says_what_is_allowed(text):
    with pytest.raises(calshift.InvalidInput, match="one of >=, >, <=, <, and a number, such as"):
        Requirement.parse(text)


def test_the_lower_end_must_satisfy_at_least_and_the_upper_end_at_most(found):
    low, high = found["accuracy"].confidence_interval()
    inside, far = (low + high) / 2, 0.01
    expected = {
        ">=": {low: "met", low + 1e-9: "not shown", inside: "not shown", high: "not shown",
               high + far: "violated"},
        ">": {low - far: "met", low: "not shown", high: "violated", high - 1e-9: "not shown"},
        "<=": {high: "met", high - 1e-9: "not shown", low: "not shown", low - far: "violated"},
        "<": {high + far: "met", high: "not shown", low: "violated", low + 1e-9: "not shown"},
    }  # fmt: skip
    for comparison, cases in expected.items():
        for limit, status in cases.items():
            (one,) = judge([Requirement("accuracy", comparison, limit)], found, 0.95)
            assert (one.status, one.interval) == (status, (low, high)), (comparison, limit)


def test_the_level_is_that_of_the_interval(found):
    low, _ = found["accuracy"].confidence_interval(0.5)
    required = [Requirement("accuracy", ">=", low)]
    assert [judge(required, found, level)[0].status for level in (0.5, 0.95)] == [
        "met", "not shown",
    ]  # fmt: skip


def test_a_metric_that_is_not_trusted_shows_nothing(found):
    one = replace(found["accuracy"], trusted=False)
    (outcome,) = judge([Requirement.parse("accuracy>=0.01")], {"accuracy": one}, 0.95)
    assert outcome.status == "not trusted"
    without = replace(found["accuracy"], _error=None)
    (outcome,) = judge([Requirement.parse("accuracy>=0.01")], {"accuracy": without}, 0.95)
    assert (outcome.status, outcome.interval) == ("not shown", None)
    assert "no interval" in outcome_sentence([outcome], 0.95)


def test_one_of_every_class_is_judged_by_class():
    simulation = GaussianSimulation(n_classes=3, seed=1)
    p, y = simulation.source(900, rng=1)
    found = calshift.target_metrics(
        p, y, simulation.target(900, rng=2)[0], metrics=["recall_per_class", "recall_macro"],
        check=False,
    )  # fmt: skip
    outcomes = judge([Requirement.parse("recall_per_class>=0.1")], found, 0.95)
    assert [one.metric for one in outcomes] == ["recall[0]", "recall[1]", "recall[2]"]
    assert [one.text for one in outcomes] == [f"recall[{k}]>=0.1" for k in range(3)]


def test_a_limit_that_the_metric_cannot_have_is_refused():
    bounds = {"accuracy": (0.0, 1.0), "log_loss": (0.0, float("inf"))}
    Requirement.parse("log_loss<=90").check_limit(bounds)
    Requirement.parse("accuracy>=1").check_limit(bounds)
    for text in ("accuracy>=90", "accuracy>=-0.1", "log_loss<=-1"):
        with pytest.raises(calshift.InvalidInput, match="limit that its metric can have"):
            Requirement.parse(text).check_limit(bounds)


def test_the_sentence_begins_with_what_is_wrong(found):
    texts = ["accuracy>=0.01", "accuracy>=0.999", "accuracy<0.02"]
    outcomes = judge([Requirement.parse(text) for text in texts], found, 0.9)
    sentence = outcome_sentence(outcomes, 0.9)
    low, high = found["accuracy"].confidence_interval(0.9)
    ends = f"({low:.4g} to {high:.4g})"
    assert sentence == (
        f"Violated: accuracy>=0.999 {ends}, accuracy<0.02 {ends}. Met: accuracy>=0.01 {ends}. "
        "In brackets: 90% intervals."
    )
    assert outcome_sentence([], 0.9) == ""
