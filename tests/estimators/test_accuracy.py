"""The estimates find the truth: smaller, seeded editions of benchmarks/accuracy.py."""

from __future__ import annotations

import numpy as np
import pytest

import calshift
from calshift.simulate import BetaSimulation, GaussianSimulation

BETA = BetaSimulation()
pytestmark = pytest.mark.filterwarnings("ignore::calshift.UnreliableWeights")


def draws(n: int, number: int, norm: float, **options) -> np.ndarray:
    found = []
    for seed in range(number):
        p, y = BETA.source(n, rng=[seed, 1])
        q, _ = BETA.target(n, rng=[seed, 2])
        found.append(
            calshift.target_calibration_error(
                p, y, q, weights=BETA.class_weights, norm=norm, **options
            ).estimate
        )
    return np.array(found)


@pytest.mark.slow
@pytest.mark.parametrize("norm", [1, 2])
def test_debiased_is_nearly_unbiased_without_labels(norm):
    """Mean of 300 draws at n = 500 within 3% of the truth (the basis) plus 4 standard errors."""
    truth, found = BETA.true_error(norm), draws(500, 300, norm)
    assert abs(found.mean() - truth) < 0.03 * truth + 4 * found.std() / np.sqrt(300)


@pytest.mark.slow
def test_the_papers_estimator_is_many_times_worse():
    """300 draws at n = 500: the ratio of RMSEs is about 14; each RMSE is known to some 5%."""
    truth = BETA.true_error()
    ours = np.sqrt(np.mean((draws(500, 300, 2) - truth) ** 2))
    papers = np.sqrt(np.mean((draws(500, 300, 2, estimator="paper") - truth) ** 2))
    assert papers / ours > 11


@pytest.mark.slow
@pytest.mark.parametrize("domain", ["source", "target"])
@pytest.mark.parametrize("norm", [1, 2])
def test_debiased_is_nearly_unbiased_with_labels(domain, norm):
    """300 draws at n = 500, within 3% plus 4 standard errors."""
    draw = getattr(BETA, domain)
    found = np.array(
        [calshift.calibration_error(*draw(500, rng=[s, 7]), norm=norm).estimate for s in range(300)]
    )
    truth = BETA.true_error(norm, domain)
    assert abs(found.mean() - truth) < 0.03 * truth + 4 * found.std() / np.sqrt(300)


@pytest.mark.parametrize("kind", ["binary", "top-label", "classwise"])
def test_a_calibrated_model_shows_no_error(kind):
    """Mean of 200 signed estimates within 4 standard errors of 0 on the source."""
    simulation = GaussianSimulation(n_classes=2 if kind == "binary" else 4, temperature=1.0)
    found = []
    for seed in range(200):
        p, y = simulation.source(400, rng=seed)
        found.append(calshift.calibration_error(p, y, kind=kind).estimate)
    assert abs(np.mean(found)) < 4 * np.std(found) / np.sqrt(200)
    assert min(found) < 0  # the sign is kept


@pytest.mark.slow
def test_ten_classes_have_little_bias():
    """|bias| below 0.7 sd of one draw (the limit at n = 1000) plus 4 standard errors."""
    simulation = GaussianSimulation(seed=3)
    truth, found = simulation.true_error(rows=500_000), []
    for seed in range(40):
        p, y = simulation.source(1000, rng=[seed, 1])
        q, _ = simulation.target(1000, rng=[seed, 2])
        weights = simulation.class_weights
        found.append(calshift.target_calibration_error(p, y, q, weights=weights).estimate)
    sd = np.std(found, ddof=1)
    assert abs(np.mean(found) - truth) < (0.7 + 4 / np.sqrt(40)) * sd


@pytest.mark.slow
@pytest.mark.parametrize(("K", "dimensions"), [(3, 3), (4, 4)])
def test_canonical_error_is_found_where_its_dimension_allows(K, dimensions):
    """p determines the posterior, so the truth is a plain mean; the kernel smooths some away."""
    simulation = GaussianSimulation(n_classes=K, dimensions=dimensions, temperature=0.6)
    prediction, _, posterior = simulation.draw(200_000, "target", rng=0)
    truth = ((posterior - prediction) ** 2).sum(axis=1).mean()
    found = []
    for seed in range(5):
        p, y = simulation.source(1000, rng=[seed, 1])
        q, _ = simulation.target(1000, rng=[seed, 2])
        w = simulation.class_weights
        found.append(
            calshift.target_calibration_error(p, y, q, weights=w, kind="canonical").estimate
        )
    # within a fifth (smoothing) plus 4 standard errors of a mean of five
    assert abs(np.mean(found) - truth) < 0.2 * truth + 4 * np.std(found, ddof=1) / np.sqrt(5)


@pytest.mark.slow
@pytest.mark.parametrize("K", [3, 6])
def test_a_calibrated_model_shows_no_canonical_error(K):
    """Mean of 20 signed estimates within 4 standard errors of 0."""
    simulation = GaussianSimulation(n_classes=K, dimensions=K, temperature=1.0)
    found = [
        calshift.calibration_error(*simulation.source(300, rng=seed), kind="canonical").estimate
        for seed in range(20)
    ]
    assert abs(np.mean(found)) < 4 * np.std(found, ddof=1) / np.sqrt(20)
