"""Metrics of a handful of rows: intervals, and trust."""

from __future__ import annotations

import numpy as np
import pytest

import calshift
from calshift.metrics.catalogue import Setting, make_metrics
from calshift.metrics.rows_behind import RowsBehind

COUNTS = np.array([[90.0, 2.0], [4.0, 6.0]])  # rows by predicted and true class
SETTING = Setting(2, None, 1, None)


def rows_of(name, weights=(1.0, 1.0), counts=COUNTS):
    (metric,) = make_metrics(name, SETTING)
    return RowsBehind(102.0, counts, np.array(weights), 500.0).of(metric)


@pytest.mark.parametrize(
    ("name", "rows"),
    [
        ("recall", 8), ("specificity", 94), ("precision", 10), ("npv", 92), ("f1", 8),
        ("balanced_accuracy", 8), ("roc_auc", 8), ("average_precision", 8), ("accuracy", 102),
        ("alarm_rate", 500), ("prevalence", np.inf), ("recall[0]", 94), ("log_loss", 102),
    ],
)  # fmt: skip
def test_the_rows_are_those_of_the_denominator(name, rows):
    assert rows_of(name) == rows


def test_rows_of_unequal_weight_count_less():
    """Alarms: 4 rows of weight 1 and 6 of weight 3."""
    assert rows_of("precision", (1.0, 3.0)) == pytest.approx((4 + 18) ** 2 / (4 + 54))
    assert rows_of("recall", (1.0, 3.0)) == 8


def test_a_perfect_ratio_of_three_rows_is_not_certain():
    p = np.r_[np.full(197, 0.9), np.full(3, 0.1)]
    y = np.r_[np.ones(197, int), np.zeros(3, int)]
    names = ["specificity", "npv", "balanced_accuracy", "roc_auc", "recall"]
    found = calshift.labelled_metrics(p, y, metrics=names)
    for name in names[:-1]:
        assert found[name].estimate == 1
        # Wilson's interval of 3 of 3 begins at 3 / (3 + 1.96^2)
        assert found[name].confidence_interval()[0] == pytest.approx(3 / (3 + 1.96**2), abs=1e-3)
        assert not found[name].trusted
    assert found["recall"].confidence_interval()[0] > 0.97


def test_a_log_loss_without_wrong_rows_is_not_trusted():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 200)
    p = np.where(y == 1, 0.99, 0.01)
    found = calshift.labelled_metrics(p, y, metrics=["log_loss", "brier_score"])
    assert not found["log_loss"].trusted
    (failed,) = [one for one in found["log_loss"].diagnostics if one.failed]
    assert failed.name == "residual-rows"
    waived = calshift.labelled_metrics(p, y, metrics="log_loss", waive="residual-rows")
    assert waived["log_loss"].trusted


@pytest.mark.slow
def test_precision_of_few_alarms_covers():
    """400 samples of 200 rows with 5% positive ones; binomial tolerance of 4 errors below .95."""
    rng, missed, draws = np.random.default_rng(1), 0, 400

    def draw(n):
        y = (rng.uniform(size=n) < 0.05).astype(int)
        x = rng.normal(size=n) + 3.0 * y
        return 1 / (1 + np.exp(-(3 * x - 4.5 + np.log(0.05 / 0.95)))), y

    p, y = draw(400_000)
    true = float(y[p > 0.5].mean())
    for _ in range(draws):
        found = calshift.labelled_metrics(*draw(200), metrics="precision")["precision"]
        low, high = found.confidence_interval()
        missed += not (low <= true <= high) and not found.note
    assert missed / draws < 0.05 + 4 * np.sqrt(0.05 * 0.95 / draws)


def test_a_difference_of_metrics_of_few_rows_is_as_wide_as_both():
    model = calshift.simulate.GaussianSimulation(2, dimensions=2, imbalance=4, seed=2, spread=2.5)
    p, y = model.source(80, rng=1)
    found = calshift.target_metrics(p, y, model.target(400, rng=2)[0], check=False)["accuracy"]
    assert min(found.estimate, 1 - found.estimate) * 80 < 5
    low, high = found.difference_interval()
    ends, others = found.confidence_interval(), found.source_interval()
    assert high - low >= 0.99 * np.hypot(ends[1] - ends[0], others[1] - others[0])


def test_the_wrong_rows_of_a_log_loss_do_not_depend_on_the_decision():
    rng = np.random.default_rng(0)
    y = (rng.uniform(size=400) < 0.3).astype(int)
    p = np.where(y == 1, 0.97, 0.03)
    found = calshift.labelled_metrics(p, y, metrics="log_loss", decision=0.01)["log_loss"]
    assert not found.trusted  # all rows are alarms, of which most are false; none is wrong
    (rows,) = [one.value for one in found.diagnostics if one.name == "residual-rows"]
    assert rows == 0


def test_a_log_loss_alone_is_checked_for_many_classes():
    model = calshift.simulate.GaussianSimulation(n_classes=210, dimensions=12, seed=1)
    found = calshift.labelled_metrics(*model.source(2000, rng=1), metrics="log_loss")["log_loss"]
    assert "residual-rows" in {one.name for one in found.diagnostics}
    assert found.trusted
