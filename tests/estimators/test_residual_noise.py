"""The bias of the debiased error, exactly: every outcome of the labels of a few rows is enumerated.

Scores are fixed and labels independent, so that the number of events among the rows of a score is
binomial; rows of the event have another class weight than the others.
"""

from itertools import product

import numpy as np
import pytest
from scipy.stats import binom

from calshift.binning.hat_basis import HatBasis
from calshift.estimators.debiased import errors, regression_noise
from calshift.estimators.regression import SMALLEST_GAP, BinSums, ResidualRegression

SCORE = np.array([0.2, 0.4, 0.6])
SHARE = np.array([3.0, 2.0, 4.0])  # of the target


def estimates(ones, rows, score, share, weights, knots):
    """Debiased error as built, and with w^2 e^2 / (1 - l) and 2 a . sum l o / (1 - l) alone."""
    counts = np.array([rows - ones, ones], dtype=float)
    mass, square = weights @ counts, weights**2 @ counts
    residual = weights[1] * ones * (1 - score) - weights[0] * (rows - ones) * score
    every = (rows, rows, mass, square, residual, share, share * score)
    sums = BinSums(*(np.array(one, dtype=float)[None] for one in every))
    t = np.linspace(0, 1, len(score))
    fits = ResidualRegression(sums, HatBasis.of_hats(t[None], knots[None]), 0, score[None])
    noise = np.zeros((4, 1, len(score)))
    for y in (0, 1):
        leverage = fits.leverage[0] * weights[y]
        gap = np.maximum(1 - leverage, SMALLEST_GAP)
        excess = weights[y] * (y - score - fits.value[0])
        each = excess**2 / gap, leverage * excess / gap, leverage * excess**2 / gap, weights[y] ** 2
        noise[:, 0] += counts[y] * np.array([np.broadcast_to(one, score.shape) for one in each])
    simple = fits.plugin + (fits.gradient * noise[1] - fits.trace_weight * noise[0]).sum(axis=1)
    return np.array([errors(fits, 2, regression_noise(fits, noise))[0], simple[0]])


def biases(rows, score, share, weights, frequency, knots):
    """Of both estimates, from the probabilities of all outcomes; frequency is the target's."""
    rows, weights = np.array(rows), np.array(weights)
    mixed = np.array([(1 - frequency) / weights[0], frequency / weights[1]])
    chance = mixed[1] / mixed.sum(axis=0)  # of the event in the source
    mean = np.zeros(2)
    for ones in product(*(range(one + 1) for one in rows)):
        outcome = estimates(np.array(ones), rows, score, share, weights, knots)
        mean += binom.pmf(ones, rows, chance).prod() * outcome
    return mean - share @ (frequency - score) ** 2 / share.sum()


@pytest.mark.parametrize("frequency", [0.1, 0.3, 0.5])
@pytest.mark.parametrize("rows", [3, 12])
def test_equal_weights_in_one_bin_leave_no_bias(rows, frequency):
    """s^2 is then the classical unbiased variance of a mean."""
    every = [rows], SCORE[:1], SHARE[:1], [1.0, 1.0], np.array([frequency]), np.array([True])
    np.testing.assert_allclose(biases(*every), 0, atol=1e-14)


@pytest.mark.parametrize("rows", [(5, 4, 5), (8, 6, 4)])
def test_equal_weights_on_a_line_leave_a_tenth_of_the_bias(rows):
    """Variances of .05 to .25 on two hats over three scores, which the frequencies fit exactly."""
    frequency, knots = np.array([0.05, 0.45, 0.85]), np.array([True, False, True])
    built, simple = np.abs(biases(rows, SCORE, SHARE, [1.0, 1.0], frequency, knots))
    assert simple > 5e-4  # else there is nothing to correct
    assert built < 0.12 * simple  # .10 and .11: what is left is of the next order in 1 / n


@pytest.mark.parametrize(("weight", "rows"), [(0.3, 15), (0.3, 40), (0.1, 40), (0.1, 120)])
def test_weights_that_follow_the_label_leave_less_bias(weight, rows):
    """A calibrated bin where rows without the event count less."""
    frequency = np.array([0.3])
    every = [rows], np.array([0.3]), SHARE[:1], [weight, 1.0], frequency, np.array([True])
    built, simple = np.abs(biases(*every))
    assert built < 0.55 * simple  # .53, .33, .50 and .05
