"""`decision_threshold`: thresholds that keep a metric, thresholds and rules from costs."""

from __future__ import annotations

import json
import pickle
from dataclasses import replace

import numpy as np
import pytest

import calshift
from calshift import InvalidInput
from calshift.decisions.recalibrated_rule import break_even, original_score
from calshift.decisions.score_curve import ScoredRows, mean_of_odds
from calshift.engines import Arrays
from calshift.metrics.efficient_shares import fit_shares
from calshift.results.decisions import format_threshold

MODEL = calshift.simulate.GaussianSimulation(
    n_classes=2, dimensions=2, imbalance=9, long_tail="source", temperature=0.8, seed=5
)  # 10% positive rows on the source, half on the target
COST = {"false_positive": 1, "false_negative": 5}


@pytest.fixture(scope="module")
def pair():
    p, y = MODEL.source(4000, rng=1)
    q, z = MODEL.target(3000, rng=2)
    return p, y, q, z


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({}, "either cost= or keep="),
        ({"cost": COST, "keep": "recall", "at": 0.5}, "either cost= or keep="),
        ({"cost": COST, "at": 0.5}, "at= belongs to keep="),
        ({"keep": "recall"}, "needs at="),
        ({"keep": "recall", "at": 1.0}, "between 0 and 1"),
        (
            {"keep": "f1", "at": 0.5},
            "keep must be one of precision, recall, specificity, alarm_rate",
        ),
        ({"cost": {"miss": 1}}, "false_positive"),
        ({"cost": np.ones((2, 2))}, "not all the same"),
        ({"cost": np.ones((3, 3))}, r"shape \(2, 2\)"),
        ({"cost": [[0, np.nan], [1, 0]]}, "finite"),
        ({"cost": COST, "positive": "ill"}, "positive must be one of the classes"),
        ({"cost": COST, "waive": "nothing"}, "waive must name conditions"),
    ],
)
def test_arguments_that_cannot_be_meant_are_refused(pair, arguments, words):
    with pytest.raises(InvalidInput, match=words):
        calshift.decision_threshold(*pair[:3], **arguments)


def test_a_metric_is_kept_for_two_classes_only():
    model = calshift.simulate.GaussianSimulation(n_classes=3, dimensions=3)
    samples = (*model.source(500, rng=1), model.target(500, rng=2)[0])
    with pytest.raises(InvalidInput, match="is for two classes; there are 3"):
        calshift.decision_threshold(*samples, keep="recall", at=0.5)


@pytest.mark.parametrize("positive", [0, 1])
def test_the_curve_is_its_definition(pair, positive):
    p, y, q, _ = pair
    w = np.array([0.6, 4.0])
    w = w / w[y].mean()
    source, target = calshift.Predictions(p, y), calshift.Predictions(q)
    curve = ScoredRows.of(source, target, w, positive).curve()
    v = fit_shares(Arrays(source), w, len(q))
    for k in (0, 10, 1500, len(curve.thresholds) - 1):
        t = curve.thresholds[k]
        alarm, before = q[:, positive] >= t, p[:, positive] >= t
        residual = w[y] * ((y == positive) - v(source)[:, positive])
        hits = (v(target)[:, positive] * alarm).mean() + (residual * before).mean()
        assert curve.alarms[k] == pytest.approx(alarm.mean(), abs=1e-12)
        assert curve.hits[k] == pytest.approx(np.clip(hits, 0, curve.prevalence), abs=1e-12)
    assert curve.prevalence == pytest.approx((w[y] * (y == positive)).mean())


@pytest.mark.parametrize(
    ("keep", "at"),
    [("recall", 0.9), ("precision", 0.9), ("specificity", 0.95), ("alarm_rate", 0.3)],
)
def test_a_metric_is_kept_at_its_value(pair, keep, at):
    p, y, q, z = pair
    found = calshift.decision_threshold(p, y, q, keep=keep, at=at)
    assert found.trusted
    assert found.reached
    assert found.achieved[keep].estimate == pytest.approx(at, abs=0.01)
    said = q[:, 1] >= found.threshold
    true = {
        "recall": said[z == 1].mean(),
        "precision": (z[said] == 1).mean(),
        "specificity": (~said[z == 0]).mean(),
        "alarm_rate": said.mean(),
    }[keep]
    # two binomial shares of about 300 positive source rows and 1000 target rows, 3.3 errors
    assert true == pytest.approx(at, abs=3.3 * np.sqrt(at * (1 - at) * (1 / 300 + 1 / 1000)))


def test_of_all_thresholds_the_one_of_most_use_is_chosen(pair):
    """The next threshold would not keep the metric, or give fewer hits than necessary."""
    p, y, q, _ = pair
    rows = ScoredRows.of(calshift.Predictions(p, y), calshift.Predictions(q), np.ones(2), 1)
    curve = rows.curve()
    for metric, at in (("recall", 0.8), ("precision", 0.3), ("alarm_rate", 0.2)):
        threshold, reached = curve.keep(metric, at)
        k = int(np.searchsorted(curve.thresholds, threshold))
        assert reached
        if metric == "recall":
            assert curve.recall[k] >= at > curve.recall[k + 1]
        elif metric == "precision":
            assert curve.precision[k] >= at > curve.precision[k - 1]
        else:
            assert curve.alarms[k] <= at < curve.alarms[k - 1]


def test_a_precision_that_no_threshold_reaches_is_said():
    rng = np.random.default_rng(0)
    scores = rng.choice([0.1, 0.3, 0.6], (2, 4000))
    y = (rng.uniform(size=4000) < scores[0]).astype(int)
    found = calshift.decision_threshold(scores[0], y, scores[1], keep="precision", at=0.9)
    assert not found.reached
    assert not found.trusted
    assert found.threshold == 0.6  # the most precise
    assert found.achieved["precision"].estimate == pytest.approx(0.6, abs=0.06)
    assert "no threshold keeps precision at 0.9" in found.warnings[0]


def test_costs_give_the_threshold_of_the_true_posterior():
    """The predictor is a power of the source's posterior, so that the best threshold is known."""
    p, y = MODEL.source(20000, rng=3)
    q, _ = MODEL.target(20000, rng=4)
    found = calshift.decision_threshold(p, y, q, cost=COST)
    assert found.recalibrated_threshold == pytest.approx(1 / 6)
    odds = (1 / 5) * (0.1 / 0.9)  # on the source, where positive rows are rarer
    best = odds ** (1 / 0.8) / (1 + odds ** (1 / 0.8))
    # log-odds of the threshold: the spread over 20 seeds is 0.13
    logit = np.log(found.threshold / (1 - found.threshold))
    assert logit == pytest.approx(np.log(best / (1 - best)), abs=4 * 0.13)


def test_the_rule_for_costs_lowers_the_cost(pair):
    p, y, q, z = pair
    found = calshift.decision_threshold(p, y, q, cost=COST)

    def cost_of(said: np.ndarray) -> float:
        return float(((said == 1) & (z == 0)).mean() + 5 * ((said == 0) & (z == 1)).mean())

    change, ends = found.change("expected_cost")
    assert change < 0
    assert ends[0] < change < ends[1] < 0
    assert cost_of(found.predict(q)) < cost_of(q.argmax(axis=1))
    # the estimates agree with the labels within 3.3 errors of about .03
    assert found.achieved["expected_cost"].estimate == pytest.approx(
        cost_of(found.predict(q)), abs=0.1
    )


def test_the_positive_class_may_be_the_first(pair):
    p, y, q, _ = pair
    one = calshift.decision_threshold(p, y, q, cost=COST)
    other = calshift.decision_threshold(p[:, ::-1], 1 - y, q[:, ::-1], cost=COST, positive=0)
    assert other.threshold == pytest.approx(one.threshold, rel=1e-3)
    for name in one.achieved:
        assert other.achieved[name].estimate == pytest.approx(one.achieved[name].estimate, abs=2e-3)


def test_more_classes_take_the_least_expected_cost_after_recalibration():
    model = calshift.simulate.GaussianSimulation(n_classes=4, dimensions=4, imbalance=5, seed=2)
    p, y = model.source(3000, rng=1)
    q, _ = model.target(2000, rng=2)
    cost = np.array([[0, 1, 2, 9], [1, 0, 1, 9], [1, 1, 0, 9], [1, 1, 1, 0]], dtype=float)
    names = ["a", "b", "c", "d"]
    source = calshift.Predictions(p, y, classes=names)
    found = calshift.decision_threshold(source, None, q, cost=cost)
    recalibrated = found.recalibrator.transform(q)
    expected = np.array(names)[(recalibrated @ cost.T).argmin(axis=1)]
    assert (found.predict(calshift.Predictions(q, classes=names)) == expected).all()
    assert found.threshold is None
    assert found.change("expected_cost")[0] < 0


def test_a_lower_threshold_has_more_recall_where_positive_rows_are_rare():
    """With even margins of the confusion matrix the noise of common rows entered the hits."""
    rng = np.random.default_rng(1)

    def draw(n, share):
        y = (rng.uniform(size=n) < share).astype(int)
        x = rng.normal(size=n) + 2.5 * y
        return 1 / (1 + np.exp(-(2.5 * x - 3.125 + np.log(0.02 / 0.98)))), y

    p, y = draw(5000, 0.02)
    q, _ = draw(5000, 0.002)
    found = calshift.decision_threshold(p, y, q, keep="recall", at=0.95, decision=0.02)
    assert found.achieved["recall"].estimate == pytest.approx(0.95, abs=0.01)
    assert found.change("recall")[0] > 0
    assert found.change("missed_cases")[0] < 0


def test_costs_that_the_rows_cannot_decide_predict_all_positive(pair):
    p, y, q, _ = pair
    cost = {"false_positive": 1, "false_negative": 1e6}
    found = calshift.decision_threshold(p, y, q, cost=cost)
    assert found.threshold == 0
    assert (found.predict(q) == 1).all()
    assert "all rows are predicted positive" in found.warnings[0]


def test_break_even_probabilities():
    assert break_even(np.array([[0.0, 9.0], [1.0, 0.0]]), 1) == pytest.approx(0.1)
    assert break_even(np.array([[0.0, 9.0], [1.0, 0.0]]), 0) == pytest.approx(0.9)
    assert break_even(np.array([[0.0, 5.0], [0.0, 0.0]]), 1) == 0.0
    assert break_even(np.array([[0.0, 0.0], [5.0, 0.0]]), 1) > 1


def test_a_recalibrated_probability_is_traced_to_its_score(pair):
    p, y, q, _ = pair
    fitted = calshift.ShiftScaling().fit(p, y, q)
    for probability in (0.05, 0.5, 0.95):
        score = original_score(fitted, probability, 1)
        found = fitted.transform(np.array([[1 - score, score]]))[0, 1]
        assert found == pytest.approx(probability, abs=1e-9)


def test_probabilities_are_averaged_as_odds():
    assert mean_of_odds([0.1, 0.9]) == pytest.approx(0.5)
    assert mean_of_odds([0.2]) == pytest.approx(0.2)
    assert 0 < mean_of_odds([0.0, 1.0, 1.0]) < 1


def test_a_target_outside_label_shift_is_not_trusted(pair):
    p, y, q, _ = pair
    other = q**3 / (q**3).sum(axis=1, keepdims=True)
    with pytest.warns(calshift.UnreliableWeights):
        found = calshift.decision_threshold(p, y, other, cost=COST)
    assert not found.trusted
    assert "NOT TRUSTED" in str(found)


def test_the_result_is_plain(pair):
    found = calshift.decision_threshold(*pair[:3], cost=COST)
    assert pickle.loads(pickle.dumps(found)).threshold == found.threshold
    plain = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert plain["threshold"] == found.threshold
    assert set(plain["changes"]) == set(found.achieved)
    assert max(map(len, str(found).splitlines())) <= 100
    assert "<table>" in found._repr_html_()
    with pytest.raises(InvalidInput, match="there is no metric 'auc'"):
        found.change("auc")


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.25, "0.25"), (2 / 3, "0.666666"), (0.9999999, "0.999999"), (1 / 3, "0.333333"), (1, "1")],
)
def test_a_threshold_is_shown_rounded_down(value, text):
    """So that rows whose score is the threshold are still predicted positive."""
    assert format_threshold(value) == text
    assert float(text) <= value


def test_the_table_has_both_rules_and_the_change_with_its_interval(pair):
    found = calshift.decision_threshold(*pair[:3], cost=COST)
    lines = {line.split()[0]: line for line in found.table(0.9).splitlines()}
    change, (low, high) = found.change("recall", 0.9)
    new, old = found.achieved["recall"], found.unchanged["recall"]
    ends = "{:.4f} to {:.4f}".format(*new.confidence_interval(0.9))
    assert lines["recall"].split() == [
        "recall", f"{old.estimate:.4f}", f"{new.estimate:.4f}", *ends.split(), f"{change:+.4f}",
        f"{low:+.4f}", "to", f"{high:+.4f}",
    ]  # fmt: skip
    missed = (1000 * one["missed_cases"].estimate for one in (found.unchanged, found.achieved))
    assert lines["missed_cases"].split()[1:5] == ["(per", "1000)", *(f"{x:.2f}" for x in missed)]
    assert lines["prevalence"].endswith(" same")


@pytest.mark.filterwarnings("ignore::calshift.UnreliableWeights")
def test_a_change_stays_in_the_range_of_its_metric(pair):
    p, y, q, _ = pair
    one = calshift.decision_threshold(p[:40], y[:40], q[:40], keep="alarm_rate", at=0.999)
    value, (low, high) = one.change("recall", 0.9999999)
    assert -1 <= low < value < high == 1


def test_what_is_unknown_is_not_shown_as_a_number(pair):
    found = calshift.decision_threshold(*pair[:3], cost=COST)
    metrics = dict(found.achieved.metrics)
    metrics["precision"] = replace(metrics["precision"], estimate=float("nan"), _error=None)
    changed = replace(found, achieved=replace(found.achieved, metrics=metrics))
    assert changed.change("precision")[1] is None
    for text in (changed.table(), changed._repr_html_()):
        assert "nan" not in text
        assert "unknown" in text
    assert json.loads(json.dumps(changed.to_dict(), allow_nan=False))


def test_the_class_and_long_names_fit_the_table(pair):
    p, y, q, _ = pair
    names = ["a", "\x1b[31m" + "x" * 300]
    source = calshift.Predictions(p, y, classes=names)
    found = calshift.decision_threshold(
        source, None, q, keep="recall", at=0.9, metrics=["recall_per_class", "accuracy"],
        cost=None,
    )  # fmt: skip
    assert max(map(len, str(found).splitlines())) <= 100
    assert "\x1b" not in str(found)
    big = calshift.decision_threshold(p, y, q, cost={"false_positive": 1e7, "false_negative": 5e7})
    assert max(map(len, str(big).splitlines())) <= 100


def test_the_note_on_costs_is_not_of_a_metric_that_is_kept():
    rng = np.random.default_rng(0)
    scores = rng.choice([0.0, 0.3, 0.6], (2, 2000))
    y = (rng.uniform(size=2000) < 0.2 + scores[0]).astype(int)
    found = calshift.decision_threshold(
        scores[0], y, scores[1], keep="recall", at=0.999, check=False
    )
    assert found.threshold == 0
    assert not any("costs decide" in note for note in found.warnings)
