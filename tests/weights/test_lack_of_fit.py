"""Lack of fit: means of the target beside those that label shift implies."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import stats

import calshift
from calshift import Predictions
from calshift.diagnostics.weight_conditions import check_lack_of_fit
from calshift.engines import Arrays
from calshift.results.class_weights import ORDINARY_LACK_OF_FIT
from calshift.simulate import GaussianSimulation
from calshift.weights import estimate_weights
from calshift.weights.lack_of_fit import dense_features, level_codes, level_table

LEVELS = (0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99)
pytestmark = pytest.mark.filterwarnings("ignore::calshift.UnreliableWeights")


def sample(K, seed, n=800, m=800):
    simulation = GaussianSimulation(n_classes=K, imbalance=4, dimensions=3, spread=0.8, seed=2)
    rng = np.random.default_rng(seed)
    return *simulation.source(n, rng), simulation.target(m, rng)[0]


def defined_features(p):
    """Log predictions around their mean, confidence, shares above levels; written anew."""
    scores = np.log(np.maximum(p, 1e-4))
    scores = scores - scores.mean(axis=1)[:, None]
    confidence = p.max(axis=1)
    columns = [*scores.T[1 if p.shape[1] == 2 else 0 :], confidence]
    columns += [confidence > level for level in LEVELS]
    if p.shape[1] == 2:
        columns += [p[:, c] > level for c in (0, 1) for level in (0.5, 0.7, 0.8, 0.9, 0.95)]
    return np.array(columns, dtype=float).T


def gaps(p, y, q):
    """Means of the target less the mixture of those of the source's labels."""
    found = estimate_weights("matched", Arrays(Predictions(p, y)), Arrays(Predictions(q)))
    F = defined_features(p)
    of_label = np.array([F[y == c].mean(axis=0) for c in range(p.shape[1])])
    return defined_features(q).mean(axis=0) - found.prior_target @ of_label


def compared(p, y, q, method="matched"):
    pair = Arrays(Predictions(p, y)), Arrays(Predictions(q))
    return estimate_weights(method, *pair, compare=True).lack_of_fit


@pytest.mark.parametrize("K", [2, 3])
def test_features_are_those_of_their_definition(K):
    p, y, _ = sample(K, 0)
    batch = Predictions(p, y)
    found = np.hstack([dense_features(batch), level_table(batch)[level_codes(batch)]])
    np.testing.assert_allclose(found, defined_features(p), rtol=1e-12)


@pytest.mark.parametrize("K", [2, 3])
def test_differences_are_in_standard_errors_of_a_bootstrap(K):
    """The weights are refitted on rows drawn anew: 200 draws, a spread is known within 5%.

    The largest of many spreads of that precision, and a first-order approximation: within 20%.
    """
    p, y, q = sample(K, 1)
    rng = np.random.default_rng(7)
    draws = []
    for _ in range(200):
        i, j = rng.integers(len(p), size=len(p)), rng.integers(len(q), size=len(q))
        draws.append(gaps(p[i], y[i], q[j]))
    spread = np.std(draws, axis=0)
    z = np.abs(gaps(p, y, q)) / np.where(spread > 1e-9, spread, np.inf)
    scores = 1 if K == 2 else K
    unlikely = 1 - (1 - 2 * stats.norm.sf(z[:scores].max())) ** scores  # Sidak
    largest = max(stats.norm.isf(unlikely / 2), z[scores:].max())
    assert compared(p, y, q) == pytest.approx(largest, rel=0.2)


def test_it_is_small_under_label_shift_and_large_where_confidence_changes():
    """60 draws: the largest of some fifteen correlated |z|, in the median below that of fifteen
    independent ones, 2.0, with a binomial margin; then predictions are made 30% sharper."""
    found = np.array([compared(*sample(3, seed), method="auto") for seed in range(60)])
    assert np.median(found) < 2.0
    assert (found > 4.0).mean() <= 1 / 60  # of fifteen independent ones .1%
    p, y, q = sample(3, 0, 3000, 3000)
    q = q**1.3
    assert compared(p, y, q / q.sum(axis=1, keepdims=True), method="auto") > 6


def test_neither_the_order_of_two_classes_nor_of_many_matters():
    for K in (2, 4):
        p, y, q = sample(K, 3)
        order = np.roll(np.arange(K), 1)
        moved = compared(p[:, order], np.argsort(order)[y], q[:, order])
        assert moved == pytest.approx(compared(p, y, q), rel=1e-4)


def test_standard_errors_are_multiplied_by_what_exceeds_chance():
    p, y, q = sample(3, 0)
    q = q**1.08
    q /= q.sum(axis=1, keepdims=True)
    checked = calshift.target_calibration_error(p, y, q)
    unchecked = calshift.target_calibration_error(p, y, q, check=False)
    factor = checked.class_weights.lack_of_fit / ORDINARY_LACK_OF_FIT
    assert factor > 1.1
    assert checked.estimate == unchecked.estimate
    assert checked.standard_error == pytest.approx(factor * unchecked.standard_error, rel=1e-6)
    low, high = checked.confidence_interval()
    inner = unchecked.confidence_interval()
    assert low <= inner[0] < inner[1] < high
    alone = estimate_weights("auto", Arrays(Predictions(p, y)), Arrays(Predictions(q)))
    assert (alone.lack_of_fit, alone.error_factor) == (None, 1.0)
    calm = replace(checked.class_weights, lack_of_fit=1.2)
    assert calm.error_factor == 1


@pytest.mark.parametrize(("largest", "passed"), [(0.0, True), (4.8, True), (4.9, False)])
def test_a_large_lack_of_fit_fails(largest, passed):
    weights = SimpleNamespace(lack_of_fit=largest, error_factor=max(1.0, largest / 1.6))
    found = check_lack_of_fit(weights)
    assert (found.value, found.limit, found.passed) == (largest, 4.8, passed)
    missing = check_lack_of_fit(SimpleNamespace(lack_of_fit=None, method="em"))
    assert (missing.value, missing.passed) == (None, False)
