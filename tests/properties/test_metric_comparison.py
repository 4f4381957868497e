"""Differences of metrics of the same rows."""

from __future__ import annotations

import numpy as np
import pytest

import calshift
from calshift import Predictions

from .samples import drawn
from .test_comparison import milder

LEVELS = (0.5, 0.9, 0.99)
NAMES = ["accuracy", "f1_macro", "log_loss", "brier_score", "recall[1]"]


def metrics_of(p, y, q, **options):
    return calshift.target_metrics(p, y, q, **{"metrics": NAMES, "check": False, **options})


def models(seed, bias=0.5, **sizes):
    """Two models on the same rows: the second is less confident, and its classes are biased."""
    p, y, q, _ = drawn(seed, **sizes)
    return metrics_of(p, y, q), metrics_of(biased(p, bias), y, biased(q, bias))


def biased(p, bias=0.5):
    other = milder(p, 0.6) * np.linspace(1 - bias, 1 + bias, p.shape[1])
    return other / other.sum(axis=1, keepdims=True)


def test_a_result_does_not_differ_from_itself():
    a, _ = models(1)
    same = calshift.compare(a, a)
    assert list(same) == NAMES
    for one in same.values():
        assert one.estimate == 0
        assert one.standard_error == pytest.approx(0, abs=1e-9)
        assert one.correlation == pytest.approx(1)
        low, high = one.confidence_interval()
        assert low <= 0 <= high
        assert not one.is_clear() or low == high == 0


def test_antisymmetric():
    a, b = models(2)
    there, back = calshift.compare(a, b), calshift.compare(b, a)
    for name, one in there.items():
        assert one.estimate == pytest.approx(a[name].estimate - b[name].estimate)
        assert one.estimate == pytest.approx(-back[name].estimate)
        assert one.standard_error == pytest.approx(back[name].standard_error)
        for level in LEVELS:
            low, high = one.confidence_interval(level)
            assert low < one.estimate < high
            assert back[name].confidence_interval(level) == pytest.approx((-high, -low))


def test_correlation_and_ends_from_the_influence_of_the_rows():
    """r = sum of products of the influences over the rows both have; the ends by their formula."""
    a, b = models(3)
    one, two = a._influence, b._influence
    for k, (name, found) in enumerate(calshift.compare(a, b).items()):
        rows = [np.concatenate([i.source[:, k], i.target[:, k]]) for i in (one, two)]
        r = rows[0] @ rows[1] / np.sqrt((rows[0] @ rows[0]) * (rows[1] @ rows[1]))
        assert found.correlation == pytest.approx(r)
        errors = a[name].standard_error, b[name].standard_error
        square = errors[0] ** 2 + errors[1] ** 2 - 2 * r * errors[0] * errors[1]
        assert found.standard_error == pytest.approx(np.sqrt(square))
        reach = 1.6448536 * np.sqrt(square)  # of 90%
        ends = found.estimate - reach, found.estimate + reach
        assert found.confidence_interval(0.9) == pytest.approx(ends, rel=1e-6)


def test_metrics_are_matched_by_name():
    p, y, q, _ = drawn(4)
    a = metrics_of(p, y, q, metrics=["log_loss", "accuracy", "brier_score"])
    b = metrics_of(biased(p), y, biased(q), metrics=["accuracy", "cohen_kappa", "log_loss"])
    found, both = calshift.compare(a, b), calshift.compare(*models(4))
    assert list(found) == ["log_loss", "accuracy"]
    for name, one in found.items():
        assert one.correlation == pytest.approx(both[name].correlation)
        assert one.confidence_interval() == pytest.approx(both[name].confidence_interval())


@pytest.mark.filterwarnings("ignore::calshift.UnreliableWeights")
def test_the_factor_of_the_lack_of_fit_is_that_of_both_intervals():
    """Both standard errors are multiplied by it, and with them that of the difference."""
    p, y, q, _ = drawn(6)
    a, b = (metrics_of(one, y, two, check=True) for one, two in ((p, q), (biased(p), biased(q))))
    plain = [metrics_of(one, y, two) for one, two in ((p, q), (biased(p), biased(q)))]
    factors = [one.class_weights.error_factor for one in (a, b)]
    assert max(factors) > 1.01
    for name, one in calshift.compare(a, b).items():
        errors = [f * each[name].standard_error for f, each in zip(factors, plain, strict=True)]
        square = errors[0] ** 2 + errors[1] ** 2 - 2 * one.correlation * errors[0] * errors[1]
        assert one.standard_error == pytest.approx(np.sqrt(square))


def test_a_drift_widens_both_ends():
    p, y, q, _ = drawn(5)
    pairs = (p, q), (biased(p), biased(q))
    without = calshift.compare(*(metrics_of(one, y, two) for one, two in pairs))
    a, b = (metrics_of(one, y, two, drift=0.02) for one, two in pairs)
    for name, one in calshift.compare(a, b).items():
        (down_a, up_a), (down_b, up_b) = a[name]._drift, b[name]._drift
        low, high = without[name].confidence_interval()
        ends = low - down_a - up_b, high + up_a + down_b
        assert one.confidence_interval() == pytest.approx(ends)


def test_labelled_rows_and_the_source_of_a_target():
    p, y, q, _ = drawn(7)
    a, b = (calshift.labelled_metrics(one, y, metrics=NAMES) for one in (p, biased(p)))
    one, two = a._influence.source[:, 0], b._influence.source[:, 0]
    found = calshift.compare(a, b)["accuracy"]
    assert found.standard_error == pytest.approx(np.sqrt(((one - two) ** 2).sum()), rel=1e-9)
    mixed = calshift.compare(metrics_of(p, y, q), a)  # which shares the source's rows alone
    assert 0 < mixed["accuracy"].correlation < 1


@pytest.mark.slow
@pytest.mark.parametrize("name", ["accuracy", "log_loss"])
def test_standard_error_is_the_spread_of_the_difference_over_draws(name):
    """120 draws know a spread to 1 / sqrt(240) = 6.5%; asked: within 4 of these."""
    pairs = (models([9, k], 0.1, n=800, m=800) for k in range(120))
    found = [calshift.compare(*pair)[name] for pair in pairs]
    spread = np.std([one.estimate for one in found], ddof=1)
    assert np.mean([one.standard_error for one in found]) == pytest.approx(spread, rel=0.26)
    apart = np.std([one.a.estimate for one in found], ddof=1)
    assert spread < apart


def test_refusals_say_why():
    p, y, q, _ = drawn(4)
    a = metrics_of(p, y, q)
    weight = np.ones(len(p))
    weight[0] = 2.0
    others = [
        metrics_of(p[::-1], y[::-1], q),
        metrics_of(p[:-1], y[:-1], q),
        metrics_of(p, y, q[:-1]),
        metrics_of(Predictions(p, y, sample_weight=weight), None, q),
    ]
    for other in others:
        with pytest.raises(calshift.InvalidInput, match="same rows"):
            calshift.compare(a, other)
    error = calshift.target_calibration_error(p, y, q, check=False)
    for one, other, name in ((a, 3, "b"), (None, a, "a"), (a, error, "b"), (error, a, "a")):
        with pytest.raises(calshift.InvalidInput, match=f"{name} must be a MetricsResult"):
            calshift.compare(one, other)
    for options in ({"interval": None}, {"interval": "bootstrap", "n_boot": 20, "rng": 0}):
        with pytest.raises(calshift.InvalidInput, match=r'b must .*interval="influence"'):
            calshift.compare(a, metrics_of(p, y, q, **options))
    scanned = calshift.target_metrics(
        calshift.scan([(p, y)]), None, calshift.scan([q]), metrics=NAMES, check=False
    )
    with pytest.raises(calshift.InvalidInput, match="rows in memory"):
        calshift.compare(a, scanned)
    with pytest.raises(calshift.InvalidInput, match="a metric in common"):
        calshift.compare(a, metrics_of(p, y, q, metrics=["cohen_kappa"]))
    costs = (metrics_of(p, y, q, metrics="expected_cost", cost=c * (1 - np.eye(3))) for c in (1, 2))
    with pytest.raises(calshift.InvalidInput, match="were the costs the same"):
        calshift.compare(*costs)
    positive = (metrics_of(p, y, q, metrics="recall", positive=k) for k in (1, 2))
    with pytest.raises(calshift.InvalidInput, match="the same positive class"):
        calshift.compare(*positive)


def test_influence_of_too_many_rows_is_not_kept(monkeypatch):
    monkeypatch.setattr("calshift.metrics.row_influence.MOST_KEPT", 10)
    with pytest.raises(calshift.InvalidInput, match="Ask for fewer metrics at a time"):
        calshift.compare(*models(8))


def test_plain_values_and_words():
    a, b = models(10, n=2000, m=2000)
    found = calshift.compare(a, b)
    shown = found.to_dict(0.9)
    assert [one["name"] for one in shown["metrics"]] == NAMES
    assert shown["metrics"][0]["interval"] == list(found["accuracy"].confidence_interval(0.9))
    assert shown["trusted"] == (a.trusted and b.trusted)
    for one in found.values():
        low, high = one.confidence_interval()
        assert str(one).endswith("not significant" if low <= 0 <= high else "different")
        assert str(one) in str(found)
