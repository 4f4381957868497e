"""estimator="plugin" and "debiased" on bins and kernels, against plain loops.

(docs/mathematics.md 3 and 4, with given weights: phi = 0.)
"""

from __future__ import annotations

import numpy as np
import pytest
from brute_force import (
    bin_terms,
    debiased_binned,
    debiased_kernel,
    folded_mean,
    folded_moment,
    kernel_terms,
    mass_edges,
    plugin_binned,
    plugin_kernel,
    rows,
    sample,
    unfold,
    width_edges,
)

import calshift

BINNED = ("binary", "classwise", "top-label")
NORMS = (1, 1.5, 2, 3)
GIVEN = [0.15, 0.3, 0.5, 0.62, 0.8]
CUTS = {
    "mass-15": ({"bins": 15}, lambda f: mass_edges(f, 15)),
    "mass-5": ({"bins": 5}, lambda f: mass_edges(f, 5)),
    "width-10": ({"bins": 10, "binning": "width"}, lambda f: width_edges(10)),
    "given": ({"bins": GIVEN}, lambda f: GIVEN),
}
BY_ESTIMATOR = {"plugin": plugin_binned, "debiased": debiased_binned}


def agrees(value, norm=2, estimator="plugin"):
    """1e-10; 1e-5 where the folded normal is inverted, for which a fine table is good enough."""
    tolerance = 1e-5 if estimator == "debiased" and norm != 2 else 1e-10
    return pytest.approx(value, rel=tolerance, abs=1e-10)


def check(result, errors, kind, norm=2, estimator="plugin", joined=None):
    mean = sum(errors) / len(errors)
    assert result.estimate == agrees(mean, norm, estimator)
    assert result.root == agrees(max(mean, 0.0) ** (1 / norm), norm, estimator)
    if kind == "classwise":
        assert result.per_class == agrees(errors, norm, estimator)
    else:
        assert result.per_class is None
    if joined is not None:
        assert result.merged_bins == joined


# --- bins ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("tied", [False, True], ids=["smooth", "tied"])
@pytest.mark.parametrize("cut", CUTS)
@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("estimator", BY_ESTIMATOR)
@pytest.mark.parametrize("kind", BINNED)
def test_bins_with_labels(kind, estimator, norm, cut, tied):
    p, y, *_ = sample(kind, seed=21, n=110, tied=tied)
    options, edges_for = CUTS[cut]
    result = calshift.calibration_error(p, y, kind=kind, norm=norm, estimator=estimator, **options)
    terms, joined = bin_terms(kind, edges_for, rows(p), rows(y))
    check(result, BY_ESTIMATOR[estimator](terms, norm), kind, norm, estimator, joined)


@pytest.mark.parametrize("tied", [False, True], ids=["smooth", "tied"])
@pytest.mark.parametrize("cut", CUTS)
@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("estimator", BY_ESTIMATOR)
@pytest.mark.parametrize("kind", BINNED)
def test_bins_without_labels(kind, estimator, norm, cut, tied):
    p, y, p_target, w = sample(kind, seed=22, n=110, m=80, tied=tied)
    options, edges_for = CUTS[cut]
    result = calshift.target_calibration_error(
        p, y, p_target, weights=w, kind=kind, norm=norm, estimator=estimator, **options
    )
    terms, joined = bin_terms(kind, edges_for, *map(rows, (p, y, p_target, w)))
    check(result, BY_ESTIMATOR[estimator](terms, norm), kind, norm, estimator, joined)
    terms, joined = bin_terms(kind, edges_for, rows(p), rows(y))
    check(result.source, BY_ESTIMATOR[estimator](terms, norm), kind, norm, estimator, joined)


@pytest.mark.parametrize("estimator", BY_ESTIMATOR)
@pytest.mark.parametrize("kind", BINNED)
def test_a_class_of_weight_zero_does_not_fill_a_bin(kind, estimator):
    """A bin needs two source rows of positive weight, or it joins its neighbour."""
    p, y, p_target, w = sample(kind, seed=23, n=110, m=80)
    w[0] = 0.0
    w /= sum(w[label] for label in y) / len(y)
    terms, joined = bin_terms(kind, CUTS["mass-15"][1], *map(rows, (p, y, p_target, w)))
    _, joined_by_rows = bin_terms(
        kind, CUTS["mass-15"][1], *map(rows, (p, y, p_target)), [1.0] * len(w)
    )
    assert joined > joined_by_rows  # else this sample tests nothing
    result = calshift.target_calibration_error(
        p, y, p_target, weights=w, kind=kind, estimator=estimator, bins=15
    )
    check(result, BY_ESTIMATOR[estimator](terms, 2), kind, 2, estimator, joined)


def test_by_hand():
    """One bin, weights 1/2 and 3/2, residuals -.2, -.3, .4, .1: U = (-.25 + .75) / 4 = .125.

    l = 1/8, 1/8, 3/8, 3/8; e = -.325, -.425, .275, -.025; L = .3125, the sum of l^2; noise:
    l^2 e^2 (1 + l - L) / (1 - l) sums .00153251, .00262068, .01807910 and .00014941, less 2 U times
    l (l - L) e / (1 - l), .00870536, .01138393, .01031250 and -.00093750: .01501562 in all.
    """
    result = calshift.target_calibration_error(
        [0.2, 0.3, 0.6, 0.9], [0, 0, 1, 1], [0.4, 0.7, 0.8], weights=[0.5, 1.5], bins=1
    )
    assert result.estimate == pytest.approx(0.125**2 - 0.01501562, abs=1e-8)


@pytest.mark.parametrize("norm", [1, 3])
def test_a_bin_within_its_noise_counts_as_calibrated(norm):
    """|U_b| below the mean of folded noise gives 0 in the bin, not a root of something below 0."""
    p, y = [0.5] * 40, [0, 1] * 19 + [1, 1]
    result = calshift.calibration_error(p, y, norm=norm, bins=1)
    assert result.estimate == 0.0
    assert calshift.calibration_error(p, y, norm=norm, bins=1, estimator="plugin").estimate > 0


@pytest.mark.parametrize("norm", [1, 1.5, 3])
@pytest.mark.parametrize("distance", [8, 20, 29, 31, 50, 200])
def test_small_noise_is_taken_out_too(distance, norm):
    """One bin with U = .4 and s = .4 / distance: E|Z|^p is close to U^p + p (p-1)/2 U^(p-2) s^2."""
    p = 0.6 + 0.4 / distance * np.sqrt(39) * np.tile([-1, 1], 20)  # s^2 = half-width^2 / (n - 1)
    assert 0 < p.min() < p.max() < 1
    result = calshift.calibration_error(p, np.ones(40, dtype=int), norm=norm, bins=1)
    expected = unfold(0.4, (0.4 / distance) ** 2, norm) ** norm
    assert result.estimate == agrees(expected, norm, "debiased")


def test_the_two_moments_of_the_folded_normal_agree():
    """The reference checks itself: E|Z| by its formula and by integration, E Z^2 = d^2 + s^2."""
    for d, s in ((0.0, 0.3), (0.02, 0.1), (0.4, 0.05), (2.0, 0.1)):
        assert folded_moment(d, s, 1) == pytest.approx(folded_mean(d, s), rel=1e-12)
        assert folded_moment(d, s, 2) == pytest.approx(d**2 + s**2, rel=1e-12)
        assert folded_moment(0.0, s, 3) == pytest.approx(s**3 * np.sqrt(8 / np.pi), rel=1e-12)


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("estimator", BY_ESTIMATOR)
@pytest.mark.parametrize("kind", BINNED)
def test_target_equal_to_source_is_the_labelled_estimate(kind, estimator, norm):
    p, y, *_ = sample(kind, seed=24)
    options = {"kind": kind, "norm": norm, "estimator": estimator, "bins": 8}
    unit = np.ones(2 if kind == "binary" else 3)
    shifted = calshift.target_calibration_error(p, y, p, weights=unit, **options)
    labelled = calshift.calibration_error(p, y, **options)
    assert shifted.estimate == pytest.approx(labelled.estimate, rel=1e-12, abs=1e-15)


# --- kernels ------------------------------------------------------------------------------------

KERNELS = [("dirichlet", 0.05), ("dirichlet", 0.4), ("triweight", 0.8), ("triweight", 1.3)]


@pytest.mark.parametrize(("kernel", "h"), KERNELS)
@pytest.mark.parametrize("kind", ["canonical", "binary", "classwise"])
def test_kernels_with_labels(kind, kernel, h):
    """The row itself stays in: it stands on both sides, as it does in a bin."""
    p, y, *_ = sample(kind, seed=25, n=60)
    options = {"kind": kind, "kernel": kernel, "bandwidth": h}
    terms = kernel_terms(kind, kernel, h, rows(p), rows(y))
    check(calshift.calibration_error(p, y, **options), debiased_kernel(terms), kind)
    for norm in (1, 2, 3):
        result = calshift.calibration_error(p, y, norm=norm, estimator="plugin", **options)
        check(result, plugin_kernel(terms, norm), kind, norm)


@pytest.mark.parametrize(("kernel", "h"), KERNELS)
@pytest.mark.parametrize("kind", ["canonical", "binary", "classwise"])
def test_kernels_without_labels(kind, kernel, h):
    p, y, p_target, w = sample(kind, seed=26, n=70, m=60)
    options = {"weights": w, "kind": kind, "kernel": kernel, "bandwidth": h}
    terms = kernel_terms(kind, kernel, h, *map(rows, (p, y, p_target, w)))
    result = calshift.target_calibration_error(p, y, p_target, **options)
    check(result, debiased_kernel(terms), kind)
    for norm in (1, 2, 3):
        result = calshift.target_calibration_error(
            p, y, p_target, norm=norm, estimator="plugin", **options
        )
        check(result, plugin_kernel(terms, norm), kind, norm)


# --- sample weights are repetition ----------------------------------------------------------------


@pytest.mark.parametrize("norm", [1, 2])
@pytest.mark.parametrize("estimator", BY_ESTIMATOR)
@pytest.mark.parametrize("kind", BINNED)
def test_sample_weights_on_bins(kind, estimator, norm):
    p, p_target, w, sides = weighted_sample(kind, seed=27)
    result = calshift.target_calibration_error(
        p, None, p_target, weights=w, kind=kind, norm=norm, estimator=estimator, bins=7
    )
    terms, joined = bin_terms(kind, lambda f: mass_edges(f, 7), *sides)
    check(result, BY_ESTIMATOR[estimator](terms, norm), kind, norm, estimator, joined)
    terms, joined = bin_terms(kind, lambda f: mass_edges(f, 7), *sides[:2])
    check(result.source, BY_ESTIMATOR[estimator](terms, norm), kind, norm, estimator, joined)


@pytest.mark.parametrize(("kernel", "h"), KERNELS[1:3])
def test_sample_weights_with_kernels(kernel, h):
    p, p_target, w, sides = weighted_sample("canonical", seed=28)
    result = calshift.target_calibration_error(
        p, None, p_target, weights=w, kind="canonical", kernel=kernel, bandwidth=h
    )
    check(result, debiased_kernel(kernel_terms("canonical", kernel, h, *sides)), "canonical")
    errors = debiased_kernel(kernel_terms("canonical", kernel, h, *sides[:2]))
    check(result.source, errors, "canonical")


def weighted_sample(kind, seed):
    """Predictions with integer weights, and the same rows repeated, as lists."""
    p, y, p_target, _ = sample(kind, seed=seed, n=60, m=50)
    rng = np.random.default_rng(seed)
    times, times_target = rng.integers(0, 4, 60), rng.integers(0, 4, 50)
    again, again_target = (np.repeat(np.arange(len(t)), t) for t in (times, times_target))
    share = np.bincount(y[again]) / len(again)
    w = np.arange(1, len(share) + 1) / (share @ np.arange(1, len(share) + 1))
    return (
        calshift.Predictions(p, y, sample_weight=times),
        calshift.Predictions(p_target, sample_weight=times_target),
        w,
        [rows(side) for side in (p[again], y[again], p_target[again_target], w)],
    )


# --- no bias --------------------------------------------------------------------------------------

SCORES = np.array([0.1, 0.2, 0.3, 0.45, 0.55, 0.7, 0.8, 0.9])
EDGES = [0.25, 0.5, 0.75]
SHARE_0 = np.array([0.2, 0.2, 0.15, 0.15, 0.1, 0.1, 0.06, 0.04])  # of each score, given class 0
SHARE_1 = np.array([0.05, 0.06, 0.1, 0.14, 0.15, 0.15, 0.15, 0.2])  # given class 1


def population(prior):
    """Share of each score and frequency of class 1 at it."""
    share = (1 - prior) * SHARE_0 + prior * SHARE_1
    return share, prior * SHARE_1 / share


def binned_truth(prior):
    """sum_b P_b (E[Y - f | b])^2 of the population."""
    share, frequency = population(prior)
    bins = np.searchsorted(EDGES, SCORES, side="right")
    return sum(
        (share[bins == b] @ (frequency - SCORES)[bins == b]) ** 2 / share[bins == b].sum()
        for b in range(4)
    )


def draw(rng, size, prior):
    share, frequency = population(prior)
    at = rng.choice(len(SCORES), size, p=share)
    return SCORES[at], (rng.uniform(size=size) < frequency[at]).astype(int)


def assert_unbiased(debiased, plugin, truth):
    """Within 4 standard errors of the mean over draws, where the plug-in is more than 5 away.

    The draws are independent, so their mean has the standard error sd / sqrt(draws), and is by
    chance more than 4 of these away once in 16 000 seeds.
    """
    standard_error = np.std(debiased, ddof=1) / np.sqrt(len(debiased))
    assert abs(np.mean(debiased) - truth) < 4 * standard_error
    assert np.mean(plugin) - truth > 5 * standard_error


@pytest.mark.slow
def test_debiased_estimate_with_labels_has_the_mean_of_the_population():
    """Exactly unbiased: given the counts, U_b^2 - s_b^2 is, and so are the counts.

    (Every bin holds .2 of the rows or more, so that fewer than two of 120 never happens.)
    """
    rng = np.random.default_rng(29)
    found = {"debiased": [], "plugin": []}
    for _ in range(2000):
        p, y = draw(rng, 120, prior=0.4)
        for estimator, values in found.items():
            result = calshift.calibration_error(p, y, estimator=estimator, bins=EDGES)
            values.append(result.estimate)
    assert_unbiased(**found, truth=binned_truth(0.4))


@pytest.mark.filterwarnings("ignore::calshift.UnreliableWeights")  # true w, not the sample's
@pytest.mark.slow
def test_debiased_estimate_without_labels_has_the_mean_of_the_population():
    """w known: what is left of the ratio's bias is of the order n_b^-2.

    (15 000 draws: -4e-5 +- 8e-5 at n = 150, where the standard error of this test is 2e-4.)
    """
    rng = np.random.default_rng(30)
    w = [0.4 / 0.6, 0.6 / 0.4]
    found = {"debiased": [], "plugin": []}
    for _ in range(2000):
        p, y = draw(rng, 150, prior=0.4)
        p_target, _ = draw(rng, 150, prior=0.6)
        for estimator, values in found.items():
            result = calshift.target_calibration_error(
                p, y, p_target, weights=w, estimator=estimator, bins=EDGES
            )
            values.append(result.estimate)
    assert_unbiased(**found, truth=binned_truth(0.6))
