"""Average precision, and slope and intercept of calibration."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize
from sklearn.metrics import average_precision_score

import calshift
from calshift import labelled_metrics, target_metrics

MODEL = calshift.simulate.GaussianSimulation(n_classes=3, dimensions=2, imbalance=4, seed=1)
LINES = ("calibration_slope", "calibration_intercept")
NAMES = ("average_precision_per_class", *(f"{name}_per_class" for name in LINES))


def sample(n=600, rng=1):
    p, y = MODEL.source(n, rng=rng)
    ties = np.round(p, 2) + 0.01
    return ties / ties.sum(axis=1, keepdims=True), y


@pytest.mark.parametrize("weighted", [False, True])
def test_average_precision_is_that_of_scikit_learn(weighted):
    p, y = sample()
    f = np.random.default_rng(0).uniform(0.5, 3, len(y)) if weighted else None
    rows = calshift.Predictions(p, y, sample_weight=f)
    found = labelled_metrics(rows, metrics="average_precision_per_class")
    for k in range(3):
        expected = average_precision_score(y == k, p[:, k], sample_weight=f)
        assert found[f"average_precision[{k}]"].estimate == pytest.approx(expected, abs=1e-12)


def likelihood(parameters, x, hit, slope=None):
    a, b = parameters[0], parameters[1] if slope is None else slope
    z = a + b * x
    return np.logaddexp(0.0, z).sum() - z[hit].sum()


@pytest.mark.parametrize("k", [0, 2])
def test_slope_and_intercept_are_of_largest_likelihood(k):
    p, y = sample()
    x, hit = np.log(p[:, k] / (1 - p[:, k])), y == k
    found = labelled_metrics(p, y, metrics=LINES, positive=k)
    both = minimize(likelihood, [0.0, 1.0], args=(x, hit), method="BFGS", tol=1e-12).x
    one = minimize(likelihood, [0.0], args=(x, hit, 1.0), method="BFGS", tol=1e-12).x
    assert found["calibration_slope"].estimate == pytest.approx(both[1], abs=1e-5)
    assert found["calibration_intercept"].estimate == pytest.approx(one[0], abs=1e-5)


def test_standard_errors_are_those_of_the_jackknife():
    """It agrees with the influence to the order of 1 / n: 3% for 120 rows."""
    p, y = sample(120)
    found = labelled_metrics(p, y, metrics=NAMES)
    rows = np.arange(len(y))
    left = np.array(
        [
            [one.estimate for one in labelled_metrics(
                p[rows != k], y[rows != k], metrics=NAMES, interval=None
            ).values()]
            for k in rows
        ]
    )  # fmt: skip
    n = len(y)
    spread = np.sqrt((n - 1) / n * ((left - left.mean(axis=0)) ** 2).sum(axis=0))
    for k, one in enumerate(found.values()):
        assert one.standard_error == pytest.approx(spread[k], rel=0.15), one.name


@pytest.mark.slow
def test_on_the_target_they_have_their_standard_errors():
    """100 draws: the spread has a relative error of .07, of which 4 are allowed for."""
    names = ("average_precision", *LINES)
    truth = labelled_metrics(*MODEL.target(200_000, rng=9), metrics=names, positive=1)
    found = np.array(
        [
            [
                (one.estimate, one.standard_error)
                for one in target_metrics(
                    *MODEL.source(1500, rng=[k, 0]), MODEL.target(1000, rng=[k, 1])[0],
                    metrics=names, positive=1, check=False,
                ).values()
            ]
            for k in range(100)
        ]
    )  # fmt: skip
    spread = found[:, :, 0].std(axis=0)
    error = np.median(found[:, :, 1], axis=0)
    assert error == pytest.approx(spread, rel=0.28)
    bias = found[:, :, 0].mean(axis=0) - [one.estimate for one in truth.values()]
    assert (np.abs(bias) < 0.35 * spread).all()


def test_a_class_without_rows_or_separable_is_noted():
    p = np.array([[0.9, 0.1]] * 30 + [[0.1, 0.9]] * 30)
    y = np.repeat([0, 1], 30)
    found = labelled_metrics(p, y, metrics=LINES, positive=1)
    for name in LINES:
        assert np.isfinite(found[name].estimate)
    assert found["calibration_slope"].note or abs(found["calibration_slope"].estimate) > 3
    none = labelled_metrics(p, np.zeros(60, int), metrics=("average_precision", *LINES))
    assert none["average_precision"].estimate == 0
    assert none["average_precision"].note
    assert not none["average_precision"].trusted


def test_batches_give_the_numbers_of_arrays():
    p, y = sample(900)
    q = sample(600, rng=2)[0]
    source = calshift.scan([(p[:400], y[:400]), (p[400:], y[400:])])
    target = calshift.scan([q[:300], q[300:]])
    found = target_metrics(source, None, target, metrics=NAMES, check=False)
    expected = target_metrics(p, y, q, metrics=NAMES, check=False)
    for name, one in expected.items():
        close = 3e-3 if name.startswith("average") else 1e-8
        assert found[name].estimate == pytest.approx(one.estimate, abs=close), name
