"""Estimates over many samples: their bias, their spread, and how often intervals hold the truth.

Of D draws, the standard deviation of an estimate has a relative error of about
sqrt((kappa - 1) / (4 D)) with kurtosis kappa: 0.071 at kappa = 3 and D = 100. Ratios are compared
within 4 of these, and 0.05 for what the delta method leaves out.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import calshift
from tests.metrics.samples import target_metrics, values

DRAWS = 100
TOLERANCE = 4 / np.sqrt(2 * DRAWS) + 0.05
SHIFTS = [(2, 3.0, "target"), (2, 5.0, "source"), (4, 4.0, "target"), (4, 4.0, "source")]


def numbers_of(one: Any) -> tuple[float, ...]:
    ends = one.confidence_interval(0.9)
    return one.estimate, one.standard_error, *ends, one.difference, one._difference_error


@pytest.fixture(scope="module", params=SHIFTS, ids=str)
def drawn(request: Any) -> dict[str, Any]:
    """Truths, and (draws,) estimates, standard errors and ends of intervals by name."""
    K, imbalance, long_tail = request.param
    simulation = calshift.simulate.GaussianSimulation(
        K, imbalance=imbalance, long_tail=long_tail, dimensions=3, spread=1.3
    )
    names = ["accuracy", "f1_macro", "log_loss", "roc_auc_ovr", "recall[0]", "brier_score"]
    labelled = calshift.labelled_metrics(*simulation.target(1_000_000, rng=1), metrics=names)
    truth = values(labelled)
    rows = []
    for draw in range(DRAWS):
        p, y = simulation.source(1500, rng=[70, draw])
        q, _ = simulation.target(1500, rng=[80, draw])
        found = target_metrics(p, y, q, metrics=names, weights="em-bcts")
        rows.append([numbers_of(one) for one in found.values()])
    table = dict(zip(names, np.array(rows).transpose(1, 2, 0), strict=True))
    noise = {name: one.standard_error for name, one in labelled.items()}
    return {name: (truth[name], noise[name], *table[name]) for name in names}


@pytest.mark.slow
def test_the_bias_is_below_3_standard_errors_of_the_mean(drawn):
    """And below those of the truth, which is of a sample too."""
    for name, (truth, noise, estimates, *_) in drawn.items():
        error = np.hypot(estimates.std(ddof=1) / DRAWS**0.5, noise)
        assert abs(estimates.mean() - truth) < 3 * error, name


@pytest.mark.slow
def test_standard_errors_are_the_spread_of_the_estimates(drawn):
    for name, (_, _, estimates, errors, *_) in drawn.items():
        ratio = np.sqrt(np.mean(errors**2)) / estimates.std(ddof=1)
        assert abs(np.log(ratio)) < TOLERANCE, (name, ratio)


@pytest.mark.slow
def test_standard_errors_of_differences_are_their_spread(drawn):
    for name, (*_, differences, errors) in drawn.items():
        ratio = np.sqrt(np.mean(errors**2)) / differences.std(ddof=1)
        assert abs(np.log(ratio)) < TOLERANCE, (name, ratio)


@pytest.mark.slow
def test_intervals_hold_the_truth_as_often_as_they_say(drawn):
    """Of 100 intervals at 90%, the share has a standard error of 0.03: at least 0.9 - 4 x 0.03."""
    for name, (truth, _, _, _, low, high, *_) in drawn.items():
        share = np.mean((low <= truth) & (truth <= high))
        assert share >= 0.78, (name, share)
